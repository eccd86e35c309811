/* SPDX-License-Identifier: Apache-2.0 */
#include "command/prefetcher.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/format.h>

#include "command.h"
#include "ui/interrupt.h"
#include "ui/message.h"
#include "ui/status.h"
#include "ui/text.h"

#define SLOTS_PER_THREAD 8
#define BUDGET (UINT64_C(256) << 20) /* bytes of files in memory */
#define MAX_FILE UINT32_MAX          /* bytes; a record holds no more */
#define MAX_PIXELS 178956970         /* Pillow's limit, and the loader's default */
#define OTHER_FILES 16               /* descriptors for everything else: streams, writer, folders */

/* The state of a file. `item` belongs to one thread at a time: to the worker that took the file
 * until that worker sets `done`, then to the writer's thread until it releases the file. */
struct slot {
    struct prefetched item;
    uint64_t held; /* bytes of the budget; guarded by lock */
    int done;      /* guarded by lock */
};

/*
 * Workers run work() and the functions that it calls; the writer's thread runs the public
 * functions. File i is in slot i % n_slots. A slot is empty below n_released and from n_taken on:
 *
 *   n_released <= n_next <= n_taken <= n_released + n_slots
 *
 * held is at most BUDGET, except for file n_released and for the growth of images in conversion.
 */
struct prefetcher {
    /* Set before the workers run. */
    struct prefetcher_config config;
    uint64_t n, n_slots; /* files; files that may be ahead */
    struct slot *slots;  /* owned; n_slots */
    pthread_t *threads;  /* owned */
    int root_fd;         /* -1 when closed */
    uint32_t max_open;   /* files */
    uint32_t n_threads;  /* threads that run; writer's thread only */

    pthread_mutex_t lock;                 /* guards everything below, and held and done of slots */
    pthread_cond_t room;                  /* workers wait for a slot or the budget */
    pthread_cond_t filled;                /* the writer waits for a file */
    pthread_cond_t closed;                /* workers wait for max_open */
    uint64_t n_taken, n_next, n_released; /* files; only the writer changes the last two */
    uint64_t held;                        /* bytes */
    uint32_t n_open;                      /* files */
    int stop;
};

static void bad(struct prefetched *item, const char *reason)
{
    item->state = PREFETCH_BAD;
    snprintf(item->reason, sizeof item->reason, "%.*s", (int)sizeof item->reason - 1, reason);
}

/* Return advice about a file that cannot be read. */
static const char *advice_of(int native, char text[MESSAGE_ADVICE_SIZE])
{
    switch (native) {
    case EACCES:
    case EPERM:
        return "; make it readable, or move it out of the folder";
    case ENOENT:
        return "; it was there a moment ago: pack while nothing changes the folder";
    case EIO:
        return "; check the disk, or move the file out of the folder";
    case ENOMEM:
        return "; use fewer --threads, or move the file out of the folder";
    default:
        return message_advice(native, text);
    }
}

static void fail(struct prefetched *item, const char *what, int native)
{
    char advice[MESSAGE_ADVICE_SIZE];
    item->state = PREFETCH_FAILED;
    item->code = -native; /* the codes of the library are negative errno values */
    snprintf(item->reason, sizeof item->reason, "%s: %s (errno %d)%s", what, strerror(native),
             native, advice_of(native, advice));
}

static void drop(struct prefetched *item)
{
    if (item->is_converted)
        pstk_free(item->data);
    else
        free(item->data);
    item->data = NULL;
}

static void changed(struct prefetched *item)
{
    item->state = PREFETCH_FAILED;
    item->code = PSTK_EIO;
    snprintf(item->reason, sizeof item->reason,
             "changed while it was read; pack while nothing changes the folder");
}

