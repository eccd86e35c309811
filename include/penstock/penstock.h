/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock.h - the loader: batches of decoded, augmented samples, in order, before you ask.
 *
 *    order -> shard -> reader -> record -> sample -> batch -> device -> your loop
 *
 * Glossary
 *   sample id   number of a record in the data set, from 0
 *   position    place in an epoch's order, from 0; the order maps a position to a sample id
 *   batch       batch_size rows for this rank; a global batch is the next G = batch_size * world
 *               positions, of which rank r takes those = r modulo world
 *   slot        the memory of one batch; there are n_slots, allocated at open, reused; a device has
 *               n_device_slots of its own, and then it is these that are leased
 *   lease       from pstk_next to pstk_release the batch is yours, also after pstk_close
 *   cursor      (epoch, position): all that resuming needs
 *
 * Rules
 *   1. If pstk_open succeeds, pstk_close must be called; if it fails, *out is NULL.
 *   2. Settings and all they point to are copied (user pointers of callbacks are kept as they are).
 *   3. Holding every slot makes pstk_next return ENOBUFS; it never hangs.
 *   4. An error arrives in stream order, after the batches before it, and stays until seek or
 *      close; that of a device or of reading as a whole stays until close.
 *   5. After open nothing is allocated, but for some bytes by each call of pstk_share_open,
 *      pstk_share_tensor and pstk_capsule_*; the memory used is in the statistics.
 *   6. One thread at a time calls next, seek and close; release, interrupt, get_stats and what
 *      takes a batch may be called from any thread (but not from a function that CUDA calls).
 *   7. After fork the child may call nothing: EPERM.
 *   8. On a device pstk_next returns a batch once it was copied there, and makes the stream that it
 *      is given wait for the kernels that finish it. Your streams never wait for a copy.
 *      pstk_release lets the slot be overwritten after what is in the stream by then; the loader's
 *      own thread waits for that, never the caller. So a program is ahead of the device by
 *      n_device_slots batches at most, and a stream that never gets to a release keeps pstk_next
 *      waiting. To use a batch on more streams: pstk_batch_wait for each, and pstk_batch_record for
 *      each except the one that pstk_release is given.
 *   9. Streams belong to the primary context of the loader's device, the one that the CUDA runtime
 *      uses. CUDA refuses those of other contexts (EINVAL); whether it takes a green context's
 *      depends on the driver. The default stream of a thread whose current context is another one,
 *      a green one too, is refused. cudaStreamPerThread is that of the calling thread; a stream
 *      that was destroyed is the caller's error. A stream that is being captured into a graph is
 *      refused, except by pstk_release: the slot then stays in use until the first pstk_next or
 *      pstk_release after the capture, and the stream must live as long. A capture of a stream may
 *      not begin in one thread while another one releases a batch on it.
 *
 * A whole program:
 *
 *   #include <penstock/penstock.h>
 *   #include <stdio.h>
 *   int main(void)
 *   {
 *       struct pstk_op ops[] = {pstk_random_resized_crop(224, 224), pstk_random_flip(0.5),
 *                               pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD)};
 *       struct pstk_output outputs[] = {
 *           {.name = "image", .field = "jpg", .kind = PSTK_OUTPUT_IMAGE, .ops = ops, .n_ops = 3,
 *            .dtype = PSTK_F16, .layout = PSTK_NCHW},
 *           {.name = "label", .field = "cls", .kind = PSTK_OUTPUT_SCALAR, .dtype = PSTK_I64}};
 *       struct pstk_error err;
 *       pstk_error_init(&err, sizeof err);
 *       struct pstk_settings s;
 *       pstk_settings_init(&s, sizeof s);
 *       s.path = "train"; s.batch_size = 256; s.outputs = outputs; s.n_outputs = 2;
 *       struct pstk_loader *loader;
 *       if (pstk_open(&loader, &s, &err) < 0)
 *           return fprintf(stderr, "%s\n", err.message), 1;
 *       struct pstk_batch *batch;
 *       int r;
 *       while ((r = pstk_next(loader, &batch, NULL, -1, &err)) == 1) {
 *           printf("%llu: %u rows\n", (unsigned long long)batch->index, batch->n_valid);
 *           pstk_release(&batch, NULL);
 *       }
 *       pstk_close(&loader);
 *       return r < 0 ? fprintf(stderr, "%s\n", err.message), 1 : 0;
 *   }
 */
#ifndef PENSTOCK_PENSTOCK_H
#define PENSTOCK_PENSTOCK_H

#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings ------------------------------------------------------------------------------ */

