/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares and tensors in capsules: of an interpreter of the test's own, whose functions stand in for
 * Python's.
 */
#include "cuda_fake.h"
#include "loader/dlpack.h"
#include "support/sample_set.h"
#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- an interpreter, as far as capsules go --------------------------------------------------- */

struct capsule {
    void *pointer;
    const char *name;
    void (*destructor)(void *capsule);
};

static int refuses;  /* 1: no capsule can be made */
static int has_lock; /* 1: the test has the interpreter's lock, 0: gave it up, or never had it */
static _Atomic int n_unlocked; /* times that the interpreter's lock was given up */
static int n_wrong; /* times that it was taken by another state, or a type was not one of ours */
static struct pstk_batch *released; /* by another thread */
static char raised[256];

void *PyCapsule_New(void *pointer, const char *name, void (*destructor)(void *));
void *PyCapsule_GetPointer(void *capsule, const char *name);
int PyCapsule_IsValid(void *capsule, const char *name);
void PyErr_SetString(void *type, const char *message);
extern void *PyExc_RuntimeError;
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *state);
int Py_IsInitialized(void);
int PyGILState_Check(void);
void *PyGILState_GetThisThreadState(void);

void *PyCapsule_New(void *pointer, const char *name, void (*destructor)(void *))
{
    struct capsule *c = refuses ? NULL : malloc(sizeof *c);
    if (c)
        *c = (struct capsule){pointer, name, destructor};
    return c;
}

int PyCapsule_IsValid(void *capsule, const char *name)
{
    return strcmp(((struct capsule *)capsule)->name, name) == 0;
}

void *PyCapsule_GetPointer(void *capsule, const char *name)
{
    return PyCapsule_IsValid(capsule, name) ? ((struct capsule *)capsule)->pointer : NULL;
}

void *PyExc_RuntimeError = raised;

void PyErr_SetString(void *type, const char *message)
{
    n_wrong += type != PyExc_RuntimeError;
    snprintf(raised, sizeof raised, "%s", message);
}

void *PyEval_SaveThread(void)
{
    n_wrong += !has_lock;
    has_lock = 0;
    n_unlocked++;
    return &n_unlocked;
}

void PyEval_RestoreThread(void *state)
{
    n_wrong += state != &n_unlocked || has_lock;
    has_lock = 1;
}

int Py_IsInitialized(void)
{
    return 1;
}

int PyGILState_Check(void)
{
    return has_lock;
}

void *PyGILState_GetThisThreadState(void)
{
    return &n_unlocked;
}

static void drop(void *capsule)
{
    ((struct capsule *)capsule)->destructor(capsule);
    free(capsule);
}

/* ---- a loader -------------------------------------------------------------------------------- */

#define N_SLOTS 2

static char path[4200];
static int by_threads; /* 1 under TSan, to which the kernel's writes are invisible */

static struct pstk_loader *open_loader(uint32_t device)
{
    static const struct pstk_output output = {.field = "cls", .kind = PSTK_OUTPUT_SCALAR};
    struct pstk_loader *loader = NULL;
    struct pstk_error err;
    struct pstk_settings s;
    pstk_error_init(&err, sizeof err);
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.outputs = &output;
    s.n_outputs = 1;
    s.batch_size = 2;
    s.order.kind = PSTK_ORDER_SEQUENTIAL;
    s.memory.n_slots = N_SLOTS;
    s.device.kind = device;
    if (by_threads)
        s.reading.reader = PSTK_READER_THREADS;
    return pstk_open(&loader, &s, &err) == 0 ? loader : NULL;
}

static struct pstk_batch *next(struct pstk_loader *loader)
{
    struct pstk_batch *batch = NULL;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    return pstk_next(loader, &batch, NULL, -1, &err) == 1 ? batch : NULL;
}

