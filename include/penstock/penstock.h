/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock.h - the loader: batches of decoded, augmented samples, in order, before you ask.
 *
 *    order -> shard -> reader -> record -> sample -> batch -> device -> your loop
 *
 * This header also includes output.h (the tensors of a batch), ops.h (operations on images), draw.h
 * (the same on pixels of the program), order.h (the samples of a batch), budget.h (batches limited
 * by the cost of their samples), subset.h (a part of a data set), mixture.h (several data sets),
 * mix.h (MixUp and CutMix), mosaic.h (pictures of four rows), processes.h (rows that other
 * processes make), ranks.h (rank and world of this process), share.h (batches that several objects
 * hold), diagnostics.h (statistics, traces and predictions) and machine.h (the machine's
 * resources). Data sets have a header of their own, format.h.
 *
 * Glossary
 *   sample id   number of a record in the data set, from 0
 *   position    index in an epoch's order, from 0; the order maps a position to a sample id
 *   batch       batch_size rows for this rank; a global batch is the next G = batch_size * world
 *               positions, and rank r gets those that are r modulo world
 *   slot        the memory of one batch: pstk_open allocates memory.n_slots, and the loader reuses
 *               them; a device has device.n_slots of its own, and pstk_next then leases those
 *   lease       from pstk_next to pstk_release the batch is yours, also after pstk_close
 *   cursor      (epoch, position): the whole state for resuming
 *   replacement another sample of the same shard, or of the same subset, in the row of a bad sample
 *
 * Life cycle
 *
 *   pstk_settings_init
 *           |
 *       pstk_open ---- < 0: *out is NULL, nothing to close
 *           |
 *           v                1                          .-> pstk_batch_wait, _use_stream, _read
 *   .-- pstk_next ------------------> leased batch -----+
 *   |    |  |  ^                           |            '-> pstk_share_open (share.h)
 *   |    |  |  |                           v
 *   |    |  |  '-------- free slot <-- pstk_release, or the last reference of a share
 *   |    |  |
 *   |    |  '-- 0: the epoch ends; the next call begins the next epoch
 *   |    '-- < 0: an error in stream order; pstk_seek clears that of a sample
 *   |
 *   '-> pstk_close: the threads end; leased batches stay valid until their release
 *
 * Rules
 *   1. If pstk_open succeeds, call pstk_close; if it fails, *out is NULL.
 *   2. pstk_open copies the settings and all they point to, except the user pointers of callbacks,
 *      which it keeps.
 *   3. If the caller holds every slot, pstk_next returns ENOBUFS; it never hangs.
 *   4. An error arrives in stream order, after the batches before it. It stays until pstk_seek or
 *      pstk_close; an error of a device, or of reading as a whole, stays until pstk_close.
 *   5. After pstk_open the library allocates nothing except a few bytes per call to
 *      pstk_share_open, pstk_share_tensor and pstk_capsule_*. The statistics report the memory
 *      that pstk_open allocates.
 *   6. One thread at a time calls pstk_next, pstk_seek, pstk_set_batch_size and pstk_close. Any
 *      thread may call pstk_release, pstk_interrupt, pstk_get_stats and the functions that take a
 *      batch. Functions that CUDA calls may call nothing of this library.
 *   7. After fork the child may call nothing: EPERM.
 *   8. On a device pstk_next returns a batch once it was copied there, and makes the given stream
 *      wait for the kernels that finish the batch. Your streams never wait for a copy. After
 *      pstk_release the loader's own thread waits for the stream's work up to that point, then
 *      reuses the slot; the caller never waits. So a program runs at most device.n_slots batches
 *      ahead of the device, and pstk_next waits while a stream does not reach a release. To use a
 *      batch on more streams, call pstk_batch_wait for each, and pstk_batch_use_stream for each
 *      except the stream of pstk_release.
 *   9. Streams belong to the primary context of the loader's device, which the CUDA runtime uses.
 *      CUDA refuses streams of other contexts (EINVAL); for a green context the driver decides.
 *      The library refuses the default stream of a thread whose current context is another one, a
 *      green one too. cudaStreamPerThread is the calling thread's. Passing a destroyed stream is
 *      the caller's error. The library refuses a stream that is being captured into a
 *      graph, except in pstk_release: the slot then stays in use until the first pstk_next or
 *      pstk_release after the capture, and the stream must live until then. No thread may begin a
 *      capture of a stream while another thread releases a batch on it.
 *
 * A whole program:
 *
 *   #include <penstock/penstock.h>
 *   #include <stdio.h>
 *   int main(void)
 *   {
 *       struct pstk_op ops[] = {pstk_random_resized_crop(224, 224), pstk_random_flip(0.5),
 *                               pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD)};
 *       struct pstk_output outputs[] = {pstk_output_image("jpg", ops, 3, PSTK_F16, PSTK_NCHW),
 *                                       pstk_output_scalar("cls", PSTK_I64)};
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