enum pstk_output_kind {
    PSTK_OUTPUT_IMAGE = 1,    /* [B, H, W, 3] or [B, 3, H, W] */
    PSTK_OUTPUT_SCALAR = 2,   /* [B]; a scalar field, cast to dtype where every value of it fits */
    PSTK_OUTPUT_TENSOR = 3,   /* [B, shape...]; an ndarray field of fixed shape, cast likewise */
    PSTK_OUTPUT_BYTES = 4,    /* ragged: the field's bytes end to end, and int64 offsets [B + 1] */
    PSTK_OUTPUT_CALLBACK = 5, /* [B, shape...] of dtype, each row written by `decode` */
    PSTK_OUTPUT_RAGGED = 6 /* an ndarray field of which the first dimension alone is variable: the
                              items of all rows end to end, [items, shape...], and int64 offsets
                              [B + 1] that count items */
};

/* What a decode callback sees of its sample. All pointers borrow, for the call. */
struct pstk_sample {
    uint32_t size;     /* sizeof(struct pstk_sample) */
    uint32_t encoding; /* enum pstk_encoding of the field */
    uint64_t sample_id;
    uint64_t epoch;
    uint64_t position;  /* in the epoch */
    const void *data;   /* the field's bytes, checked and decompressed */
    uint64_t data_size; /* bytes */
    uint64_t
        random[2]; /* 128 random bits of this sample and random group: the same for any threads */
    void *scratch; /* scratch_size bytes, 64-byte aligned, this worker's own */
    uint64_t scratch_size;
    uint32_t codec; /* enum pstk_codec of data: NONE unless the output asks for it as stored */
    uint32_t reserved;
};

/* Write one row of `row_size` bytes. Called by worker threads, several at once; touches only its
 * sample, its row and its scratch. 0, or a negative enum pstk_result: the sample is bad. */
typedef int (*pstk_decode_fn)(void *user, const struct pstk_sample *sample, void *row,
                              uint64_t row_size);

/* One output tensor of every batch. All pointers: copies. */
struct pstk_output {
    const char *name;  /* of the tensor; NULL = field */
    const char *field; /* of the schema */
    uint32_t kind;     /* enum pstk_output_kind */
    uint32_t dtype;    /* enum pstk_dtype; image: u8, f16, bf16, f32; 0 = the field's (image: u8) */
    uint32_t layout;   /* enum pstk_layout; image only */
    uint32_t n_ops;
    const struct pstk_op *ops; /* image only, applied in this order; must fix the size */
    uint32_t random_group;     /* outputs of one group share their random draws: two images
                                  of a sample get the same crop and flip. Not for masks, since
                                  resizing is bilinear and would mix their class ids */
    uint32_t exif_orientation; /* 1: turn JPEGs upright by EXIF before the ops; 0: as Pillow does */
    uint64_t bytes_per_batch; /* ragged: budget of one slot; 0 = batch_size * the field's maximum */
    uint32_t n_dims;          /* callback: dimensions of one row */
    uint32_t stored;       /* callback: 1: hand over the field's bytes as they are stored, checked
                              but neither decompressed nor made a JPEG file again */
    uint64_t shape[8];     /* callback: shape of one row */
    pstk_decode_fn decode; /* callback */
    void *user;            /* callback: handed through */
    uint64_t scratch_size; /* callback: bytes for each worker */
};

enum pstk_order { PSTK_ORDER_FULL = 0, PSTK_ORDER_SEQUENTIAL = 1 };
enum pstk_last {
    PSTK_LAST_DROP = 0, /* the last n mod G samples of the order are left out of the epoch */
    PSTK_LAST_PAD = 1,  /* the last batch is filled up from the start of the epoch's order, by rows
                         * that n_valid counts too */
    PSTK_LAST_SHORT = 2 /* the last batch has fewer valid rows, on some ranks perhaps none */
};
/* What becomes of a sample that cannot be read or decoded. Of a JPEG only what the crop reaches is
 * decoded, so damage below it goes unseen in that epoch (the pixels given are right, checksums are
 * always checked); pstk_image_check, which `penstock pack` applies to every file, decodes all. */
enum pstk_bad_sample {
    PSTK_BAD_ERROR = 0,      /* pstk_next returns the error */
    PSTK_BAD_SUBSTITUTE = 1, /* another sample of the same shard replaces it; replacements are
                              * counted and reported */
};
enum pstk_reader_kind { PSTK_READER_AUTO = 0, PSTK_READER_IO_URING = 1, PSTK_READER_THREADS = 2 };
enum pstk_io { PSTK_IO_AUTO = 0, PSTK_IO_DIRECT = 1, PSTK_IO_BUFFERED = 2 };
enum pstk_device_kind { PSTK_HOST = 0, PSTK_CUDA = 1 };
enum pstk_variant { /* of the kernels, for tests and bug reports */
                    PSTK_VARIANT_AUTO = 0,
                    PSTK_VARIANT_C = 1,
                    PSTK_VARIANT_AVX2 = 2,
                    PSTK_VARIANT_AVX512 = 3
};

