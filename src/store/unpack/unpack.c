/* SPDX-License-Identifier: Apache-2.0 */
#include "store/unpack/unpack.h"

#include "base/error.h"
#include "store/index/location.h"
#include "store/unpack/build.h"
#include "store/unpack/span.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SLOTS 32 /* spans in memory: 1.7 MiB each, and 8.6 MiB more where there is zstd */
#define MIN_SLOTS 4

/* A span in memory, of a file that is open. Lock: `mutex` guards the members down to claimed_end;
 * the rest is the thread's that made it busy. */
struct slot {
    int is_busy;
    uint64_t used;                       /* when: a count of reads */
    uint32_t claimed;                    /* number of the file, or PSTK__NO_FILE */
    uint64_t claimed_begin, claimed_end; /* unpacked bytes of it that the slot has or will have */
    uint32_t number;                     /* of the file that span is of, or PSTK__NO_FILE */
    struct pstk__access_points points;   /* of that file */
    struct pstk__span span;
};

/* A file that is open. Lock: `opening`, except damage: `mutex`. */
struct opened {
    uint32_t n; /* times */
    struct pstk__file file;
    uint64_t device, inode;     /* of the compressed file that is open, or that `wrong` is of */
    struct pstk__damage damage; /* the last that was found */
    char *wrong;                /* owned; why this file is damaged, so that no read unpacks it once
                                 * more; NULL: nobody found that it is */
    /* Of a file that is unpacked into the cache: `file` is its entry; again: that entry was
     * damaged, so this one is read, which is open once has_again is set. */
    struct pstk__file again;
    _Atomic int has_again;
    struct pstk__unpack *unpack;
};

struct pstk__unpack {
    struct pstk__store store; /* first */
    struct pstk__packed_files table;
    struct opened *opened; /* owned; one for each file */
    uint32_t packings;     /* of files: a set of bits by number */
    uint32_t spans;        /* of those that are read from points */
    /* Locks. opening: held while a file is opened or closed, and taken before mutex. mutex: never
     * held while anything is read. */
    pthread_mutex_t opening, mutex;
    pthread_mutex_t mending; /* held while a damaged entry of the cache is made again */
    pthread_cond_t changed;  /* a slot is no longer busy, or claims less */
    int n_ready;             /* of these four, in the order of init */
    uint64_t n_reads;
    uint32_t n_slots;
    struct slot *slots; /* owned */
    uint8_t *memory;    /* owned; of the spans */
};

/* Why the thread's last open failed, or "". */
static _Thread_local char open_why[sizeof((struct pstk_error *)0)->message];

/* ---- slots ----------------------------------------------------------------------------------- */

/* 1: the slot has the byte, or will have it. */
static int claims(const struct slot *slot, uint32_t number, uint64_t offset)
{
    return slot->claimed == number && slot->claimed_begin <= offset && offset < slot->claimed_end;
}

/* Choose a slot to read a byte at, or NULL: wait. With the mutex. A slot that has the span is the
 * only one that does; else one that stopped just before it, to go on; else the one that was used
 * least recently. */
static struct slot *choose(struct pstk__unpack *unpack, uint32_t number, uint64_t offset)
{
    struct slot *oldest = NULL, *before = NULL;
    for (uint32_t i = 0; i < unpack->n_slots; i++) {
        struct slot *slot = &unpack->slots[i];
        if (claims(slot, number, offset))
            return slot->is_busy ? NULL : slot;
        if (slot->is_busy)
            continue;
        if (slot->claimed == number && slot->claimed_end <= offset &&
            offset - slot->claimed_end < PSTK__SPACING && slot->span.end == slot->claimed_end)
            before = slot;
        if (!oldest || slot->used < oldest->used)
            oldest = slot;
    }
    return before ? before : oldest;
}

/* Make a slot busy, and others that want the same bytes wait. Called by reading threads. */
static struct slot *take_slot(struct pstk__unpack *unpack, uint32_t number, uint64_t offset)
{
    struct slot *slot;
    pthread_mutex_lock(&unpack->mutex);
    while (!(slot = choose(unpack, number, offset)))
        pthread_cond_wait(&unpack->changed, &unpack->mutex);
    slot->is_busy = 1;
    slot->used = ++unpack->n_reads;
    if (!claims(slot, number, offset)) {
        /* The span is not known yet: it has these bytes at least, or the next point lies there. */
        slot->claimed = number;
        slot->claimed_begin = offset / PSTK__SPACING * PSTK__SPACING;
        slot->claimed_end = slot->claimed_begin + PSTK__SPACING;
    }
    pthread_mutex_unlock(&unpack->mutex);
    return slot;
}

