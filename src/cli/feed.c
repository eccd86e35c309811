/* SPDX-License-Identifier: Apache-2.0 */
#include "feed.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/format.h>

#include "command.h"
#include "interrupt.h"
#include "message.h"

#define WINDOW_PER_THREAD 8
#define BUDGET (UINT64_C(256) << 20) /* bytes of files in memory */
#define MAX_FILE UINT32_MAX          /* bytes: a record holds no more */
#define MAX_PIXELS 178956970         /* Pillow's limit, and the loader's default */

struct slot {
    struct feed_item item;
    uint64_t held; /* bytes of the budget */
    int done;
};

struct feed {
    struct feed_config config;
    uint64_t n, window;
    struct slot *slots; /* file i is in slot i % window */
    pthread_t *threads;
    uint32_t n_threads; /* started */
    int root_fd;        /* -1 when closed */

    pthread_mutex_t lock;                 /* guards what follows, and slots[].done */
    pthread_cond_t room;                  /* workers wait: window or budget */
    pthread_cond_t filled;                /* the writer waits */
    uint64_t n_taken, n_next, n_released; /* files */
    uint64_t held;                        /* bytes */
    int stop;
};

static void bad(struct feed_item *item, const char *reason)
{
    snprintf(item->reason, sizeof item->reason, "%.*s", (int)sizeof item->reason - 1, reason);
}

static void drop(struct feed_item *item)
{
    if (item->is_converted)
        pstk_free(item->data);
    else
        free(item->data);
    item->data = NULL;
}

