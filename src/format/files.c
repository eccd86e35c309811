/* SPDX-License-Identifier: Apache-2.0 */
#include "format/files.h"

#include "base/error.h"
#include "base/file.h"
#include "format/joined.h"
#include "store/index/index.h"
#include <penstock/penstock.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define NO_SLOT UINT32_MAX
#define MAX_PATH_SIZE 4096

/* Max slots: fewer than every kernel accepts as registered files (2^15). */
#define MAX_SLOTS 16384

/* One open file. */
struct slot {
    struct pstk__file file; /* store NULL: no open file */
    uint32_t number;        /* number of the file, if one is open */
    uint32_t n_pins;        /* reads in flight, or left to workers */
    uint32_t older, newer;  /* slot indices in the list, or NO_SLOT */
};

/*
 * Invariants. `buckets` has each slot that holds a file once, at or after the bucket that its
 * number hashes to, with no free bucket between; at most half of them are taken. A slot is in the
 * list iff n_pins is 0; slots without a file stand at its old end.
 *
 * Memory is O(capacity): a data set may have a file for each of millions of samples.
 */
struct pstk__files {
    const struct pstk__source *source; /* borrowed */
    uint32_t *fallbacks;               /* borrowed */
    struct slot *slots;                /* owned; capacity */
    uint32_t *buckets;                 /* slots by their file's number; free: NO_SLOT */
    uint32_t mask;                     /* number of buckets - 1; that number is a power of two */
    uint32_t capacity;
    uint32_t oldest, newest;
    enum pstk__files_mode mode;  /* RANDOM once a file system has refused DIRECT */
    int direct_tried;            /* 1: a read by O_DIRECT has worked */
    dev_t device;                /* of the file that was opened last */
    int knows_device, in_memory; /* 1: `device` is set; its file system is in memory */
};

static void unlink_slot(struct pstk__files *files, uint32_t i)
{
    struct slot *slot = &files->slots[i];
    *(slot->older != NO_SLOT ? &files->slots[slot->older].newer : &files->oldest) = slot->newer;
    *(slot->newer != NO_SLOT ? &files->slots[slot->newer].older : &files->newest) = slot->older;
}

static void link_newest(struct pstk__files *files, uint32_t i)
{
    struct slot *slot = &files->slots[i];
    slot->older = files->newest;
    slot->newer = NO_SLOT;
    *(files->newest != NO_SLOT ? &files->slots[files->newest].newer : &files->oldest) = i;
    files->newest = i;
}

/* ---- buckets --------------------------------------------------------------------------------- */

/* Return the bucket that a number hashes to. Consecutive numbers lie apart, so that runs of taken
 * buckets stay short. */
static uint32_t first_bucket(const struct pstk__files *files, uint32_t number)
{
    return (uint32_t)(number * 0x9e3779b1u >> 7) & files->mask;
}

/* Return the bucket of that number, or the free one where it would be. The loop ends, because half
 * of the buckets are free. */
static uint32_t bucket_of(const struct pstk__files *files, uint32_t number)
{
    uint32_t bucket = first_bucket(files, number);
    while (files->buckets[bucket] != NO_SLOT &&
           files->slots[files->buckets[bucket]].number != number)
        bucket = (bucket + 1) & files->mask;
    return bucket;
}

/* Free the bucket of a number, and move back the entries after it that would no longer be found. */
static void free_bucket(struct pstk__files *files, uint32_t number)
{
    uint32_t hole = bucket_of(files, number);
    for (uint32_t bucket = (hole + 1) & files->mask; files->buckets[bucket] != NO_SLOT;
         bucket = (bucket + 1) & files->mask) {
        const uint32_t first = first_bucket(files, files->slots[files->buckets[bucket]].number);
        if (((bucket - first) & files->mask) < ((bucket - hole) & files->mask))
            continue; /* its first bucket lies after the hole */
        files->buckets[hole] = files->buckets[bucket];
        hole = bucket;
    }
    files->buckets[hole] = NO_SLOT;
}

