/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader on a real GPU, as a program sees it that has the shared library, the public headers
 * and a CUDA runtime of its own: every batch equals the host's, whatever the schedule.
 *
 *   test_gpu              all tests; 77 where there is no GPU
 *   test_gpu --find       is there one? 0 or 77
 *   test_gpu --fault DATA what the test of faults runs, in a process that may lose its GPU
 *
 * With PENSTOCK_TEST_SANITIZER set (tests/device/cuda/gpu/sanitize) loops are short, and tests that
 * fork or fault are left out.
 */
#include "fault.h"
#include "gpu_trainer.h"

#include <spawn.h>
#include <sys/wait.h>

#define MISSING 77 /* exit status */
#define MIB (1024.0 * 1024.0)

extern char **environ;

static int is_checked(void)
{
    return getenv("PENSTOCK_TEST_SANITIZER") != NULL;
}

#define SKIP_CHECKED()                                                                             \
    do {                                                                                           \
        if (is_checked())                                                                          \
            SKIP("a checker would follow the other process");                                      \
    } while (0)

/* One for all tests: what a failed one leaves open, the next one closes. */
static struct trainer trainer;

/* ---- equality -------------------------------------------------------------------------------- */

/* Two epochs of these settings. */
static int equals_host(const struct pstk_settings *s)
{
    int ok = trainer_open(&trainer, s);
    for (int epoch = 0; epoch < 2 && ok; epoch++)
        ok = trainer_epoch(&trainer, 100) == (int)pstk_n_batches(trainer.loader);
    trainer_close(&trainer);
    return ok;
}

TEST(every_dtype_and_layout_equals_the_host)
{
    const uint32_t dtypes[] = {PSTK_U8, PSTK_F16, PSTK_BF16, PSTK_F32};
    for (uint32_t d = 0; d < 4; d++)
        for (uint32_t layout = 0; layout < 2; layout++)
            for (uint32_t last = 0; last <= PSTK_LAST_SHORT; last++) {
                struct pstk_output mine[N_OUTPUTS];
                struct pstk_settings s = trainer_settings();
                memcpy(mine, trainer_outputs, sizeof mine);
                mine[0].dtype = dtypes[d];
                mine[1].dtype = dtypes[3 - d];
                mine[1].image.n_ops = dtypes[3 - d] == PSTK_U8 ? 2 : 3;
                mine[0].image.layout = mine[1].image.layout = layout ? PSTK_NCHW : PSTK_NHWC;
                s.outputs = mine;
                s.last_batch = last;
                CHECK(equals_host(&s));
            }
}

/* Widths that are no multiple of what a thread stores take a path of their own. */
TEST(every_width_equals_the_host)
{
    const uint32_t widths[] = {1, 2, 3, 4, 7, 8, 9, 12, 16, 24, 33, 223, 224, 225, 299};
    const uint32_t dtypes[] = {PSTK_F16, PSTK_BF16, PSTK_F32};
    const uint32_t n_widths = is_checked() ? 9 : sizeof widths / sizeof *widths;
    for (uint32_t i = 0; i < n_widths; i++)
        for (uint32_t d = 0; d < 3; d++) {
            struct pstk_op ops[3];
            struct pstk_output mine[2] = {trainer_outputs[1], trainer_outputs[1]};
            struct pstk_settings s = trainer_settings();
            memcpy(ops, wide_ops, sizeof ops);
            ops[0].width = widths[i];
            ops[0].height = widths[i] < 200 ? 5 : widths[i];
            mine[0].image.ops = mine[1].image.ops = ops;
            mine[0].dtype = mine[1].dtype = dtypes[d];
            mine[1].image.layout = PSTK_NCHW;
            mine[1].name = "planar";
            s.outputs = mine;
            s.n_outputs = 2;
            s.last_batch = PSTK_LAST_SHORT;
            CHECK(equals_host(&s));
        }
}

TEST(threads_slots_and_batches_make_no_difference)
{
    const uint32_t threads[] = {1, 3}, slots[] = {2, 8}, batches[] = {1, 5, 23};
    for (uint32_t t = 0; t < 2; t++)
        for (uint32_t k = 0; k < 2; k++)
            for (uint32_t b = 0; b < 3; b++)
                for (uint32_t d = 2; d < 5; d++) {
                    struct pstk_settings s = trainer_settings();
                    s.n_threads = threads[t];
                    s.memory.n_slots = slots[k];
                    s.batch_size = batches[b];
                    s.device.n_slots = d;
                    s.device.measure = d == 3;
                    CHECK(equals_host(&s));
                }
}