/* Open the file and find its size; returns a descriptor, or -1 with the reason given. */
static int open_file(const struct feed *f, struct feed_item *item)
{
    const char *path = f->config.tree->files[item->number].path;
    struct stat st;
    /* O_NONBLOCK: opening a named pipe must not wait for its writer */
    int fd = openat(f->root_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        bad(item, strerror(errno));
        return -1;
    }
    if (fstat(fd, &st) < 0)
        bad(item, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        bad(item, "is no regular file");
    else if (st.st_size == 0)
        bad(item, "is empty");
    else if (st.st_size > MAX_FILE)
        bad(item, "is larger than 4 GiB");
    else
        item->size = item->file_size = (uint64_t)st.st_size;
    if (item->reason[0]) {
        close(fd);
        return -1;
    }
    return fd;
}

static void read_file(int fd, struct feed_item *item)
{
    uint64_t done = 0;
    item->data = malloc(item->size);
    if (!item->data) {
        bad(item, "does not fit into memory");
        return;
    }
    while (done < item->size) {
        ssize_t n = read(fd, (char *)item->data + done, item->size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            bad(item, n < 0 ? strerror(errno) : "became shorter while it was read");
            return;
        }
        done += (uint64_t)n;
    }
}

/* What is not converted is checked. Returns the bytes that the item's data grew to or shrank by. */
static int64_t use_image(const struct feed *f, struct feed_item *item)
{
    struct pstk_error err;
    void *data = NULL;
    uint64_t size = 0, before = item->size;
    int r = 0;
    pstk_error_init(&err, sizeof err);
    item->is_palette = pstk_image_is_palette(item->data, item->size);
    if (f->config.convert)
        r = pstk_image_convert(item->data, item->size, f->config.convert, &data, &size,
                               &item->width, &item->height, &err);
    if (r == 0)
        r = pstk_image_check(item->data, item->size, MAX_PIXELS, NULL, NULL, &err);
    if (r < 0)
        bad(item, err.message[0] ? err.message : pstk_strerror(err.code));
    if (!data)
        return 0;
    drop(item);
    item->data = data;
    item->size = size;
    item->is_converted = 1;
    return (int64_t)(size - before);
}

/* The bytes of file i in memory became more, or fewer. */
static void hold_more(struct feed *f, uint64_t i, int64_t more)
{
    pthread_mutex_lock(&f->lock);
    f->held += (uint64_t)more;
    f->slots[i % f->window].held += (uint64_t)more;
    if (more < 0)
        pthread_cond_broadcast(&f->room);
    pthread_mutex_unlock(&f->lock);
}

/* Wait until `size` bytes of file i may be in memory. 0, or -1 when the feed stops. */
static int hold(struct feed *f, uint64_t i, uint64_t size)
{
    pthread_mutex_lock(&f->lock);
    while (!f->stop && f->held + size > BUDGET && i != f->n_released)
        pthread_cond_wait(&f->room, &f->lock);
    int stop = f->stop;
    if (!stop) {
        f->held += size;
        f->slots[i % f->window].held = size;
    }
    pthread_mutex_unlock(&f->lock);
    return stop ? -1 : 0;
}

static void fill(struct feed *f, uint64_t i)
{
    struct feed_item *item = &f->slots[i % f->window].item;
    memset(item, 0, sizeof *item);
    item->number = f->config.first + i;
    if (!tree_is_utf8(f->config.tree->files[item->number].path)) {
        bad(item, "has a name that is not UTF-8");
        return;
    }
    int fd = open_file(f, item);
    if (fd < 0)
        return;
    if (hold(f, i, item->size) == 0) {
        read_file(fd, item);
        int64_t more = item->reason[0] ? 0 : use_image(f, item);
        if (more)
            hold_more(f, i, more);
    } else {
        bad(item, "was not read");
    }
    close(fd);
}

static void *work(void *arg)
{
    struct feed *f = arg;
    pthread_mutex_lock(&f->lock);
    for (;;) {
        while (!f->stop && f->n_taken < f->n && f->n_taken == f->n_released + f->window)
            pthread_cond_wait(&f->room, &f->lock);
        if (f->stop || f->n_taken == f->n)
            break;
        uint64_t i = f->n_taken++;
        pthread_mutex_unlock(&f->lock);
        fill(f, i);
        pthread_mutex_lock(&f->lock);
        f->slots[i % f->window].done = 1;
        if (i == f->n_next)
            pthread_cond_signal(&f->filled);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* Start the threads; fewer than asked for will do. */
static int start(struct feed *f, uint32_t n_threads)
{
    int r = 0;
    interrupt_block();
    while (f->n_threads < n_threads && r == 0) {
        r = pthread_create(&f->threads[f->n_threads], NULL, work, f);
        if (r == 0)
            f->n_threads++;
    }
    interrupt_unblock();
    if (f->n_threads)
        return 0;
    message_say("cannot start a thread: %s", strerror(r));
    return STATUS_DAMAGED;
}

int feed_open(struct feed **out, const struct feed_config *config)
{
    const uint32_t n_threads = config->n_threads;
    *out = NULL;
    struct feed *f = calloc(1, sizeof *f);
    if (!f)
        message_no_memory();
    f->config = *config;
    f->n = config->n;
    f->window = (uint64_t)n_threads * WINDOW_PER_THREAD;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->room, NULL);
    pthread_cond_init(&f->filled, NULL);
    f->slots = calloc(f->window, sizeof *f->slots);
    f->threads = calloc(n_threads, sizeof *f->threads);
    if (!f->slots || !f->threads)
        message_no_memory();
    int status = 0;
    f->root_fd = open(config->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->root_fd < 0)
        status = message_usage("cannot open the folder %s: %s", config->root, strerror(errno));
    else
        status = start(f, n_threads);
    if (status)
        feed_close(&f);
    *out = f;
    return status;
}

int feed_next(struct feed *f, struct feed_item *item)
{
    if (f->n_next == f->n)
        return 0;
    struct slot *slot = &f->slots[f->n_next % f->window];
    pthread_mutex_lock(&f->lock);
    while (!slot->done)
        pthread_cond_wait(&f->filled, &f->lock);
    slot->done = 0;
    f->n_next++;
    pthread_mutex_unlock(&f->lock);
    *item = slot->item;
    return 1;
}

void feed_release(struct feed *f, struct feed_item *item)
{
    struct slot *slot = &f->slots[f->n_released % f->window];
    drop(&slot->item);
    pthread_mutex_lock(&f->lock);
    f->held -= slot->held;
    slot->held = 0;
    f->n_released++;
    pthread_cond_broadcast(&f->room); /* all: any of them may be the one that now has room */
    pthread_mutex_unlock(&f->lock);
    item->data = NULL;
}

void feed_close(struct feed **out)
{
    struct feed *f = *out;
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->stop = 1;
    pthread_cond_broadcast(&f->room);
    pthread_mutex_unlock(&f->lock);
    for (uint32_t i = 0; i < f->n_threads; i++)
        pthread_join(f->threads[i], NULL);
    for (uint64_t i = 0; f->slots && i < f->window; i++)
        drop(&f->slots[i].item);
    if (f->root_fd >= 0)
        close(f->root_fd);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->room);
    pthread_cond_destroy(&f->filled);
    free(f->slots);
    free(f->threads);
    free(f);
    *out = NULL;
}
