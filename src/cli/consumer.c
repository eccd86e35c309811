/* SPDX-License-Identifier: Apache-2.0 */
#include "consumer.h"

#include <stdlib.h>
#include <string.h>

#include "message.h"

int consumer_open(struct consumer *c, struct pstk_loader *loader, uint32_t device,
                  struct pstk_error *err)
{
    memset(c, 0, sizeof *c);
    c->loader = loader;
    c->device = device;
    return pstk_stream_open(loader, &c->stream, err);
}

const void *consumer_rows(struct consumer *c, const struct pstk_batch *batch, uint32_t tensor,
                          uint64_t size, struct pstk_error *err)
{
    if (c->device == PSTK_HOST)
        return batch->tensors[tensor].data;
    if (size > c->capacity) {
        free(c->copy);
        c->copy = malloc(size);
        c->capacity = size;
        if (!c->copy)
            message_no_memory();
    }
    return pstk_batch_read(batch, tensor, c->copy, size, c->stream, err) < 0 ? NULL : c->copy;
}

void consumer_warn(struct consumer *c, const struct pstk_batch *batch)
{
    if (c->warned || batch->n_palette_images == 0)
        return;
    c->warned = 1;
    message_say("warning: some images are PNG files with a palette. Pictures come right, in the "
                "palette's colours; masks do not: resizing mixes colours, and class ids are lost. "
                "Pack masks as arrays or bytes, not as images (penstock.pack in Python)");
}

void consumer_close(struct consumer *c)
{
    if (c->loader)
        pstk_stream_close(c->loader, &c->stream);
    free(c->copy);
    memset(c, 0, sizeof *c);
}
