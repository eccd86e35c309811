/* SPDX-License-Identifier: Apache-2.0 */
#include "format/files.h"

#include "base/error.h"
#include "base/file.h"
#include <penstock/penstock.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define NO_SLOT UINT32_MAX
#define MAX_PATH_SIZE 4096

/* Most slots: what every kernel takes as registered files (2^15), with room. */
#define MAX_SLOTS 16384

/* One open shard file. */
struct slot {
    int fd;                /* -1: none */
    uint32_t shard;        /* when fd >= 0 */
    uint32_t n_pins;       /* reads in flight */
    uint32_t older, newer; /* slot indices in the list, or NO_SLOT */
};

/*
 * Invariants. slot_of[shard] is NO_SLOT or the slot whose fd is that shard's, and the reverse. A
 * slot is in the list iff n_pins is 0; slots without a file stand at its old end.
 */
struct pstk__files {
    const struct pstk__source *source; /* borrowed */
    uint32_t *rungs;                   /* borrowed */
    struct slot *slots;                /* capacity */
    uint32_t *slot_of;                 /* n_shards */
    uint32_t capacity;
    uint32_t oldest, newest;
    int direct;       /* 1: open for O_DIRECT, until that is refused */
    int direct_tried; /* 1: a read by O_DIRECT has worked */
};

static void unlink_slot(struct pstk__files *f, uint32_t i)
{
    struct slot *s = &f->slots[i];
    *(s->older != NO_SLOT ? &f->slots[s->older].newer : &f->oldest) = s->newer;
    *(s->newer != NO_SLOT ? &f->slots[s->newer].older : &f->newest) = s->older;
}

static void link_newest(struct pstk__files *f, uint32_t i)
{
    struct slot *s = &f->slots[i];
    s->older = f->newest;
    s->newer = NO_SLOT;
    *(f->newest != NO_SLOT ? &f->slots[f->newest].newer : &f->oldest) = i;
    f->newest = i;
}

int pstk__files_open(struct pstk__files **out, const struct pstk__source *source, uint32_t capacity,
                     int direct, uint32_t *rungs, struct pstk_error *err)
{
    *out = NULL;
    if (capacity < 1 || source->n_shards >= NO_SLOT)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "a table of %u open files cannot serve %llu shards", capacity,
                          (unsigned long long)source->n_shards);
    struct pstk__files *f = calloc(1, sizeof *f);
    if (!f)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the table of files");
    f->source = source;
    f->rungs = rungs;
    f->direct = direct;
    f->oldest = NO_SLOT;
    f->newest = NO_SLOT;
    f->slots = calloc(capacity, sizeof *f->slots);
    f->slot_of = calloc(source->n_shards + 1, sizeof *f->slot_of); /* never of size 0 */
    if (!f->slots || !f->slot_of) {
        pstk__files_close(f);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for the table of files (%u slots, %llu shards)", capacity,
                          (unsigned long long)source->n_shards);
    }
    f->capacity = capacity;
    for (uint64_t i = 0; i < source->n_shards; i++)
        f->slot_of[i] = NO_SLOT;
    for (uint32_t i = 0; i < capacity; i++) {
        f->slots[i].fd = -1;
        link_newest(f, i);
    }
    *out = f;
    return 0;
}

/* Close a slot's file, if it has one. */
static void clear_slot(struct pstk__files *f, uint32_t i)
{
    struct slot *s = &f->slots[i];
    if (s->fd < 0)
        return;
    f->slot_of[s->shard] = NO_SLOT;
    close(s->fd); /* read only: nothing can be lost */
    s->fd = -1;
}

/* ---- opening one file ------------------------------------------------------------------------ */

/* Some file systems (FUSE, some network ones) take the flag and refuse the read: try one. */
static int direct_works(int fd)
{
    _Alignas(4096) uint8_t page[4096];
    ssize_t n;
    do
        n = pread(fd, page, sizeof page, 0);
    while (n < 0 && errno == EINTR);
    /* Any other error is the disk's, not O_DIRECT's: it belongs to the read that will meet it. */
    return n >= 0 || (errno != EINVAL && errno != EOPNOTSUPP);
}

