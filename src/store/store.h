/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store: the table of storage back ends of a data set's files, and reading from any of them.
 * Formats and the caches of open files read only through it; io_uring reads through the descriptor
 * of a file that has one. Any thread may call all functions. Concurrent calls on one file may only
 * read and stat it.
 */
#ifndef PSTK_STORE_H
#define PSTK_STORE_H

#include <penstock/types.h>

#include <stddef.h>

struct pstk__store;

/* An open file. It lies in its opener's memory, and may be moved while no thread reads from it. */
struct pstk__file {
    const struct pstk__store *store; /* NULL: not open */
    int fd;                          /* native descriptor that callers may read from, or -1 */
    int in_memory;   /* 1: its file system has no other storage; set by the table of open files */
    void *state;     /* private to the store */
    uint64_t extent; /* private to the store */
};

/* An entry of a directory. */
enum pstk__store_kind { PSTK__STORE_FILE, PSTK__STORE_FOLDER, PSTK__STORE_OTHER };
struct pstk__store_entry {
    uint32_t kind;      /* enum pstk__store_kind */
    uint64_t size;      /* bytes of a file */
    int64_t changed_ns; /* time of change as of stat; of a folder: when a name in it was added or
                           removed */
    uint64_t device, inode; /* identity of the entry, the same for every path that leads to it */
};

/* Receives the name of each entry of a directory. A non-zero result ends the list. */
typedef int (*pstk__store_name_fn)(void *user, const char *name);

struct pstk__store {
    const char *name;
    uint32_t has_fds; /* 1: every open file has a native descriptor */
    /* Open a regular file for reading into *f; close ends it. Never waits for another program.
     * Never allocates, because files are opened between batches. 0, or a negative native errno with
     * *f closed; EISDIR or EINVAL: `path` is no regular file. */
    int (*open)(const struct pstk__store *s, struct pstk__file *f, const char *path);
    /* Set the bytes of the file, and its time of change: ns since 1970, modulo 2^64, only to be
     * compared for equality. 0 or a negative errno. */
    int (*stat)(const struct pstk__file *f, uint64_t *size, int64_t *changed_ns);
    /* Try once to read `size` (< 2^31) bytes at `offset`, as pread(2). Returns the bytes read, 0 at
     * the end, or a negative errno, EINTR and EAGAIN included. */
    int64_t (*read_at)(const struct pstk__file *f, void *buffer, uint64_t size, uint64_t offset);
    void (*close)(struct pstk__file *f);
    /* Write into text[size] the reason why a read of the file failed with -EBADMSG, or "". NULL:
     * the store never knows one. */
    void (*explain)(const struct pstk__file *f, char *text, size_t size);
    /* Write into text[size] why the last open failed, or "" if the errno suffices. NULL: the errno
     * always suffices. */
    void (*explain_open)(const struct pstk__store *s, char *text, size_t size);
    /* Describe an entry without opening it; follows links. 0 or a negative errno. NULL: the store
     * has no directories. */
    int (*look)(const struct pstk__store *s, const char *path, struct pstk__store_entry *entry);
    /* Call `each` with the names in a directory, in any order. 0, the result that ended the list,
     * or a negative errno. NULL: the store has no directories. */
    int (*list)(const struct pstk__store *s, const char *path, pstk__store_name_fn each,
                void *user);
    /* As list, but only for folders, without a stat of each entry. If the directory does not give
     * the type of an entry, as for a link, only the first 256 are checked. NULL: not implemented.
     */
    int (*list_folders)(const struct pstk__store *s, const char *path, pstk__store_name_fn each,
                        void *user);
    /* Cancel: opens and reads that wait for another program, or make the data that they read, soon
     * fail with -ECANCELED. Call close all the same. NULL: no call waits. */
    void (*stop)(const struct pstk__store *s);
    /* Read the file at `path` in full if reads are answered from a copy, which hides damage of the
     * file. 0: the file is intact, or there is no copy; EBADMSG: it is damaged; ECANCELED:
     * `progress`, which is called now and then, returned non-zero. NULL: the store has no copies.
     */
    int (*check)(const struct pstk__store *s, const char *path,
                 int (*progress)(void *user, uint64_t n), void *user, struct pstk_error *err);
};

/* The files of this machine, local and mounted. */
extern const struct pstk__store pstk__store_local;

/* Return the store in which `path` lies. */
const struct pstk__store *pstk__store_of(const char *path);

/* 1: the result of open means that no regular file lies at the path. */
int pstk__store_is_absent(int r);
/* 1: a regular file lies at the path, and can be opened; 0: none does; a negative errno: unknown.
 */
int pstk__store_find_file(const struct pstk__store *store, const char *path);
/* 1: a regular file lies at the path, and can be opened. */
int pstk__store_has_file(const struct pstk__store *store, const char *path);
/* Close a file if it is open. */
void pstk__file_end(struct pstk__file *file);
/* Read `size` bytes at `offset`; continues after short reads, EINTR and EAGAIN. Returns the number
 * of bytes read, fewer than size only at the end of the file, or a negative native errno. */
int64_t pstk__file_read(const struct pstk__file *file, void *buffer, uint64_t size,
                        uint64_t offset);
/* Check that an open file still has this size and this time of change, as stat gives them. EBADMSG:
 * the file was changed or replaced; other errors of stat. */
int pstk__file_check_same(const struct pstk__file *file, const char *name, uint64_t size,
                          int64_t changed_ns, int stage, struct pstk_error *err);
/* Write the end of a message about a read that failed with this native errno (positive): " (why)",
 * or "". Returns text. */
#define PSTK__WHY 1024 /* bytes of a reason, with its 0 */
const char *pstk__file_why(const struct pstk__file *file, int native, char text[PSTK__WHY]);
/* As pstk__file_why, for an open that failed. */
const char *pstk__store_why(const struct pstk__store *store, char text[PSTK__WHY]);
/* Fail after an open that returned -native, with the message "cannot open WHAT" and the reason. */
int pstk__store_fail_open(const struct pstk__store *store, int native, int stage, const char *what,
                          struct pstk_error *err);
/* Read a whole regular file of at most max_size bytes. Returns owned bytes (free()), never NULL. */
int pstk__store_load(const struct pstk__store *store, const char *path, uint64_t max_size,
                     void **bytes, uint64_t *size, struct pstk_error *err);

#endif
