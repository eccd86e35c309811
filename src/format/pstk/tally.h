/* SPDX-License-Identifier: Apache-2.0 */
/* tally: the maxima and sums over the records of a data set, field by field, for its manifest.
 * Pure. The writer stores them, merge joins them, and verify compares them. */
#ifndef PSTK_TALLY_H
#define PSTK_TALLY_H

#include "record/record.h"

/* Elements of these members of struct pstk_field_stats. */
enum {
    PSTK__N_ENCODINGS_ROOM = sizeof((struct pstk_field_stats *)0)->n_encoding / sizeof(uint64_t),
    PSTK__N_CODECS_ROOM = sizeof((struct pstk_field_stats *)0)->n_codec / sizeof(uint64_t),
};

/* Count one record: the views as stored. Values in the head need only their sizes in the schema. */
void pstk__tally_add(struct pstk_field_stats *stats, const struct pstk__schema *schema,
                     const struct pstk__field_view *views);
/* Add the n_fields of b to those of a. */
void pstk__tally_join(struct pstk_field_stats *a, const struct pstk_field_stats *b,
                      uint32_t n_fields);

#endif
