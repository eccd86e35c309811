/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store: the table of places where the files of a data set may lie, and reading from any of them.
 * Formats and the caches of open files read through it alone; io_uring reads by the descriptor of a
 * file that has one. Any thread may call all functions. Several threads at once may only read and
 * stat one file.
 */
#ifndef PSTK_STORE_H
#define PSTK_STORE_H

#include <penstock/types.h>

#include <stddef.h>

struct pstk__store;

/* An open file. It lies in its opener's memory and may be moved while nobody reads from it. */
struct pstk__file {
    const struct pstk__store *store; /* NULL: not open */
    int fd;                          /* native descriptor for others to read from, or -1 */
    void *state;                     /* the store's own */
    uint64_t extent;                 /* the store's own, too */
};

/* What lies at a path. */
enum pstk__store_kind { PSTK__STORE_FILE, PSTK__STORE_FOLDER, PSTK__STORE_OTHER };
struct pstk__store_entry {
    uint32_t kind;      /* enum pstk__store_kind */
    uint64_t size;      /* bytes, of a file */
    int64_t changed_ns; /* as stat has it; of a folder: when a name in it was added or removed */
    uint64_t device, inode; /* the same for the same entry alone, whatever path led to it */
};

/* Called with the name of each entry of a directory. A result that is not 0 ends the list. */
typedef int (*pstk__store_name_fn)(void *user, const char *name);

struct pstk__store {
    const char *name;
    uint32_t has_fds; /* 1: every open file has a native descriptor */
    /* Open a regular file for reading into *f, which close ends. Never waits for another program.
     * Allocates nothing: files are opened between batches. 0 or a negative native errno, with *f
     * closed; EISDIR or EINVAL where no regular file lies at `path`. */
    int (*open)(const struct pstk__store *s, struct pstk__file *f, const char *path);
    /* Bytes of the file, and when it was last changed: ns since 1970, modulo 2^64, to be compared
     * for equality alone. 0 or a negative errno. */
    int (*stat)(const struct pstk__file *f, uint64_t *size, int64_t *changed_ns);
    /* One attempt to read `size` (< 2^31) bytes at `offset`, as pread(2): how many came, 0 at the
     * end, or a negative errno, EINTR and EAGAIN included. */
    int64_t (*read_at)(const struct pstk__file *f, void *buffer, uint64_t size, uint64_t offset);
    void (*close)(struct pstk__file *f);
    /* Write into text[size] what is known of a read of the file that failed with -EBADMSG, or "".
     * NULL: nothing ever is. */
    void (*explain)(const struct pstk__file *f, char *text, size_t size);
    /* Write into text[size] why the last open failed, if the errno does not say it, or "". NULL:
     * nothing ever is known. */
    void (*explain_open)(const struct pstk__store *s, char *text, size_t size);
    /* Look at an entry without opening it; follows links. 0 or a negative errno. NULL: the store
     * has no directories. */
    int (*look)(const struct pstk__store *s, const char *path, struct pstk__store_entry *entry);
    /* Hand on the names in a directory, in any order. 0, what ended it, or a negative errno.
     * NULL: the store has no directories. */
    int (*list)(const struct pstk__store *s, const char *path, pstk__store_name_fn each,
                void *user);
    /* The same of its folders alone, without a look at each entry. Where the directory does not say
     * what an entry is, as of a link, only the first 256 are looked at. NULL: not known. */
    int (*list_folders)(const struct pstk__store *s, const char *path, pstk__store_name_fn each,
                        void *user);
    /* Nobody wants what is read any more: opens and reads that wait for another program, or make
     * what they read, fail soon with -ECANCELED. Close is due all the same. NULL: none does. */
    void (*stop)(const struct pstk__store *s);
    /* Read the file at `path` in full where reads of it are answered from a copy, which does not
     * show damage of the file. 0: it is well, or there is no copy; EBADMSG: it is damaged;
     * ECANCELED: `progress`, which is called now and then, gave a non-zero result. NULL: there are
     * no copies. */
    int (*check)(const struct pstk__store *s, const char *path,
                 int (*progress)(void *user, uint64_t n), void *user, struct pstk_error *err);
};

/* Files of the machine: local and mounted ones. */
extern const struct pstk__store pstk__store_local;

/* The store in which `path` lies. */
const struct pstk__store *pstk__store_of(const char *path);

/* 1: what open returned says that no regular file lies at the path. */
int pstk__store_is_absent(int r);
/* 1: a regular file lies at the path, and opens; 0: none does; or a negative errno: it cannot be
 * known. */
int pstk__store_find_file(const struct pstk__store *store, const char *path);
/* 1: a regular file lies at the path, and opens. */
int pstk__store_has_file(const struct pstk__store *store, const char *path);
/* Close a file, if it is open. */
void pstk__file_end(struct pstk__file *file);
/* Read `size` bytes at `offset`; continues short reads, EINTR and EAGAIN. Returns the number of
 * bytes read, fewer than size only at the end of the file, or a negative native errno. */
int64_t pstk__file_read(const struct pstk__file *file, void *buffer, uint64_t size,
                        uint64_t offset);
/* Check that an open file is still of this size and time, as stat has them. EBADMSG: it
 * was changed or replaced since; others of stat. */
int pstk__file_check_same(const struct pstk__file *file, const char *name, uint64_t size,
                          int64_t changed_ns, int stage, struct pstk_error *err);
/* What follows a message about a read that failed with this native errno (positive): " (why)", or
 * "". Returns text. */
#define PSTK__WHY 1024 /* bytes, with the 0 */
const char *pstk__file_why(const struct pstk__file *file, int native, char text[PSTK__WHY]);
/* The same of an open that failed. */
const char *pstk__store_why(const struct pstk__store *store, char text[PSTK__WHY]);
/* Fail after an open that returned -native: "cannot open WHAT", and why. */
int pstk__store_fail_open(const struct pstk__store *store, int native, int stage, const char *what,
                          struct pstk_error *err);
/* Read a whole regular file of at most max_size bytes. Returns owned bytes (free()), never NULL. */
int pstk__store_load(const struct pstk__store *store, const char *path, uint64_t max_size,
                     void **bytes, uint64_t *size, struct pstk_error *err);

#endif
