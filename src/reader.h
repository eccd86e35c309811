/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader: bytes of open files into buffers, many in flight. L2.
 * Takes: reads (file, offset, size, buffer). Gives: the same reads, done, in any order.
 * Called by one thread, the one that opened it. Never allocates after open, never prints.
 * A backend is a table; nothing outside reader*.c knows which one runs. A backend continues short
 * reads and EINTR / EAGAIN by itself; end of file before `size` bytes is not an error: result says
 * how many came.
 */
#ifndef PSTK_READER_H
#define PSTK_READER_H

#include <penstock/penstock.h>

/* One read. Owned by the caller; from queue until reaped, untouched. */
struct pstk__read {
    int fd;
    uint32_t file;     /* slot of the file table in which fd was set */
    uint64_t offset;   /* bytes; multiple of the device's alignment when direct */
    void *buffer;      /* inside config.buffers when those are registered and `fixed` */
    uint32_t size;     /* bytes wanted; < 2^31 */
    uint32_t fixed;    /* 1: buffer lies in config.buffers */
    int32_t result;    /* out: bytes read, or a negative native errno */
    uint32_t done;     /* backend's: bytes so far */
    struct pstk__read *next; /* backend's: its lists */
    uint64_t user;     /* the caller's */
};

struct pstk__reader_config {
    uint32_t kind;       /* enum pstk_reader_kind */
    uint32_t depth;      /* reads that may be queued and not reaped; 1..4096 */
    uint32_t n_files;    /* slots of the file table */
    uint32_t n_threads;  /* of the pread pool; 0 = min(depth, 16) */
    void *buffers;       /* one region that most reads go to; NULL = none */
    uint64_t buffers_size; /* bytes */
};

struct pstk__reader; /* begins with a pointer to its table */

/* One backend. */
struct pstk__reader_ops {
    const char *name;
    uint32_t kind; /* enum pstk_reader_kind */
    /* Returns owned; sets bits of enum pstk_rung in *rungs for what was refused. ENOTSUP when the
     * kernel refuses the backend as a whole. */
    int (*open)(struct pstk__reader **out, const struct pstk__reader_config *c, uint32_t *rungs,
                struct pstk_error *err);
    /* Say that slot `file` of the file table is now fd (-1: none). No read on the slot's old fd is
     * in flight. 0 or a negative errno (the slot then works unregistered). */
    int (*set_file)(struct pstk__reader *r, uint32_t file, int fd);
    /* Take a read; starts no later than submit. Never blocks; at most depth in all. */
    void (*queue)(struct pstk__reader *r, struct pstk__read *read);
    /* Start all that is queued. */
    int (*submit)(struct pstk__reader *r);
    /* Give back up to max finished reads; waits for one if `wait` and some are in flight. Returns
     * how many, or a negative errno when the backend itself failed. */
    int (*reap)(struct pstk__reader *r, struct pstk__read **done, uint32_t max, int wait);
    /* Wait for all that is in flight, free. NULL is fine. */
    void (*close)(struct pstk__reader *r);
};

struct pstk__reader {
    const struct pstk__reader_ops *ops;
};

extern const struct pstk__reader_ops pstk__reader_uring;
extern const struct pstk__reader_ops pstk__reader_threads;

/* Open the backend asked for; AUTO tries io_uring, then threads (rung NO_IO_URING). */
int pstk__reader_open(struct pstk__reader **out, const struct pstk__reader_config *c,
                      uint32_t *rungs, struct pstk_error *err);

/* What the kernel lets io_uring do here; fills the io_uring members of *machine. */
void pstk__reader_probe(struct pstk_machine *machine);

/* Alignment that O_DIRECT needs for a file (statx DIOALIGN where the kernel has it, else the block
 * size of the file system, at least 512). 0, or a negative errno when O_DIRECT is refused. */
int pstk__direct_align(const char *path, uint32_t *memory_align, uint32_t *offset_align);

#endif
