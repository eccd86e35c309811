/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader: reads bytes of open files into buffers, many at a time. It takes reads (file, offset,
 * size, buffer) and gives them back done, in any order. Called by the thread that opened it. Never
 * allocates after open, never prints. A backend is a table; only reader*.c knows which one runs. A
 * backend continues short reads and EINTR / EAGAIN by itself. An end of the file before `size`
 * bytes is no error: result is the number of bytes read.
 */
#ifndef PSTK_READER_H
#define PSTK_READER_H

#include "store/store.h"

#include <penstock/penstock.h>

#define PSTK__MAX_DEPTH 4096u /* reads that may be queued and not reaped */

/* One read. The caller owns it, and does not touch it from queue until it is reaped. */
struct pstk__read {
    const struct pstk__file *from; /* open; borrowed until reaped */
    uint32_t file;                 /* slot of the file table in which its descriptor was set */
    uint64_t offset; /* offset in the file, bytes; a multiple of the device's alignment for direct
                        reads */
    void *buffer;    /* destination; inside config.buffers if `fixed` */
    uint32_t size;   /* bytes wanted; < 2^31 */
    uint32_t fixed;  /* 1: buffer lies in config.buffers */
    uint32_t aside; /* 1: a large read that the page cache may answer; a thread of the kernel copies
                       it, not the submitting one */
    int32_t result; /* out: bytes read, or a negative native errno */
    uint32_t done;  /* bytes so far; used by the backend */
    struct pstk__read *next; /* lists; used by the backend */
    uint64_t user;           /* used by the caller */
    uint64_t queued_ns;      /* time at which it was queued; used by the caller */
    uint16_t n_refused;      /* EINTR and EAGAIN in a row; used by the backend */
    uint16_t stalled; /* 1 after an attempt that got no further than `done`; used by the backend */
    uint32_t taken_index; /* index in a table; used by the backend */
};

struct pstk__cpu_times;

struct pstk__reader_config {
    uint32_t kind;                 /* enum pstk_reader_kind */
    uint32_t depth;                /* reads that may be queued and not reaped; 1..PSTK__MAX_DEPTH */
    uint32_t n_files;              /* slots of the file table */
    uint32_t n_threads;            /* threads of the thread pool; 0: min(depth, 16) */
    uint32_t no_fds;               /* 1: files have no descriptors, so only threads can read them */
    struct pstk__cpu_times *times; /* CPU times that the backend's own threads join; borrowed; NULL:
                                      none */
    void *buffers;                 /* one region for most reads; NULL: none */
    uint64_t buffers_size;         /* bytes */
};

struct pstk__reader; /* a backend; begins with a pointer to its table */

/* One backend. */
struct pstk__reader_ops {
    const char *name;
    uint32_t kind; /* enum pstk_reader_kind */
    /* Open the backend. Returns owned; sets bits of enum pstk_fallback in *fallbacks for each
     * refused feature. ENOTSUP: the kernel refuses the backend as a whole. */
    int (*open)(struct pstk__reader **out, const struct pstk__reader_config *c, uint32_t *fallbacks,
                struct pstk_error *err);
    /* Set slot `file` of the file table to fd (-1: none). No read on the slot's old fd is in
     * flight. 0 or a negative errno (the slot then works unregistered). */
    int (*set_file)(struct pstk__reader *r, uint32_t file, int fd);
    /* Queue a read, which starts no later than submit. Never blocks; at most depth reads in all. */
    void (*queue)(struct pstk__reader *r, struct pstk__read *read);
    /* Start all queued reads. */
    int (*submit)(struct pstk__reader *r);
    /* Give back up to max finished reads; waits for one if `wait` and some are in flight. Returns
     * how many, or a negative errno if the backend itself failed. A sandbox that begins to deny
     * io_uring is no failure. The backend then sets the fallback, and threads read from then on.
     * Reads that nobody can wait for any longer come back with that errno. */
    int (*reap)(struct pstk__reader *r, struct pstk__read **done, uint32_t max, int wait);
    /* Wait for all reads in flight, except the n_lost reads, and free. NULL is fine. */
    void (*close)(struct pstk__reader *r);
};

struct pstk__reader {
    const struct pstk__reader_ops *ops;
    /* Members that the owner's thread reads. */
    uint32_t fallbacks; /* bits of enum pstk_fallback: fallbacks taken since open */
    uint32_t n_lost;    /* number of reads that nobody can wait for: the kernel may write to their
                           buffers even after close, so their memory is never freed */
};

extern const struct pstk__reader_ops pstk__reader_uring;
extern const struct pstk__reader_ops pstk__reader_threads;

/*
 * For backends. One read is one or more attempts:
 *
 *   begin -> (attempt from start on -> result -> finished?) ... -> finished
 *
 * pstk__reader_result is the only place where the kernel's answer becomes the result of a read. It
 * lies in reader.c, away from its callers, so that a test can replace it at link time (--wrap) to
 * shorten, interrupt and fail reads of either backend.
 */
/* Prepare a read before its first attempt. */
static inline void pstk__reader_begin(struct pstk__read *read)
{
    read->done = 0;
    read->n_refused = 0;
    read->stalled = 0;
    read->next = NULL;
}
/* Return the start of the next attempt, in bytes after read->offset; never past `done`. */
static inline uint32_t pstk__reader_start(const struct pstk__read *read)
{
    /* O_DIRECT requires offset, address and size in multiples of the device's alignment, and the
     * read began with such multiples. The largest power of two that divides all three is then a
     * multiple of that alignment, whatever it is. So the attempt continues at a multiple of this
     * power (at most a page: blocks larger than pages are read through the page cache). Reads at
     * odd offsets, which only a buffered file allows, get 1: they continue exactly where they
     * stopped. */
    uint64_t bits = read->offset | (uintptr_t)read->buffer | read->size | 4096;
    uint32_t align = (uint32_t)(bits & (~bits + 1));
    return read->stalled ? read->done : read->done & ~(align - 1);
}
/* Take the result of an attempt: `got` bytes or a negative errno. Returns 1 if the read is finished
 * and its result is set, 0: try again from pstk__reader_start. */
int pstk__reader_result(struct pstk__read *read, int32_t got);

/* Open the requested backend; AUTO tries io_uring, then threads (fallback NO_IO_URING). If files
 * have no descriptors, io_uring is refused, and AUTO does not try it. */
int pstk__reader_open(struct pstk__reader **out, const struct pstk__reader_config *c,
                      uint32_t *fallbacks, struct pstk_error *err);

/* Find the features of io_uring that the kernel permits here; fills the io_uring members of
 * *machine. */
void pstk__reader_probe(struct pstk_machine *machine);

/* Get the alignment that O_DIRECT needs for a file: statx DIOALIGN if the kernel has it, else the
 * block size of the file system, at least 512. 0, or a negative errno if O_DIRECT is refused. */
int pstk__direct_align(const char *path, uint32_t *memory_align, uint32_t *offset_align);

#endif
