/* SPDX-License-Identifier: Apache-2.0 */
/*
 * soak: uses loaders in every way for a long time, and prints what the process holds meanwhile.
 *
 *   soak DATA DAMAGED SECONDS SEED [direct]
 *
 * DATA is a whole data set of images, DAMAGED one with some damaged records, which are replaced.
 * With `direct` some loaders read with O_DIRECT. N_LANES threads open loaders of random settings,
 * read epochs and parts of epochs, hold batches, hand them to another thread, close with batches
 * leased, and open again; one thread interrupts them at random times. Every row of every batch is
 * compared with what one worker thread gave at the start, whole epochs with their digest.
 *
 * N_PERIODS times all loaders are closed, and a line is printed: seconds, resident bytes while
 * loaders ran, resident bytes without any, heap bytes in use, descriptors, threads, then the counts
 * of opens, epochs, batches, seeks, interrupts and replaced rows so far. Exit status: 0; 1 a row, a
 * digest or a call was wrong.
 */
#include <inttypes.h>
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <penstock/penstock.h>

#define N_LANES 3
#define N_EPOCHS 4 /* epochs whose rows are known */
#define N_PERIODS 60
#define N_HELD 16 /* batches that wait for the releasing thread */
#define SIDE 64   /* pixels of an image's row */
#define IMAGE_SIZE (SIDE * SIDE * 3)
#define SECOND 1000000000
#define LOOK 0.02 /* seconds between two looks at the resident memory */

/* The right rows of one data set. */
struct truth {
    const char *path;
    uint32_t bad_sample; /* enum pstk_bad_sample */
    uint64_t n;          /* samples */
    uint32_t *rows;      /* owned: [N_EPOCHS][n] CRC of image and label */
    uint64_t *ids;       /* owned: [N_EPOCHS][n] */
    uint32_t digests[N_EPOCHS];
};

struct counts {
    _Atomic uint64_t n_opens, n_epochs, n_batches, n_seeks, n_interrupts;
};

struct soak;

struct lane {
    struct soak *soak;
    uint64_t random;      /* state of its generator */
    pthread_mutex_t lock; /* guards `loader`, so that the interrupting thread meets no closed one */
    struct pstk_loader *loader;
};

/* Batches on their way to the thread that checks and releases them. Under `lock`. */
struct hand_over {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct {
        struct pstk_batch *batch;
        const struct truth *truth;
    } held[N_HELD];
    uint32_t n;
    int is_busy;   /* 1: the releasing thread has one in hand */
    int is_closed; /* 1: no more come */
};

struct soak {
    struct truth truths[2];
    struct lane lanes[N_LANES];
    struct hand_over out;
    struct counts counts;
    int has_direct;    /* 1: O_DIRECT works on DATA */
    _Atomic int pause; /* 1: lanes close their loaders and wait at the barrier */
    _Atomic int stop;  /* 1: lanes end after the barrier */
    _Atomic int failed;
    pthread_barrier_t paused, resumed; /* N_LANES + the main thread */
};

static void fail(struct soak *s, const char *what, const char *detail)
{
    atomic_store(&s->failed, 1);
    fprintf(stderr, "not ok: %s: %s\n", what, detail);
}

static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t below(uint64_t *state, uint64_t n)
{
    return draw(state) % n;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / SECOND;
}

static void nap(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * SECOND);
    nanosleep(&t, NULL);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static uint32_t row_crc(const struct pstk_batch *b, uint32_t row)
{
    const uint8_t *image = b->tensors[0].data, *label = b->tensors[1].data;
    uint32_t crc = pstk_crc32c(0, image + (uint64_t)row * IMAGE_SIZE, IMAGE_SIZE);
    return pstk_crc32c(crc, label + (uint64_t)row * 8, 8);
}

static void check_batch(struct soak *s, const struct truth *t, const struct pstk_batch *b)
{
    char text[128];
    for (uint32_t i = 0; i < b->n_valid; i++) {
        const uint64_t at = b->epoch * t->n + b->position + i;
        if (b->epoch < N_EPOCHS && b->position + i < t->n && b->sample_ids[i] == t->ids[at] &&
            row_crc(b, i) == t->rows[at])
            continue;
        snprintf(text, sizeof text, "epoch %" PRIu64 ", position %" PRIu64 ", sample %" PRIu64,
                 b->epoch, b->position + i, b->sample_ids[i]);
        fail(s, "a row differs", text);
        return;
    }
}

