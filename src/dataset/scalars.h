/* SPDX-License-Identifier: Apache-2.0 */
/* scalars: reads the values of a side column as whole numbers or doubles. */
#ifndef PSTK_SCALARS_H
#define PSTK_SCALARS_H

#include <penstock/format.h>

/* The state of reading a column in pieces, in order. */
struct pstk__scalars {
    struct pstk_dataset *dataset; /* borrowed */
    const char *name;             /* borrowed */
    uint32_t dtype;               /* enum pstk_dtype */
    uint64_t n;                   /* samples in the data set */
    uint64_t next;                /* number of the sample whose value comes next */
    uint64_t first, n_room;       /* number of the first sample in `room`, and of samples in it */
    uint8_t *room;                /* owned */
};

/* Open the column `name`, which may be NULL, of a data set of n samples. setting: the setting that
 * names the column, for messages. EINVAL: there is no such column; or ENOMEM. After a failure there
 * is nothing to close. */
int pstk__scalars_open(struct pstk__scalars *scalars, struct pstk_dataset *dataset,
                       const char *setting, const char *name, uint64_t n, struct pstk_error *err);
/* Return 1 if the values are whole numbers. */
int pstk__scalars_are_whole(const struct pstk__scalars *scalars);
/* Read the next value; there are n. Returns 0 or, below 0, EBADMSG, ... */
int pstk__scalars_next(struct pstk__scalars *scalars, const uint8_t **value,
                       struct pstk_error *err);
/* Return a value of a column of whole numbers. *fits 0: int64_t cannot hold it, and the result is
 * the value minus 2^64. */
int64_t pstk__scalars_whole(const struct pstk__scalars *scalars, const uint8_t *value, int *fits);
/* Return a value as a double, rounded to the nearest. */
double pstk__scalars_real(const struct pstk__scalars *scalars, const uint8_t *value);
void pstk__scalars_close(struct pstk__scalars *scalars);

#endif