/* Bad samples of one batch that are described; beyond them only their number is reported. Every
 * slot has the memory for these reports from open on, where bad samples are replaced (some 10 kB,
 * in pstk_stats.slot_memory). */
#define PSTK_MAX_REPORTS 8

/*
 * Reports a bad sample that another one replaced. pstk_next calls it on its own thread before it
 * returns 1, once for each of the batch's reports (struct pstk_report), in the order of the rows.
 * What was read ahead and dropped by a seek is not reported; a batch that is delivered again is
 * reported again. `bad` borrows; `substitute_id`: of the replacement, or PSTK_NONE in the report of
 * those that are not described.
 *
 * pstk_next holds no lock meanwhile. The callback may call pstk_interrupt, pstk_get_stats (which
 * counts the batch already), pstk_get_cursor, and, for batches returned earlier, pstk_release and
 * whatever else takes a batch. pstk_next and pstk_seek return EBUSY there, and pstk_close does
 * nothing.
 */
typedef void (*pstk_bad_sample_fn)(void *user, const struct pstk_error *bad,
                                   uint64_t substitute_id);

/* Write the stream of the device that the calling thread queues work in by default at this moment
 * (its "current" stream) to *stream: 0; any other result: there is none. Called by each thread that
 * gives up the last reference of a batch that is shared on a device: it may take no lock that such
 * a thread may hold (Python's, say), and call nothing of this library. */
typedef int (*pstk_current_stream_fn)(int32_t device_index, void **stream);

/* "auto" below: 0 lets the library choose; the choice is in pstk_stats. */
struct pstk_settings {
    uint32_t size;                     /* sizeof, set by init */
    uint32_t output_size;              /* sizeof(struct pstk_output), set by init */
    uint32_t op_size;                  /* sizeof(struct pstk_op), set by init */
    uint32_t batch_size;               /* rows for this rank; at least 1 */
    const char *path;                  /* the data set; copies */
    const struct pstk_output *outputs; /* copies */
    uint32_t n_outputs;
    uint32_t order; /* enum pstk_order */
    uint64_t seed;
    uint64_t epoch;       /* start here ... */
    uint64_t position;    /* ... at this global sample position */
    uint32_t rank;        /* of `world` processes */
    uint32_t world;       /* 0 = 1 */
    uint32_t local_rank;  /* of `local_world` processes on this machine: they share its cores, */
    uint32_t local_world; /* memory and readers evenly; 0 = 1. Where the launcher binds each process
                            to cores of its own already, leave it at 1, or they are divided twice */
    uint32_t last;        /* enum pstk_last */
    uint32_t n_threads;   /* workers; auto: the cores this process may use, quota included */
    uint32_t n_slots;     /* batches in memory; auto: 4, more where batches are few rows or
                            records small, at most as memory allows; at least 2 */
    uint32_t reader;      /* enum pstk_reader_kind; a forced one that is refused at open is an
                            error; one that is denied later only sets its rung */
    uint32_t io;          /* enum pstk_io; likewise,
                            at open; a file that refuses later only sets its rung */
    uint32_t queue_depth; /* reads in flight per reader; auto: 128 */
    uint64_t io_memory;   /* bytes of I/O buffers, all nodes; auto: from record sizes and depth */
    uint64_t
        index_memory;    /* bytes of index page cache, all nodes; auto: 64 MiB or the whole index */
    uint64_t max_memory; /* bytes that slots, I/O buffers and index caches may take; auto: 3/4 of
                            what the machine or cgroup has, over local_world */
    uint64_t max_pixels; /* refuse larger images, before memory is touched for them; auto:
                            178956970, Pillow's limit */
    uint32_t bad_sample; /* enum pstk_bad_sample */
    uint32_t device;     /* enum pstk_device_kind */
    int32_t device_index; /* of that kind; of CUDA's as this process sees them */
    uint32_t with_crops;  /* 1: batches tell crops and flips */
    uint32_t no_pinning;  /* 0: pin threads to cores; 1: leave them to the scheduler */
    uint32_t variant;     /* enum pstk_variant */
    const char
        *topology; /* hwloc synthetic description or XML file for tests; NULL = this machine */
    pstk_bad_sample_fn on_bad_sample; /* NULL, or called for bad samples that were replaced */
    void *user;                       /* handed to on_bad_sample */
    uint64_t max_record_size; /* bytes: refuse data sets with larger records; auto: 4 GiB - 1 */
    uint32_t n_device_slots;  /* batches in the memory of a device that has its own; auto: 3; at
                                 least 2. Slot k is at the same addresses for the loader's life */
    uint32_t timed;           /* 1: measure copies to the device and how long the consumer's stream
                                 waits for batches (pstk_stats) */
    uint32_t trace; /* 1: mark what threads do as NVTX ranges (read, decode, copy, next, lease),
                       for Nsight Systems; ENOTSUP in a build without NVTX */
    uint32_t reserved;
    pstk_current_stream_fn current_stream; /* NULL, or names a further stream that used a shared
                                              batch: see pstk_share_open */
};

