/* SPDX-License-Identifier: Apache-2.0 */
/* consumer: the command in a trainer's place: the stream on which it uses batches, and what they
 * hold, where it can look at it. */
#ifndef PSTK_CLI_CONSUMER_H
#define PSTK_CLI_CONSUMER_H

#include <penstock/penstock.h>

struct consumer {
    struct pstk_loader *loader; /* borrowed */
    uint32_t device;            /* enum pstk_device_kind of the loader */
    void *stream;               /* owned; NULL on the host */
    void *copy;                 /* owned: of a tensor on a device */
    uint64_t capacity;          /* bytes of it */
    int warned;                 /* 1: consumer_warn has printed */
};

/* 0, or a negative result with the error. */
int consumer_open(struct consumer *consumer, struct pstk_loader *loader, uint32_t device,
                  struct pstk_error *err);
/* The first `size` bytes of a tensor of a leased batch, until the batch is released or the next
 * call; NULL with an error. */
const void *consumer_rows(struct consumer *consumer, const struct pstk_batch *batch,
                          uint32_t tensor, uint64_t size, struct pstk_error *err);
/* Print a warning at the first batch that has images from PNG files with a palette. */
void consumer_warn(struct consumer *consumer, const struct pstk_batch *batch);
/* Wait for all that is in the stream; before the loader is closed. */
void consumer_close(struct consumer *consumer);

#endif