/* Set what a busy slot has, now that it is known. */
static void claim(struct pstk__unpack *unpack, struct slot *slot, uint32_t number)
{
    pthread_mutex_lock(&unpack->mutex);
    slot->number = slot->claimed = number;
    slot->claimed_begin = slot->span.point.begin;
    slot->claimed_end = slot->span.point.end;
    pthread_cond_broadcast(&unpack->changed);
    pthread_mutex_unlock(&unpack->mutex);
}

/* End the use of a slot; `damage` may have been found. */
static void leave_slot(struct pstk__unpack *unpack, struct slot *slot, uint32_t number, int is_lost,
                       const struct pstk__damage *damage)
{
    pthread_mutex_lock(&unpack->mutex);
    slot->is_busy = 0;
    if (is_lost) {
        slot->number = slot->claimed = PSTK__NO_FILE;
        pstk__access_points_close(&slot->points);
    }
    if (damage->why)
        unpack->opened[number].damage = *damage;
    pthread_cond_broadcast(&unpack->changed);
    pthread_mutex_unlock(&unpack->mutex);
}

/* Open the points of a file in a busy slot. */
static int open_points(struct pstk__unpack *unpack, struct slot *slot, uint32_t number,
                       struct pstk__damage *damage)
{
    char path[PATH_MAX];
    const struct pstk__packed *packed = &unpack->table.at[number];
    pstk__access_points_close(&slot->points);
    if (pstk__packed_access_points(&unpack->table, number, path, sizeof path) < 0)
        return -ENAMETOOLONG;
    int r = pstk__access_points_open(&slot->points, path, packed->head_crc);
    if (r == 0 && (!pstk__index_trusts(slot->points.owner, unpack->table.data_owner) ||
                   !pstk__access_points_same(&slot->points.of, &packed->of)))
        r = -EBADMSG;
    if (r == -EBADMSG || r == -ENOENT || r == -ESTALE) {
        *damage =
            (struct pstk__damage){.why = "its header", .in_points = 1, .is_replaced = r == -ESTALE};
        r = -EBADMSG;
    }
    return r;
}

/* Bring the span with a byte into a busy slot. */
static int seek(struct pstk__unpack *unpack, struct slot *slot, uint32_t number, uint64_t offset,
                struct pstk__damage *damage)
{
    struct pstk__access_point point;
    struct pstk__span *span = &slot->span;
    const int was_here = slot->number == number && slot->points.fd >= 0;
    if (was_here && span->point.begin <= offset && offset < span->point.end)
        return offset >= span->begin ? 0 : pstk__span_begin(span, &slot->points, damage);
    int r = was_here ? 0 : open_points(unpack, slot, number, damage);
    if (r < 0)
        return r;
    r = pstk__access_points_find(&slot->points, offset, &point);
    if (r < 0) {
        if (r == -EBADMSG)
            *damage = (struct pstk__damage){.why = "a point of it", .in_points = 1};
        return r;
    }
    const int goes_on = was_here && span->end == span->point.end && point.begin == span->end;
    if (goes_on)
        pstk__span_continue(span, &point);
    else
        span->point = point;
    claim(unpack, slot, number);
    return goes_on ? 0 : pstk__span_begin(span, &slot->points, damage);
}

/* ---- the store ------------------------------------------------------------------------------- */

static struct pstk__unpack *unpack_of(const struct pstk__store *store)
{
    return (struct pstk__unpack *)(uintptr_t)store; /* the caller's is never constant */
}

static uint32_t number_of(const struct opened *opened)
{
    return (uint32_t)(opened - opened->unpack->opened);
}

/* Is the file at the path still the one that is open? With `opening`. */
static int still_there(const struct pstk__unpack *unpack, const struct opened *opened,
                       const char *path)
{
    const struct pstk__store *below = unpack->table.store;
    struct pstk__store_entry entry;
    if (!below->look)
        return 1;
    return below->look(below, path, &entry) == 0 && entry.device == opened->device &&
           entry.inode == opened->inode;
}

