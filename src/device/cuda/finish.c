/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/finish.h"

#include <string.h>

#define TABLE_SIZE (3u * 256u * sizeof(float)) /* of the widest dtype; 16-bit ones leave half */

uint64_t pstk__cuda_finish_size(const struct pstk__plan *plan)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < plan->n_outputs; i++)
        size += pstk__output_has_flips(&plan->outputs[i]) ? TABLE_SIZE : 0;
    return size;
}

static void init_image(struct pstk__cuda_output *to, const struct pstk__output *o, uint32_t n_rows)
{
    to->is_image = 1;
    to->pixels = (struct pstk__cuda_pixels){.n_rows = n_rows,
                                            .height = o->height,
                                            .width = o->width,
                                            .dtype = o->settings.dtype,
                                            .layout = o->settings.layout,
                                            .exact = o->line.exact};
    memcpy(to->pixels.scale, o->line.scale, sizeof to->pixels.scale);
    memcpy(to->pixels.offset, o->line.offset, sizeof to->pixels.offset);
}

cudaError_t pstk__cuda_finish_init(struct pstk__cuda_finish *f, const struct pstk__plan *plan,
                                   const struct pstk__layout *layout, uint8_t *tables,
                                   cudaStream_t stream)
{
    cudaError_t code = cudaSuccess;
    *f = (struct pstk__cuda_finish){0};
    for (uint32_t i = 0; i < plan->n_outputs && code == cudaSuccess; i++) {
        const struct pstk__output *o = &plan->outputs[i];
        if (!o->deferred)
            continue;
        struct pstk__cuda_output *to = &f->outputs[f->n_outputs++];
        to->rows = layout->rows[i];
        to->flips = layout->flips[i];
        to->final = layout->final[i];
        if (!pstk__output_has_flips(o)) {
            to->cast = (struct pstk__cuda_cast){.n = o->row_size / pstk_dtype_size(o->row_dtype) *
                                                     plan->batch_size,
                                                .to = o->settings.dtype,
                                                .from = o->row_dtype};
            continue;
        }
        init_image(to, o, plan->batch_size);
        to->pixels.table = tables;
        code =
            cudaMemcpyAsync(tables, o->table, (size_t)3 * 256 * pstk_dtype_size(o->settings.dtype),
                            cudaMemcpyHostToDevice, stream);
        tables += TABLE_SIZE;
    }
    return code == cudaSuccess ? cudaStreamSynchronize(stream) : code;
}

cudaError_t pstk__cuda_finish_launch(const struct pstk__cuda_finish *f, const uint8_t *arrival,
                                     uint8_t *slot, uint32_t n_valid, cudaStream_t stream)
{
    cudaError_t code = cudaSuccess;
    for (uint32_t i = 0; i < f->n_outputs && code == cudaSuccess; i++) {
        const struct pstk__cuda_output *o = &f->outputs[i];
        if (o->is_image) {
            struct pstk__cuda_pixels p = o->pixels;
            p.in = arrival + o->rows;
            p.out = slot + o->final;
            p.flips = arrival + o->flips;
            p.n_valid = n_valid;
            code = pstk__cuda_pixels(f->module, &p, stream);
        } else {
            struct pstk__cuda_cast c = o->cast;
            c.in = arrival + o->rows;
            c.out = slot + o->final;
            code = pstk__cuda_cast(f->module, &c, stream);
        }
    }
    return code;
}
