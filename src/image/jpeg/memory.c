/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/memory.h"

#include <jerror.h>
#include <string.h>

/* libjpeg-turbo's SIMD code works on whole vectors, up to two of 32 bytes past the end of a row.
 * Its own manager rounds sample rows up to this size, and so must this one. */
#define ROW_ALIGN 64u

/* The coefficients of one component, held whole. The tag is libjpeg's, the members are ours. */
struct jvirt_barray_control {
    JBLOCKARRAY rows; /* largest number of rows that one access uses */
    JDIMENSION n_rows;
    JDIMENSION blocks_per_row;
    JDIMENSION max_access; /* most rows that one access uses */
    boolean zeroed;        /* 1: zeros were requested */
    struct jvirt_barray_control *next;
};

static struct pstk__jpeg_memory *manager(j_common_ptr cinfo)
{
    return (struct pstk__jpeg_memory *)(void *)cinfo->mem;
}

/* Allocate from the one pool. Tables that libjpeg would keep for later images (JPOOL_PERMANENT)
 * also end with the image, so that no image sees another's tables. */
static void *get(j_common_ptr cinfo, uint64_t size)
{
    void *p = size > SIZE_MAX / 2 ? NULL : pstk__arena_get(manager(cinfo)->arena, (size_t)size);
    if (!p)
        ERREXIT1(cinfo, JERR_OUT_OF_MEMORY, 0); /* does not return */
    return p;
}

static void *alloc_bytes(j_common_ptr cinfo, int pool, size_t size)
{
    (void)pool;
    return get(cinfo, size);
}

static JSAMPARRAY alloc_sarray(j_common_ptr cinfo, int pool, JDIMENSION row_size, JDIMENSION n_rows)
{
    (void)pool;
    uint64_t stride = ((uint64_t)row_size + ROW_ALIGN - 1) / ROW_ALIGN * ROW_ALIGN;
    JSAMPARRAY rows = get(cinfo, (uint64_t)n_rows * sizeof *rows);
    JSAMPROW samples = get(cinfo, stride * n_rows);
    for (JDIMENSION i = 0; i < n_rows; i++)
        rows[i] = samples + i * stride;
    return rows;
}

static JBLOCKARRAY alloc_barray(j_common_ptr cinfo, int pool, JDIMENSION n_blocks,
                                JDIMENSION n_rows)
{
    (void)pool;
    JBLOCKARRAY rows = get(cinfo, (uint64_t)n_rows * sizeof *rows);
    /* Both counts are below 2^17 (sides are below 2^16), so the product stays far below 2^64. */
    JBLOCKROW blocks = get(cinfo, (uint64_t)n_blocks * n_rows * sizeof *blocks);
    for (JDIMENSION i = 0; i < n_rows; i++)
        rows[i] = blocks + (size_t)i * n_blocks;
    return rows;
}

/* Refuse: only compression and two-pass colour quantisation request whole images of samples. */
static jvirt_sarray_ptr request_virt_sarray(j_common_ptr cinfo, int pool, boolean zeroed,
                                            JDIMENSION row_size, JDIMENSION n_rows,
                                            JDIMENSION max_access)
{
    (void)pool;
    (void)zeroed;
    (void)row_size;
    (void)n_rows;
    (void)max_access;
    ERREXIT(cinfo, JERR_NOTIMPL);
    return NULL;
}

static JSAMPARRAY access_virt_sarray(j_common_ptr cinfo, jvirt_sarray_ptr array, JDIMENSION first,
                                     JDIMENSION n_rows, boolean writable)
{
    (void)array;
    (void)first;
    (void)n_rows;
    (void)writable;
    ERREXIT(cinfo, JERR_BAD_VIRTUAL_ACCESS);
    return NULL;
}

static jvirt_barray_ptr request_virt_barray(j_common_ptr cinfo, int pool, boolean zeroed,
                                            JDIMENSION n_blocks, JDIMENSION n_rows,
                                            JDIMENSION max_access)
{
    (void)pool;
    struct pstk__jpeg_memory *memory = manager(cinfo);
    struct jvirt_barray_control *array = get(cinfo, sizeof *array);
    *array = (struct jvirt_barray_control){
        .n_rows = n_rows,
        .blocks_per_row = n_blocks,
        .max_access = max_access,
        .zeroed = zeroed,
        .next = memory->barrays,
    };
    memory->barrays = array;
    return array;
}

static void realize_virt_arrays(j_common_ptr cinfo)
{
    for (struct jvirt_barray_control *array = manager(cinfo)->barrays; array; array = array->next) {
        if (array->rows)
            continue;
        array->rows = alloc_barray(cinfo, JPOOL_IMAGE, array->blocks_per_row, array->n_rows);
        if (array->zeroed && array->n_rows > 0)
            memset(array->rows[0], 0,
                   (size_t)array->blocks_per_row * array->n_rows * sizeof(JBLOCK));
    }
}

static JBLOCKARRAY access_virt_barray(j_common_ptr cinfo, jvirt_barray_ptr array, JDIMENSION first,
                                      JDIMENSION n_rows, boolean writable)
{
    (void)writable;
    if (!array->rows || n_rows > array->max_access || n_rows > array->n_rows ||
        first > array->n_rows - n_rows)
        ERREXIT(cinfo, JERR_BAD_VIRTUAL_ACCESS);
    return array->rows + first;
}

static void free_pool(j_common_ptr cinfo, int pool)
{
    (void)cinfo; /* nothing to do: the decoder resets the arena */
    (void)pool;
}

/* Never called: the manager that made the object destroys it. */
static void self_destruct(j_common_ptr cinfo)
{
    (void)cinfo;
}

void pstk__jpeg_memory_init(struct pstk__jpeg_memory *memory, struct pstk__arena *arena)
{
    *memory = (struct pstk__jpeg_memory){
        .pub = {.alloc_small = alloc_bytes,
                .alloc_large = alloc_bytes,
                .alloc_sarray = alloc_sarray,
                .alloc_barray = alloc_barray,
                .request_virt_sarray = request_virt_sarray,
                .request_virt_barray = request_virt_barray,
                .realize_virt_arrays = realize_virt_arrays,
                .access_virt_sarray = access_virt_sarray,
                .access_virt_barray = access_virt_barray,
                .free_pool = free_pool,
                .self_destruct = self_destruct,
                .max_alloc_chunk = 1000000000L}, /* no limit, as in libjpeg */
        .arena = arena,
    };
}

void pstk__jpeg_memory_begin(struct pstk__jpeg_memory *memory)
{
    memory->barrays = NULL;
}

JBLOCKARRAY pstk__jpeg_memory_blocks(const struct pstk__jpeg_memory *memory, uint32_t index)
{
    const struct jvirt_barray_control *array = memory->barrays;
    for (uint32_t i = 0; i < index; i++)
        array = array->next;
    return array->rows;
}