/* No lease is left: every slot can be had. */
static int all_free(struct pstk_loader *loader)
{
    struct pstk_batch *batches[N_SLOTS];
    for (int i = 0; i < N_SLOTS; i++)
        if (!(batches[i] = next(loader)))
            return 0;
    for (int i = 0; i < N_SLOTS; i++)
        pstk_release(&batches[i], NULL);
    return 1;
}

TEST(a_lease_ends_with_the_last_capsule)
{
    struct pstk_loader *loader = open_loader(PSTK_HOST);
    struct pstk_batch *batch = next(loader);
    const int64_t *label = batch->tensors[0].data;
    void *share = pstk_capsule_share(&batch, NULL, NULL);
    CHECK(share && !batch);
    struct pstk_share *held = PyCapsule_GetPointer(share, "penstock.share");
    void *untaken = pstk_capsule_tensor(held, 0, NULL), *taken = pstk_capsule_tensor(held, 0, NULL);
    struct DLManagedTensor *tensor = PyCapsule_GetPointer(taken, "dltensor");
    ((struct capsule *)taken)->name = "used_dltensor";
    drop(share);
    drop(taken);
    drop(untaken);
    struct pstk_batch *other = next(loader), *none = NULL;
    CHECK_EQ(pstk_next(loader, &none, NULL, -1, NULL), PSTK_ENOBUFS);
    CHECK_EQ(label[0], -7);
    tensor->deleter(tensor);
    pstk_release(&other, NULL);
    CHECK(all_free(loader));
    CHECK_EQ(n_unlocked, 0);
    pstk_close(&loader);
}

TEST(a_capsule_that_cannot_be_made_holds_nothing)
{
    struct pstk_error err;
    struct pstk_loader *loader = open_loader(PSTK_HOST);
    struct pstk_batch *batch = NULL;
    pstk_error_init(&err, sizeof err);
    CHECK(!pstk_capsule_share(&batch, NULL, &err));
    CHECK_EQ(err.code, PSTK_EINVAL);
    CHECK_STR(raised, pstk_strerror(PSTK_EINVAL));
    raised[0] = 0;
    batch = next(loader);
    refuses = 1;
    CHECK(!pstk_capsule_share(&batch, NULL, &err));
    CHECK_EQ(err.code, PSTK_ENOMEM);
    CHECK_STR(raised, "");
    CHECK(!batch);
    refuses = 0;
    batch = next(loader);
    void *share = pstk_capsule_share(&batch, NULL, &err);
    struct pstk_share *held = PyCapsule_GetPointer(share, "penstock.share");
    CHECK(!pstk_capsule_tensor(held, 1, &err));
    CHECK_EQ(err.code, PSTK_EINVAL);
    CHECK_STR(raised, pstk_strerror(PSTK_EINVAL));
    refuses = 1;
    CHECK(!pstk_capsule_tensor(held, 0, &err));
    CHECK_EQ(err.code, PSTK_ENOMEM);
    refuses = 0;
    drop(share);
    CHECK(all_free(loader));
    pstk_close(&loader);
}

TEST(a_devices_lease_ends_without_the_interpreters_lock)
{
    const struct cuda_fake_config config = {.max_delay_us = 100};
    for (int locked = 0; locked < 2; locked++) {
        cuda_fake_open(&config);
        struct pstk_loader *loader = open_loader(PSTK_CUDA);
        struct pstk_batch *batch = next(loader);
        void *share = pstk_capsule_share(&batch, NULL, NULL);
        pstk_close(&loader);
        n_unlocked = 0;
        has_lock = locked;
        drop(share);
        CHECK_EQ(n_unlocked, locked);
        CHECK_EQ(has_lock, locked);
        CHECK_EQ(n_wrong, 0);
        CHECK_EQ(cuda_fake_close(), 0);
    }
}

