/* SPDX-License-Identifier: Apache-2.0 */
/* census: counts the storage of a field's images, for people and for programs. */
#ifndef PSTK_CLI_CENSUS_H
#define PSTK_CLI_CENSUS_H

#include <penstock/format.h>

struct json_t;

struct census {
    uint64_t n_planes;
    uint64_t n_exact;            /* planes whose file is restored byte for byte */
    uint64_t n_equivalent;       /* planes whose file is restored as an equivalent JPEG */
    uint64_t n_passthrough_jpeg; /* JPEG files stored unchanged, or in zstd */
    uint64_t n_passthrough_png;  /* PNG files stored unchanged, or in zstd */
    uint64_t n_pixels;
    uint64_t n_damaged; /* JPEG files marked as damaged */
};

struct census census_of(const struct pstk_field_stats *stats);
/* Put planes, exact, equivalent, passthrough, passthrough_jpeg, passthrough_png, pixels and damaged
 * into an object. */
void census_put(const struct census *census, struct json_t *object);
/* Write one sentence without its full stop: "7 as planes (6 given back byte for byte, ...), 1 as a
 * file (1 JPEG; 1 damaged)". Returns `text`. */
#define CENSUS_SIZE 384
const char *census_text(const struct census *census, char text[CENSUS_SIZE]);

#endif
