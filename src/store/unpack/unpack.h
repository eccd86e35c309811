/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack: a store over another store, in which the compressed files of a data set are as long and
 * have the bytes that they unpack to. Unpacking begins at points (access_points.h), which are found
 * by one pass over each file and kept where the index is kept (store/index/location.h). A file
 * without points that are near enough, as a large frame of zstd, is unpacked into the cache
 * (cache/) and read there; if its entry leaves the cache, the next open makes it again.
 *
 * A read unpacks from the point before it, or goes on where an earlier one of that file stopped.
 * Every byte that it gives was compared with a CRC32C of the pass. Files that are not compressed
 * are those of the store below. Any thread may read; reads of one span wait for each other.
 */
#ifndef PSTK_UNPACK_H
#define PSTK_UNPACK_H

#include "store/unpack/file_list.h"

struct pstk__unpack;

/* Find the points of all files, or open those that were found before. Returns owned; NULL: no file
 * is compressed: neither is named so nor does the first of them begin so. EBADMSG: a file is
 * damaged; ENOTSUP: its samples cannot be read alone; ECANCELED; others as of pstk__index_get. */
int pstk__unpack_open(struct pstk__unpack **out, const struct pstk__unpack_files *files,
                      struct pstk_error *err);
/* Unpack the first n bytes of a file, n <= 4096: how many it has, 0 if it is not compressed or they
 * are damaged, or a negative errno. */
int64_t pstk__unpack_head(const struct pstk__store *store, const char *path, uint8_t *head,
                          uint64_t n);
/* No file of it is open any more. NULL is fine. */
void pstk__unpack_close(struct pstk__unpack *unpack);
/* The store; lives as long as `unpack`. */
const struct pstk__store *pstk__unpack_store(const struct pstk__unpack *unpack);
/* Unpacked bytes of file i. */
uint64_t pstk__unpack_size(const struct pstk__unpack *unpack, uint64_t i);
/* 1: all files are compressed, and each has checksums of all its bytes. */
int pstk__unpack_is_checked(const struct pstk__unpack *unpack);
/* What the files are compressed by, in 5 letters: "gzip"; "mixed": different ways. Static. */
const char *pstk__unpack_name(const struct pstk__unpack *unpack);

#endif
