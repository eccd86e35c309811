/* SPDX-License-Identifier: Apache-2.0 */
/* out_file: a new file in a directory, written from start to end through a buffer. One thread. */
#ifndef PSTK_EXPORT_OUT_FILE_H
#define PSTK_EXPORT_OUT_FILE_H

#include <penstock/types.h>

/* All zero is closed. */
struct pstk__out_file {
    const char *folder; /* borrowed; for messages */
    char *name;         /* path below the directory; owned */
    uint8_t *buffer;    /* owned; NULL: closed */
    int fd;
    uint32_t n_buffered; /* bytes in the buffer */
    uint64_t size;       /* bytes written, including the buffer */
    uint64_t n_written;  /* bytes written, without the buffer */
};

/* Create `name` below the directory `dir`. EEXIST, without a message: the name exists, or a file
 * has the name of one of its directories. On failure *file is closed. */
int pstk__out_file_open(struct pstk__out_file *file, int dir, const char *folder, const char *name,
                        struct pstk_error *err);
int pstk__out_file_put(struct pstk__out_file *file, const void *data, uint64_t size,
                       struct pstk_error *err);
/* Append `size` bytes of another file, from `offset` on. */
int pstk__out_file_copy(struct pstk__out_file *file, int from, uint64_t offset, uint64_t size,
                        struct pstk_error *err);
/* Write the buffer. */
int pstk__out_file_flush(struct pstk__out_file *file, struct pstk_error *err);
/* Write the buffer, sync if `synced`, and close, also on failure. */
int pstk__out_file_end(struct pstk__out_file *file, int synced, struct pstk_error *err);
/* Close without writing the buffer; closed is fine. */
void pstk__out_file_drop(struct pstk__out_file *file);

#endif
