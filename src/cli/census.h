/* SPDX-License-Identifier: Apache-2.0 */
/* census: how the images of a field are stored, counted, for people and for programs. */
#ifndef PSTK_CLI_CENSUS_H
#define PSTK_CLI_CENSUS_H

#include <penstock/format.h>

struct json_t;

struct census {
    uint64_t n_planes;
    uint64_t n_exact;      /* of them: given back byte for byte */
    uint64_t n_equivalent; /* of them: given back as an equivalent JPEG */
    uint64_t n_kept;       /* JPEG and PNG files stored as they came, or in zstd */
    uint64_t n_pixels;
};

struct census census_of(const struct pstk_field_stats *s);
/* Put planes, exact, equivalent, kept and pixels into an object. */
void census_put(const struct census *c, struct json_t *object);
/* One sentence without its end: "7 as planes (6 given back byte for byte, ...), 1 as it came". */
#define CENSUS_SIZE 256
const char *census_text(const struct census *c, char text[CENSUS_SIZE]);

#endif
