/* SPDX-License-Identifier: Apache-2.0 */
#include "base/signature.h"
#include "support/test.h"

#include <penstock/format.h>

#include <string.h>

struct sample {
    const char *name;
    const char *bytes;
    uint32_t size;
    int packed;
};

/* The first bytes of files as their formats' specifications have them. */
static const struct sample samples[] = {
    {"JPEG", "\xff\xd8\xff\xe0\0\x10JFIF", 10, 1},
    {"PNG", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16, 1},
    {"GIF", "GIF87a", 6, 0},
    {"GIF", "GIF89a\x01\0", 8, 0},
    {"TIFF", "II*\0\x08\0\0\0", 8, 0},
    {"TIFF", "MM\0*\0\0\0\x08", 8, 0},
    {"TIFF", "II+\0\x08\0\0\0", 8, 0},
    {"TIFF", "MM\0+\0\x08\0\0", 8, 0},
    {"WebP", "RIFF\x24\0\0\0WEBPVP8 ", 16, 0},
    {"AVIF",
     "\0\0\0\x1c"
     "ftypavif\0\0\0\0mif1",
     20, 0},
    {"AVIF",
     "\0\0\0\x1c"
     "ftypavis\0\0\0\0",
     16, 0},
    {"HEIC",
     "\0\0\0\x18"
     "ftypheic\0\0\0\0",
     16, 0},
    {"HEIF",
     "\0\0\0\x18"
     "ftypmif1\0\0\0\0",
     16, 0},
    {"JPEG 2000", "\0\0\0\x0cjP  \r\n\x87\n", 12, 0},
    {"JPEG 2000", "\xff\x4f\xff\x51\0", 5, 0},
    {"JPEG XL", "\0\0\0\x0cJXL \r\n\x87\n", 12, 0},
    {"JPEG XL", "\xff\x0a\x01\x02", 4, 0},
    {"OpenEXR", "v/1\x01\x02", 5, 0},
    {"Photoshop", "8BPS\0\x01", 6, 0},
    {"BMP", "BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", 18, 0},
    {"BMP", "BM\x46\0\0\0\0\0\0\0\x1a\0\0\0\x0c\0\0\0", 18, 0},
    {"PBM", "P1\n2 2\n", 7, 0},
    {"PGM", "P2 2 2 255", 10, 0},
    {"PPM", "P3\t1 1", 6, 0},
    {"PBM", "P4\n8 1\n", 7, 0},
    {"PGM", "P5\n2 2\n255\n", 11, 0},
    {"PPM", "P6\r\n2 2", 7, 0},
    {"PAM", "P7\nWIDTH 1", 10, 0},
    /* bytes that only look a little like one */
    {NULL, "RIFF\x24\0\0\0WAVEfmt ", 16, 0},
    {NULL,
     "\0\0\0\x18"
     "ftypisom\0\0\0\0",
     16, 0},
    {NULL, "BM is how this text begins", 26, 0},
    {NULL, "P6X", 3, 0},
    {NULL, "P8\n", 3, 0},
    {NULL, "PK\x03\x04", 4, 0},
    {NULL, "GIF88a", 6, 0},
    {NULL, "", 0, 0},
};

TEST(each_format_is_known_by_its_first_bytes)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const struct sample *s = &samples[i];
        int packed = -1;
        const char *name = pstk_image_format(s->bytes, s->size, &packed);
        CHECK_EQ(packed, s->packed);
        CHECK((name == NULL) == (s->name == NULL));
        if (s->name && name)
            CHECK_STR(name, s->name);
        const enum pstk__signature found = pstk__signature_find(s->bytes, s->size, NULL);
        CHECK_EQ(found == PSTK__SIGNATURE_OTHER, s->name && !s->packed);
        CHECK_EQ(found == PSTK__SIGNATURE_NONE, !s->name);
    }
    CHECK(pstk_image_format(NULL, 0, NULL) == NULL);
}

/* Each length in memory of its own, so that AddressSanitizer sees a byte read past the end. */
TEST(files_cut_short_are_looked_at_within_their_bytes)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        for (uint32_t size = 1; size < samples[i].size; size++) {
            char *bytes = malloc(size);
            CHECK(bytes != NULL);
            memcpy(bytes, samples[i].bytes, size);
            const char *name = pstk_image_format(bytes, size, NULL);
            CHECK(!name || !samples[i].name || strcmp(name, samples[i].name) == 0);
            free(bytes);
        }
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(each_format_is_known_by_its_first_bytes),
        CASE(files_cut_short_are_looked_at_within_their_bytes),
    };
    return RUN_CASES(cases);
}