/* Open a compressed file, or count that it is open once more. With `opening`. */
static int open_packed(struct pstk__unpack *unpack, struct opened *opened, const char *path)
{
    const struct pstk__store *below = unpack->table.store;
    if (opened->n > 0)
        return still_there(unpack, opened, path) ? 0 : -ESTALE;
    struct pstk__store_entry entry = {0};
    int r = below->open(below, &opened->file, path);
    if (r == 0 && below->look)
        r = below->look(below, path, &entry);
    if (r < 0)
        pstk__file_end(&opened->file);
    opened->device = entry.device;
    opened->inode = entry.inode;
    return r;
}

/* 1: the file below is the one that was found. */
static int is_same(const struct pstk__unpack *unpack, uint32_t number, const char *path)
{
    const struct pstk__store *below = unpack->table.store;
    const struct pstk__access_points_of *of = &unpack->table.at[number].of;
    struct pstk__file file;
    uint64_t size;
    int64_t changed_ns;
    if (below->open(below, &file, path) < 0)
        return 0;
    const int r = below->stat(&file, &size, &changed_ns);
    pstk__file_end(&file);
    return r == 0 && size == of->size && changed_ns == of->changed_ns;
}

/* Replace an entry that a read found damaged. Called by reading threads, any number at once. */
static int open_again(struct pstk__unpack *unpack, struct opened *opened)
{
    int r = 0;
    pthread_mutex_lock(&unpack->mending);
    if (!atomic_load_explicit(&opened->has_again, memory_order_relaxed)) {
        r = pstk__packed_entry(&unpack->table, number_of(opened), &opened->file, &opened->again,
                               NULL);
        if (r == 0) /* with the load in entry_of */
            atomic_store_explicit(&opened->has_again, 1, memory_order_release);
    }
    pthread_mutex_unlock(&unpack->mending);
    return r;
}

static const struct pstk__file *entry_of(const struct opened *opened)
{
    return atomic_load_explicit(&opened->has_again, memory_order_acquire) ? &opened->again
                                                                          : &opened->file;
}

static int64_t read_entry(struct pstk__unpack *unpack, struct opened *opened, void *buffer,
                          uint64_t size, uint64_t offset)
{
    const struct pstk__file *entry = entry_of(opened);
    const int64_t r = entry->store->read_at(entry, buffer, size, offset);
    if (r != -EBADMSG || entry == &opened->again || open_again(unpack, opened) < 0)
        return r;
    entry = entry_of(opened);
    return entry->store->read_at(entry, buffer, size, offset);
}

/* Keep why a compressed file cannot be unpacked. With `opening`. */
static void keep_damage(struct opened *opened, const char *path, const char *why)
{
    const struct pstk__store *below = opened->unpack->table.store;
    struct pstk__store_entry entry = {0};
    if (below->look && below->look(below, path, &entry) < 0)
        return;
    opened->device = entry.device;
    opened->inode = entry.inode;
    free(opened->wrong);
    opened->wrong = strdup(why);
}

/* 1: the file was found damaged, and no other has taken its place. With `opening`. */
static int is_known_damage(const struct opened *opened, const char *path)
{
    return opened->wrong && still_there(opened->unpack, opened, path);
}

/* Open the cache entry of a file, or count that it is open once more. Entries are made without a
 * lock: the cache has one maker of each. */
static int open_entry(struct pstk__unpack *unpack, struct opened *opened, const char *path)
{
    struct pstk__file entry;
    struct pstk_error err;
    pthread_mutex_lock(&unpack->opening);
    const int is_open = opened->n > 0, is_damaged = !is_open && is_known_damage(opened, path);
    opened->n += is_open ? 1 : 0;
    if (is_damaged)
        snprintf(open_why, sizeof open_why, "%s", opened->wrong);
    pthread_mutex_unlock(&unpack->opening);
    if (is_open || is_damaged)
        return is_open ? 0 : -EBADMSG;
    pstk_error_init(&err, sizeof err);
    const int r = pstk__packed_entry(&unpack->table, number_of(opened), NULL, &entry, &err);
    pthread_mutex_lock(&unpack->opening);
    if (r < 0) {
        memcpy(open_why, err.message, sizeof open_why);
        if (r == PSTK_EBADMSG)
            keep_damage(opened, path, err.message);
    } else if (opened->n++ > 0) {
        pstk__file_end(&entry); /* another thread has opened it meanwhile */
    } else {
        opened->file = entry;
        atomic_store_explicit(&opened->has_again, 0, memory_order_relaxed);
    }
    pthread_mutex_unlock(&unpack->opening);
    /* Codes are negative errnos. With ETIMEDOUT a loader's caller would call next again. */
    const int native = r < 0 && err.native ? err.native : -r;
    return native == ETIMEDOUT ? -EBUSY : -native;
}