/* ---- batches ------------------------------------------------------------------------------- */

/* One tensor of a batch, in the slot's memory. Rows beyond n_valid are zero. */
struct pstk_tensor {
    const char *name;
    void *data;      /* 256-byte aligned, as DLPack asks; on the device asked for */
    uint64_t size;   /* bytes in use */
    uint32_t dtype;  /* enum pstk_dtype */
    uint32_t layout; /* enum pstk_layout; image only */
    uint32_t n_dims;
    uint32_t kind;          /* enum pstk_output_kind */
    int64_t shape[10];      /* shape[0] = batch_size; ragged: items (bytes) in use */
    int64_t strides[10];    /* in elements */
    const int64_t *offsets; /* ragged: batch_size + 1, items (bytes), on the host; else NULL */
    const int64_t *device_offsets; /* the same on the device that data is on; NULL on the host */
};

/* Where a row was cut from: in pixels of the decoded image (after EXIF orientation, if asked). With
 * a resizing op it is the source of the whole resize: torchvision's (top, left, height, width) of a
 * RandomResizedCrop, the whole image for a resize, also where a centre crop follows. Without one it
 * is what is shown; top and left are negative where a centre crop pads. All 0 for outputs that are
 * no images. */
struct pstk_crop {
    int32_t top, left, height, width;
    uint32_t image_height, image_width;
    uint32_t flip; /* 1: flipped horizontally */
    uint32_t reserved;
};

/* A bad sample of a batch, and what replaced it. Where more than PSTK_MAX_REPORTS of a batch were
 * replaced, the lowest rows are described, and the report after them has the number of the others
 * in error.message; its substitute_id and error.sample_id are PSTK_NONE. */
struct pstk_report {
    struct pstk_error error; /* what is wrong with the sample: its id, place and position */
    uint64_t substitute_id;  /* of the sample that replaced it */
    uint32_t row;            /* of the batch; UINT32_MAX in the report of the others */
    uint32_t reserved;
};

/* A batch. Owned by the library, leased to the caller; do not write to the struct. */
struct pstk_batch {
    uint32_t size; /* sizeof(struct pstk_batch) of the library */
    uint32_t n_tensors;
    const struct pstk_tensor *tensors; /* in the order of the outputs */
    uint32_t n_rows;                   /* batch_size */
    uint32_t n_valid;                  /* rows that are samples; the others are zero */
    uint64_t epoch;
    uint64_t position;          /* global position of the batch's first sample over all ranks */
    uint64_t next_position;     /* with `epoch`: the cursor to save once this batch is consumed */
    uint64_t index;             /* position / (batch_size * world) */
    const uint64_t *sample_ids; /* n_valid; of the sample asked for, also where it was replaced */
    const uint64_t *substitute_ids; /* n_valid; of the sample that replaced it, or PSTK_NONE */
    const struct pstk_crop
        *crops;           /* n_outputs runs of batch_size, or NULL: crops[output * n_rows + row] */
    uint32_t n_replaced;  /* rows whose sample was bad, so that another one replaced it */
    uint32_t slot;        /* slot index, < n_slots; on a device < n_device_slots */
    uint32_t tensor_size; /* sizeof(struct pstk_tensor) of the library: step by it where headers
                             and library may differ */
    uint32_t crop_size;   /* sizeof(struct pstk_crop) of the library */
    const struct pstk_report *reports; /* n_reports, in the order of the rows */
    uint32_t n_reports;                /* at most PSTK_MAX_REPORTS, and 1 for the others */
    uint32_t report_size;              /* sizeof(struct pstk_report) of the library */
    uint32_t n_palette_images; /* rows with an image from a PNG file that has a palette: often a
                                  mask, whose class ids come as the palette's colours */
    uint32_t reserved;
};

/* ---- the loader ---------------------------------------------------------------------------- */

struct pstk_loader; /* opaque */

/* Fill `s` with defaults. `size` is sizeof *s: a library that knows more fields defaults them. */
PSTK_API void pstk_settings_init(struct pstk_settings *s, uint32_t size);
/* Open a loader and start reading ahead. Returns owned in *out. */
PSTK_API int pstk_open(struct pstk_loader **out, const struct pstk_settings *s,
                       struct pstk_error *err);
