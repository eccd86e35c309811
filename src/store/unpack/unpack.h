/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack: a store over another store, which shows the compressed files of a data set with their
 * unpacked sizes and bytes. Unpacking begins at points (access_points.h). One pass over each file
 * finds them, and they are kept next to the index (store/index/location.h). A file without near
 * points, such as a zstd file with a large frame, is unpacked into the cache (cache/) and read
 * there; if its entry is evicted, the next open makes it again.
 *
 * A read unpacks from the point before it, or continues where an earlier read of that file stopped.
 * Every returned byte was compared with a CRC32C of the pass. Files that are not compressed come
 * from the store below. Any thread may read; reads of one span wait for each other.
 */
#ifndef PSTK_UNPACK_H
#define PSTK_UNPACK_H

#include "store/unpack/file_list.h"

struct pstk__unpack;

/* Find the points of all files, or open those that an earlier call found. Returns owned; NULL: no
 * file is compressed, because no file has such a name, and the first that is not empty does not
 * begin as such a file. EBADMSG: a file is damaged; ENOTSUP: its samples cannot be read alone;
 * ECANCELED; other errors as for pstk__index_get. */
int pstk__unpack_open(struct pstk__unpack **out, const struct pstk__unpack_files *files,
                      struct pstk_error *err);
/* Unpack the first n bytes of a file, n <= 4096. Returns the number of bytes it has, 0 if the file
 * is not compressed or these bytes are damaged, or a negative errno. */
int64_t pstk__unpack_head(const struct pstk__store *store, const char *path, uint8_t *head,
                          uint64_t n);
/* Close the store, once none of its files is open. NULL is fine. */
void pstk__unpack_close(struct pstk__unpack *unpack);
/* Return the store, which lives as long as `unpack`. */
const struct pstk__store *pstk__unpack_store(const struct pstk__unpack *unpack);
/* Return the unpacked bytes of file i. */
uint64_t pstk__unpack_size(const struct pstk__unpack *unpack, uint64_t i);
/* 1: all files are compressed, and all their bytes have checksums in them. */
int pstk__unpack_is_checked(const struct pstk__unpack *unpack);
/* Return the name of the files' packing in at most 5 letters: "gzip"; "mixed": several. Static
 * storage. */
const char *pstk__unpack_name(const struct pstk__unpack *unpack);

#endif
