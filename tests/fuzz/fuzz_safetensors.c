/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_safetensors: any bytes as a .safetensors file, and as the head of one whose tensors have a
 * fitting size. What passes has tensors that fill the bytes after the head.
 */
#include "base/little.h"
#include "format/arrays/safetensors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct pstk__safetensors *safetensors, uint64_t begin, uint64_t file_size)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < safetensors->n; i++) {
        const struct pstk__array *array = &safetensors->tensors[i].array;
        uint64_t row = pstk_dtype_size(array->dtype);
        if (row == 0 || array->n_dims < 1 || array->n_dims > PSTK__ARRAY_MAX_DIMS)
            abort();
        for (uint32_t d = 1; d < array->n_dims; d++)
            row *= array->shape[d];
        if (row != array->row_size || array->offset < begin || array->end > file_size ||
            array->end != array->offset + array->shape[0] * row)
            abort();
        if (!pstk__array_name_ok(safetensors->tensors[i].name,
                                 strlen(safetensors->tensors[i].name)))
            abort();
        sum += array->end - array->offset;
    }
    if (sum != file_size - begin)
        abort();
}

static void parse(const uint8_t *head, uint64_t head_size, uint64_t file_size)
{
    struct pstk__safetensors safetensors;
    struct pstk_error err;
    char *exact = malloc(head_size ? head_size : 1);
    if (!exact)
        return;
    if (head_size)
        memcpy(exact, head, head_size);
    pstk_error_init(&err, sizeof err);
    const int rc =
        pstk__safetensors_parse(&safetensors, exact, head_size, file_size, "x.safetensors", &err);
    free(exact);
    if (rc < 0 && (rc != err.code || err.message[0] == 0))
        abort();
    if (rc == 0)
        check(&safetensors, 8 + head_size, file_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t head_size;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const int rc = pstk__safetensors_head_size(&head_size, data, size, size, "x.safetensors", &err);
    if (rc < 0 && (rc != err.code || err.message[0] == 0))
        abort();
    if (rc == 0)
        parse(data + 8, head_size, size);
    if (size >= 2) { /* the first two bytes are the size of the tensors */
        const uint64_t body = pstk__get16(data);
        parse(data + 2, size - 2, 8 + (size - 2) + body);
    }
    return 0;
}