/* Lease the next batch of the epoch in *batch: 1; at the end of the epoch 0 (the call after it
 * begins the next epoch); <0 an error. `stream`: the device stream that will use the batch, a
 * cudaStream_t for CUDA (NULL: the default stream of the calling thread's current device, which
 * must be the loader's); not looked at on the host. Where the stream is refused (EINVAL) the batch
 * stays for the next call. Waits at most timeout_ns nanoseconds, for ever if negative: ETIMEDOUT.
 * With 0 it does not wait for other threads that take or give back batches either. */
PSTK_API int pstk_next(struct pstk_loader *loader, struct pstk_batch **batch, void *stream,
                       int64_t timeout_ns, struct pstk_error *err);
/* End the lease; nulls *batch. `stream`: the stream whose work uses the batch. NULL batch is fine.
 * A stream that cannot be of use here (another device's) makes the loader fail: pstk_next says so.
 */
PSTK_API void pstk_release(struct pstk_batch **batch, void *stream);
/* Let one more stream use a leased batch: it waits for the batch, as pstk_next's does. */
PSTK_API int pstk_batch_wait(const struct pstk_batch *batch, void *stream, struct pstk_error *err);
/* What is in the stream by now uses the batch: its slot is overwritten only after that. */
PSTK_API int pstk_batch_record(const struct pstk_batch *batch, void *stream,
                               struct pstk_error *err);
/* Copy `size` bytes of a leased batch's tensor, from its start, to host memory, behind what is in
 * the stream; waits for the copy. EINVAL: it has no tensor of that number, or fewer bytes. */
PSTK_API int pstk_batch_read(const struct pstk_batch *batch, uint32_t tensor, void *to,
                             uint64_t size, void *stream, struct pstk_error *err);
/* Go to a position of an epoch, O(1). Where the loader already is, nothing is lost. Clears a
 * sample's error. */
PSTK_API int pstk_seek(struct pstk_loader *loader, uint64_t epoch, uint64_t position,
                       struct pstk_error *err);
/* Copy out the cursor: behind the batch that was delivered last. At the end of an epoch that is its
 * last position, from where pstk_next gives 0 and goes on with the next epoch. */
PSTK_API int pstk_get_cursor(const struct pstk_loader *loader, uint64_t *epoch, uint64_t *position);
/* Number of batches of a whole epoch, the same on every rank. */
PSTK_API uint64_t pstk_n_batches(const struct pstk_loader *loader);
/* Number of samples of the data set. */
PSTK_API uint64_t pstk_n_samples(const struct pstk_loader *loader);
/* Make a pstk_next that waits, or the next one that would, return EINTR. Safe in a signal handler.
 */
PSTK_API void pstk_interrupt(struct pstk_loader *loader);
/* Stop, join all threads, free; null *loader. Waits for reads that the storage has not answered
 * yet, and for copies that the device has not done, which may wait for steps of the caller's: a
 * stream that is stuck for ever holds it up. Leased batches stay valid until released; the last
 * release then waits for what uses them, and frees, which on a device waits for all that runs
 * there. A thread that has the lock of Python's interpreter gives it up for as long. Where a batch
 * was released during a capture that lasts until then, the device's memory stays allocated until
 * the process ends. In on_bad_sample it does nothing, and *loader stays. */
PSTK_API void pstk_close(struct pstk_loader **loader);

/* ---- batches that many hold ------------------------------------------------------------------ */

/*
 * For languages whose objects live as long as they like: a leased batch with a count of references.
 * Its slot goes back when the last one is given up. Before it is overwritten ends what is then in
 * the stream that it was shared on and in those given to pstk_share_use, and what was in each
 * stream that pstk_batch_record was given, when it was. With settings.current_stream also what is
 * in the stream that it names in the thread that gives up the last reference. Any thread; in a
 * fork's child giving up does nothing to the slot.
 */
struct pstk_share; /* opaque */

/* Takes the lease *batch and nulls it. Returns owned, with one reference. EINVAL: the stream is
 * cudaStreamPerThread, which would be another one in the thread that gives the batch back. */
PSTK_API int pstk_share_open(struct pstk_share **out, struct pstk_batch **batch, void *stream,
                             struct pstk_error *err);
/* The batch, valid while a reference is held. */
PSTK_API const struct pstk_batch *pstk_share_batch(const struct pstk_share *share);
PSTK_API void pstk_share_ref(struct pstk_share *share);
/* Let a further stream use the batch: it waits for the batch now, and what is in it when the last
 * reference is given up ends before the slot is overwritten. The stream lives until then. Up to 8
 * streams of one batch, besides the one it was shared on. EINVAL: cudaStreamPerThread, or a stream
 * of another device; ENOBUFS: there are 8: wait with pstk_batch_wait, record with
 * pstk_batch_record. Allocates nothing. */