static int open_loader(const struct truth *t, struct pstk_settings *s, struct pstk_loader **out,
                       struct pstk_error *err)
{
    struct pstk_op ops[] = {pstk_random_resized_crop(SIDE, SIDE), pstk_random_flip(0.5)};
    const struct pstk_output outputs[] = {
        {.name = "image",
         .field = "jpg",
         .kind = PSTK_OUTPUT_IMAGE,
         .image.ops = ops,
         .image.n_ops = 2,
         .dtype = PSTK_U8},
        {.name = "label", .field = "cls", .kind = PSTK_OUTPUT_SCALAR}};
    s->path = t->path;
    s->outputs = outputs;
    s->n_outputs = 2;
    s->last_batch = PSTK_LAST_SHORT;
    s->seed = 11;
    s->bad_sample = t->bad_sample;
    pstk_error_init(err, sizeof *err);
    return pstk_open(out, s, err);
}

/* Read N_EPOCHS with one worker and no io_uring: what all others are compared with. */
static int learn(struct truth *t)
{
    struct pstk_settings s;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    int r;
    pstk_settings_init(&s, sizeof s);
    s.batch_size = 16;
    s.n_threads = 1;
    s.reading.reader = PSTK_READER_THREADS;
    r = open_loader(t, &s, &loader, &err);
    if (r < 0)
        return fprintf(stderr, "soak: %s\n", err.message), r;
    t->n = pstk_n_samples(loader);
    t->rows = calloc(N_EPOCHS * t->n, sizeof *t->rows);
    t->ids = calloc(N_EPOCHS * t->n, sizeof *t->ids);
    for (uint64_t e = 0; r >= 0 && e < N_EPOCHS;) {
        r = pstk_next(loader, &b, NULL, -1, &err);
        for (uint32_t i = 0; r == 1 && i < b->n_valid; i++) {
            const uint64_t at = e * t->n + b->position + i;
            t->ids[at] = b->sample_ids[i];
            t->rows[at] = row_crc(b, i);
            t->digests[e] = pstk_crc32c(t->digests[e], &t->rows[at], sizeof t->rows[at]);
        }
        if (r == 1)
            pstk_release(&b, NULL);
        e += r == 0;
    }
    if (r < 0)
        fprintf(stderr, "soak: %s\n", err.message);
    pstk_close(&loader);
    return r;
}

/* ---- the thread that checks and releases ----------------------------------------------------- */

/* Hand a batch over; 0 where there is no room. */
static int hand_over(struct hand_over *h, struct pstk_batch *batch, const struct truth *truth)
{
    pthread_mutex_lock(&h->lock);
    const int fits = h->n < N_HELD;
    if (fits) {
        h->held[h->n].batch = batch;
        h->held[h->n++].truth = truth;
        pthread_cond_broadcast(&h->changed);
    }
    pthread_mutex_unlock(&h->lock);
    return fits;
}

