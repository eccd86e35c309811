/* SPDX-License-Identifier: Apache-2.0 */
/* Skeletons as they are stored: the usual one takes no byte, others a zstd frame. */
#include "support/jpeg_writer.h"
#include "support/test.h"

#include "image/jpeg/coefficients.h"
#include "image/planes/skeleton.h"

/* A file taken apart, and what its skeleton is stored as. */
struct subject {
    struct pstk__arena arena;
    struct pstk__encoder *encoder;
    struct pstk__decoder *decoder;
    struct pstk__jpeg_image image;
    uint8_t *stored;
    int64_t size;
    uint8_t *back; /* as many bytes as the skeleton */
};

static void subject_close(struct subject *s)
{
    pstk__encoder_close(s->encoder);
    free(s->decoder);
    free(s->stored);
    free(s->back);
    pstk__arena_close(&s->arena);
}

/* 0: the skeleton is stored, and is the same when it is read back. */
static int subject_open(struct subject *s, const struct jpeg_spec *spec)
{
    size_t size;
    uint8_t *file = jpeg_write(spec, &size);
    *s = (struct subject){.size = -1};
    int r = pstk__arena_open(&s->arena, 16u << 20);
    if (r == 0)
        r = pstk__encoder_open(&s->encoder, PSTK__SKELETON_LEVEL, NULL, 0, NULL);
    s->decoder = pstk__decoder_init(aligned_alloc(64, pstk__decoder_size()), pstk__decoder_size());
    if (r == 0)
        r = pstk__jpeg_image_read(&s->image, file, size, UINT64_MAX, &s->arena, NULL);
    free(file);
    if (r < 0)
        return r;
    s->stored = malloc(pstk__skeleton_bound(s->image.skeleton_size));
    s->back = malloc(s->image.skeleton_size);
    s->size = pstk__skeleton_encode(s->encoder, &s->image.frame, s->image.skeleton,
                                    s->image.skeleton_size, s->stored, NULL);
    if (s->size < 0)
        return (int)s->size;
    r = pstk__skeleton_decode(s->decoder, &s->image.frame, s->stored, (uint64_t)s->size, s->back,
                              s->image.skeleton_size, NULL);
    return r < 0 ? r : memcmp(s->back, s->image.skeleton, s->image.skeleton_size) != 0;
}

TEST(the_skeleton_of_libjpegs_default_files_takes_no_bytes)
{
    static const struct jpeg_spec specs[] = {
        {.width = 64,
         .height = 48,
         .n_components = 3,
         .h = 2,
         .v = 2,
         .interleaved = 1,
         .quality = 75},
        {.width = 65,
         .height = 300,
         .n_components = 3,
         .h = 1,
         .v = 1,
         .interleaved = 1,
         .quality = 95},
        {.width = 33,
         .height = 1,
         .n_components = 3,
         .h = 2,
         .v = 1,
         .interleaved = 1,
         .quality = 100},
        {.width = 500,
         .height = 40,
         .n_components = 1,
         .h = 1,
         .v = 1,
         .interleaved = 1,
         .quality = 50},
    };
    for (uint32_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct subject s;
        CHECK_EQ(subject_open(&s, &specs[i]), 0);
        CHECK_EQ(s.size, 0);
        subject_close(&s);
    }
}

TEST(other_skeletons_take_a_frame_that_shares_the_usual_one)
{
    static const struct jpeg_spec specs[] = {
        {.width = 64,
         .height = 48,
         .n_components = 3,
         .h = 2,
         .v = 2,
         .interleaved = 1,
         .quality = 75,
         .restart = 2},
        {.width = 64, .height = 48, .n_components = 3, .h = 2, .v = 2, .quality = 75},
        {.width = 64,
         .height = 48,
         .n_components = 3,
         .h = 1,
         .v = 1,
         .interleaved = 1,
         .rgb = 1,
         .quality = 75},
        {.width = 64,
         .height = 48,
         .n_components = 4,
         .h = 1,
         .v = 1,
         .interleaved = 1,
         .rgb = 1,
         .quality = 5},
    };
    for (uint32_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct subject s;
        CHECK_EQ(subject_open(&s, &specs[i]), 0);
        CHECK(s.size > 0 && s.size < 100);
        subject_close(&s);
    }
}

/* The sizes in a field's header are what its writer wanted them to be. */
TEST(a_usual_skeleton_of_another_size_is_damaged)
{
    static const struct jpeg_spec spec = {.width = 64,
                                          .height = 48,
                                          .n_components = 3,
                                          .h = 2,
                                          .v = 2,
                                          .interleaved = 1,
                                          .quality = 75};
    struct subject s;
    struct pstk_error err;
    uint8_t out[2000];
    CHECK_EQ(subject_open(&s, &spec), 0);
    for (uint64_t size = 0; size < sizeof out; size++)
        if (size != s.image.skeleton_size)
            CHECK_EQ(pstk__skeleton_decode(s.decoder, &s.image.frame, NULL, 0, out, size, NULL),
                     PSTK_EBADMSG);
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk__skeleton_decode(s.decoder, &s.image.frame, NULL, 0, out, sizeof out, &err),
             PSTK_EBADMSG);
    CHECK(strcmp(err.message, "planes: the usual markers have 625 bytes, its header says 2000") ==
          0);
    subject_close(&s);
}

/* Four components with tables of their own, of 16 bits. */
TEST(the_largest_usual_skeleton_fits_its_bound)
{
    struct pstk__jpeg_frame f = {.width = 65535, .height = 65535, .n_components = 4};
    uint8_t out[PSTK__SKELETON_MAX_USUAL];
    for (uint32_t c = 0; c < 4; c++) {
        f.component[c].h = f.component[c].v = 1;
        for (uint32_t i = 0; i < 64; i++)
            f.component[c].quant[i] = (uint16_t)(1000 + c);
    }
    CHECK_EQ(pstk__skeleton_usual(out, &f), PSTK__SKELETON_MAX_USUAL);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(the_skeleton_of_libjpegs_default_files_takes_no_bytes),
        CASE(other_skeletons_take_a_frame_that_shares_the_usual_one),
        CASE(a_usual_skeleton_of_another_size_is_damaged),
        CASE(the_largest_usual_skeleton_fits_its_bound),
    };
    return RUN_CASES(cases);
}