PSTK_API int pstk_share_use(struct pstk_share *share, void *stream, struct pstk_error *err);
/* Give up a reference; nulls *share. NULL is fine. */
PSTK_API void pstk_share_unref(struct pstk_share **share);
/* A tensor of the batch as DLPack has it (a DLManagedTensor, https://dmlc.github.io/dlpack), which
 * holds a reference until its deleter is called, from any thread. Returns owned. */
struct DLManagedTensor;
PSTK_API int pstk_share_tensor(struct pstk_share *share, uint32_t tensor,
                               struct DLManagedTensor **out, struct pstk_error *err);

/*
 * The same as objects of Python, for programs that call this from there without a compiled module:
 * what gives a reference up is then a C function that the interpreter calls when the object goes.
 * Call these with the interpreter's lock held. Both return a new PyCapsule; or NULL, with *err
 * filled and a Python exception: RuntimeError for what the functions above return, or MemoryError;
 * none where this process has no interpreter, ENOTSUP.
 */

/* A share, by the name "penstock.share". Takes the lease *batch and nulls it. After a MemoryError
 * the lease has ended as well, unless *batch is still there. */
PSTK_API void *pstk_capsule_share(struct pstk_batch **batch, void *stream, struct pstk_error *err);
/* A tensor of it, by the name "dltensor", as the Python protocol of DLPack has it. */
PSTK_API void *pstk_capsule_tensor(struct pstk_share *share, uint32_t tensor,
                                   struct pstk_error *err);

/* ---- streams, for programs that do not speak the device's own language ----------------------- */

/* Make a stream of the loader's device that waits for no other. Returns owned in *stream. Close it
 * before the loader and after the last batch that was leased on it; or leave it to the library,
 * which closes it once the loader is closed and its last batch released. On the host, and for the
 * functions below, NULL is a stream. */
PSTK_API int pstk_stream_open(struct pstk_loader *loader, void **stream, struct pstk_error *err);
/* Wait for what is in the stream, free it, null *stream. */
PSTK_API void pstk_stream_close(struct pstk_loader *loader, void **stream);
/* Keep the stream busy for ns nanoseconds: stands for a training step in benchmarks. On the host it
 * is the caller that is kept busy. On a device one multiprocessor counts time and touches no
 * memory, so that copies run as on an idle device; a real step slows them. */
PSTK_API int pstk_stream_spin(struct pstk_loader *loader, void *stream, uint64_t ns,
                              struct pstk_error *err);

/* ---- order, without a loader --------------------------------------------------------------- */

/* The order of a data set of n samples; what a loader with the same values delivers. */
struct pstk_order_settings {
    uint32_t size;  /* sizeof */
    uint32_t order; /* enum pstk_order */
    uint64_t n_samples;
    uint64_t seed;
    uint64_t epoch;
    uint32_t batch_size;
    uint32_t rank;
    uint32_t world; /* 0 = 1 */
    uint32_t last;  /* enum pstk_last */
};

#define PSTK_ORDER_VERSION 1 /* changes whenever an order would */

/* Number of batches of an epoch from `position` on. */
PSTK_API uint64_t pstk_order_n_batches(const struct pstk_order_settings *s, uint64_t position);
/* Write the ids of the batch at `position` to ids[batch_size]; returns the number of valid ones,
 * 0 past the end of the epoch, <0 EINVAL. */
PSTK_API int64_t pstk_order_batch(const struct pstk_order_settings *s, uint64_t position,
                                  uint64_t *ids);

/* ---- statistics ---------------------------------------------------------------------------- */

/* Time of one kind of thread since open, summed over its threads, in nanoseconds. */
struct pstk_stage_stats {
    uint64_t busy_ns;    /* working */
    uint64_t starved_ns; /* waiting for what comes before it */
    uint64_t blocked_ns; /* waiting for room behind it */
    uint64_t n_items;    /* reader: reads; workers: rows, those given up by a seek too;
                            consumer: batches */
    uint32_t n_threads;
    uint32_t reserved;
};

enum pstk_limit {                         /* what keeps the loader from being faster */
                  PSTK_LIMIT_UNKNOWN = 0, /* too little time to say */
                  PSTK_LIMIT_STORAGE = 1,
                  PSTK_LIMIT_DECODE = 2,
                  PSTK_LIMIT_COPY = 3,
                  PSTK_LIMIT_CONSUMER = 4,
                  PSTK_LIMIT_READER = 5 /* the reader thread itself (per-record cost) */
};

