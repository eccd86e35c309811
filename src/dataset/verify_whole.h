/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_whole: the jobs of pstk_verify that read a whole field or file, piece by piece, on one
 * thread each. They report damage and progress, in samples, to the sink of the map.
 */
#ifndef PSTK_VERIFY_WHOLE_H
#define PSTK_VERIFY_WHOLE_H

#include "base/crc32.h"
#include "base/parallel_map.h"
#include "format/format.h"

#define PSTK__VERIFY_PIECE (UINT64_C(1) << 20) /* bytes read at once */

/* The resources that a job borrows from its thread. */
struct pstk__verify_whole {
    const struct pstk__source *source; /* borrowed */
    void *piece;                       /* borrowed; PSTK__VERIFY_PIECE bytes */
    struct pstk__crc32 crc32;
};

/* Return 1 if result `rc`, with the reason *bad, is damage of the data: other data may be whole. */
int pstk__verify_is_damage(int rc, const struct pstk_error *bad);

/* The jobs below return 0, even after they reported damage; ECANCELED: the sink ended the check; or
 * the error that prevents further reading. */

/* Check a whole field against its checksum (struct pstk__cover). */
int pstk__verify_field(const struct pstk__verify_whole *whole, uint32_t field,
                       const struct pstk__map_sink *sink, struct pstk_error *err);
/* Check a file against the hash that the data set lists. Does nothing if there is none, or its
 * algorithm is unknown. */
int pstk__verify_hash(const struct pstk__verify_whole *whole, uint32_t file,
                      const struct pstk__map_sink *sink, struct pstk_error *err);
/* Let the store check a file whose copy is read. The store has `check`. */
int pstk__verify_copy(const struct pstk__verify_whole *whole, uint32_t file,
                      const struct pstk__map_sink *sink, struct pstk_error *err);

#endif