#include <penstock/budget.h>
#include <penstock/diagnostics.h>
#include <penstock/draw.h>
#include <penstock/machine.h>
#include <penstock/mix.h>
#include <penstock/mixture.h>
#include <penstock/mosaic.h>
#include <penstock/ops.h>
#include <penstock/order.h>
#include <penstock/output.h>
#include <penstock/processes.h>
#include <penstock/ranks.h>
#include <penstock/share.h>
#include <penstock/subset.h>
#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings ------------------------------------------------------------------------------ */

/*
 * Treatment of a bad sample: one that cannot be read or decoded, or for which a function of the
 * program fails (decode, PSTK_OP_CALL, processes.h). The loader decodes only the part of a JPEG
 * that the crop reaches: it does not see damage below that part in that epoch. The delivered pixels
 * are right, and it always checks the checksums. pstk_image_check, which `penstock pack` applies to
 * every file, decodes all of a file.
 */
enum pstk_bad_sample {
    /* pstk_next returns the error */
    PSTK_BAD_ERROR = 0,
    /* another sample of the same shard replaces it; replacements are counted and reported */
    PSTK_BAD_REPLACE = 1,
};

enum pstk_reader_kind {
    PSTK_READER_AUTO = 0,
    PSTK_READER_IO_URING = 1,
    PSTK_READER_THREADS = 2,
};

enum pstk_io {
    PSTK_IO_AUTO = 0,
    /* O_DIRECT, past the page cache */
    PSTK_IO_DIRECT = 1,
    PSTK_IO_BUFFERED = 2,
};

/* Largest number of bad samples of one batch with a report each; for further ones the library
 * reports only the number. With PSTK_BAD_REPLACE every slot has memory for the reports, some 10 kB,
 * which pstk_stats.slot_memory includes. */
#define PSTK_MAX_REPORTS 8

/*
 * Called for each report (struct pstk_report) of a batch, in the order of the rows, before
 * pstk_next returns 1. `bad` borrows. `replacement_id` is PSTK_NONE in the report that counts the
 * samples without one of their own. The library does not report samples that were read ahead and
 * discarded by a seek; it reports again for a batch that it delivers again.
 *
 * The callback may call pstk_interrupt, pstk_get_stats (which counts the batch already) and
 * pstk_get_cursor; and, for batches of earlier calls, pstk_release and all functions that take a
 * batch. pstk_next, pstk_seek and pstk_set_batch_size return EBUSY there, and pstk_close does
 * nothing. Thread: the one that calls pstk_next, which holds no lock meanwhile.
 */
typedef void (*pstk_bad_sample_fn)(void *user, const struct pstk_error *bad,
                                   uint64_t replacement_id);

/* Write the device's current stream of the calling thread, in which it queues work by default, to
 * *stream and return 0; return any other value if there is none. It must take no lock that the
 * thread may hold (Python's, for one) and call nothing of this library.
 * Thread: any that ends the last reference of a batch shared on a device. */
typedef int (*pstk_current_stream_fn)(int32_t device_index, void **stream);