/* Return 1 when the path is a symbolic link. A file that was removed meanwhile is not. */
static int is_link(const struct prefetcher *prefetcher, const char *path)
{
    struct stat st;
    return fstatat(prefetcher->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* Report that a file that the annotations list does not exist. */
static void absent(const struct prefetcher *prefetcher, struct prefetched *item, const char *path)
{
    char reason[sizeof item->reason];
    snprintf(reason, sizeof reason, "%s%s", prefetcher->config.absent,
             strchr(path, '\\') ? "; its path has a \\, which separates no folders here (write /)"
                                : "");
    bad(item, reason);
}

/* Find the file's size, and everything else that is known without opening it. */
static void look(const struct prefetcher *prefetcher, struct prefetched *item)
{
    const char *path = tree_path(prefetcher->config.tree, item->number, NULL);
    struct stat st;
    if (!text_is_utf8(path))
        bad(item, "a name that is not UTF-8");
    else if (fstatat(prefetcher->root_fd, path, &st, 0) < 0) {
        const int native = errno;
        if ((native == ENOENT || native == ELOOP || native == ENOTDIR) && is_link(prefetcher, path))
            bad(item, "a link to a file that is not there");
        else if ((native == ENOENT || native == ENOTDIR) && prefetcher->config.absent)
            absent(prefetcher, item, path);
        else
            fail(item, "its attributes cannot be read", native);
    } else if (!S_ISREG(st.st_mode))
        bad(item, "not a regular file");
    else if (st.st_size == 0)
        bad(item, "an empty file");
    else if (st.st_size > MAX_FILE)
        bad(item, "larger than 4 GiB");
    else
        item->size = item->file_size = (uint64_t)st.st_size;
}

/* Open the item's file. Returns a descriptor, or -1 with the item's reason set. */
static int open_file(const struct prefetcher *prefetcher, struct prefetched *item)
{
    const char *path = tree_path(prefetcher->config.tree, item->number, NULL);
    struct stat st;
    /* O_NONBLOCK: opening a path that became a named pipe must not wait for its writer */
    int fd = openat(prefetcher->root_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        fail(item, "cannot be opened", errno);
    else if (fstat(fd, &st) < 0)
        fail(item, "its attributes cannot be read", errno);
    else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != item->size)
        changed(item);
    if (item->state == PREFETCH_IMAGE)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void read_file(int fd, struct prefetched *item)
{
    uint64_t done = 0;
    item->data = malloc(item->size);
    if (!item->data) {
        fail(item, "cannot be read", ENOMEM);
        return;
    }
    while (done < item->size) {
        ssize_t n = read(fd, (char *)item->data + done, item->size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            fail(item, "cannot be read", errno);
            return;
        }
        if (n == 0) {
            changed(item);
            return;
        }
        done += (uint64_t)n;
    }
}

/* Set the item's state after an error of the library: bad when the image is at fault, else
 * failed. */
static void judge(struct prefetched *item, const struct pstk_error *err)
{
    int is_packed;
    const char *format = item->data ? pstk_image_format(item->data, item->size, &is_packed) : NULL;
    struct pstk_error worded = *err;
    message_settings(&worded);
    bad(item, err->message[0] ? worded.message : pstk_strerror(err->code));
    if (err->code == PSTK_EBADMSG || err->code == PSTK_EFBIG || err->code == PSTK_ENOTSUP ||
        err->code == PSTK_EINVAL) {
        item->format = format && !is_packed ? format : NULL;
        return;
    }
    char advice[MESSAGE_ADVICE_SIZE];
    const size_t n = strlen(item->reason);
    item->state = PREFETCH_FAILED;
    item->code = err->code;
    snprintf(item->reason + n, sizeof item->reason - n, "%s", advice_of(-err->code, advice));
}

/* Check the image. Adds the option that accepts it to the message about a damaged one. */
static int check(const struct prefetcher *prefetcher, struct prefetched *item,
                 struct pstk_error *err)
{
    uint32_t damaged;
    const int r = pstk_image_check_damaged(item->data, item->size, MAX_PIXELS, &damaged, err);
    item->is_damaged = damaged && prefetcher->config.damaged == PSTK_DAMAGED_ACCEPT;
    if (item->is_damaged)
        return 0;
    if (damaged) {
        const size_t n = strlen(err->message);
        snprintf(
            err->message + n, sizeof err->message - n,
            damaged == PSTK_DAMAGE_REMADE
                ? "; its rows are whole, and Pillow loads it: --damaged accept packs them as a "
                  "new PNG file"
                : "; Pillow loads it by guessing: --damaged accept packs it as Pillow shows it");
    }
    return r;
}

/* Convert the image, or check it. Returns the change in the bytes of the item's data. */
static int64_t use_image(const struct prefetcher *prefetcher, struct prefetched *item)
{
    struct pstk_error err;
    void *data = NULL;
    uint64_t size = 0, before = item->size;
    int r = 0;
    pstk_error_init(&err, sizeof err);
    item->is_palette = pstk_image_is_palette(item->data, item->size);
    if (prefetcher->config.convert)
        r = pstk_image_convert(item->data, item->size, prefetcher->config.convert, &data, &size,
                               &item->width, &item->height, &err);
    if (r == 0 || r == PSTK_EBADMSG) /* the check names the option that accepts a damaged file */
        r = check(prefetcher, item, &err);
    if (r < 0)
        judge(item, &err);
    if (!data)
        return 0;
    drop(item);
    item->data = data;
    item->size = size;
    item->is_converted = 1;
    return (int64_t)(size - before);
}

/* Add `more` (may be negative) to the bytes of file i in memory. Worker that took it; holds no
 * lock. */
static void hold_more(struct prefetcher *prefetcher, uint64_t i, int64_t more)
{
    pthread_mutex_lock(&prefetcher->lock);
    prefetcher->held += (uint64_t)more;
    prefetcher->slots[i % prefetcher->n_slots].held += (uint64_t)more;
    if (more < 0)
        pthread_cond_broadcast(&prefetcher->room);
    pthread_mutex_unlock(&prefetcher->lock);
}

/* Wait until `size` bytes of file i may be in memory. Returns 0, or -1 when the prefetcher stops.
 * Worker that took it; holds no lock. */
static int hold(struct prefetcher *prefetcher, uint64_t i, uint64_t size)
{
    pthread_mutex_lock(&prefetcher->lock);
    while (!prefetcher->stop && prefetcher->held + size > BUDGET && i != prefetcher->n_released)
        pthread_cond_wait(&prefetcher->room, &prefetcher->lock);
    int stop = prefetcher->stop;
    if (!stop) {
        prefetcher->held += size;
        prefetcher->slots[i % prefetcher->n_slots].held = size;
    }
    pthread_mutex_unlock(&prefetcher->lock);
    return stop ? -1 : 0;
}

/* Open and read a file, once fewer than max_open files are open. No worker waits for memory while
 * its file is open, so each file is soon closed. Worker; holds no lock. */
static void open_and_read(struct prefetcher *prefetcher, struct prefetched *item)
{
    pthread_mutex_lock(&prefetcher->lock);
    while (prefetcher->n_open == prefetcher->max_open)
        pthread_cond_wait(&prefetcher->closed, &prefetcher->lock);
    prefetcher->n_open++;
    pthread_mutex_unlock(&prefetcher->lock);
    int fd = open_file(prefetcher, item);
    if (fd >= 0) {
        read_file(fd, item);
        close(fd);
    }
    pthread_mutex_lock(&prefetcher->lock);
    prefetcher->n_open--;
    pthread_cond_signal(&prefetcher->closed);
    pthread_mutex_unlock(&prefetcher->lock);
}

/* Read the image of a sample. An error of the sample makes it bad. */
static void read_sample(struct prefetcher *prefetcher, struct prefetched *item)
{
    struct pstk_value_info info = {.size = sizeof info};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const int r = pstk_dataset_get(prefetcher->config.dataset, item->number,
                                   prefetcher->config.field, &item->data, &item->size, &info, &err);
    item->file_size = item->size;
    if (r < 0)
        judge(item, &err);
    else if (info.encoding == PSTK_ENCODING_PIXELS)
        bad(item, "decoded pixels; pack them with penstock.Writer");
}

/* Make file i ready for the writer. Worker that took it; holds no lock. */
static void fill(struct prefetcher *prefetcher, uint64_t i)
{
    struct prefetched *item = &prefetcher->slots[i % prefetcher->n_slots].item;
    memset(item, 0, sizeof *item);
    item->number = prefetcher->config.first + i;
    if (prefetcher->config.dataset)
        read_sample(prefetcher, item);
    else
        look(prefetcher, item);
    if (item->state != PREFETCH_IMAGE || hold(prefetcher, i, item->size) < 0)
        return; /* after a stop no file is handed over */
    if (!prefetcher->config.dataset)
        open_and_read(prefetcher, item);
    int64_t more = item->state == PREFETCH_IMAGE ? use_image(prefetcher, item) : 0;
    if (more)
        hold_more(prefetcher, i, more);
}

/* Fill slots, until no file is left or the prefetcher stops. Every worker runs this; it holds the
 * lock except while it fills. */
static void *work(void *arg)
{
    struct prefetcher *prefetcher = arg;
    pthread_mutex_lock(&prefetcher->lock);
    for (;;) {
        while (!prefetcher->stop && prefetcher->n_taken < prefetcher->n &&
               prefetcher->n_taken == prefetcher->n_released + prefetcher->n_slots)
            pthread_cond_wait(&prefetcher->room, &prefetcher->lock);
        if (prefetcher->stop || prefetcher->n_taken == prefetcher->n)
            break;
        uint64_t i = prefetcher->n_taken++;
        pthread_mutex_unlock(&prefetcher->lock);
        fill(prefetcher, i);
        pthread_mutex_lock(&prefetcher->lock);
        prefetcher->slots[i % prefetcher->n_slots].done = 1;
        if (i == prefetcher->n_next)
            pthread_cond_signal(&prefetcher->filled);
    }
    pthread_mutex_unlock(&prefetcher->lock);
    return NULL;
}

/* Start the threads. Fewer than n_threads are enough; one is needed. */
static int start(struct prefetcher *prefetcher, uint32_t n_threads)
{
    int r = 0;
    interrupt_block();
    while (prefetcher->n_threads < n_threads && r == 0) {
        r = pthread_create(&prefetcher->threads[prefetcher->n_threads], NULL, work, prefetcher);
        if (r == 0)
            prefetcher->n_threads++;
    }
    interrupt_unblock();
    if (prefetcher->n_threads)
        return 0;
    message_say("cannot start a thread: %s", strerror(r));
    return STATUS_DAMAGED;
}

/* Return the number of files that may be open at once. The rest of the process needs some, too. */
static uint32_t max_open(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > UINT32_MAX)
        return UINT32_MAX;
    return limit.rlim_cur > OTHER_FILES ? (uint32_t)limit.rlim_cur - OTHER_FILES : 1;
}

int prefetcher_open(struct prefetcher **out, const struct prefetcher_config *config)
{
    const uint32_t n_threads = config->n_threads;
    *out = NULL;
    struct prefetcher *prefetcher = calloc(1, sizeof *prefetcher);
    if (!prefetcher)
        message_no_memory();
    prefetcher->config = *config;
    prefetcher->n = config->n;
    prefetcher->n_slots = (uint64_t)n_threads * SLOTS_PER_THREAD;
    pthread_mutex_init(&prefetcher->lock, NULL);
    pthread_cond_init(&prefetcher->room, NULL);
    pthread_cond_init(&prefetcher->filled, NULL);
    pthread_cond_init(&prefetcher->closed, NULL);
    prefetcher->max_open = max_open();
    prefetcher->slots = calloc(prefetcher->n_slots, sizeof *prefetcher->slots);
    prefetcher->threads = calloc(n_threads, sizeof *prefetcher->threads);
    if (!prefetcher->slots || !prefetcher->threads)
        message_no_memory();
    int status = 0;
    prefetcher->root_fd =
        config->dataset ? -1 : open(config->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (prefetcher->root_fd < 0 && !config->dataset) {
        const int native = errno;
        char advice[MESSAGE_ADVICE_SIZE];
        message_say("cannot open the folder %s: %s%s", config->root, strerror(native),
                    message_advice(native, advice));
        status = status_of_path(native);
    } else
        status = start(prefetcher, n_threads);
    if (status)
        prefetcher_close(&prefetcher);
    *out = prefetcher;
    return status;
}

int prefetcher_next(struct prefetcher *prefetcher, struct prefetched *item)
{
    if (prefetcher->n_next == prefetcher->n)
        return 0;
    struct slot *slot = &prefetcher->slots[prefetcher->n_next % prefetcher->n_slots];
    pthread_mutex_lock(&prefetcher->lock);
    while (!slot->done)
        pthread_cond_wait(&prefetcher->filled, &prefetcher->lock);
    slot->done = 0;
    prefetcher->n_next++;
    pthread_mutex_unlock(&prefetcher->lock);
    *item = slot->item;
    return 1;
}

void prefetcher_release(struct prefetcher *prefetcher, struct prefetched *item)
{
    struct slot *slot = &prefetcher->slots[prefetcher->n_released % prefetcher->n_slots];
    drop(&slot->item);
    pthread_mutex_lock(&prefetcher->lock);
    prefetcher->held -= slot->held;
    slot->held = 0;
    prefetcher->n_released++;
    pthread_cond_broadcast(&prefetcher->room); /* any of them may now have room */
    pthread_mutex_unlock(&prefetcher->lock);
    item->data = NULL;
}

void prefetcher_close(struct prefetcher **out)
{
    struct prefetcher *prefetcher = *out;
    if (!prefetcher)
        return;
    pthread_mutex_lock(&prefetcher->lock);
    prefetcher->stop = 1;
    pthread_cond_broadcast(&prefetcher->room);
    pthread_mutex_unlock(&prefetcher->lock);
    for (uint32_t i = 0; i < prefetcher->n_threads; i++)
        pthread_join(prefetcher->threads[i], NULL);
    for (uint64_t i = 0; prefetcher->slots && i < prefetcher->n_slots; i++)
        drop(&prefetcher->slots[i].item);
    if (prefetcher->root_fd >= 0)
        close(prefetcher->root_fd);
    pthread_mutex_destroy(&prefetcher->lock);
    pthread_cond_destroy(&prefetcher->room);
    pthread_cond_destroy(&prefetcher->filled);
    pthread_cond_destroy(&prefetcher->closed);
    free(prefetcher->slots);
    free(prefetcher->threads);
    free(prefetcher);
    *out = NULL;
}