/* ---- schedules ------------------------------------------------------------------------------- */

static uint64_t random_state;

static uint32_t pick(uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % n;
}

#define MAX_HELD 4u
#define N_STREAMS 3u

/* Batches held and released in any order, on several streams. */
struct juggler {
    cudaStream_t streams[N_STREAMS];
    struct pstk_batch *held[MAX_HELD];
    cudaStream_t held_on[MAX_HELD];
    uint32_t n_held;
};

static void juggler_release(struct juggler *j)
{
    if (j->n_held == 0)
        return;
    const uint32_t k = pick(j->n_held--);
    pstk_release(&j->held[k], j->held_on[k]);
    j->held[k] = j->held[j->n_held];
    j->held_on[k] = j->held_on[j->n_held];
}

static int juggler_step(const struct pstk_batch *b, cudaStream_t stream)
{
    return pstk_stream_spin(trainer.loader, stream, pick(4) * 50000u, NULL) == 0 &&
           trainer_step(&trainer, b, stream);
}

static int juggler_next(struct juggler *j, uint32_t n_device_slots)
{
    struct pstk_batch *b;
    cudaStream_t stream = j->streams[pick(N_STREAMS)], other = j->streams[pick(N_STREAMS)];
    if (j->n_held == n_device_slots || j->n_held == MAX_HELD)
        return 1;
    const int r = trainer_next(&trainer, &b, stream);
    if (r != 1)
        return r == 0;
    int ok = juggler_step(b, stream);
    if (other != stream && pick(2))
        ok = pstk_batch_wait(b, other, NULL) == 0 && juggler_step(b, other) &&
             pstk_batch_use_stream(b, other, NULL) == 0 && ok;
    j->held[j->n_held] = b;
    j->held_on[j->n_held++] = stream;
    return ok;
}

static int juggler_compare(struct juggler *j)
{
    int ok = 1;
    for (uint32_t i = 0; i < N_STREAMS; i++)
        ok = cudaStreamSynchronize(j->streams[i]) == cudaSuccess && ok;
    return trainer_compare(&trainer) && ok;
}

static int schedule(uint64_t seed)
{
    static struct juggler j;
    struct pstk_settings s = trainer_settings();
    random_state = seed * 977 + 3;
    j = (struct juggler){0};
    s.batch_size = 1 + pick(6);
    s.memory.n_slots = 2 + pick(3);
    s.device.n_slots = 2 + pick(3);
    s.n_threads = 1 + pick(2);
    s.seed = seed;
    s.last_batch = pick(3);
    s.device.measure = pick(2);
    int ok = trainer_open(&trainer, &s);
    for (uint32_t i = 0; i < N_STREAMS && ok; i++)
        ok = cudaStreamCreateWithFlags(&j.streams[i], cudaStreamNonBlocking) == cudaSuccess;
    for (uint32_t i = 0, n = 6 + pick(20); i < n && ok; i++) {
        if (trainer.n_steps > MAX_STEPS - 2 || pick(5) == 0)
            ok = juggler_compare(&j);
        if (pick(3) == 0)
            juggler_release(&j);
        if (pick(9) == 0)
            pstk_seek(trainer.loader, pick(4), pick(N_SAMPLES), NULL);
        ok = juggler_next(&j, s.device.n_slots) && ok;
        if (pick(2))
            juggler_release(&j);
    }
    if (pick(2))
        pstk_close(&trainer.loader); /* with copies under way and batches leased */
    while (j.n_held > 0)
        juggler_release(&j);
    ok = juggler_compare(&j) && ok;
    for (uint32_t i = 0; i < N_STREAMS; i++)
        if (j.streams[i])
            ok = cudaStreamDestroy(j.streams[i]) == cudaSuccess && ok;
    trainer_close(&trainer);
    return ok;
}

