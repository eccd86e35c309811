/* SPDX-License-Identifier: Apache-2.0 */
#include "feed.h"

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
#include "interrupt.h"
#include "message.h"
#include "text.h"

#define WINDOW_PER_THREAD 8
#define BUDGET (UINT64_C(256) << 20) /* bytes of files in memory */
#define MAX_FILE UINT32_MAX          /* bytes: a record holds no more */
#define MAX_PIXELS 178956970         /* Pillow's limit, and the loader's default */
#define OTHER_FILES 16               /* descriptors for all else: streams, writer, folders */

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
    pthread_cond_t closed;                /* workers wait: max_open */
    uint64_t n_taken, n_next, n_released; /* files */
    uint64_t held;                        /* bytes */
    uint32_t n_open, max_open;            /* files; max_open does not change */
    int stop;
};

static void bad(struct feed_item *item, const char *reason)
{
    item->state = FEED_BAD;
    snprintf(item->reason, sizeof item->reason, "%.*s", (int)sizeof item->reason - 1, reason);
}

/* What to do where a file cannot be read. */
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
        return "; take fewer --threads, or move the file out of the folder";
    default:
        return message_advice(native, text);
    }
}

static void fail(struct feed_item *item, const char *what, int native)
{
    char advice[MESSAGE_ADVICE_SIZE];
    item->state = FEED_FAILED;
    item->code = -native; /* the codes of the library are negative errno values */
    snprintf(item->reason, sizeof item->reason, "%s: %s (errno %d)%s", what, strerror(native),
             native, advice_of(native, advice));
}

static void drop(struct feed_item *item)
{
    if (item->is_converted)
        pstk_free(item->data);
    else
        free(item->data);
    item->data = NULL;
}

static void changed(struct feed_item *item)
{
    item->state = FEED_FAILED;
    item->code = PSTK_EIO;
    snprintf(item->reason, sizeof item->reason,
             "changed while it was read; pack while nothing changes the folder");
}

/* Is the file itself there, as a link that leads to nothing? One that is gone was no such link. */
static int is_link(const struct feed *f, const char *path)
{
    struct stat st;
    return fstatat(f->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* What is known of the file without opening it, its size above all. */
static void look(const struct feed *f, struct feed_item *item)
{
    const char *path = f->config.tree->files[item->number].path;
    struct stat st;
    if (!text_is_utf8(path))
        bad(item, "has a name that is not UTF-8");
    else if (fstatat(f->root_fd, path, &st, 0) < 0) {
        const int native = errno;
        if ((native == ENOENT || native == ELOOP || native == ENOTDIR) && is_link(f, path))
            bad(item, "is a link to a file that is not there");
        else
            fail(item, "cannot be looked at", native);
    } else if (!S_ISREG(st.st_mode))
        bad(item, "is no regular file");
    else if (st.st_size == 0)
        bad(item, "is empty");
    else if (st.st_size > MAX_FILE)
        bad(item, "is larger than 4 GiB");
    else
        item->size = item->file_size = (uint64_t)st.st_size;
}

/* Returns a descriptor, or -1 with the reason given. */
static int open_file(const struct feed *f, struct feed_item *item)
{
    const char *path = f->config.tree->files[item->number].path;
    struct stat st;
    /* O_NONBLOCK: opening what became a named pipe must not wait for its writer */
    int fd = openat(f->root_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        fail(item, "cannot be opened", errno);
    else if (fstat(fd, &st) < 0)
        fail(item, "cannot be looked at", errno);
    else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != item->size)
        changed(item);
    if (item->state == FEED_IMAGE)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void read_file(int fd, struct feed_item *item)
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

/* The image cannot be packed, says the library: is it the image? */
static void judge(struct feed_item *item, const struct pstk_error *err)
{
    int is_packed;
    const char *format = pstk_image_format(item->data, item->size, &is_packed);
    bad(item, err->message[0] ? err->message : pstk_strerror(err->code));
    if (err->code == PSTK_EBADMSG || err->code == PSTK_EFBIG || err->code == PSTK_ENOTSUP ||
        err->code == PSTK_EINVAL) {
        item->format = is_packed ? NULL : format;
        return;
    }
    char advice[MESSAGE_ADVICE_SIZE];
    const size_t n = strlen(item->reason);
    item->state = FEED_FAILED;
    item->code = err->code;
    snprintf(item->reason + n, sizeof item->reason - n, "%s", advice_of(-err->code, advice));
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
        judge(item, &err);
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

/* Wait until one more file may be open. Nobody waits for memory meanwhile, so that each of them is
 * closed soon. */
static void begin_open(struct feed *f)
{
    pthread_mutex_lock(&f->lock);
    while (f->n_open == f->max_open)
        pthread_cond_wait(&f->closed, &f->lock);
    f->n_open++;
    pthread_mutex_unlock(&f->lock);
}

static void end_open(struct feed *f)
{
    pthread_mutex_lock(&f->lock);
    f->n_open--;
    pthread_cond_signal(&f->closed);
    pthread_mutex_unlock(&f->lock);
}

static void open_and_read(struct feed *f, struct feed_item *item)
{
    begin_open(f);
    int fd = open_file(f, item);
    if (fd >= 0) {
        read_file(fd, item);
        close(fd);
    }
    end_open(f);
}

static void fill(struct feed *f, uint64_t i)
{
    struct feed_item *item = &f->slots[i % f->window].item;
    memset(item, 0, sizeof *item);
    item->number = f->config.first + i;
    look(f, item);
    if (item->state != FEED_IMAGE || hold(f, i, item->size) < 0)
        return; /* a feed that stops hands nothing over */
    open_and_read(f, item);
    int64_t more = item->state == FEED_IMAGE ? use_image(f, item) : 0;
    if (more)
        hold_more(f, i, more);
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

/* Files that may be open at once; the others of this process need some as well. */
static uint32_t max_open(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > UINT32_MAX)
        return UINT32_MAX;
    return limit.rlim_cur > OTHER_FILES ? (uint32_t)limit.rlim_cur - OTHER_FILES : 1;
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
    pthread_cond_init(&f->closed, NULL);
    f->max_open = max_open();
    f->slots = calloc(f->window, sizeof *f->slots);
    f->threads = calloc(n_threads, sizeof *f->threads);
    if (!f->slots || !f->threads)
        message_no_memory();
    int status = 0;
    f->root_fd = open(config->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->root_fd < 0) {
        const int native = errno;
        char advice[MESSAGE_ADVICE_SIZE];
        message_say("cannot open the folder %s: %s%s", config->root, strerror(native),
                    message_advice(native, advice));
        status = message_status_of_path(native);
    } else
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
    pthread_cond_destroy(&f->closed);
    free(f->slots);
    free(f->threads);
    free(f);
    *out = NULL;
}
