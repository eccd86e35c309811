/* SPDX-License-Identifier: Apache-2.0 */
/* walk: the records of a file, one after another. One thread. */
#ifndef PSTK_TFRECORD_WALK_H
#define PSTK_TFRECORD_WALK_H

#include "format/file_reader.h"

struct pstk__tfrecord_walk {
    struct pstk__file_reader reader;
    uint64_t n;      /* records so far, with this one */
    uint64_t begin;  /* byte of this one */
    uint64_t length; /* bytes of its data */
    uint64_t next;   /* byte after it */
};

/* Open the file. Close ends it, also after a failure. */
int pstk__tfrecord_walk_open(struct pstk__tfrecord_walk *walk, const struct pstk__scan *scan,
                             struct pstk_error *err);
void pstk__tfrecord_walk_close(struct pstk__tfrecord_walk *walk);
/* Step to the next record. 1: it is there, whole by its length; 0: the file ends; EBADMSG: damage
 * or the end within a record; ENOTSUP: the file is compressed; ECANCELED, ... */
int pstk__tfrecord_walk_next(struct pstk__tfrecord_walk *walk);
/* Read the data of the record with its checksum: *data is borrowed until the next call. */
int pstk__tfrecord_walk_data(struct pstk__tfrecord_walk *walk, const uint8_t **data);
/* Fail: what is wrong with the record. Returns `code`. */
int pstk__tfrecord_walk_fail(struct pstk__tfrecord_walk *walk, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