int pstk__files_open(struct pstk__files **out, const struct pstk__source *source, uint32_t capacity,
                     enum pstk__files_mode mode, uint32_t *fallbacks, struct pstk_error *err)
{
    *out = NULL;
    if (capacity < 1 || source->n_files >= NO_SLOT)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "a table of %u open files cannot serve %llu files", capacity,
                          (unsigned long long)source->n_files);
    struct pstk__files *files = calloc(1, sizeof *files);
    if (!files)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the table of files");
    files->source = source;
    files->fallbacks = fallbacks;
    files->mode = mode;
    files->oldest = NO_SLOT;
    files->newest = NO_SLOT;
    files->slots = calloc(capacity, sizeof *files->slots);
    uint64_t n_buckets = 2; /* at most 2^17: capacity is at most MAX_SLOTS, and tests' is small */
    while (n_buckets < 2 * (uint64_t)capacity)
        n_buckets *= 2;
    files->buckets = calloc(n_buckets, sizeof *files->buckets);
    files->mask = (uint32_t)(n_buckets - 1);
    if (!files->slots || !files->buckets) {
        pstk__files_close(files);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for the table of files (%u slots)", capacity);
    }
    files->capacity = capacity;
    for (uint64_t i = 0; i < n_buckets; i++)
        files->buckets[i] = NO_SLOT;
    for (uint32_t i = 0; i < capacity; i++) {
        files->slots[i].file.fd = -1;
        link_newest(files, i);
    }
    *out = files;
    return 0;
}

/* Close a slot's file, if it has one. */
static void clear_slot(struct pstk__files *files, uint32_t i)
{
    struct slot *slot = &files->slots[i];
    if (!slot->file.store)
        return;
    free_bucket(files, slot->number);
    pstk__file_end(&slot->file);
}

/* ---- opening one file ------------------------------------------------------------------------ */

/* Try a read: some file systems (FUSE, some network ones) accept O_DIRECT, but refuse the read. */
static int direct_works(int fd)
{
    _Alignas(4096) uint8_t page[4096];
    ssize_t n;
    do
        n = pread(fd, page, sizeof page, 0);
    while (n < 0 && errno == EINTR);
    /* Any other error comes from the disk, and the read that meets it reports it. */
    return n >= 0 || (errno != EINVAL && errno != EOPNOTSUPP);
}

/* Set the flags of a checked file that has a descriptor. Clears O_NONBLOCK: with it, io_uring would
 * answer EAGAIN instead of reading. 0 or a negative errno. */
static int set_flags(struct pstk__files *files, int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return -errno;
    flags &= ~O_NONBLOCK;
    if (files->mode == PSTK__FILES_DIRECT && fcntl(fd, F_SETFL, flags | O_DIRECT) == 0 &&
        (files->direct_tried || direct_works(fd))) {
        files->direct_tried = 1;
        return 0;
    }
    if (files->mode == PSTK__FILES_DIRECT) {
        files->mode = PSTK__FILES_RANDOM;
        *files->fallbacks |= PSTK_FALLBACK_NO_DIRECT;
    }
    if (fcntl(fd, F_SETFL, flags) < 0)
        return -errno;
    /* Read-ahead would read bytes that the next random record does not need. It is only advice, and
     * may fail. */
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    return 0;
}

/* Return 1 if the file's file system keeps its files in memory, and has no other storage. A server
 * is asked once, not for each of a million files. */
static int is_in_memory(struct pstk__files *files, int fd)
{
    struct stat st;
    struct statfs fs;
    if (fstat(fd, &st) < 0)
        return 0;
    if (!files->knows_device || files->device != st.st_dev) {
        files->knows_device = 1;
        files->device = st.st_dev;
        files->in_memory =
            fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
    }
    return files->in_memory;
}

static const char *file_noun(const struct pstk__source *source)
{
    return source->format->file ? source->format->file : "file";
}

static int fail_path(const struct pstk__source *source, uint32_t number, int code,
                     struct pstk_error *err)
{
    char buffer[PSTK__MAX_SHOWN];
    if (!err)
        return code;
    if (code != PSTK_EINVAL)
        return pstk__fail(err, code, PSTK_STAGE_SHARD,
                          "the index %s cannot be read, or is damaged, at the name of %s %u: "
                          "remove the index, and it is built again",
                          source->format->index ? source->format->index(source)->path
                                                : source->path,
                          file_noun(source), number);
    const char *name = pstk__source_file_name(source, number, buffer);
    return pstk__fail(err, code, PSTK_STAGE_SHARD, "the path of %s %s is too long: %s/%s",
                      file_noun(source), name, source->path, name);
}