enum pstk_rung {                            /* steps down that were taken: bits */
                 PSTK_RUNG_NO_IO_URING = 1, /* io_uring refused, at open or later: threads
                                               read */
                 PSTK_RUNG_NO_FIXED_BUFFERS =
                     2, /* buffers not registered (RLIMIT_MEMLOCK, seccomp) */
                 PSTK_RUNG_NO_FIXED_FILES = 4,    /* files not registered */
                 PSTK_RUNG_NO_DIRECT = 8,         /* O_DIRECT refused by the file system */
                 PSTK_RUNG_NO_SINGLE_ISSUER = 16, /* kernel without IORING_SETUP_SINGLE_ISSUER (6.0)
                                                     or IORING_SETUP_DEFER_TASKRUN (6.1) */
                 PSTK_RUNG_NOT_PINNED = 32,       /* threads could not be pinned */
                 PSTK_RUNG_NOT_BOUND = 64,        /* memory could not be bound to its node */
                 PSTK_RUNG_NOT_PAGE_LOCKED = 128 /* slots could not be page-locked for copies to the
                                                    device: they take a step more */
};

struct pstk_stats {
    uint32_t size;       /* sizeof, set by the caller */
    uint32_t reader;     /* enum pstk_reader_kind in use */
    uint32_t direct;     /* 1: O_DIRECT */
    uint32_t registered; /* 1: I/O buffers registered */
    uint32_t rungs;      /* bits of enum pstk_rung */
    uint32_t n_threads;  /* workers */
    uint32_t n_slots;
    uint32_t n_nodes; /* NUMA nodes in use */
    uint32_t queue_depth;
    uint32_t rows_per_job;
    uint32_t variant;         /* enum pstk_variant in use */
    uint32_t limit;           /* enum pstk_limit: the verdict */
    uint64_t n_samples;       /* delivered */
    uint64_t bytes_delivered; /* read for the batches delivered; index pages not counted */
    uint64_t n_batches;       /* delivered */
    uint64_t n_replaced;      /* rows delivered whose sample was bad and replaced */
    uint64_t bytes_read;      /* by the storage, all of it: read ahead, rounding, index pages */
    uint64_t n_reads;
    uint64_t n_index_hits;
    uint64_t n_index_misses;
    uint64_t n_slow_reads;   /* rows whose read-ahead failed and that were read again, one by one */
    uint64_t slot_memory;    /* bytes, on the host; reports of bad samples included */
    uint64_t io_memory;      /* bytes */
    uint64_t index_memory;   /* bytes */
    uint64_t scratch_memory; /* bytes of all workers, reserved; touched only as images need it */
    struct pstk_stage_stats stage_reader;
    struct pstk_stage_stats stage_workers;
    struct pstk_stage_stats stage_consumer; /* busy: between next and next; starved: inside next */
    /* A device with slots of its own; 0 on the host. */
    struct pstk_stage_stats stage_uploader; /* blocked: no slot of the device was free, or its use
                                               not over; items: batches */
    uint32_t n_device_slots;
    uint32_t page_locked;   /* 1: copies run straight from the host slots */
    uint64_t device_memory; /* bytes of the device's slots, and of the two buffers that they share
                               for rows that kernels finish there */
    /* With settings.timed, as the device's clock tells. */
    uint64_t copy_ns;    /* copies to the device, while they ran */
    uint64_t copy_bytes; /* of those copies */
    /* The consumer's streams, each by itself, summed. Starved: from where a pstk_next that leased a
     * batch was called, or the stream came to that point, until the batch was there; with calls
     * before it that ended in ETIMEDOUT or EINTR from the first of them. Includes the first batch,
     * and the first after a seek. Used: from there until the next batch is asked for on the same
     * stream, be it in the next epoch; of a stream's last batch it is not counted. Of the stream
     * that pstk_next is given alone: one that only takes batches, for others to use, starves
     * whenever none is ready. */
    uint64_t stream_used_ns;
    uint64_t stream_starved_ns;
    uint64_t n_palette_images; /* rows delivered with an image from a PNG file that has a palette */
};

/* Copy out the statistics; never blocks. */
PSTK_API int pstk_get_stats(const struct pstk_loader *loader, struct pstk_stats *stats);

/* ---- the machine, and its ceilings ---------------------------------------------------------- */

