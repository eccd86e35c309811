/* SPDX-License-Identifier: Apache-2.0 */
#include "format/arrays/array.h"

#include "base/error.h"

#include <string.h>

#define ROW_MAX 0xffffffffull /* bytes of a value, as in a record */
#define ROWS_MAX (1ull << 40)

int pstk__array_measure(struct pstk__array *array, const char *name, struct pstk_error *err)
{
    if (array->n_dims == 0)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "%s: the array has no dimensions; must have one row per sample: save "
                          "array.reshape(1)",
                          name);
    uint64_t size = pstk_dtype_size(array->dtype);
    for (uint32_t d = 1; d < array->n_dims; d++) {
        if (array->shape[d] == 0)
            return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                              "%s: dimension %u is 0, so its rows are empty; remove the file, or "
                              "save it without this array",
                              name, d);
        if (array->shape[d] > ROW_MAX / size)
            return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                              "%s: a row is larger than 2^32-1 bytes, the most that a value may "
                              "have; split the array",
                              name);
        size *= array->shape[d];
    }
    if (array->shape[0] > ROWS_MAX || array->shape[0] > PSTK__ARRAY_FILE_MAX / size)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                          "%s has %llu rows of %llu bytes; must be at most 2^40 rows and 16 TiB: "
                          "split the array",
                          name, (unsigned long long)array->shape[0], (unsigned long long)size);
    array->row_size = size;
    array->end = array->offset + array->shape[0] * size;
    return 0;
}

int pstk__array_name_ok(const char *name, uint64_t size)
{
    static const char known[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    for (uint64_t i = 0; i < size; i++)
        if (!memchr(known, name[i], sizeof known - 1))
            return 0;
    return size >= 1 && size < PSTK_MAX_NAME;
}