static void *release_all(void *user)
{
    struct soak *s = user;
    struct hand_over *h = &s->out;
    pthread_mutex_lock(&h->lock);
    for (;;) {
        while (h->n == 0 && !h->is_closed)
            pthread_cond_wait(&h->changed, &h->lock);
        if (h->n == 0)
            break;
        struct pstk_batch *batch = h->held[--h->n].batch;
        const struct truth *truth = h->held[h->n].truth;
        h->is_busy = 1;
        pthread_mutex_unlock(&h->lock);
        check_batch(s, truth, batch);
        pstk_release(&batch, NULL);
        pthread_mutex_lock(&h->lock);
        h->is_busy = 0;
        pthread_cond_broadcast(&h->changed);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

/* Wait until every batch that was handed over is released. */
static void wait_released(struct hand_over *h)
{
    pthread_mutex_lock(&h->lock);
    while (h->n > 0 || h->is_busy)
        pthread_cond_wait(&h->changed, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static void set_loader(struct lane *l, struct pstk_loader *loader)
{
    pthread_mutex_lock(&l->lock);
    l->loader = loader;
    pthread_mutex_unlock(&l->lock);
}

static void choose(struct lane *l, struct pstk_settings *s)
{
    static const uint32_t sizes[] = {1, 7, 16, 32};
    pstk_settings_init(s, sizeof *s);
    s->batch_size = sizes[below(&l->random, 4)];
    s->n_threads = 1 + (uint32_t)below(&l->random, 4);
    s->memory.n_slots = 2 + (uint32_t)below(&l->random, 5);
    s->reading.reader = below(&l->random, 2) ? PSTK_READER_AUTO : PSTK_READER_THREADS;
    s->reading.io =
        l->soak->has_direct && below(&l->random, 3) == 0 ? PSTK_IO_DIRECT : PSTK_IO_AUTO;
    s->reading.pin_threads = (uint32_t)below(&l->random, 2);
    s->reading.queue_depth = below(&l->random, 2) ? 0 : 4;
}

/* pstk_next through interrupts. Waits also with a limit, which may pass. */
static int next(struct lane *l, struct pstk_loader *loader, struct pstk_batch **b,
                struct pstk_error *err)
{
    for (;;) {
        const int64_t limit = below(&l->random, 4) ? -1 : (int64_t)below(&l->random, 2000000);
        const int r = pstk_next(loader, b, NULL, limit, err);
        if (r == PSTK_EINTR)
            atomic_fetch_add(&l->soak->counts.n_interrupts, 1);
        else if (r != PSTK_ETIMEDOUT || limit < 0)
            return r;
    }
}

/* Check and release a batch: here, or in the other thread. */
static void finish_batch(struct lane *l, const struct truth *t, struct pstk_batch *b)
{
    atomic_fetch_add(&l->soak->counts.n_batches, 1);
    if (below(&l->random, 3) == 0 && hand_over(&l->soak->out, b, t))
        return;
    check_batch(l->soak, t, b);
    pstk_release(&b, NULL);
}

/* Read up to n batches from a position on; 0 = the whole rest. Returns the result of the last
 * pstk_next. */
static int read_part(struct lane *l, const struct truth *t, struct pstk_loader *loader, uint64_t n)
{
    struct pstk_error err;
    struct pstk_batch *b;
    uint32_t digest = 0;
    uint64_t epoch = 0, n_rows = 0, i = 0;
    int r = 1;
    pstk_error_init(&err, sizeof err);
    while (r == 1 && (n == 0 || i++ < n)) {
        r = next(l, loader, &b, &err);
        if (r == PSTK_ENOBUFS) { /* the other thread holds every slot */
            wait_released(&l->soak->out);
            r = 1;
        } else if (r == 1) {
            for (uint32_t k = 0; k < b->n_valid; k++) {
                const uint32_t crc = row_crc(b, k);
                digest = pstk_crc32c(digest, &crc, sizeof crc);
            }
            n_rows += b->n_valid, epoch = b->epoch;
            finish_batch(l, t, b);
        }
    }
    if (r == 0 && n_rows == t->n) {
        atomic_fetch_add(&l->soak->counts.n_epochs, 1);
        if (epoch >= N_EPOCHS || digest != t->digests[epoch])
            fail(l->soak, "an epoch's digest differs", t->path);
    }
    if (r < 0)
        fail(l->soak, "pstk_next", err.message);
    return r;
}

static void use(struct lane *l, const struct truth *t, struct pstk_loader *loader)
{
    struct pstk_error err;
    struct pstk_stats stats = {.size = sizeof stats};
    pstk_error_init(&err, sizeof err);
    for (uint64_t i = 1 + below(&l->random, 4); i > 0 && !atomic_load(&l->soak->pause); i--) {
        const int whole = below(&l->random, 2) == 0;
        const uint64_t epoch = below(&l->random, N_EPOCHS),
                       position = whole ? 0 : below(&l->random, t->n);
        atomic_fetch_add(&l->soak->counts.n_seeks, 1);
        if (pstk_seek(loader, epoch, position, &err) < 0)
            fail(l->soak, "pstk_seek", err.message);
        if (read_part(l, t, loader, whole ? 0 : 1 + below(&l->random, 9)) < 0)
            return;
        if (pstk_get_stats(loader, &stats) < 0)
            fail(l->soak, "pstk_get_stats", "");
    }
    struct pstk_batch *last;
    if (below(&l->random, 2) == 0 && pstk_seek(loader, 1, 0, &err) == 0 &&
        next(l, loader, &last, &err) == 1)
        hand_over(&l->soak->out, last, t) ? (void)0
                                          : pstk_release(&last, NULL); /* leased at close */
}

static void round_of(struct lane *l)
{
    const struct truth *t = &l->soak->truths[below(&l->random, 3) == 0];
    struct pstk_settings s;
    struct pstk_loader *loader;
    struct pstk_error err;
    choose(l, &s);
    if (open_loader(t, &s, &loader, &err) < 0) {
        fail(l->soak, "pstk_open", err.message);
        nap(0.1);
        return;
    }
    atomic_fetch_add(&l->soak->counts.n_opens, 1);
    set_loader(l, loader);
    use(l, t, loader);
    set_loader(l, NULL);
    pstk_close(&loader);
}

static void *run_lane(void *user)
{
    struct lane *l = user;
    while (!atomic_load(&l->soak->stop)) {
        while (!atomic_load(&l->soak->pause))
            round_of(l);
        pthread_barrier_wait(&l->soak->paused);
        pthread_barrier_wait(&l->soak->resumed);
    }
    return NULL;
}

static void *interrupt_lanes(void *user)
{
    struct soak *s = user;
    uint64_t random = s->lanes[0].random ^ 1;
    while (!atomic_load(&s->stop)) {
        struct lane *l = &s->lanes[below(&random, N_LANES)];
        pthread_mutex_lock(&l->lock);
        if (l->loader)
            pstk_interrupt(l->loader);
        pthread_mutex_unlock(&l->lock);
        nap((double)below(&random, 20) / 1000);
    }
    return NULL;
}

/* ---- what the process holds -------------------------------------------------------------------
 */

static uint64_t resident(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*u %llu", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Entries of a folder of /proc; of its descriptors that are open, the one that reads the folder not
 * counted. */
static int entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n - (strcmp(folder, "/proc/self/fd") == 0);
}

static void print_line(const struct soak *s, double seconds, uint64_t busy)
{
    const struct counts *c = &s->counts;
    printf("%.1f %" PRIu64 " %" PRIu64 " %zu %d %d", seconds, busy, resident(),
           mallinfo2().uordblks, entries("/proc/self/fd"), entries("/proc/self/task"));
    printf(" %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", c->n_opens,
           c->n_epochs, c->n_batches, c->n_seeks, c->n_interrupts);
    fflush(stdout);
}

/* Wait until a time; returns the most bytes that were resident meanwhile. */
static uint64_t watch(double until)
{
    uint64_t most = 0;
    do {
        nap(LOOK);
        const uint64_t found = resident();
        most = found > most ? found : most;
    } while (now() < until);
    return most;
}

static void run_periods(struct soak *s, double seconds)
{
    const double start = now();
    int is_last = 0;
    for (int i = 0; !is_last; i++) {
        const uint64_t busy = watch(start + seconds * (i + 1) / N_PERIODS);
        atomic_store(&s->pause, 1);
        pthread_barrier_wait(&s->paused);
        wait_released(&s->out);
        print_line(s, now() - start, busy);
        is_last = i + 1 == N_PERIODS || atomic_load(&s->failed);
        atomic_store(&s->stop, is_last);
        atomic_store(&s->pause, 0);
        pthread_barrier_wait(&s->resumed);
    }
}

static void start_thread(pthread_t *thread, void *(*run)(void *), void *user)
{
    if (pthread_create(thread, NULL, run, user) != 0) {
        fprintf(stderr, "soak: no thread\n");
        exit(2);
    }
}

static void run(struct soak *s, double seconds, uint64_t seed)
{
    pthread_t lanes[N_LANES], interrupter, releaser;
    pthread_barrier_init(&s->paused, NULL, N_LANES + 1);
    pthread_barrier_init(&s->resumed, NULL, N_LANES + 1);
    pthread_mutex_init(&s->out.lock, NULL);
    pthread_cond_init(&s->out.changed, NULL);
    start_thread(&releaser, release_all, s);
    for (int i = 0; i < N_LANES; i++) {
        s->lanes[i].soak = s;
        s->lanes[i].random = seed * N_LANES + (uint64_t)i;
        pthread_mutex_init(&s->lanes[i].lock, NULL);
        start_thread(&lanes[i], run_lane, &s->lanes[i]);
    }
    start_thread(&interrupter, interrupt_lanes, s);
    run_periods(s, seconds);
    for (int i = 0; i < N_LANES; i++)
        pthread_join(lanes[i], NULL);
    pthread_join(interrupter, NULL);
    pthread_mutex_lock(&s->out.lock);
    s->out.is_closed = 1;
    pthread_cond_broadcast(&s->out.changed);
    pthread_mutex_unlock(&s->out.lock);
    pthread_join(releaser, NULL);
}

int main(int argc, char **argv)
{
    struct soak s = {.failed = 0};
    if (argc < 5)
        return fprintf(stderr, "usage: soak DATA DAMAGED SECONDS SEED [direct]\n"), 2;
    s.truths[0] = (struct truth){.path = argv[1], .bad_sample = PSTK_BAD_ERROR};
    s.truths[1] = (struct truth){.path = argv[2], .bad_sample = PSTK_BAD_REPLACE};
    s.has_direct = argc > 5;
    for (int i = 0; i < 2; i++)
        if (learn(&s.truths[i]) < 0)
            return 2;
    run(&s, strtod(argv[3], NULL), strtoull(argv[4], NULL, 10));
    for (int i = 0; i < 2; i++) {
        free(s.truths[i].rows);
        free(s.truths[i].ids);
    }
    return atomic_load(&s.failed);
}