/* The order of the samples. The seed is pstk_settings.seed. */
struct pstk_settings_order {
    /* enum pstk_order. default: PSTK_ORDER_FULL */
    uint32_t kind;
    /* 1: world need not divide global_batch_size. Batches have room for the quotient, rounded up,
     * and n_valid is that or one less; the ranks with fewer rows change from batch to batch. For a
     * mean over all ranks, weight the mean of a rank's rows by n_valid * world / global_batch_size.
     * default: 0 */
    uint32_t uneven;
    /* epoch of the first batch. default: 0 */
    uint64_t epoch;
    /* position of the first batch in its epoch, counted in samples over all ranks. default: 0 */
    uint64_t position;
    /* PSTK_ORDER_WINDOWED: pieces of the data set that are interleaved, at most 65536. A rank reads
     * its own samples only where world divides it. default: auto, 48, 12, 4 or 1, a function of the
     * number of samples */
    uint32_t ways;
    /* PSTK_ORDER_WINDOWED: samples of a block, at most 2^20. default: auto, 64 */
    uint32_t block;
    /* PSTK_ORDER_WINDOWED: blocks whose samples are mixed, at most 4096. default: auto, 4 */
    uint32_t window;
    /* number of changes of the batch size, at most PSTK_MAX_BATCH_STEPS (order.h); the first steps
     * have batch_size or global_batch_size. Slots have room for the largest size, or for
     * memory.max_batch_size. default: 0 */
    uint32_t n_batch_steps;
    /* n_batch_steps changes; copies. default: NULL */
    const struct pstk_batch_step *batch_schedule;

    /* must be 0 */
    uint64_t reserved[4];
};

/* The processes that train together; pstk_use_ranks sets them from the launcher's variables. */
struct pstk_settings_ranks {
    /* number of this process, below `world`. default: 0 */
    uint32_t rank;
    /* processes that share the data set, at least 1: 0 is refused, because atoi returns it for an
     * empty variable of a launcher. default: 1 */
    uint32_t world;
    /* number of this process on this machine, below local_world. default: 0 */
    uint32_t local_rank;
    /* processes that share this machine's cores, memory and readers evenly, at least 1. If the
     * launcher binds each process to cores of its own, leave it at 1: the cores would be divided
     * twice. default: 1 */
    uint32_t local_world;

    /* must be 0 */
    uint64_t reserved[4];
};

/* Memory, and limits on data that is read into it. */
struct pstk_settings_memory {
    /* batches in memory, at least 2. default: auto, 4; more for batches of few rows or small
     * records; never more than max_memory allows */
    uint32_t n_slots;
    /* largest number of rows of this rank's batches, for which slots have room: see
     * pstk_set_batch_size. With global_batch_size batches of all ranks have at most max_batch_size
     * * world. default: 0, the size at open */
    uint32_t max_batch_size;
    /* limit on the bytes of slots, I/O buffers and index caches together; if the control group
     * leaves less below its limit, over local_world, that is the limit. default: auto, 3/4 of the
     * memory of the machine or its cgroup, over local_world */
    uint64_t max_memory;
    /* bytes of I/O buffers of all nodes. default: auto, from record sizes and queue_depth */
    uint64_t io_memory;
    /* bytes of index page caches of all nodes. default: auto, 64 MiB or the whole index */
    uint64_t index_memory;
    /* limit on the pixels of an image; the loader refuses larger images before it touches memory
     * for them. default: auto, 178956970, Pillow's limit */
    uint64_t max_pixels;
    /* limit on the bytes of a record; pstk_open refuses data sets with larger ones. A record of
     * arrays in files is a row of each. default: auto, 4 GiB - 1 */
    uint64_t max_record_size;

    /* must be 0 */
    uint64_t reserved[4];
};

/* Reading and decoding. The defaults suit most machines. */
struct pstk_settings_reading {
    /* enum pstk_reader_kind. If the machine refuses a forced reader, pstk_open fails; a later
     * refusal only sets the fallback. default: PSTK_READER_AUTO */
    uint32_t reader;
    /* enum pstk_io. If the file system refuses a forced way, pstk_open fails; a file that refuses
     * later only sets the fallback. default: PSTK_IO_AUTO */
    uint32_t io;
    /* reads in flight of each reader. default: auto, 128 */
    uint32_t queue_depth;
    /* 1: keep threads on the cores of their NUMA node; 0: leave them to the scheduler. default: 1
     */
    uint32_t pin_threads;
    /* enum pstk_kernels, for tests and bug reports. default: PSTK_KERNELS_AUTO */
    uint32_t kernels;
    /* must be 0 */
    uint32_t reserved2;
    /* hwloc's synthetic description or XML file of a machine, for tests; copies. default: NULL,
     * this machine */
    const char *topology;