/* What this machine offers a loader. -1 = could not be found out. */
struct pstk_machine {
    uint32_t size;                /* sizeof, set by the caller */
    uint32_t n_cores;             /* in this process's affinity mask */
    uint32_t n_usable;            /* after the cgroup CPU quota: the automatic number of workers */
    uint32_t n_nodes;             /* NUMA nodes with those cores */
    uint64_t memory;              /* bytes: of the machine, or its cgroup's limit if lower */
    uint64_t memlock;             /* RLIMIT_MEMLOCK in bytes, UINT64_MAX = unlimited */
    uint64_t open_files;          /* RLIMIT_NOFILE */
    double cpu_quota;             /* cores granted by the cgroup; 0 = no quota */
    int32_t io_uring;             /* 1 when a ring can be set up and entered, or -errno of the call
                                     that was refused */
    int32_t fixed_buffers;        /* 1 when 64 MiB of buffers can be registered, or -errno */
    int32_t single_issuer;        /* 1 when IORING_SETUP_SINGLE_ISSUER (6.0) and DEFER_TASKRUN (6.1)
                                     work */
    int32_t direct;               /* 1 when O_DIRECT works on the path, or -errno */
    uint32_t direct_memory_align; /* bytes */
    uint32_t direct_offset_align; /* bytes */
    uint32_t variant;             /* the best enum pstk_variant of this CPU */
    int32_t n_cuda_devices;       /* -1: built without CUDA, or no driver that it can use; looked
                                     for (0.1 s and more) only where size reaches past it */
    char kernel[64];              /* release */
    char cpu[64];                 /* model name */
    char file_system[32];         /* of the path: "ext4", ... */
    char libjpeg[32];             /* version of the linked library */
};

/* Find out about this machine; `path` (may be NULL) is where data would lie. borrows. */
PSTK_API int pstk_get_machine(const char *path, struct pstk_machine *machine,
                              struct pstk_error *err);

/* A device that batches can be handed out on. Finding out touches no device: nothing is allocated
 * there. 0 or "" = could not be found out. */
struct pstk_device {
    uint32_t size;            /* sizeof, set by the caller */
    uint32_t kind;            /* enum pstk_device_kind */
    int32_t index;            /* of that kind */
    int32_t numa_node;        /* nearest to it, as the system counts; -1 = could not be found out */
    uint64_t memory;          /* bytes */
    uint32_t driver, runtime; /* CUDA versions: 13000 is 13.0 */
    uint32_t major, minor;    /* compute capability */
    uint32_t pcie_generation; /* of the link as it is now: GPUs lower it while idle ... */
    uint32_t pcie_width;      /* lanes */
    uint32_t pcie_generation_max; /* ... and what link and device could do */
    uint32_t pcie_width_max;
    char bus_id[32]; /* PCI address */
    char name[64];
};

/* ENOTSUP: this build or machine has no such devices; EINVAL: not that many. */
PSTK_API int pstk_get_device(uint32_t kind, int32_t index, struct pstk_device *device,
                             struct pstk_error *err);

/* What a device's copies do alone, in bytes per second; 0 = not measured. */
struct pstk_copy_rates {
    uint32_t size; /* sizeof, set by the caller */
    uint32_t reserved;
    double to_device;          /* from page-locked host memory: plain cudaMemcpyAsync */
    double to_host;            /* to page-locked host memory */
    double pageable_to_device; /* from memory that is not page-locked */
    double on_device;          /* from device memory to device memory, each byte counted once */
};

/* Measure copies of block_size bytes, one behind the other, `seconds` for all kinds together. On
 * the device it takes 2 blocks. */
PSTK_API int pstk_measure_copies(uint32_t kind, int32_t index, uint64_t block_size, double seconds,
                                 struct pstk_copy_rates *rates, struct pstk_error *err);

/* What the parts could do alone. 0 = not measured (no such field, or no time). */
struct pstk_ceilings {
    uint32_t size; /* sizeof, set by the caller */
    uint32_t reserved;
    double storage_bytes_per_second; /* reads of the same extents at the same depth, no checks */
    double storage_reads_per_second;
    double decode_samples_per_second; /* libjpeg-turbo, full decode, n_threads threads */
    double memory_bytes_per_second;   /* memcpy by n_threads threads, of blocks past the cache */
    double loader_samples_per_second; /* the same loader with an output that decodes nothing */
    double
        copy_bytes_per_second; /* plain page-locked copies to the device of what a batch copies */
    uint64_t copy_block_size;  /* bytes of those copies */
};

/* Measure the ceilings for a loader with these settings: `seconds` for all of them together,
 * reading the images to decode and opening files not counted. */
PSTK_API int pstk_measure_ceilings(const struct pstk_settings *s, double seconds,
                                   struct pstk_ceilings *ceilings, struct pstk_error *err);

/* CRC32C (Castagnoli) of `size` bytes at `data`, continuing `crc` (0 at the start). */
PSTK_API uint32_t pstk_crc32c(uint32_t crc, const void *data, uint64_t size);

#ifdef __cplusplus
}
#endif
#endif
