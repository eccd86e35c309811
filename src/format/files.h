/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files: a bounded table of the open files of a data set, which closes the least recently used
 * first; and reads from a file, with the message of a failure. One thread at a time uses the table:
 * either a lane's reader thread, or dataset.c's callers under its lock. A slot is pinned while
 * reads on it are in flight or left to workers; only unpinned slots are evicted.
 */
#ifndef PSTK_FILES_H
#define PSTK_FILES_H

#include "format/format.h"

struct pstk__files;

enum pstk__files_mode {
    PSTK__FILES_RANDOM, /* buffered, without read-ahead */
    PSTK__FILES_DIRECT, /* O_DIRECT; if the file system refuses it, RANDOM, and acquire sets
                           PSTK_FALLBACK_NO_DIRECT in *fallbacks */
    PSTK__FILES_PLAIN,  /* flags unchanged */
};

/* Open a table of `capacity` >= 1 slots. Borrows source and fallbacks for its life. */
int pstk__files_open(struct pstk__files **out, const struct pstk__source *source, uint32_t capacity,
                     enum pstk__files_mode mode, uint32_t *fallbacks, struct pstk_error *err);
/* Pin the open file of that number, and set *slot and *file. Opens and checks it if needed. 1: the
 * slot holds a new file, so set it in the reader; 0: as before; PSTK__FILES_PINNED: every slot is
 * pinned, so wait for a read or task to end; otherwise an error that names the file. */
#define PSTK__FILES_PINNED 2
int pstk__files_acquire(struct pstk__files *files, uint32_t number, uint32_t *slot,
                        const struct pstk__file **file, struct pstk_error *err);
void pstk__files_release(struct pstk__files *files, uint32_t slot);
/* Close all files. NULL is fine. */
void pstk__files_close(struct pstk__files *files);
/* Return the number of slots that suits n_files and RLIMIT_NOFILE for each of n_tables tables that
 * read all the files. All tables together take half of the limit, because the program has files of
 * its own. */
uint32_t pstk__files_capacity(uint64_t n_files, uint32_t n_tables);

/* The two parts of acquire, for a caller with a lock that no thread may hold while it opens a file.
 */
/* 1: the file is open, is now pinned, and *slot and *file are set; 0: it is not open. */
int pstk__files_find(struct pstk__files *files, uint32_t number, uint32_t *slot,
                     const struct pstk__file **file);
/* Take over a checked file and pin it, closing the least recently used; set *slot and *file. If the
 * table has that file already, *open is left open, and the other is pinned. EBUSY: every slot is
 * pinned. */
int pstk__files_keep(struct pstk__files *files, uint32_t number, struct pstk__file *open,
                     uint32_t *slot, const struct pstk__file **file);
/* Open and check a file. Needs no table. Any thread. An error names the file. */
int pstk__source_open_file(const struct pstk__source *source, uint32_t number,
                           struct pstk__file *file, struct pstk_error *err);
/* Call stop (store.h) of the store of a data set, or of all that it joins. Any thread. */
void pstk__source_stop(const struct pstk__source *source);

/* Read exactly the bytes of the extent into buffer, from the file of that number. Fewer bytes are
 * damage: the file was cut short after the check. */
int pstk__source_read(const struct pstk__source *source, const struct pstk__file *file,
                      const struct pstk__extent *extent, void *buffer, struct pstk_error *err);
/* A read of a file that failed. */
struct pstk__unread {
    const char *name;              /* name of the file */
    const char *what;              /* "record 7", "header" */
    uint64_t record;               /* number of the record, or PSTK_NONE */
    uint64_t offset;               /* bytes */
    uint64_t size;                 /* bytes wanted */
    int64_t got;                   /* bytes read, or a negative errno */
    const struct pstk__file *from; /* file that may explain the error, or NULL */
};
/* Fail with the message of the read: EBADMSG if the file ends too early, otherwise the code of the
 * errno. */
int pstk__unread_fail(const struct pstk__unread *unread, struct pstk_error *err);

#endif