    /* must be 0 */
    uint64_t reserved[4];
};

/* The device on which batches are handed out. */
struct pstk_settings_device {
    /* enum pstk_device_kind. default: PSTK_HOST */
    uint32_t kind;
    /* index of the device among those of its kind; for CUDA as this process sees its devices.
     * default: 0 */
    int32_t index;
    /* batches in the memory of a device that has its own, at least 2. Slot k keeps its addresses
     * for the loader's life. default: auto, 3 */
    uint32_t n_slots;
    /* 1: measure copies to the device, and how long the consumer's streams wait for batches
     * (diagnostics.h). default: 0 */
    uint32_t measure;
    /* returns a further stream that used a shared batch (share.h). default: NULL */
    pstk_current_stream_fn current_stream;

    /* must be 0 */
    uint64_t reserved[4];
};

/* Reports of a loader in addition to pstk_get_stats. */
struct pstk_settings_observe {
    /* 1: batches have crops (pstk_batch.crops). default: 0 */
    uint32_t report_crops;
    /* 1: mark reading, decoding, copies, next and leases as NVTX ranges for Nsight Systems; ENOTSUP
     * in a build without NVTX. default: 0 */
    uint32_t nvtx;
    /* number of events that a trace keeps of each thread, the newest; at most 2^20, rounded up to a
     * power of 2; 64 bytes each, which max_memory does not count. default: 0: 16384 with
     * trace_path, else no trace */
    uint32_t trace_events;
    /* must be 0 */
    uint32_t reserved2;
    /* path of the trace's file (diagnostics.h), which pstk_open writes, and pstk_close again;
     * copies. pstk_open fails if its folder does not exist, it cannot be written, or its name ends
     * in .gz or .GZ; if the disk refuses it, only PSTK_FALLBACK_NO_TRACE is set. default: NULL,
     * none */
    const char *trace_path;
    /* path of the status file, by which other processes ask what the loader is doing
     * (diagnostics.h; `penstock top`). pstk_open makes it, pstk_close removes it, and a sleeping
     * thread answers; copies. pstk_open fails if its folder does not exist or another file lies
     * there; if the disk refuses it, only PSTK_FALLBACK_NO_MONITOR is set. default: NULL, none */
    const char *monitor_path;

    /* must be 0 */
    uint64_t reserved[4];
};

/*
 * The settings of a loader. Fill the struct with pstk_settings_init, then change the members that
 * differ from the defaults. Members that most programs set come first; the others follow by topic.
 * "auto" is 0: pstk_open chooses, and pstk_stats reports the choice. Each of the structs order,
 * ranks, memory, reading, device and observe ends in 32 bytes for later members. These, and all
 * members called reserved, must be 0, or pstk_open returns ENOTSUP. Messages name a member without
 * its struct, in Python's words: n_slots, order, device, device_index, n_device_slots,
 * measure_device; for outputs `follows` (follow.image) and `form` (follow.box_format).
 */
struct pstk_settings {
    /* Sizes of structs; pstk_settings_init sets them. */

    /* sizeof(struct pstk_settings) */
    uint32_t size;
    /* sizeof(struct pstk_output) */
    uint32_t output_size;
    /* sizeof(struct pstk_op) */
    uint32_t op_size;
    /* must be 0 */
    uint32_t reserved;

    /* Data. */

    /* path of the data set; copies. NULL with mixture */
    const char *path;
    /* several data sets in given shares (mixture.h), in place of path, which is NULL; copies. Not
     * with PSTK_ORDER_WINDOWED. default: NULL */
    const struct pstk_mixture *mixture;
    /* settings for reading a data set of another format (foreign.h), in a mixture every data set;
     * copies. default: NULL, defaults */
    const struct pstk_foreign *foreign;
    /* samples of the order (subset.h); copies. default: NULL, all */
    const struct pstk_subset *subset;

    /* Batches. */