static int unpack_open(const struct pstk__store *store, struct pstk__file *file, const char *path)
{
    struct pstk__unpack *unpack = unpack_of(store);
    const struct pstk__store *below = unpack->table.store;
    const uint32_t number = pstk__packed_find(&unpack->table, path);
    open_why[0] = 0;
    if (number == PSTK__NO_FILE || !unpack->table.at[number].of.packing)
        return below->open(below, file, path);
    struct opened *opened = &unpack->opened[number];
    const int is_cached = pstk__packed_is_cached(&unpack->table.at[number]);
    /* A file that is no longer what it was is opened as it is: its size and time show that. */
    if (is_cached && !is_same(unpack, number, path))
        return below->open(below, file, path);
    pthread_mutex_lock(&unpack->opening);
    int r = is_cached ? 0 : open_packed(unpack, opened, path);
    opened->n += !is_cached && r == 0;
    pthread_mutex_unlock(&unpack->opening);
    if (is_cached)
        r = open_entry(unpack, opened, path);
    *file = (struct pstk__file){
        .store = r < 0 ? NULL : store, .fd = -1, .state = r < 0 ? NULL : opened};
    return r;
}

/* The size is the unpacked one as long as the file has the size that it had. */
static int unpack_stat(const struct pstk__file *file, uint64_t *size, int64_t *changed_ns)
{
    const struct opened *opened = file->state;
    const struct pstk__access_points_of *of = &opened->unpack->table.at[number_of(opened)].of;
    const int r = opened->file.store->stat(&opened->file, size, changed_ns);
    if (r == 0 && !pstk__packed_is_cached(&opened->unpack->table.at[number_of(opened)]))
        *size = *size == of->size ? of->unpacked : of->unpacked + 1;
    return r;
}

/* Reads end with the span: the caller goes on with the next. */
static int64_t unpack_read_at(const struct pstk__file *file, void *buffer, uint64_t size,
                              uint64_t offset)
{
    struct opened *opened = file->state;
    struct pstk__unpack *unpack = opened->unpack;
    const uint32_t number = number_of(opened);
    struct pstk__damage damage = {0};
    if (size == 0 || offset >= unpack->table.at[number].of.unpacked)
        return 0;
    if (pstk__packed_is_cached(&unpack->table.at[number]))
        return read_entry(unpack, opened, buffer, size, offset);
    struct slot *slot = take_slot(unpack, number, offset);
    int64_t r = seek(unpack, slot, number, offset, &damage);
    if (r == 0)
        r = pstk__span_read(&slot->span, &slot->points, &opened->file, buffer, size, offset,
                            &damage);
    leave_slot(unpack, slot, number, r < 0, &damage);
    return r;
}

/* Forget the spans of a file. Nobody reads from it. */
static void forget(struct pstk__unpack *unpack, uint32_t number)
{
    pthread_mutex_lock(&unpack->mutex);
    for (uint32_t i = 0; i < unpack->n_slots; i++)
        if (unpack->slots[i].number == number && !unpack->slots[i].is_busy) {
            unpack->slots[i].number = unpack->slots[i].claimed = PSTK__NO_FILE;
            pstk__access_points_close(&unpack->slots[i].points);
        }
    pthread_mutex_unlock(&unpack->mutex);
}

static void unpack_close(struct pstk__file *file)
{
    struct opened *opened = file->state;
    struct pstk__unpack *unpack = opened->unpack;
    pthread_mutex_lock(&unpack->opening);
    if (--opened->n == 0) {
        forget(unpack, number_of(opened));
        pstk__file_end(&opened->file);
        pstk__file_end(&opened->again);
    }
    pthread_mutex_unlock(&unpack->opening);
}