/* PyTorch calls a tensor's deleter with the lock that its caller has. */
TEST(the_last_tensor_of_a_closed_loader_goes_without_the_interpreters_lock)
{
    for (uint32_t closed = 0; closed < 2; closed++) {
        cuda_fake_open(NULL);
        struct pstk_loader *loader = open_loader(PSTK_CUDA);
        struct pstk_batch *batch = next(loader);
        void *share = pstk_capsule_share(&batch, NULL, NULL);
        struct DLManagedTensor *tensor = NULL;
        CHECK_EQ(pstk_share_tensor(PyCapsule_GetPointer(share, "penstock.share"), 0, &tensor, NULL),
                 0);
        drop(share);
        if (closed)
            pstk_close(&loader);
        n_unlocked = 0;
        has_lock = 1;
        tensor->deleter(tensor);
        CHECK_EQ(n_unlocked, (int)closed); /* else it waits for nothing */
        CHECK_EQ(has_lock, 1);
        has_lock = 0;
        pstk_close(&loader);
        CHECK_EQ(n_wrong, 0);
        CHECK_EQ(cuda_fake_close(), 0);
    }
}

static void run_nothing(void *user)
{
    (void)user;
}

static void *release_on(void *stream)
{
    pstk_release(&released, stream);
    return NULL;
}

static void *let_later(void *stream)
{
    WAIT_UNTIL(atomic_load(&n_unlocked) == 1);
    cuda_fake_let(stream);
    return NULL;
}

/* A release waits for room in its stream; a tensor's deleter, called with the interpreter's lock,
 * waits for that release. */
TEST(a_deleter_that_waits_for_another_threads_release_gives_up_the_interpreters_lock)
{
    struct pstk_error err;
    pthread_t releaser, waker;
    cudaStream_t stream;
    struct DLManagedTensor *tensor = NULL;
    pstk_error_init(&err, sizeof err);
    cuda_fake_open(&(struct cuda_fake_config){.stream_depth = 4});
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    struct pstk_loader *loader = open_loader(PSTK_CUDA);
    struct pstk_batch *batch = next(loader);
    void *share = pstk_capsule_share(&batch, NULL, NULL);
    CHECK_EQ(pstk_share_tensor(PyCapsule_GetPointer(share, "penstock.share"), 0, &tensor, NULL), 0);
    drop(share);
    CHECK_EQ(pstk_next(loader, &released, stream, -1, &err), 1);
    CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    cuda_fake_hold(stream);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(cuda_fake_enqueue(stream, run_nothing, &err, 1, NULL, 0), cudaSuccess);
    CHECK_EQ(pthread_create(&releaser, NULL, release_on, stream), 0);
    WAIT_UNTIL(cuda_fake_n_stuck(stream) == 1);
    n_unlocked = 0;
    has_lock = 1;
    CHECK_EQ(pthread_create(&waker, NULL, let_later, stream), 0);
    tensor->deleter(tensor);
    CHECK_EQ(n_unlocked, 1);
    CHECK_EQ(has_lock, 1);
    has_lock = 0;
    pthread_join(waker, NULL);
    pthread_join(releaser, NULL);
    CHECK_EQ(n_wrong, 0);
    pstk_close(&loader);
    cudaStreamDestroy(stream);
    CHECK_EQ(cuda_fake_close(), 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_lease_ends_with_the_last_capsule),
        CASE(a_capsule_that_cannot_be_made_holds_nothing),
        CASE(a_devices_lease_ends_without_the_interpreters_lock),
        CASE(the_last_tensor_of_a_closed_loader_goes_without_the_interpreters_lock),
        CASE(a_deleter_that_waits_for_another_threads_release_gives_up_the_interpreters_lock),
    };
    const char *reader = getenv("PENSTOCK_TEST_READER");
    by_threads = reader && strcmp(reader, "threads") == 0;
    sample_set_path(path, sizeof path);
    sample_set_make(path, 40, 1 << 20, PSTK_CODEC_NONE);
    int r = RUN_CASES(cases);
    sample_set_remove(path);
    return r;
}
