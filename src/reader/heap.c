/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/heap.h"

#include "format/format.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t whole_pages(uint64_t size)
{
    return (size + PSTK__PAGE_SIZE - 1) / PSTK__PAGE_SIZE * PSTK__PAGE_SIZE;
}

int pstk__heap_open(struct pstk__heap *heap, void *memory, uint64_t size, uint32_t n_pieces)
{
    /* n pieces leave at most n + 1 free ranges: before, between and after them. */
    *heap = (struct pstk__heap){.base = memory, .size = size, .n_free = size, .room = n_pieces + 1};
    heap->ranges = calloc(heap->room, sizeof *heap->ranges);
    if (!heap->ranges)
        return -ENOMEM;
    heap->ranges[0] = (struct pstk__heap_range){0, size};
    heap->n_ranges = 1;
    return 0;
}

void pstk__heap_close(struct pstk__heap *heap)
{
    free(heap->ranges);
    heap->ranges = NULL;
}

static void remove_range(struct pstk__heap *heap, uint32_t i)
{
    heap->n_ranges--;
    memmove(&heap->ranges[i], &heap->ranges[i + 1], (heap->n_ranges - i) * sizeof *heap->ranges);
}

uint8_t *pstk__heap_get(struct pstk__heap *heap, uint64_t size)
{
    size = whole_pages(size);
    for (uint32_t i = 0; i < heap->n_ranges; i++) {
        struct pstk__heap_range *range = &heap->ranges[i];
        if (range->size < size)
            continue;
        uint8_t *memory = heap->base + range->offset;
        range->offset += size;
        range->size -= size;
        if (range->size == 0)
            remove_range(heap, i);
        heap->n_free -= size;
        return memory;
    }
    return NULL;
}

/* Return the first range that lies after an offset. */
static uint32_t range_after(const struct pstk__heap *heap, uint64_t offset)
{
    uint32_t low = 0, high = heap->n_ranges;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (heap->ranges[middle].offset > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void pstk__heap_put(struct pstk__heap *heap, uint8_t *memory, uint64_t size)
{
    const uint64_t offset = (uint64_t)(memory - heap->base);
    size = whole_pages(size);
    const uint32_t i = range_after(heap, offset);
    struct pstk__heap_range *before = i > 0 ? &heap->ranges[i - 1] : NULL,
                            *after = i < heap->n_ranges ? &heap->ranges[i] : NULL;
    assert(!before || before->offset + before->size <= offset);
    assert(!after || offset + size <= after->offset);
    heap->n_free += size;
    const int joins_before = before && before->offset + before->size == offset;
    const int joins_after = after && offset + size == after->offset;
    if (joins_before) {
        before->size += size + (joins_after ? after->size : 0);
        if (joins_after)
            remove_range(heap, i);
        return;
    }
    if (joins_after) {
        after->offset = offset;
        after->size += size;
        return;
    }
    assert(heap->n_ranges < heap->room);
    memmove(&heap->ranges[i + 1], &heap->ranges[i], (heap->n_ranges - i) * sizeof *heap->ranges);
    heap->ranges[i] = (struct pstk__heap_range){offset, size};
    heap->n_ranges++;
}
