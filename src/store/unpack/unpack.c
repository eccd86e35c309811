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

#define MAX_SLOTS 32 /* max spans in memory: 1.7 MiB each, and 8.6 MiB more if a file is zstd */
#define MIN_SLOTS 4

/* A span in memory, of an open file. Lock: `mutex` guards the members down to claimed_end; the
 * thread that made the slot busy owns the rest. */
struct slot {
    int is_busy;
    uint64_t used;    /* count of reads at the last use */
    uint32_t claimed; /* number of the file, or PSTK__NO_FILE */
    uint64_t claimed_begin,
        claimed_end; /* unpacked bytes of that file that the slot has or will have */
    uint32_t number; /* number of the span's file, or PSTK__NO_FILE */
    struct pstk__access_points points; /* access points of that file */
    struct pstk__span span;
};

/* An open file. Lock: `opening`; damage: `mutex`. */
struct opened {
    uint32_t n; /* number of times that it is open */
    struct pstk__file file;
    uint64_t device,
        inode; /* identity of the open compressed file, or of the one that `wrong` describes */
    struct pstk__damage damage; /* the last damage that was found */
    char *wrong; /* why this file is damaged, so that no read unpacks it again; owned; NULL: no
                    damage is known */
    /* For a file that is unpacked into the cache, `file` is its entry. If that entry was damaged,
     * `again` is the new entry, which is open and is read once has_again is set. */
    struct pstk__file again;
    _Atomic int has_again;
    struct pstk__unpack *unpack;
};

struct pstk__unpack {
    struct pstk__store store; /* must be first */
    struct pstk__packed_files table;
    struct opened *opened; /* one for each file, owned */
    uint32_t packings;     /* packings of the files, a set of bits by number */
    uint32_t spans;        /* packings of the files that are read from points */
    /* Locks. opening: held while a file is opened or closed; taken before mutex. mutex: never held
     * during a read. */
    pthread_mutex_t opening, mutex;
    pthread_mutex_t mending; /* held while a damaged entry of the cache is made again */
    pthread_cond_t changed;  /* signals that a slot is no longer busy, or claims less */
    int n_ready;             /* how many of the next four are ready, in the order of init */
    uint64_t n_reads;
    uint32_t n_slots;
    struct slot *slots; /* owned */
    uint8_t *memory;    /* memory of the spans, owned */
};

/* Reason why the thread's last open failed, or "". */
static _Thread_local char open_why[sizeof((struct pstk_error *)0)->message];

/* ---- slots ----------------------------------------------------------------------------------- */

/* 1: the slot has the byte, or will have it. */
static int claims(const struct slot *slot, uint32_t number, uint64_t offset)
{
    return slot->claimed == number && slot->claimed_begin <= offset && offset < slot->claimed_end;
}

/* Choose a slot to read a byte, or NULL: wait. Call with the mutex. Only the slot that has the byte
 * may be taken, if there is one; otherwise one that stopped just before it, to continue; otherwise
 * the least recently used. */
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

/* Make a slot busy, so that other threads that want the same bytes wait. Called by reading threads.
 */
static struct slot *take_slot(struct pstk__unpack *unpack, uint32_t number, uint64_t offset)
{
    struct slot *slot;
    pthread_mutex_lock(&unpack->mutex);
    while (!(slot = choose(unpack, number, offset)))
        pthread_cond_wait(&unpack->changed, &unpack->mutex);
    slot->is_busy = 1;
    slot->used = ++unpack->n_reads;
    if (!claims(slot, number, offset)) {
        /* The span is not known yet: it has at least these bytes, or the next point lies there. */
        slot->claimed = number;
        slot->claimed_begin = offset / PSTK__SPACING * PSTK__SPACING;
        slot->claimed_end = slot->claimed_begin + PSTK__SPACING;
    }
    pthread_mutex_unlock(&unpack->mutex);
    return slot;
}

/* Set the range of a busy slot, once it is known. */
static void claim(struct pstk__unpack *unpack, struct slot *slot, uint32_t number)
{
    pthread_mutex_lock(&unpack->mutex);
    slot->number = slot->claimed = number;
    slot->claimed_begin = slot->span.point.begin;
    slot->claimed_end = slot->span.point.end;
    pthread_cond_broadcast(&unpack->changed);
    pthread_mutex_unlock(&unpack->mutex);
}

/* Release a slot, and store `damage` if some was found. */
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

/* Bring the span that has a byte into a busy slot. */
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
    return (struct pstk__unpack *)(uintptr_t)store; /* the caller's object is never const */
}

static uint32_t number_of(const struct opened *opened)
{
    return (uint32_t)(opened - opened->unpack->opened);
}

/* 1: the file at the path is still the open one. Call with `opening`. */
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

/* Open a compressed file, or count one more open of it. Call with `opening`. */
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

/* 1: the file of the store below is the listed one. */
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

/* Replace an entry that a read found damaged. Any number of reading threads may call it at once. */
static int open_again(struct pstk__unpack *unpack, struct opened *opened)
{
    int r = 0;
    pthread_mutex_lock(&unpack->mending);
    if (!atomic_load_explicit(&opened->has_again, memory_order_relaxed)) {
        r = pstk__packed_entry(&unpack->table, number_of(opened), &opened->file, &opened->again,
                               NULL);
        if (r == 0) /* pairs with the load in entry_of */
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

/* Store why a compressed file cannot be unpacked. Call with `opening`. */
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

/* 1: the file was found damaged, and was not replaced since. Call with `opening`. */
static int is_known_damage(const struct opened *opened, const char *path)
{
    return opened->wrong && still_there(opened->unpack, opened, path);
}

/* Open the cache entry of a file, or count one more open of it. Makes entries without a lock: the
 * cache allows one maker of each. */
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
    /* Errors are negative errnos. ETIMEDOUT becomes EBUSY: with ETIMEDOUT a loader's caller would
     * call next again. */
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
    /* A file that was changed is opened unpacked: its size and time then show the change. */
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

/* Returns the unpacked size as long as the compressed file has its old size. */
static int unpack_stat(const struct pstk__file *file, uint64_t *size, int64_t *changed_ns)
{
    const struct opened *opened = file->state;
    const struct pstk__access_points_of *of = &opened->unpack->table.at[number_of(opened)].of;
    const int r = opened->file.store->stat(&opened->file, size, changed_ns);
    if (r == 0 && !pstk__packed_is_cached(&opened->unpack->table.at[number_of(opened)]))
        *size = *size == of->size ? of->unpacked : of->unpacked + 1;
    return r;
}

/* A read ends with its span; the caller continues in the next one. */
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

/* Forget the spans of a file that no thread reads. */
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
        snprintf(text, size, "the access points file %s was removed: open the data set again",
                 path);
    else if (damage.is_replaced)
        snprintf(text, size,
                 "its access points file %s was rebuilt after the data set was opened, because the "
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

/* Allocate the spans; a page of their memory is first touched when it is used. */
static int open_slots(struct pstk__unpack *unpack)
{
    const uint64_t size = (pstk__span_memory(unpack->spans) + 63) / 64 * 64;
    const uint32_t n = unpack->spans >> 1 ? slots_for_cores() : 0;
    if (n == 0)
        return 0; /* no file is read from points */
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

/* Prepare for reading, once the files are known. */
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