/* Set how a checked file is read. O_NONBLOCK goes: io_uring would answer EAGAIN instead of reading.
 */
static int set_mode(struct pstk__files *f, int fd, int flags)
{
    flags &= ~O_NONBLOCK;
    if (f->direct && fcntl(fd, F_SETFL, flags | O_DIRECT) == 0 &&
        (f->direct_tried || direct_works(fd))) {
        f->direct_tried = 1;
        return 0;
    }
    if (f->direct) {
        f->direct = 0;
        *f->rungs |= PSTK_RUNG_NO_DIRECT;
    }
    if (fcntl(fd, F_SETFL, flags) < 0)
        return -errno;
    /* Read-ahead would read what the next random record does not want. Advice only: it may fail. */
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    return 0;
}

/* Check an open file and set its mode. */
static int check_file(struct pstk__files *f, uint32_t shard, int fd, const char *path,
                      struct pstk_error *err)
{
    /* Again at every opening: one small read beside an open, and it finds a shard that was replaced
     * while it was not open. */
    int r = f->source->format->shard_check(f->source, shard, fd, err);
    if (r < 0)
        return r;
    int flags = fcntl(fd, F_GETFL);
    r = flags < 0 ? -errno : set_mode(f, fd, flags);
    if (r < 0)
        return pstk__fail_errno(err, -r, PSTK_STAGE_SHARD, "cannot set how shard %s is read", path);
    return 0;
}

/* The fd of a shard's file, checked; or an error that names the file. */
static int open_file(struct pstk__files *f, uint32_t shard, struct pstk_error *err)
{
    char path[MAX_PATH_SIZE];
    const char *name = f->source->format->shard_name(f->source, shard);
    int r = f->source->format->shard_path(f->source, shard, path, sizeof path);
    if (r < 0)
        return pstk__fail(err, r, PSTK_STAGE_SHARD, "the path of shard %s is too long: %s/%s", name,
                          f->source->path, name);
    char what[MAX_PATH_SIZE + 8];
    snprintf(what, sizeof what, "shard %s", path);
    int fd = pstk__file_open(path);
    r = fd < 0 ? pstk__file_fail(err, -fd, PSTK_STAGE_SHARD, what, path)
               : check_file(f, shard, fd, path, err);
    if (r == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    if (f->source->format->stands(f->source, err) < 0)
        r = PSTK_ENOENT;
    /* shard_check may have set a byte range: only what is missing is filled in. */
    if (err && err->size >= sizeof *err && !err->shard[0])
        pstk__fail_at(err, r, name, err->record, err->offset, err->length);
    return r;
}

int pstk__files_acquire(struct pstk__files *f, uint32_t shard, uint32_t *slot, int *fd,
                        struct pstk_error *err)
{
    assert(shard < f->source->n_shards);
    uint32_t i = f->slot_of[shard];
    int opened = i == NO_SLOT;
    if (opened) {
        i = f->oldest;
        if (i == NO_SLOT)
            return PSTK_EBUSY; /* no failure: the caller waits for a read to finish */
        clear_slot(f, i);      /* first: the limit of open files may leave no room for one more */
        int r = open_file(f, shard, err);
        if (r < 0)
            return r;
        f->slots[i].fd = r;
        f->slots[i].shard = shard;
        f->slot_of[shard] = i;
    }
    if (f->slots[i].n_pins++ == 0)
        unlink_slot(f, i);
    *slot = i;
    *fd = f->slots[i].fd;
    return opened;
}

void pstk__files_release(struct pstk__files *f, uint32_t slot)
{
    assert(slot < f->capacity && f->slots[slot].n_pins > 0);
    if (--f->slots[slot].n_pins == 0)
        link_newest(f, slot);
}

void pstk__files_close(struct pstk__files *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < f->capacity; i++)
        clear_slot(f, i);
    free(f->slots);
    free(f->slot_of);
    free(f);
}

uint32_t pstk__files_capacity(uint64_t n_shards, uint32_t n_tables)
{
    struct rlimit limit;
    uint64_t n = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 2 : 128;
    n = (n < MAX_SLOTS ? n : MAX_SLOTS) / n_tables;
    n = n < n_shards ? n : n_shards;
    return n < 1 ? 1 : (uint32_t)n;
}
