/* SPDX-License-Identifier: Apache-2.0 */
/* walk: steps through the records of a file. One thread. */
#ifndef PSTK_TFRECORD_WALK_H
#define PSTK_TFRECORD_WALK_H

#include "format/file_reader.h"

struct pstk__tfrecord_walk {
    struct pstk__file_reader reader;
    uint64_t n;      /* records so far, the current one included */
    uint64_t begin;  /* begin of the current record, byte of the file */
    uint64_t length; /* bytes of its data */
    uint64_t next;   /* end of the current record, byte of the file */
};

/* Open the file. Call close even after a failure. */
int pstk__tfrecord_walk_open(struct pstk__tfrecord_walk *walk, const struct pstk__scan *scan,
                             struct pstk_error *err);
void pstk__tfrecord_walk_close(struct pstk__tfrecord_walk *walk);
/* Step to the next record. 1: it is complete by its length; 0: the file ends; EBADMSG: damage, or
 * the file ends within a record; ENOTSUP: the file is compressed; EFBIG: the record has 4 GiB or
 * more; ECANCELED, ... */
int pstk__tfrecord_walk_next(struct pstk__tfrecord_walk *walk);
/* Read the data of the record, and its checksum after it: *data is borrowed until the next call. */
int pstk__tfrecord_walk_data(struct pstk__tfrecord_walk *walk, const uint8_t **data);
/* Fail with a message that names the record. Returns `code`. */
int pstk__tfrecord_walk_fail(struct pstk__tfrecord_walk *walk, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
