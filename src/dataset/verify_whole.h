/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_whole: jobs of pstk_verify that read a field or a file as a whole, piece by piece: one
 * thread each. They report damage and progress to the sink of the map, whose unit is a sample.
 */
#ifndef PSTK_VERIFY_WHOLE_H
#define PSTK_VERIFY_WHOLE_H

#include "base/crc32.h"
#include "base/parallel_map.h"
#include "format/format.h"

#define PSTK__VERIFY_PIECE (UINT64_C(1) << 20) /* bytes that are read at once */

/* What such a job takes from its thread. */
struct pstk__verify_whole {
    const struct pstk__source *source; /* borrowed */
    void *piece;                       /* borrowed; PSTK__VERIFY_PIECE bytes */
    struct pstk__crc32 crc32;
};

/* 1: a result, whose reason is *bad, is damage of the data, after which others may be whole. */
int pstk__verify_is_damage(int rc, const struct pstk_error *bad);

/* The jobs: 0, also where damage was reported; ECANCELED: the sink says stop; or a reason why
 * nothing more can be read. */

/* Check a field that has a checksum as a whole (struct pstk__cover). */
int pstk__verify_field(const struct pstk__verify_whole *whole, uint32_t field,
                       const struct pstk__map_sink *sink, struct pstk_error *err);
/* Check a file against the hash that the data set lists; without one that is known, do nothing. */
int pstk__verify_hash(const struct pstk__verify_whole *whole, uint32_t file,
                      const struct pstk__map_sink *sink, struct pstk_error *err);
/* Have the store check a file whose copy is read: the store has `check`. */
int pstk__verify_copy(const struct pstk__verify_whole *whole, uint32_t file,
                      const struct pstk__map_sink *sink, struct pstk_error *err);

#endif