    /* n_outputs outputs; copies */
    const struct pstk_output *outputs;
    uint32_t n_outputs;
    /* rows of this rank's batches. default: 1 */
    uint32_t batch_size;
    /* rows of the batches of all ranks together, in place of batch_size, which keeps its default: a
     * rank has global_batch_size / world of them. The global batches are then the same for any
     * number of ranks. default: 0, batch_size * world */
    uint32_t global_batch_size;
    /* enum pstk_last_batch. default: PSTK_LAST_DROP */
    uint32_t last_batch;
    /* batches limited by the cost of their samples (budget.h), in place of batch_size, which keeps
     * its default; copies. Not with global_batch_size, a schedule, memory.max_batch_size, mixture
     * or PSTK_ORDER_WINDOWED. default: NULL */
    const struct pstk_budget *budget;
    /* MixUp, CutMix and soft targets (mix.h); copies. default: NULL, none */
    const struct pstk_mix *mix;
    /* pictures of four rows (mosaic.h); copies. Not with mix. default: NULL, none */
    const struct pstk_mosaic *mosaic;

    /* seed of the order and of every random draw. default: 0 */
    uint64_t seed;
    /* workers. default: auto, the cores that this process may use, by its quota too, less one for
     * the readers of each NUMA node that make all reads or whose node has 32 cores or more, and one
     * for the copies to a device, while 4 workers a node remain */
    uint32_t n_threads;
    /* enum pstk_bad_sample. default: PSTK_BAD_ERROR */
    uint32_t bad_sample;
    /* called for each bad sample that was replaced. default: NULL */
    pstk_bad_sample_fn on_bad_sample;
    /* the first argument of on_bad_sample. default: NULL */
    void *bad_sample_user;

    /* By topic. */

    struct pstk_settings_order order;
    struct pstk_settings_ranks ranks;
    struct pstk_settings_memory memory;
    struct pstk_settings_reading reading;
    struct pstk_settings_device device;
    struct pstk_settings_observe observe;
};

/* ---- batches ------------------------------------------------------------------------------- */

/* One tensor of a batch, in the slot's memory. Rows from n_valid on are zero. */
struct pstk_tensor {
    const char *name;
    /* pointer to memory of the loader's device; 256-byte aligned, as DLPack requires */
    void *data;
    /* bytes in use */
    uint64_t size;
    /* enum pstk_dtype */
    uint32_t dtype;
    /* enum pstk_layout; images only */
    uint32_t layout;
    uint32_t n_dims;
    /* enum pstk_output_kind */
    uint32_t kind;
    /* elements of each dimension; shape[0]: n_rows; ragged: items (bytes) in use. An output that
     * has size_ops, and masks that follow it, have another height and width from batch to batch */
    int64_t shape[10];
    /* elements */
    int64_t strides[10];
    /* ragged: n_rows + 1 offsets in items (bytes), on the host; else NULL */
    const int64_t *offsets;
    /* the offsets in memory of the loader's device; NULL on the host */
    const int64_t *device_offsets;
};

/*
 * The source rectangle of a row, in pixels of the decoded image, after EXIF orientation if asked
 * for. With an op that resizes: the source of the whole resize. That is torchvision's (top, left,
 * height, width) of a RandomResizedCrop, and the whole image for a resize, even if a centre crop
 * follows. Without one: the part that the row shows; a centre crop that pads has a negative top or
 * left. It leaves out operations on whole pictures, as rotations and second resizes, except flips:
 * pstk_ops_draw lists all operations. All 0 for outputs that are not images.
 */
struct pstk_crop {
    int32_t top, left, height, width;
    uint32_t image_height, image_width;
    /* 1: flipped horizontally */
    uint32_t flip;
    /* 1: flipped vertically */
    uint32_t flip_vertical;
};

/*
 * A bad sample of a batch and its replacement. If a batch has more than PSTK_MAX_REPORTS of them,
 * the lowest rows have reports. One more report has the number of the others in error.message, and
 * PSTK_NONE as replacement_id and error.sample_id.
 */
struct pstk_report {
    /* the sample's error, with its id, place and position */
    struct pstk_error error;
    uint64_t replacement_id;
    /* row of the batch; UINT32_MAX in the report that counts the others */
    uint32_t row;
    uint32_t reserved;
};

