/* SPDX-License-Identifier: Apache-2.0 */
/* scalars: the values of a side column, as whole numbers or doubles. */
#ifndef PSTK_SCALARS_H
#define PSTK_SCALARS_H

#include <penstock/format.h>

/* A column that is read in pieces, in order. */
struct pstk__scalars {
    struct pstk_dataset *dataset; /* borrowed */
    const char *name;             /* borrowed */
    uint32_t dtype;               /* enum pstk_dtype */
    uint64_t n;                   /* of the data set */
    uint64_t next;                /* sample whose value comes next */
    uint64_t first, n_room;       /* samples whose values are in room */
    uint8_t *room;                /* owned */
};

/* Find the column `name`, which may be NULL, of a data set of n samples. setting: that names the
 * column, for messages. EINVAL: there is no such column, ENOMEM. On failure there is nothing to
 * close. */
int pstk__scalars_open(struct pstk__scalars *scalars, struct pstk_dataset *dataset,
                       const char *setting, const char *name, uint64_t n, struct pstk_error *err);
/* 1: the values are whole numbers. */
int pstk__scalars_are_whole(const struct pstk__scalars *scalars);
/* The next value, of at most n: 0; or <0, EBADMSG, ... */
int pstk__scalars_next(struct pstk__scalars *scalars, const uint8_t **value,
                       struct pstk_error *err);
/* A value of whole numbers. *fits is 0 where int64_t lacks it, and the result is then that number
 * minus 2^64. */
int64_t pstk__scalars_whole(const struct pstk__scalars *scalars, const uint8_t *value, int *fits);
/* A value as a double, rounded to the nearest. */
double pstk__scalars_real(const struct pstk__scalars *scalars, const uint8_t *value);
void pstk__scalars_close(struct pstk__scalars *scalars);

#endif
