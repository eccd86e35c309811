/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/finish.h"

#include <string.h>

/* Return the bytes of device memory for an image's table, in the widest dtype, so that every table
 * begins at a multiple of 256. */
static uint64_t table_size(const struct pstk__output *o)
{
    return pstk__output_final(o)->channels * UINT64_C(256) * sizeof(float);
}

uint64_t pstk__cuda_finish_size(const struct pstk__plan *plan)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < plan->n_outputs; i++)
        size += pstk__output_has_flips(&plan->outputs[i]) ? table_size(&plan->outputs[i]) : 0;
    return size;
}

static void init_image(struct pstk__cuda_output *to, const struct pstk__output *o, uint32_t n_rows)
{
    const struct pstk__row_layout *out = pstk__output_final(o);
    to->is_image = 1;
    to->pixels = (struct pstk__cuda_pixels){.n_rows = n_rows,
                                            .height = o->image.height,
                                            .width = o->image.width,
                                            .channels = out->channels,
                                            .dtype = out->dtype,
                                            .layout = out->layout,
                                            .exact = o->image.line.exact};
    memcpy(to->pixels.scale, o->image.line.scale, sizeof to->pixels.scale);
    memcpy(to->pixels.offset, o->image.line.offset, sizeof to->pixels.offset);
}

cudaError_t pstk__cuda_finish_init(struct pstk__cuda_finish *finish, const struct pstk__plan *plan,
                                   const struct pstk__layout *layout, uint8_t *tables,
                                   cudaStream_t stream)
{
    cudaError_t code = cudaSuccess;
    *finish = (struct pstk__cuda_finish){0};
    for (uint32_t i = 0; i < plan->n_outputs && code == cudaSuccess; i++) {
        const struct pstk__output *o = &plan->outputs[i];
        const struct pstk__pass *pass = pstk__output_device_pass(o);
        if (!pass)
            continue;
        struct pstk__cuda_output *to = &finish->outputs[finish->n_outputs++];
        to->rows = layout->rows[i];
        to->flips = layout->flips[i];
        to->final = layout->final[i];
        if (pass->what == PSTK__PASS_CAST) {
            to->cast = (struct pstk__cuda_cast){
                .n = pass->in.row_size / pstk_dtype_size(pass->in.dtype) * plan->batch_size,
                .to = pass->out.dtype,
                .from = pass->in.dtype};
            continue;
        }
        init_image(to, o, plan->batch_size);
        to->pixels.table = tables;
        code = cudaMemcpyAsync(tables, o->image.table,
                               (size_t)pass->out.channels * 256 * pstk_dtype_size(pass->out.dtype),
                               cudaMemcpyHostToDevice, stream);
        tables += table_size(o);
    }
    return code == cudaSuccess ? cudaStreamSynchronize(stream) : code;
}

cudaError_t pstk__cuda_finish_launch(const struct pstk__cuda_finish *finish, const uint8_t *arrival,
                                     uint8_t *slot, uint32_t n_valid, cudaStream_t stream)
{
    cudaError_t code = cudaSuccess;
    for (uint32_t i = 0; i < finish->n_outputs && code == cudaSuccess; i++) {
        const struct pstk__cuda_output *output = &finish->outputs[i];
        if (output->is_image) {
            struct pstk__cuda_pixels pixels = output->pixels;
            pixels.in = arrival + output->rows;
            pixels.out = slot + output->final;
            pixels.flips = arrival + output->flips;
            pixels.n_valid = n_valid;
            code = pstk__cuda_pixels(finish->module, &pixels, stream);
        } else {
            struct pstk__cuda_cast cast = output->cast;
            cast.in = arrival + output->rows;
            cast.out = slot + output->final;
            code = pstk__cuda_cast(finish->module, &cast, stream);
        }
    }
    return code;
}
