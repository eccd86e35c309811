/* SPDX-License-Identifier: Apache-2.0 */
#include "command/consumer.h"

#include <stdlib.h>
#include <string.h>

#include "ui/message.h"

int consumer_open(struct consumer *consumer, struct pstk_loader *loader, uint32_t device,
                  struct pstk_error *err)
{
    memset(consumer, 0, sizeof *consumer);
    consumer->loader = loader;
    consumer->device = device;
    return pstk_stream_open(loader, &consumer->stream, err);
}

const void *consumer_rows(struct consumer *consumer, const struct pstk_batch *batch,
                          uint32_t tensor, uint64_t size, struct pstk_error *err)
{
    if (consumer->device == PSTK_HOST)
        return batch->tensors[tensor].data;
    if (size > consumer->capacity) {
        free(consumer->copy);
        consumer->copy = malloc(size);
        consumer->capacity = size;
        if (!consumer->copy)
            message_no_memory();
    }
    return pstk_batch_read(batch, tensor, consumer->copy, size, consumer->stream, err) < 0
               ? NULL
               : consumer->copy;
}

void consumer_warn(struct consumer *consumer, const struct pstk_batch *batch)
{
    if (consumer->warned || batch->n_palette_images == 0)
        return;
    consumer->warned = 1;
    message_say("warning: some images are PNG files with a palette. Loaders read pictures "
                "correctly, in the palette's colours, but not masks: resizing mixes colours, and "
                "class ids are lost. Pack masks in a field of kind mask, with their image "
                "(penstock.pack or penstock.Writer in Python)");
}

void consumer_close(struct consumer *consumer)
{
    if (consumer->loader)
        pstk_stream_close(consumer->loader, &consumer->stream);
    free(consumer->copy);
    memset(consumer, 0, sizeof *consumer);
}