static void unpack_explain(const struct pstk__file *file, char *text, size_t size)
{
    const struct opened *opened = file->state;
    struct pstk__unpack *unpack = opened->unpack;
    const uint32_t number = number_of(opened);
    char path[PATH_MAX];
    pthread_mutex_lock(&unpack->mutex);
    const struct pstk__damage damage = opened->damage;
    pthread_mutex_unlock(&unpack->mutex);
    text[0] = 0;
    if (damage.in_points &&
        pstk__packed_access_points(&unpack->table, number, path, sizeof path) < 0)
        return;
    if (damage.in_points && access(path, F_OK) < 0)
        snprintf(text, size, "the access points file %s is gone: open the data set again", path);
    else if (damage.is_replaced)
        snprintf(text, size,
                 "its access points file %s was made anew since the data set was opened, as the "
                 "file was changed or replaced: open the data set again",
                 path);
    else if (damage.why && damage.in_points)
        snprintf(text, size,
                 "%s of the access points file %s is damaged: remove that file, and it is made "
                 "again",
                 damage.why, path);
    else if (damage.why)
        snprintf(text, size, "byte %" PRIu64 " of the %s file: %s; %s", damage.packed,
                 pstk__packing_of(unpack->table.at[number].of.packing)->name, damage.why,
                 pstk__packing_of(unpack->table.at[number].of.packing)->repair);
}

static void unpack_explain_open(const struct pstk__store *store, char *text, size_t size)
{
    (void)store;
    snprintf(text, size, "%s", open_why);
}

static int unpack_look(const struct pstk__store *store, const char *path,
                       struct pstk__store_entry *entry)
{
    const struct pstk__unpack *unpack = unpack_of(store);
    const struct pstk__store *below = unpack->table.store;
    const uint32_t number = pstk__packed_find(&unpack->table, path);
    const int r = below->look(below, path, entry);
    if (r == 0 && number != PSTK__NO_FILE && unpack->table.at[number].of.packing)
        entry->size = unpack->table.at[number].of.unpacked;
    return r;
}

static int unpack_list(const struct pstk__store *store, const char *path, pstk__store_name_fn each,
                       void *user)
{
    const struct pstk__store *below = unpack_of(store)->table.store;
    return below->list(below, path, each, user);
}

static void unpack_stop(const struct pstk__store *store)
{
    atomic_store_explicit(&unpack_of(store)->table.is_stopped, 1, memory_order_relaxed);
}

static int unpack_check(const struct pstk__store *store, const char *path,
                        int (*progress)(void *user, uint64_t n), void *user, struct pstk_error *err)
{
    struct pstk__unpack *unpack = unpack_of(store);
    const uint32_t number = pstk__packed_find(&unpack->table, path);
    return number == PSTK__NO_FILE || !pstk__packed_is_cached(&unpack->table.at[number])
               ? 0
               : pstk__packed_check(&unpack->table, number, progress, user, err);
}

/* ---- opening --------------------------------------------------------------------------------- */

static uint32_t slots_for_cores(void)
{
    cpu_set_t cores;
    const int n = sched_getaffinity(0, sizeof cores, &cores) < 0 ? 1 : CPU_COUNT(&cores);
    return 2 * n < MIN_SLOTS ? MIN_SLOTS : 2 * n < MAX_SLOTS ? 2 * (uint32_t)n : MAX_SLOTS;
}

/* The spans; their memory is touched as they are used. */
static int open_slots(struct pstk__unpack *unpack)
{
    const uint64_t size = (pstk__span_memory(unpack->spans) + 63) / 64 * 64;
    const uint32_t n = unpack->spans >> 1 ? slots_for_cores() : 0;
    if (n == 0)
        return 0; /* nothing is read from points */
    unpack->slots = calloc(n, sizeof *unpack->slots);
    unpack->memory = aligned_alloc(64, n * size);
    if (!unpack->slots || !unpack->memory)
        return PSTK_ENOMEM;
    for (; unpack->n_slots < n; unpack->n_slots++) {
        struct slot *slot = &unpack->slots[unpack->n_slots];
        slot->number = slot->claimed = PSTK__NO_FILE;
        slot->points.fd = -1;
        if (pstk__span_init(&slot->span, unpack->memory + unpack->n_slots * size, unpack->spans) <
            0)
            return PSTK_ENOMEM;
    }
    return 0;
}