/* 1: the path opens the file of the source's index; it may lead to a descriptor. */
static int is_index(const struct pstk__source *source, const char *path)
{
    char held[MAX_PATH_SIZE];
    const struct pstk__index *index = source->format->index ? source->format->index(source) : NULL;
    return index && pstk__index_file_path(index, held, sizeof held) == 0 && strcmp(path, held) == 0;
}

static int fail_open(const struct pstk__source *source, uint32_t number, int native,
                     const char *path, struct pstk_error *err)
{
    char what[MAX_PATH_SIZE + 16], name[PSTK__MAX_SHOWN];
    const char *shown =
        err && source->format->file_shown ? pstk__source_file_name(source, number, name) : path;
    const size_t n = strlen(path), n_shown = strlen(shown);
    const int is_as_shown = n >= n_shown && strcmp(path + n - n_shown, shown) == 0;
    if (is_index(source, path))
        snprintf(what, sizeof what, "the index %s", source->format->index(source)->path);
    else if (!is_as_shown) /* the name has bytes that messages escape */
        snprintf(what, sizeof what, "%.14s %s/%s", file_noun(source), source->path, shown);
    else
        snprintf(what, sizeof what, "%.14s %s", file_noun(source), path);
    char why[PSTK__WHY];
    if (err && pstk__store_why(source->store, why)[0])
        return pstk__store_fail_open(source->store, native, PSTK_STAGE_SHARD, what, err);
    return pstk__file_fail(err, native, PSTK_STAGE_SHARD, what, path);
}

int pstk__source_open_file(const struct pstk__source *source, uint32_t number,
                           struct pstk__file *file, struct pstk_error *err)
{
    if (source->format->part)
        source = source->format->part(source, &number);
    char path[MAX_PATH_SIZE];
    *file = (struct pstk__file){.fd = -1};
    int r = pstk__source_file_path(source, number, path, sizeof path);
    if (r < 0)
        return fail_path(source, number, r, err);
    r = source->store->open(source->store, file, path);
    if (r < 0)
        r = fail_open(source, number, -r, path, err);
    /* Check the file at every opening: that costs one small read more than the open, and finds a
     * file that was replaced while it was not open. */
    else if (source->format->file_check)
        r = source->format->file_check(source, number, file, err);
    if (r == 0)
        return 0;
    pstk__file_end(file);
    if (pstk__source_stands(source, err) < 0)
        r = PSTK_ENOENT;
    /* file_check may have set a byte range: only missing members are filled in. */
    char name[PSTK__MAX_SHOWN];
    if (err && err->size >= sizeof *err && !err->shard[0])
        pstk__fail_at(err, r, pstk__source_file_name(source, number, name), err->record,
                      err->offset, err->length);
    return r;
}

