/* SPDX-License-Identifier: Apache-2.0 */
#include "export/array.h"

#include "base/little.h"
#include "record/kind.h"
#include "record/value.h"

#include <string.h>

#define NPY_ALIGN 64 /* alignment of the first element, which the format requires, bytes */
#define NPY_MAGIC 10 /* bytes of "\x93NUMPY", the version, and the length of the head as u16 */

static const struct {
    const char *name, *npy;
} dtypes[] = {
    [PSTK_U8] = {"uint8", "|u1"},    [PSTK_I8] = {"int8", "|i1"},
    [PSTK_U16] = {"uint16", "<u2"},  [PSTK_I16] = {"int16", "<i2"},
    [PSTK_U32] = {"uint32", "<u4"},  [PSTK_I32] = {"int32", "<i4"},
    [PSTK_U64] = {"uint64", "<u8"},  [PSTK_I64] = {"int64", "<i8"},
    [PSTK_F16] = {"float16", "<f2"}, [PSTK_F32] = {"float32", "<f4"},
    [PSTK_F64] = {"float64", "<f8"},
};

int pstk__array_is(const struct pstk_field *field)
{
    return field->kind == PSTK_FIELD_SCALAR ||
           (pstk__field_traits(field->kind) & PSTK__TRAIT_ARRAY) != 0;
}

uint64_t pstk__array_head(const struct pstk_field *field)
{
    return pstk__value_n_variable(field) > 1 ? field->n_dims * sizeof(uint64_t) : 0;
}

void pstk__array_of(struct pstk__array *array, const struct pstk_field *field, const void *data,
                    uint64_t size)
{
    const uint64_t head = pstk__array_head(field);
    *array = (struct pstk__array){.dtype = field->dtype, .n_dims = field->n_dims};
    if (field->n_dims)
        pstk__value_shape(field, data, size, array->shape);
    array->n = (size - head) / pstk_dtype_size(field->dtype);
    array->data = (const uint8_t *)data + head;
}

const char *pstk__array_dtype_name(uint32_t dtype)
{
    return dtypes[dtype].name;
}

int pstk__array_is_whole(uint32_t dtype)
{
    return dtype >= PSTK_U8 && dtype <= PSTK_I64;
}

void pstk__array_npy_head(struct pstk__bytes *to, uint32_t dtype, const uint64_t *shape,
                          uint32_t n_dims)
{
    const uint64_t begin = to->size;
    uint8_t length[2];
    pstk__bytes_put(to, "\x93NUMPY\x01\x00\x00\x00", NPY_MAGIC);
    pstk__bytes_format(to, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtypes[dtype].npy);
    for (uint32_t i = 0; i < n_dims; i++)
        pstk__bytes_format(to, "%llu,%s", (unsigned long long)shape[i], i + 1 < n_dims ? " " : "");
    pstk__bytes_text(to, "), }");
    while ((to->size - begin) % NPY_ALIGN != NPY_ALIGN - 1 && !to->failed)
        pstk__bytes_text(to, " ");
    pstk__bytes_text(to, "\n");
    if (to->failed)
        return;
    pstk__put16(length, (uint16_t)(to->size - begin - NPY_MAGIC)); /* below 64 KiB: 9 dimensions */
    memcpy(to->data + begin + NPY_MAGIC - 2, length, sizeof length);
}
