/* SPDX-License-Identifier: Apache-2.0 */
/* consumer: acts as a trainer: the stream on which it uses batches, and the bytes of tensors that
 * it can read. */
#ifndef PSTK_CLI_CONSUMER_H
#define PSTK_CLI_CONSUMER_H

#include <penstock/penstock.h>

struct consumer {
    struct pstk_loader *loader; /* borrowed */
    uint32_t device;            /* enum pstk_device_kind of the loader */
    void *stream;               /* owned; NULL on the host */
    void *copy;                 /* owned; the host's copy of a device tensor */
    uint64_t capacity;          /* bytes of copy */
    int warned;                 /* 1: consumer_warn has printed its warning */
};

/* Open a consumer. Returns 0, or a negative result with err filled in. */
int consumer_open(struct consumer *consumer, struct pstk_loader *loader, uint32_t device,
                  struct pstk_error *err);
/* Return the first `size` bytes of a tensor of a leased batch. They are valid until the batch is
 * released or the next call. NULL with err filled in on failure. */
const void *consumer_rows(struct consumer *consumer, const struct pstk_batch *batch,
                          uint32_t tensor, uint64_t size, struct pstk_error *err);
/* Print a warning at the first batch that has images from PNG files with a palette. */
void consumer_warn(struct consumer *consumer, const struct pstk_batch *batch);
/* Wait for all work on the stream. Call before the loader is closed. */
void consumer_close(struct consumer *consumer);

#endif
