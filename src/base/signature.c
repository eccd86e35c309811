/* SPDX-License-Identifier: Apache-2.0 */
#include "base/signature.h"

#include <penstock/format.h>

#include <string.h>

struct pattern {
    const char *name;
    const char *bytes;
    uint32_t size, at;
};

/* The signature of each format, from its specification. find_netpbm and is_bmp check the two-byte
 * signatures (PNM, BMP) in more detail. */
static const struct pattern patterns[] = {
    {"GIF", "GIF87a", 6, 0},
    {"GIF", "GIF89a", 6, 0},
    {"TIFF", "II*\0", 4, 0},
    {"TIFF", "MM\0*", 4, 0},
    {"TIFF", "II+\0", 4, 0}, /* BigTIFF */
    {"TIFF", "MM\0+", 4, 0},
    {"JPEG 2000", "\0\0\0\x0cjP  \r\n\x87\n", 12, 0},
    {"JPEG 2000", "\xff\x4f\xff\x51", 4, 0},
    {"JPEG XL", "\0\0\0\x0cJXL \r\n\x87\n", 12, 0},
    {"JPEG XL", "\xff\x0a", 2, 0},
    {"OpenEXR", "v/1\x01", 4, 0},
    {"Photoshop", "8BPS", 4, 0},
};

/* Brands of ISO base media files (AVIF, HEIF: ISO 23000-22, ISO 23008-12). */
static const struct pattern brands[] = {
    {"AVIF", "avif", 4, 8}, {"AVIF", "avis", 4, 8}, {"HEIC", "heic", 4, 8}, {"HEIC", "heix", 4, 8},
    {"HEIC", "hevc", 4, 8}, {"HEIC", "hevx", 4, 8}, {"HEIC", "heim", 4, 8}, {"HEIC", "heis", 4, 8},
    {"HEIF", "mif1", 4, 8}, {"HEIF", "msf1", 4, 8},
};

static int has(const uint8_t *data, uint64_t size, uint32_t at, const void *bytes, uint32_t n)
{
    return size >= (uint64_t)at + n && memcmp(data + at, bytes, n) == 0;
}

static const char *find(const struct pattern *pattern, size_t n, const uint8_t *data, uint64_t size)
{
    for (size_t i = 0; i < n; i++)
        if (has(data, size, pattern[i].at, pattern[i].bytes, pattern[i].size))
            return pattern[i].name;
    return NULL;
}

/* Find a Netpbm file: P and a digit, then white space or a comment. */
static const char *find_netpbm(const uint8_t *data, uint64_t size)
{
    static const char *const names[] = {"PBM", "PGM", "PPM", "PBM", "PGM", "PPM", "PAM"};
    if (size < 3 || data[0] != 'P' || data[1] < '1' || data[1] > '7' ||
        !memchr("\t\n\r #", data[2], 5))
        return NULL;
    return names[data[1] - '1'];
}

/* Return whether it is a BMP file: BM, four bytes of size, four that are 0 in practice, and a
 * header of a known size. */
static int is_bmp(const uint8_t *data, uint64_t size)
{
    static const uint8_t sizes[] = {12, 40, 52, 56, 64, 108, 124};
    return has(data, size, 0, "BM", 2) && has(data, size, 6, "\0\0\0\0", 4) && size >= 18 &&
           memchr(sizes, data[14], sizeof sizes) && has(data, size, 15, "\0\0\0", 3);
}

static const char *find_other(const uint8_t *data, uint64_t size)
{
    const char *name = find(patterns, sizeof patterns / sizeof *patterns, data, size);
    if (!name && has(data, size, 0, "RIFF", 4) && has(data, size, 8, "WEBP", 4))
        name = "WebP";
    if (!name && has(data, size, 4, "ftyp", 4))
        name = find(brands, sizeof brands / sizeof *brands, data, size);
    if (!name && is_bmp(data, size))
        name = "BMP";
    return name ? name : find_netpbm(data, size);
}

enum pstk__signature pstk__signature_find(const void *data, uint64_t size, const char **name)
{
    const char *unused;
    name = name ? name : &unused;
    if (has(data, size, 0, "\xff\xd8\xff", 3)) {
        *name = "JPEG";
        return PSTK__SIGNATURE_JPEG;
    }
    if (has(data, size, 0, "\x89PNG\r\n\x1a\n", 8)) {
        *name = "PNG";
        return PSTK__SIGNATURE_PNG;
    }
    *name = find_other(data, size);
    return *name ? PSTK__SIGNATURE_OTHER : PSTK__SIGNATURE_NONE;
}

const char *pstk_image_format(const void *data, uint64_t size, int *packed)
{
    const char *name = NULL;
    const enum pstk__signature found =
        data ? pstk__signature_find(data, size, &name) : PSTK__SIGNATURE_NONE;
    if (packed)
        *packed = found == PSTK__SIGNATURE_JPEG || found == PSTK__SIGNATURE_PNG;
    return name;
}