static int open_locks(struct pstk__unpack *unpack)
{
    if (pthread_mutex_init(&unpack->opening, NULL))
        return PSTK_ENOMEM;
    unpack->n_ready++;
    if (pthread_mutex_init(&unpack->mutex, NULL))
        return PSTK_ENOMEM;
    unpack->n_ready++;
    if (pthread_mutex_init(&unpack->mending, NULL))
        return PSTK_ENOMEM;
    unpack->n_ready++;
    if (pthread_cond_init(&unpack->changed, NULL))
        return PSTK_ENOMEM;
    unpack->n_ready++;
    return 0;
}

/* What reading takes, once the files are known. */
static int open_reading(struct pstk__unpack *unpack, struct pstk_error *err)
{
    const uint64_t n = unpack->table.names.n;
    unpack->opened = calloc(n + 1, sizeof *unpack->opened);
    for (uint64_t i = 0; unpack->opened && i < n; i++) {
        unpack->opened[i] =
            (struct opened){.file = {.fd = -1}, .again = {.fd = -1}, .unpack = unpack};
        unpack->packings |= 1u << unpack->table.at[i].of.packing;
        if (!pstk__packed_is_cached(&unpack->table.at[i]))
            unpack->spans |= 1u << unpack->table.at[i].of.packing;
    }
    if (!unpack->opened || open_locks(unpack) < 0 || open_slots(unpack) < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to unpack the files of %s",
                          unpack->table.folder);
    return 0;
}

int pstk__unpack_open(struct pstk__unpack **out, const struct pstk__unpack_files *files,
                      struct pstk_error *err)
{
    *out = NULL;
    int r = pstk__unpack_is_needed(files, err);
    if (r <= 0)
        return r;
    struct pstk__unpack *unpack = calloc(1, sizeof *unpack);
    if (!unpack)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the files of %s",
                          files->folder);
    unpack->store = (struct pstk__store){.name = "unpacked files",
                                         .open = unpack_open,
                                         .stat = unpack_stat,
                                         .read_at = unpack_read_at,
                                         .close = unpack_close,
                                         .explain = unpack_explain,
                                         .explain_open = unpack_explain_open,
                                         .look = files->store->look ? unpack_look : NULL,
                                         .list = files->store->list ? unpack_list : NULL,
                                         .stop = unpack_stop,
                                         .check = unpack_check};
    r = pstk__packed_open(&unpack->table, files, err);
    if (r == 0)
        r = pstk__unpack_build(&unpack->table, files, err);
    if (r == 0)
        r = open_reading(unpack, err);
    if (r < 0) {
        pstk__unpack_close(unpack);
        return r;
    }
    *out = unpack;
    return 0;
}

void pstk__unpack_close(struct pstk__unpack *unpack)
{
    if (!unpack)
        return;
    for (uint32_t i = 0; i < unpack->n_slots; i++)
        pstk__access_points_close(&unpack->slots[i].points);
    if (unpack->n_ready > 3)
        pthread_cond_destroy(&unpack->changed);
    if (unpack->n_ready > 2)
        pthread_mutex_destroy(&unpack->mending);
    if (unpack->n_ready > 1)
        pthread_mutex_destroy(&unpack->mutex);
    if (unpack->n_ready > 0)
        pthread_mutex_destroy(&unpack->opening);
    for (uint64_t i = 0; unpack->opened && i < unpack->table.names.n; i++)
        free(unpack->opened[i].wrong);
    pstk__packed_close(&unpack->table);
    free(unpack->opened);
    free(unpack->slots);
    free(unpack->memory);
    free(unpack);
}

const struct pstk__store *pstk__unpack_store(const struct pstk__unpack *unpack)
{
    return &unpack->store;
}

uint64_t pstk__unpack_size(const struct pstk__unpack *unpack, uint64_t i)
{
    return unpack->table.at[i].of.unpacked;
}

int pstk__unpack_is_checked(const struct pstk__unpack *unpack)
{
    for (uint64_t i = 0; i < unpack->table.names.n; i++)
        if (!unpack->table.at[i].is_checked)
            return 0;
    return 1;
}

const char *pstk__unpack_name(const struct pstk__unpack *unpack)
{
    static const char *const names[] = {"mixed", "gzip", "zstd", "bzip2", "br", "snapp"};
    const uint32_t packings = unpack->packings >> 1;
    const int is_one = packings && !(packings & (packings - 1));
    return names[is_one ? __builtin_ctz(packings) + 1 : 0];
}
