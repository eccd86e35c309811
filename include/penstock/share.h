/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/share.h - batches that several objects hold, and streams for other languages.
 *
 * A share is a leased batch with a reference count, for languages whose objects live as long as
 * they like. The slot goes back to the loader when the last reference ends. The loader overwrites
 * the slot only after this work on the device has ended:
 *   - the work that is then in the stream that the batch was shared on
 *   - the work that is then in the streams given to pstk_share_use
 *   - the work that each call of pstk_batch_use_stream found in its stream
 *   - with settings.device.current_stream, the work that is then in the stream that this function
 *     returns in the thread that ends the last reference
 *
 *   pstk_next -> lease -> pstk_share_open -> share -> pstk_share_tensor -> DLManagedTensor
 *                                              |                                  |
 *                                       pstk_share_unref                       deleter
 *                                              '------- last one: slot is free ---'
 *
 * Any thread may call the functions, except from a function that CUDA calls. In the child of a fork
 * ending a reference does nothing to the slot.
 */
#ifndef PENSTOCK_SHARE_H
#define PENSTOCK_SHARE_H

#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pstk_loader;
struct pstk_batch;
struct pstk_share; /* opaque */
struct DLManagedTensor;

/* ---- shares -------------------------------------------------------------------------------- */

/* Share a leased batch. Takes the lease *batch and nulls it; returns owned in *out, with one
 * reference. EINVAL: the stream is cudaStreamPerThread, which would be another stream in the thread
 * that ends the last reference. */
PSTK_API int pstk_share_open(struct pstk_share **out, struct pstk_batch **batch, void *stream,
                             struct pstk_error *err);
/* Return the batch, which is valid while the caller holds a reference. */
PSTK_API const struct pstk_batch *pstk_share_batch(const struct pstk_share *share);
/* Add a reference. */
PSTK_API void pstk_share_ref(struct pstk_share *share);
/* End a reference and null *share; NULL is fine. */
PSTK_API void pstk_share_unref(struct pstk_share **share);

/* Let one more stream use the batch. The stream waits for the batch now. When the last reference
 * ends, the slot waits for the stream's work at that time; the stream must live until then. A share
 * takes up to 64 such streams; the stream of pstk_share_open is extra. Allocates nothing. EINVAL:
 * cudaStreamPerThread, or a stream of another device. EFBIG: the share has 64; let one of those
 * wait for the work of this one, before the last reference ends. */
PSTK_API int pstk_share_use(struct pstk_share *share, void *stream, struct pstk_error *err);

/* Make a DLPack tensor (https://dmlc.github.io/dlpack) from tensor number `tensor` of the batch. It
 * holds a reference until its deleter is called, from any thread. Returns owned in *out. */
PSTK_API int pstk_share_tensor(struct pstk_share *share, uint32_t tensor,
                               struct DLManagedTensor **out, struct pstk_error *err);

/* ---- shares as Python objects -------------------------------------------------------------- */

/*
 * For Python packages without a compiled module: the interpreter calls a C function when the object
 * is collected, and that ends the reference. Both functions return a new PyCapsule. On failure they
 * return NULL with *err filled and a Python exception set: MemoryError, or RuntimeError for a
 * result of the functions above. In a process without an interpreter the result is ENOTSUP, with no
 * exception.
 */

/* Make a capsule "penstock.share" of a leased batch. Takes the lease *batch and nulls it. After a
 * MemoryError the lease has ended too, unless *batch is still set.
 * Thread: one that holds the interpreter's lock. */
PSTK_API void *pstk_capsule_share(struct pstk_batch **batch, void *stream, struct pstk_error *err);
/* Make a capsule "dltensor", of Python's DLPack protocol, from a tensor of the batch. Thread: one
 * that holds the interpreter's lock. */
PSTK_API void *pstk_capsule_tensor(struct pstk_share *share, uint32_t tensor,
                                   struct pstk_error *err);

/* ---- streams, for programs that do not use the device's own API ---------------------------- */

/* Make a stream of the loader's device that waits for no other stream. Returns owned in *stream.
 * Close it after the last batch that was leased on it and before the loader; or leave it to the
 * library, which closes it after the loader and its last batch. On the host the stream is NULL, and
 * the functions below take NULL. */
PSTK_API int pstk_stream_open(struct pstk_loader *loader, void **stream, struct pstk_error *err);
/* Wait for the stream's work, free the stream, null *stream. */
PSTK_API void pstk_stream_close(struct pstk_loader *loader, void **stream);
/* Keep the stream busy for ns nanoseconds, as a training step does; on the host, keep the caller
 * busy. On a device one multiprocessor counts time and touches no memory: copies run as on an idle
 * device, while a real step slows them. */
PSTK_API int pstk_stream_spin(struct pstk_loader *loader, void *stream, uint64_t ns,
                              struct pstk_error *err);

#ifdef __cplusplus
}
#endif
#endif