/* A batch. The library owns it and leases it to the caller, who must not write to the struct. */
struct pstk_batch {
    /* sizeof(struct pstk_batch) of the library */
    uint32_t size;
    uint32_t n_tensors;
    /* tensors in the order of the outputs, then those that pstk_settings.mix adds */
    const struct pstk_tensor *tensors;
    /* batch_size, or the size that pstk_set_batch_size set; with a budget n_valid, 0 in steps that
     * have no batch for this rank */
    uint32_t n_rows;
    /* rows that are samples; the others are zero */
    uint32_t n_valid;

    uint64_t epoch;
    /* position of the batch's first sample, over all ranks */
    uint64_t position;
    /* position of the next batch; with `epoch` the cursor to save after this batch */
    uint64_t next_position;
    /* position / the rows of a global batch of the batch's size. With a budget: the number of the
     * epoch's batches before `position`, / world */
    uint64_t index;

    /* n_valid ids of the order; the row of a bad sample keeps that sample's id */
    const uint64_t *sample_ids;
    /* n_valid ids of replacements, PSTK_NONE in rows without one */
    const uint64_t *replacement_ids;
    /* crops[tensor * n_rows + row]; NULL without settings.observe.report_crops */
    const struct pstk_crop *crops;
    /* rows with a replacement */
    uint32_t n_replacements;
    /* index of the slot, below pstk_stats.n_slots; on a device below its n_device_slots */
    uint32_t slot;

    /* sizeof(struct pstk_tensor) of the library: the stride of `tensors` if headers and library may
     * differ */
    uint32_t tensor_size;
    /* sizeof(struct pstk_crop) of the library */
    uint32_t crop_size;
    /* reports in the order of the rows */
    const struct pstk_report *reports;
    /* number of reports: at most PSTK_MAX_REPORTS, and 1 that counts the others */
    uint32_t n_reports;
    /* sizeof(struct pstk_report) of the library */
    uint32_t report_size;
    /* rows with an image from a PNG file that has a palette. Such a file is often a mask, whose
     * class ids the loader delivers as the palette's colours */
    uint32_t n_palette_images;
    /* rows with an image from a JPEG that is marked as damaged, or from a damaged file, read in
     * place, that pstk_foreign.damaged accepts; decoded as Pillow loads it */
    uint32_t n_damaged_images;
    /* boxes that were dropped (pstk_output_boxes) */
    uint32_t n_dropped_boxes;
    /* index of the list of size_ops that made the batch; 0 without size_ops */
    uint32_t size_index;
    /* mixture: n_valid numbers of data sets; sample_ids and replacement_ids are ids within these;
     * else NULL */
    const uint32_t *data_sets;
};

/* ---- the loader ---------------------------------------------------------------------------- */

struct pstk_loader; /* opaque */

/* Fill `s` with defaults. `size` is sizeof *s: a library that has more members defaults them. */
PSTK_API void pstk_settings_init(struct pstk_settings *s, uint32_t size);
/* Open a loader and start reading ahead. Returns owned in *out; on failure *out is NULL. EINVAL: a
 * setting is wrong; ENOTSUP: this build, the format or a reserved member refuses it; ENOENT,
 * EACCES, EIO, EBADMSG: the data set cannot be read; ENOMEM. */
PSTK_API int pstk_open(struct pstk_loader **out, const struct pstk_settings *s,
                       struct pstk_error *err);

/* Lease the next batch of the epoch in *batch. Returns 1; 0 at the end of the epoch, and the call
 * after it begins the next epoch; <0: an error. `stream` will use the batch: a cudaStream_t for
 * CUDA, where NULL is the default stream of the calling thread's current device, which must be the
 * loader's; ignored on the host. If the library refuses the stream (EINVAL), the next call gets the
 * batch. Waits at most timeout_ns nanoseconds, without end if negative: ETIMEDOUT. With 0 the call
 * does not even wait for threads that take or give back batches. Thread: one at a time, together
 * with pstk_seek and pstk_close. */
PSTK_API int pstk_next(struct pstk_loader *loader, struct pstk_batch **batch, void *stream,
                       int64_t timeout_ns, struct pstk_error *err);