void pstk__source_stop(const struct pstk__source *source)
{
    for (uint32_t i = 0; i < source->n_joined; i++)
        pstk__source_stop(pstk__joined_part(source, i));
    if (!source->n_joined && source->store && source->store->stop)
        source->store->stop(source->store);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void pin(struct pstk__files *files, uint32_t i, uint32_t *slot,
                const struct pstk__file **file)
{
    if (files->slots[i].n_pins++ == 0)
        unlink_slot(files, i);
    *slot = i;
    *file = &files->slots[i].file;
}

int pstk__files_find(struct pstk__files *files, uint32_t number, uint32_t *slot,
                     const struct pstk__file **file)
{
    assert(number < files->source->n_files);
    const uint32_t i = files->buckets[bucket_of(files, number)];
    if (i == NO_SLOT)
        return 0;
    pin(files, i, slot, file);
    return 1;
}

int pstk__files_keep(struct pstk__files *files, uint32_t number, struct pstk__file *open,
                     uint32_t *slot, const struct pstk__file **file)
{
    if (pstk__files_find(files, number, slot, file))
        return 0;
    const uint32_t i = files->oldest;
    if (i == NO_SLOT)
        return PSTK_EBUSY;
    clear_slot(files, i);
    files->slots[i].file = *open;
    files->slots[i].number = number;
    files->buckets[bucket_of(files, number)] = i;
    *open = (struct pstk__file){.fd = -1};
    pin(files, i, slot, file);
    return 0;
}

int pstk__files_acquire(struct pstk__files *files, uint32_t number, uint32_t *slot,
                        const struct pstk__file **file, struct pstk_error *err)
{
    if (pstk__files_find(files, number, slot, file))
        return 0;
    if (files->oldest == NO_SLOT)
        return PSTK__FILES_PINNED;
    clear_slot(
        files,
        files->oldest); /* close first: the limit of open files may leave no room for one more */
    struct pstk__file open;
    int r = pstk__source_open_file(files->source, number, &open, err);
    if (r < 0)
        return r;
    const int native =
        open.fd >= 0 && files->mode != PSTK__FILES_PLAIN ? set_flags(files, open.fd) : 0;
    if (native < 0) {
        char buffer[PSTK__MAX_SHOWN];
        const char *name = pstk__source_file_name(files->source, number, buffer);
        pstk__file_end(&open);
        r = pstk__fail_errno(err, -native, PSTK_STAGE_SHARD, "cannot set how %s %s is read",
                             file_noun(files->source), name);
        return pstk__fail_at(err, r, name, PSTK_NONE, PSTK_NONE, 0);
    }
    open.in_memory =
        open.fd >= 0 && files->mode == PSTK__FILES_RANDOM && is_in_memory(files, open.fd);
    r = pstk__files_keep(files, number, &open, slot, file);
    assert(r == 0); /* the oldest slot is still free */
    return r == 0 ? 1 : r;
}

void pstk__files_release(struct pstk__files *files, uint32_t slot)
{
    assert(slot < files->capacity && files->slots[slot].n_pins > 0);
    if (--files->slots[slot].n_pins == 0)
        link_newest(files, slot);
}

void pstk__files_close(struct pstk__files *files)
{
    if (!files)
        return;
    for (uint32_t i = 0; i < files->capacity; i++)
        clear_slot(files, i);
    free(files->slots);
    free(files->buckets);
    free(files);
}

uint32_t pstk__files_capacity(uint64_t n_files, uint32_t n_tables)
{
    struct rlimit limit;
    uint64_t n = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 2 : 128;
    n = (n < MAX_SLOTS ? n : MAX_SLOTS) / n_tables;
    n = n < n_files ? n : n_files;
    return n < 1 ? 1 : (uint32_t)n;
}

/* ---- reading --------------------------------------------------------------------------------- */

int pstk__unread_fail(const struct pstk__unread *unread, struct pstk_error *err)
{
    const unsigned long long from = unread->offset,
                             to = unread->offset + unread->size - (unread->size > 0);
    char why[PSTK__WHY] = "";
    int r;
    if (unread->got < 0 && unread->from)
        pstk__file_why(unread->from, (int)-unread->got, why);
    if (unread->got < 0)
        r = pstk__fail_errno(err, (int)-unread->got, PSTK_STAGE_READ,
                             "%s: %s: cannot read bytes %llu to %llu%s", unread->name, unread->what,
                             from, to, why);
    else
        r = pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_READ,
                       "%s: %s: the file ends at byte %llu, within the bytes %llu to %llu",
                       unread->name, unread->what, from + (unsigned long long)unread->got, from,
                       to);
    return pstk__fail_at(err, r, unread->name, unread->record, unread->offset, unread->size);
}

int pstk__source_read(const struct pstk__source *source, const struct pstk__file *file,
                      const struct pstk__extent *extent, void *buffer, struct pstk_error *err)
{
    const int64_t n = pstk__file_read(file, buffer, extent->size, extent->offset);
    if (n >= 0 && (uint64_t)n == extent->size)
        return 0;
    char what[40], name[PSTK__MAX_SHOWN];
    snprintf(what, sizeof what, "record %llu", (unsigned long long)extent->record);
    const struct pstk__unread unread = {.name = pstk__source_file_name(source, extent->file, name),
                                        .what = what,
                                        .record = extent->record,
                                        .offset = extent->offset,
                                        .size = extent->size,
                                        .got = n,
                                        .from = file};
    return pstk__unread_fail(&unread, err);
}