TEST(no_schedule_of_a_hundred_makes_a_difference)
{
    for (uint64_t seed = 0, n = is_checked() ? 6 : 100; seed < n; seed++) {
        const int ok = schedule(seed);
        if (!ok)
            printf("# schedule %llu\n", (unsigned long long)seed);
        CHECK(ok);
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

/* On each stream a step that ends at another time. */
static int steps_on_all(struct trainer *t, struct pstk_batch *b, cudaStream_t *streams, int n)
{
    int ok = 1;
    for (int i = 0; i < n && ok; i++) {
        ok = (i == 0 || pstk_batch_wait(b, streams[i], &t->err) == 0) &&
             pstk_stream_spin(t->loader, streams[i], (uint64_t)((n - i) % 4) * 200000, NULL) == 0 &&
             trainer_step(t, b, streams[i]) &&
             (i == 0 || pstk_batch_use_stream(b, streams[i], &t->err) == 0);
    }
    return ok;
}

/* More than the library keeps events for. */
TEST(a_batch_may_be_used_on_two_streams_and_on_many)
{
    struct pstk_settings s = trainer_settings();
    struct pstk_batch *b;
    cudaStream_t streams[12];
    for (int i = 0; i < 12; i++)
        CHECK_CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    s.device.n_slots = 2;
    for (int n = 2; n <= 12; n += 10) {
        CHECK(trainer_open(&trainer, &s));
        for (int k = 0; k < 12; k++) {
            const int r = trainer_next(&trainer, &b, streams[0]);
            CHECK(r >= 0);
            if (r == 0)
                continue;
            CHECK(steps_on_all(&trainer, b, streams, n));
            pstk_release(&b, streams[0]);
            if (trainer.n_steps + 12 <= MAX_STEPS)
                continue;
            CHECK_CUDA(cudaDeviceSynchronize());
            CHECK(trainer_compare(&trainer));
        }
        CHECK_CUDA(cudaDeviceSynchronize());
        CHECK(trainer_compare(&trainer));
        trainer_close(&trainer);
    }
    for (int i = 0; i < 12; i++)
        CHECK_CUDA(cudaStreamDestroy(streams[i]));
}

TEST(default_streams_are_streams)
{
    struct pstk_settings s = trainer_settings();
    cudaStream_t defaults[] = {NULL, cudaStreamLegacy, cudaStreamPerThread};
    for (int i = 0; i < 3; i++) {
        CHECK(trainer_open(&trainer, &s));
        CHECK_CUDA(cudaStreamDestroy(trainer.stream));
        trainer.stream = defaults[i];
        const int n = trainer_epoch(&trainer, 100);
        trainer.stream = NULL;
        CHECK_EQ(n, pstk_n_batches(trainer.loader));
        trainer_close(&trainer);
    }
}

TEST(a_stream_of_another_device_is_refused_and_the_batch_stays)
{
    struct pstk_settings s = trainer_settings();
    struct pstk_batch *b;
    cudaStream_t other;
    int n = 0, current = -1;
    CHECK_CUDA(cudaGetDeviceCount(&n));
    if (n < 2)
        SKIP("one CUDA device, two are needed");
    CHECK_CUDA(cudaSetDevice(1));
    CHECK_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK_CUDA(cudaSetDevice(0));
    CHECK(trainer_open(&trainer, &s));
    CHECK_EQ(pstk_next(trainer.loader, &b, other, LONG, &trainer.err), PSTK_EINVAL);
    CHECK(strstr(trainer.err.message, "another device"));
    CHECK_CUDA(cudaSetDevice(1));
    CHECK_EQ(pstk_next(trainer.loader, &b, NULL, LONG, &trainer.err), PSTK_EINVAL);
    CHECK(strstr(trainer.err.message, "cudaSetDevice(0)"));
    CHECK_CUDA(cudaPeekAtLastError());
    /* A stream of the right device is taken whatever device is current, which stays so. */
    CHECK_EQ(pstk_next(trainer.loader, &b, trainer.stream, LONG, &trainer.err), 1);
    CHECK_EQ(b->index, 0);
    CHECK_EQ(pstk_batch_wait(b, other, &trainer.err), PSTK_EINVAL);
    CHECK_EQ(pstk_batch_use_stream(b, other, &trainer.err), PSTK_EINVAL);
    CHECK_CUDA(cudaGetDevice(&current));
    CHECK_EQ(current, 1);
    CHECK(trainer_step(&trainer, b, trainer.stream));
    pstk_release(&b, trainer.stream);
    CHECK_CUDA(cudaStreamSynchronize(trainer.stream));
    CHECK(trainer_compare(&trainer));
    CHECK_CUDA(cudaStreamDestroy(other));
    CHECK_CUDA(cudaSetDevice(0));
    trainer_close(&trainer);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Capture the copies of what has a fixed size to `to`, one behind the other. */
static cudaError_t capture(cudaGraphExec_t *exec, const struct pstk_batch *b, uint8_t *to,
                           cudaStream_t stream)
{
    cudaGraph_t graph = NULL;
    cudaError_t code = cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    for (uint32_t i = 0; i < b->n_tensors && code == cudaSuccess; i++) {
        const struct pstk_tensor *t = &b->tensors[i];
        if (t->kind == PSTK_OUTPUT_BYTES)
            continue;
        code = cudaMemcpyAsync(to, t->data, t->size, cudaMemcpyDeviceToDevice, stream);
        to += (t->size + 63) / 64 * 64;
    }
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    if (code == cudaSuccess)
        code = ended;
    if (code == cudaSuccess)
        code = cudaGraphInstantiate(exec, graph, 0);
    if (graph)
        cudaGraphDestroy(graph);
    return code;
}

/* A step on what the graph has copied instead of the batch itself. */
static int step_on_copy(struct trainer *t, const struct pstk_batch *b, uint8_t *copy)
{
    struct pstk_tensor tensors[N_OUTPUTS];
    struct pstk_batch view = *b;
    view.tensors = tensors;
    for (uint32_t i = 0; i < b->n_tensors; i++) {
        tensors[i] = b->tensors[i];
        if (tensors[i].kind == PSTK_OUTPUT_BYTES)
            continue;
        tensors[i].data = copy;
        copy += (tensors[i].size + 63) / 64 * 64;
    }
    return trainer_step(t, &view, t->stream);
}

TEST(a_graph_captured_once_a_slot_serves_all_later_batches)
{
    struct pstk_settings s = trainer_settings();
    struct pstk_batch *b;
    cudaGraphExec_t graphs[3] = {NULL};
    int n_captured = 0, n_replayed = 0;
    void *copy;
    CHECK_CUDA(cudaMalloc(&copy, 1 << 20));
    s.device.n_slots = 3;
    CHECK(trainer_open(&trainer, &s));
    for (int epoch = 0; epoch < 8; epoch++) {
        int r;
        while ((r = trainer_next(&trainer, &b, trainer.stream)) == 1) {
            CHECK(b->slot < 3);
            n_replayed += graphs[b->slot] != NULL;
            if (!graphs[b->slot]) {
                CHECK_CUDA(capture(&graphs[b->slot], b, copy, trainer.stream));
                n_captured++;
            }
            CHECK_EQ(pstk_stream_spin(trainer.loader, trainer.stream, 50000, NULL), 0);
            CHECK_CUDA(cudaMemsetAsync(copy, 0x55, 1 << 20, trainer.stream));
            CHECK_CUDA(cudaGraphLaunch(graphs[b->slot], trainer.stream));
            CHECK(step_on_copy(&trainer, b, copy));
            pstk_release(&b, trainer.stream);
        }
        CHECK_EQ(r, 0);
        CHECK_CUDA(cudaStreamSynchronize(trainer.stream));
        CHECK(trainer_compare(&trainer));
    }
    CHECK_EQ(n_captured, 3);
    CHECK_EQ(n_replayed, 8 * (int)pstk_n_batches(trainer.loader) - 3);
    for (int i = 0; i < 3; i++)
        CHECK_CUDA(cudaGraphExecDestroy(graphs[i]));
    trainer_close(&trainer);
    CHECK_CUDA(cudaFree(copy));
}

/* A capture of global mode forbids every thread much; the loader goes on all the same. */
TEST(a_capture_of_the_programs_own_goes_on_while_batches_come)
{
    struct pstk_settings s = trainer_settings();
    cudaStream_t captured;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec;
    void *memory;
    uint8_t byte = 0;
    CHECK_CUDA(cudaMalloc(&memory, 64));
    CHECK_CUDA(cudaMemset(memory, 1, 64));
    CHECK_CUDA(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
    CHECK(trainer_open(&trainer, &s));
    CHECK_CUDA(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
    CHECK_CUDA(cudaMemsetAsync(memory, 7, 64, captured));
    for (int i = 0; i < 12; i++) {
        struct pstk_batch *b;
        const int r = trainer_next(&trainer, &b, trainer.stream);
        CHECK(r >= 0);
        if (r == 1)
            pstk_release(&b, trainer.stream);
    }
    pstk_close(&trainer.loader);
    CHECK_CUDA(cudaStreamEndCapture(captured, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CHECK_CUDA(cudaGraphLaunch(exec, captured));
    CHECK_CUDA(cudaStreamSynchronize(captured));
    CHECK_CUDA(cudaMemcpy(&byte, memory, 1, cudaMemcpyDeviceToHost));
    CHECK_EQ(byte, 7);
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_CUDA(cudaStreamDestroy(captured));
    CHECK_CUDA(cudaFree(memory));
    trainer_close(&trainer);
}

/* ---- memory and leases ----------------------------------------------------------------------- */

static uint64_t resident(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long pages = 0, rss = 0;
    if (!f || fscanf(f, "%lu %lu", &pages, &rss) != 2)
        rss = 0;
    if (f)
        fclose(f);
    return (uint64_t)rss * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t free_on_device(void)
{
    size_t free_size = 0, total = 0;
    return cudaMemGetInfo(&free_size, &total) == cudaSuccess ? free_size : 0;
}

/* All processes on the GPU share its free memory: others may take or free some in a round. A leak
 * of ours takes some in every round. */
#define ROUNDS 4

/* Leaks of 200 bytes a batch show: 2 MiB over 10 000. A GPU's memory is given out in such pieces.
 */
static int take_batches(int n_wanted, void *copy)
{
    for (int n = 0; n < n_wanted;) {
        struct pstk_batch *b;
        const int r = trainer_next(&trainer, &b, trainer.stream);
        if (r < 0)
            return 0;
        if (r == 0)
            continue;
        const cudaError_t code = cudaMemcpyAsync(copy, b->tensors[0].data, b->tensors[0].size,
                                                 cudaMemcpyDeviceToDevice, trainer.stream);
        pstk_release(&b, trainer.stream);
        if (code != cudaSuccess)
            return 0;
        n++;
    }
    return cudaStreamSynchronize(trainer.stream) == cudaSuccess;
}

TEST(ten_thousand_batches_take_no_memory)
{
    struct pstk_settings s = trainer_settings();
    const int n_wanted = is_checked() ? 300 : 10000;
    double grown = 1, taken = 1;
    void *copy;
    CHECK_CUDA(cudaMalloc(&copy, 1 << 20));
    s.device.measure = 1;
    s.batch_size = 2;
    CHECK(trainer_open(&trainer, &s));
    CHECK(take_batches(100, copy));
    for (int i = 0; i < ROUNDS && taken > 0; i++) {
        const uint64_t rss = resident(), free_before = free_on_device();
        CHECK(free_before > 0 && rss > 0);
        CHECK(take_batches(n_wanted, copy));
        grown = (double)resident() - (double)rss;
        taken = (double)free_before - (double)free_on_device();
        printf("# after %d batches more: %.2f MiB of the host, %.2f MiB of the device\n", n_wanted,
               grown / MIB, taken / MIB);
        CHECK(is_checked() || grown < 2 * MIB); /* a checker keeps books */
    }
    CHECK(is_checked() || taken <= 0);
    trainer_close(&trainer);
    CHECK_CUDA(cudaFree(copy));
}

/* Large enough that copies and kernels still run when close is called. */
TEST(close_waits_for_copies_in_flight_and_gives_all_back)
{
    struct pstk_output mine[2] = {trainer_outputs[1], trainer_outputs[2]};
    struct pstk_op ops[3];
    struct pstk_settings s = trainer_settings();
    uint64_t free_before = 0;
    int n_rounds = 0, n_taken = 0;
    memcpy(ops, wide_ops, sizeof ops);
    ops[0].width = ops[0].height = 224;
    mine[0].image.ops = ops;
    mine[0].dtype = PSTK_F32;
    s.outputs = mine;
    s.n_outputs = 2;
    s.batch_size = 16;
    for (int i = 0; i < 12; i++) {
        struct pstk_batch *b;
        free_before = free_on_device();
        CHECK(trainer_open(&trainer, &s));
        for (int k = 0; k < i % 4; k++) {
            const int r = trainer_next(&trainer, &b, trainer.stream);
            CHECK(r >= 0);
            if (r == 0)
                continue;
            CHECK_EQ(pstk_stream_spin(trainer.loader, trainer.stream, 3000000, NULL), 0);
            CHECK(trainer_step(&trainer, b, trainer.stream));
            pstk_release(&b, trainer.stream);
        }
        pstk_close(&trainer.loader);
        CHECK_CUDA(cudaStreamSynchronize(trainer.stream));
        CHECK(trainer_compare(&trainer));
        trainer_close(&trainer);
        CHECK_CUDA(cudaDeviceSynchronize());
        n_rounds += i >= 3; /* by then all is loaded that is loaded once */
        n_taken += i >= 3 && free_on_device() < free_before;
    }
    CHECK(is_checked() || n_taken < n_rounds);
}

TEST(a_leased_batch_outlives_the_loader_and_its_last_use)
{
    struct pstk_settings s = trainer_settings();
    struct pstk_batch *b;
    CHECK(trainer_open(&trainer, &s));
    CHECK_EQ(trainer_next(&trainer, &b, trainer.stream), 1);
    CHECK_EQ(pstk_stream_spin(trainer.loader, trainer.stream, 20000000, NULL), 0);
    pstk_close(&trainer.loader);
    CHECK(trainer_step(&trainer, b, trainer.stream));
    CHECK_STR(b->tensors[8].name, "text");
    pstk_release(&b, trainer.stream); /* frees the device's memory: after the step */
    CHECK_CUDA(cudaStreamSynchronize(trainer.stream));
    CHECK(trainer_compare(&trainer));
    trainer_close(&trainer);
}

TEST(a_slot_keeps_its_addresses)
{
    struct pstk_settings s = trainer_settings();
    struct pstk_batch *b;
    const void *data[3][N_OUTPUTS] = {{NULL}};
    CHECK(trainer_open(&trainer, &s));
    for (int i = 0; i < 20; i++) {
        const int r = trainer_next(&trainer, &b, trainer.stream);
        CHECK(r >= 0);
        if (r == 0)
            continue;
        CHECK(b->slot < 3);
        for (uint32_t k = 0; k < N_OUTPUTS; k++) {
            struct cudaPointerAttributes a;
            CHECK(!data[b->slot][k] || data[b->slot][k] == b->tensors[k].data);
            CHECK_EQ((uintptr_t)b->tensors[k].data % 256, 0);
            CHECK_CUDA(cudaPointerGetAttributes(&a, b->tensors[k].data));
            CHECK_EQ(a.type, cudaMemoryTypeDevice);
            CHECK_EQ(a.device, 0);
            data[b->slot][k] = b->tensors[k].data;
        }
        pstk_release(&b, trainer.stream);
    }
    trainer_close(&trainer);
}

TEST(read_gives_a_tensors_bytes)
{
    static uint8_t bytes[65536];
    struct pstk_settings s = trainer_settings();
    struct pstk_batch *b;
    CHECK(trainer_open(&trainer, &s));
    CHECK_EQ(trainer_next(&trainer, &b, trainer.stream), 1);
    CHECK(trainer_step(&trainer, b, trainer.stream));
    CHECK_CUDA(cudaStreamSynchronize(trainer.stream));
    for (uint32_t i = 0; i < N_OUTPUTS; i++) {
        const uint64_t size = b->tensors[i].size;
        CHECK(size <= sizeof bytes);
        CHECK_EQ(pstk_batch_read(b, i, bytes, size, trainer.stream, NULL), 0);
        CHECK(memcmp(bytes, trainer.steps[0].tensors[i].data, size) == 0);
        CHECK_EQ(pstk_batch_read(b, i, bytes, size + 1, trainer.stream, NULL), PSTK_EINVAL);
    }
    pstk_release(&b, trainer.stream);
    CHECK(trainer_compare(&trainer));
    trainer_close(&trainer);
}

TEST(the_stats_report_how_long_the_stream_was_used_and_starved)
{
    struct pstk_settings s = trainer_settings();
    struct pstk_stats stats = {.size = sizeof stats};
    s.device.measure = 1;
    CHECK(trainer_open(&trainer, &s));
    for (int i = 0; i < 30; i++) {
        struct pstk_batch *b;
        const int r = trainer_next(&trainer, &b, trainer.stream);
        CHECK(r >= 0);
        if (r == 0)
            continue;
        CHECK_EQ(pstk_stream_spin(trainer.loader, trainer.stream, 2000000, NULL), 0);
        pstk_release(&b, trainer.stream);
    }
    CHECK_CUDA(cudaStreamSynchronize(trainer.stream));
    CHECK_EQ(pstk_get_stats(trainer.loader, &stats), 0);
    CHECK(stats.stream_used_ns >= 10 * 2000000ull);
    CHECK(stats.stream_starved_ns < stats.stream_used_ns);
    CHECK(stats.copy_ns > 0 && stats.copy_bytes > 0);
    CHECK_EQ(stats.n_device_slots, 3);
    CHECK(stats.device_memory > 0);
    CHECK_EQ(stats.page_locked, 1);
    CHECK_EQ(stats.fallbacks & PSTK_FALLBACK_NOT_PAGE_LOCKED, 0);
    trainer_close(&trainer);
}

/* ---- what is refused ------------------------------------------------------------------------- */

TEST(a_forked_child_may_call_nothing)
{
    struct pstk_settings s = trainer_settings();
    struct pstk_batch *b;
    uint8_t byte;
    SKIP_CHECKED();
    CHECK(trainer_open(&trainer, &s));
    CHECK_EQ(trainer_next(&trainer, &b, trainer.stream), 1);
    const pid_t child = fork();
    if (child == 0) {
        struct pstk_batch *c;
        void *stream;
        const int ok = pstk_next(trainer.loader, &c, trainer.stream, -1, NULL) == PSTK_EPERM &&
                       pstk_batch_wait(b, trainer.stream, NULL) == PSTK_EPERM &&
                       pstk_batch_use_stream(b, trainer.stream, NULL) == PSTK_EPERM &&
                       pstk_batch_read(b, 1, &byte, 1, trainer.stream, NULL) == PSTK_EPERM &&
                       pstk_stream_open(trainer.loader, &stream, NULL) == PSTK_EPERM &&
                       pstk_stream_spin(trainer.loader, trainer.stream, 1, NULL) == PSTK_EPERM;
        pstk_release(&b, trainer.stream);
        pstk_close(&trainer.loader);
        _exit(ok ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
    CHECK(trainer_step(&trainer, b, trainer.stream)); /* the parent's is as it was */
    pstk_release(&b, trainer.stream);
    CHECK_CUDA(cudaStreamSynchronize(trainer.stream));
    CHECK(trainer_compare(&trainer));
    trainer_close(&trainer);
}

/* The child's part: the trainer's kernel faults, the loader says so. Status 0: as it shall be. */
static int run_fault(void)
{
    struct pstk_settings s = trainer_settings();
    struct pstk_batch *b;
    int r = 1;
    if (!trainer_open(&trainer, &s) || trainer_next(&trainer, &b, trainer.stream) != 1)
        return 1;
    const cudaError_t launched = fault_launch(trainer.stream);
    const cudaError_t ran = cudaStreamSynchronize(trainer.stream);
    pstk_release(&b, trainer.stream);
    for (int i = 0; i < 100 && r >= 0; i++) {
        r = pstk_next(trainer.loader, &b, trainer.stream, LONG, &trainer.err);
        if (r == 1)
            pstk_release(&b, trainer.stream);
    }
    printf("# launch: %s, synchronize: %s, loader: %d, native %d: %s\n", cudaGetErrorName(launched),
           cudaGetErrorName(ran), r, (int)trainer.err.native, trainer.err.message);
    trainer_close(&trainer); /* shall end, too */
    return launched == cudaSuccess && ran == cudaErrorIllegalAddress && r == PSTK_EIO &&
                   trainer.err.native == (int32_t)cudaErrorIllegalAddress &&
                   strstr(trainer.err.message, "an earlier kernel failed with "
                                               "cudaErrorIllegalAddress")
               ? 0
               : 1;
}

TEST(a_fault_in_the_trainers_kernel_is_reported_as_one)
{
    char name[] = "test_gpu", option[] = "--fault";
    char *arguments[] = {name, option, trainer_path, NULL};
    pid_t child;
    int status = 1;
    SKIP_CHECKED();
    fflush(stdout);
    CHECK_EQ(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
}

/* 64 slots, the most there can be, of images as f32: a row takes 768 MiB. */
TEST(a_device_that_is_too_small_says_so)
{
    struct pstk_output mine = trainer_outputs[1];
    struct pstk_device device = {.size = sizeof device};
    struct pstk_settings s = trainer_settings();
    struct pstk_loader *loader;
    struct pstk_error err;
    struct pstk_op ops[3];
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_get_device(PSTK_CUDA, 0, &device, &err), 0);
    memcpy(ops, wide_ops, sizeof ops);
    ops[0].width = ops[0].height = 1024;
    mine.image.ops = ops;
    mine.dtype = PSTK_F32;
    s.outputs = &mine;
    s.n_outputs = 1;
    s.memory.n_slots = 2;
    s.device.n_slots = 64;
    s.batch_size = (uint32_t)(device.memory / (768u << 20)) + 1;
    int n_taken = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t before = free_on_device();
        CHECK_EQ(pstk_open(&loader, &s, &err), PSTK_ENOMEM);
        CHECK(loader == NULL);
        n_taken += free_on_device() < before;
    }
    printf("# %s\n", err.message);
    CHECK_EQ(err.native, cudaErrorMemoryAllocation);
    CHECK(strstr(err.message, "lower batch_size or n_device_slots"));
    CHECK(is_checked() || n_taken < ROUNDS);
    s.memory.max_batch_size = s.batch_size;
    s.batch_size = 1;
    CHECK_EQ(pstk_open(&loader, &s, &err), PSTK_ENOMEM);
    CHECK(strstr(err.message, "lower max_batch_size or n_device_slots"));
}

/* ---------------------------------------------------------------------------------------------- */

/* Is there a GPU? Nothing is made on it. */
static int find(struct pstk_device *device, struct pstk_error *err)
{
    *device = (struct pstk_device){.size = sizeof *device};
    pstk_error_init(err, sizeof *err);
    return pstk_get_device(PSTK_CUDA, 0, device, err) == 0;
}

static int begin(void)
{
    struct pstk_error err;
    void *memory;
    pstk_error_init(&err, sizeof err);
    if (cudaHostAlloc(&memory, PINNED_SIZE, cudaHostAllocDefault) != cudaSuccess) {
        printf("Bail out! no page-locked memory: %s\n", cudaGetErrorName(cudaGetLastError()));
        return 0;
    }
    pinned.memory = memory;
    if (trainer_path[0] == '\0') {
        sample_set_path(trainer_path, sizeof trainer_path);
        if (trainer_make(trainer_path, &err) < 0) {
            printf("Bail out! could not write the data set: %s\n", err.message);
            return 0;
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        CASE(every_dtype_and_layout_equals_the_host),
        CASE(every_width_equals_the_host),
        CASE(threads_slots_and_batches_make_no_difference),
        CASE(no_schedule_of_a_hundred_makes_a_difference),
        CASE(a_batch_may_be_used_on_two_streams_and_on_many),
        CASE(default_streams_are_streams),
        CASE(a_stream_of_another_device_is_refused_and_the_batch_stays),
        CASE(a_graph_captured_once_a_slot_serves_all_later_batches),
        CASE(a_capture_of_the_programs_own_goes_on_while_batches_come),
        CASE(ten_thousand_batches_take_no_memory),
        CASE(close_waits_for_copies_in_flight_and_gives_all_back),
        CASE(a_leased_batch_outlives_the_loader_and_its_last_use),
        CASE(a_slot_keeps_its_addresses),
        CASE(read_gives_a_tensors_bytes),
        CASE(the_stats_report_how_long_the_stream_was_used_and_starved),
        CASE(a_forked_child_may_call_nothing),
        CASE(a_fault_in_the_trainers_kernel_is_reported_as_one),
        CASE(a_device_that_is_too_small_says_so),
    };
    struct pstk_device device;
    struct pstk_error err;
    if (!find(&device, &err)) {
        printf("1..0 # SKIP no CUDA device (%s)\n", err.message);
        return MISSING;
    }
    if (argc > 1 && strcmp(argv[1], "--find") == 0)
        return 0;
    if (argc > 2 && strcmp(argv[1], "--fault") == 0) {
        snprintf(trainer_path, sizeof trainer_path, "%s", argv[2]);
        const int status = begin() ? run_fault() : 1;
        cudaFreeHost(pinned.memory);
        return status;
    }
    printf("# %s\n", device.name);
    if (!begin())
        return 1;
    const int failed = RUN_CASES(cases);
    sample_set_remove(trainer_path);
    cudaFreeHost(pinned.memory);
    return failed;
}