/* End the lease and null *batch; NULL is fine. `stream`: the stream whose work uses the batch. A
 * stream that the library cannot use (another device's) makes the loader fail: pstk_next returns
 * the error. */
PSTK_API void pstk_release(struct pstk_batch **batch, void *stream);

/* Let one more stream use a leased batch: make it wait for the batch, as pstk_next does. EINVAL:
 * the library cannot use the stream. Thread: any. */
PSTK_API int pstk_batch_wait(const struct pstk_batch *batch, void *stream, struct pstk_error *err);
/* Keep the batch's slot until the stream's work up to now has ended. EINVAL: the library cannot use
 * the stream. Thread: any. */
PSTK_API int pstk_batch_use_stream(const struct pstk_batch *batch, void *stream,
                                   struct pstk_error *err);
/* Copy the first `size` bytes of a leased batch's tensor to host memory and wait for the copy. It
 * begins after the stream's work up to now. EINVAL: the batch has no tensor of that number, or the
 * tensor has fewer bytes. */
PSTK_API int pstk_batch_read(const struct pstk_batch *batch, uint32_t tensor, void *to,
                             uint64_t size, void *stream, struct pstk_error *err);

/* Go to a position of an epoch, in constant time. A seek to the loader's current position loses no
 * work. Clears a sample's error. Thread: as pstk_next. */
PSTK_API int pstk_seek(struct pstk_loader *loader, uint64_t epoch, uint64_t position,
                       struct pstk_error *err);
/* Give batches another number of rows, from the next one on: `rows` replaces batch_size or, if the
 * loader was opened with it, global_batch_size. The cursor stays, so every sample of the epoch
 * comes once, whatever the sizes are. Batches that were read ahead are dropped, and their rows read
 * and decoded again: a change costs as much as a seek. Setting the current size costs nothing. All
 * ranks set the same number before the same batch. EINVAL: 0; more rows for this rank than
 * memory.max_batch_size or, without it, than at open; a number that pstk_open would refuse (world
 * does not divide it; last_batch drops all). Nothing has changed then. An error of a sample stays
 * until pstk_seek. Thread: as pstk_next. */
PSTK_API int pstk_set_batch_size(struct pstk_loader *loader, uint32_t rows, struct pstk_error *err);
/* Get the cursor just past the last delivered batch. At the end of an epoch that is the epoch's
 * last position: from there pstk_next returns 0 and goes on with the next epoch. */
PSTK_API int pstk_get_cursor(const struct pstk_loader *loader, uint64_t *epoch, uint64_t *position);
/* Return the number of batches of a whole epoch, all of the current size; the same on every rank.
 * With a budget: of the epoch that the cursor is in. */
PSTK_API uint64_t pstk_n_batches(const struct pstk_loader *loader);
/* Return the number of batches of an epoch from `position` on, all of the current size. With a
 * budget it walks an epoch that the loader does not know yet. Thread: any. */
PSTK_API uint64_t pstk_n_batches_left(const struct pstk_loader *loader, uint64_t epoch,
                                      uint64_t position);
/* Return the number of rows that a slot has room for, the largest number of a batch of this rank.
 * Thread: any. */
PSTK_API uint32_t pstk_max_rows(const struct pstk_loader *loader);
/* Return the number of samples of an epoch: of the subset, of the data set, or of a mixture's
 * epoch. */
PSTK_API uint64_t pstk_n_samples(const struct pstk_loader *loader);

/* Make a pstk_next that waits, or the next one that would wait, return EINTR. Thread: any; safe in
 * a signal handler. */
PSTK_API void pstk_interrupt(struct pstk_loader *loader);

/* Stop and join all threads, free, null *loader; in on_bad_sample do nothing.
 * Waits for reads that the storage has not answered, and for copies to the device, which may wait
 * for the caller's steps: a stream that hangs makes pstk_close hang. A thread that holds the lock
 * of Python's interpreter gives it up meanwhile. Leased batches stay valid until their release. The
 * last release waits for the work that uses them and frees, which on a device waits for all work
 * there. After a release during a capture that still lasts then, the device's memory stays
 * allocated until the process ends. Thread: as pstk_next. */
PSTK_API void pstk_close(struct pstk_loader **loader);

#ifdef __cplusplus
}
#endif
#endif
