/* SPDX-License-Identifier: Apache-2.0 */
/* types: the version, and names and sizes of the element types. Pure. */
#include <penstock/types.h>

#include <string.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *pstk_version(void)
{
    return TEXT(PSTK_VERSION_MAJOR) "." TEXT(PSTK_VERSION_MINOR) "." TEXT(PSTK_VERSION_PATCH);
}

uint32_t pstk_version_number(void)
{
    return PSTK_VERSION_NUMBER;
}

struct dtype_info {
    const char *name;
    uint32_t size; /* bytes of one element */
};

static const struct dtype_info dtypes[] = {
    [PSTK_U8] = {"u8", 1},     [PSTK_I8] = {"i8", 1},   [PSTK_U16] = {"u16", 2},
    [PSTK_I16] = {"i16", 2},   [PSTK_U32] = {"u32", 4}, [PSTK_I32] = {"i32", 4},
    [PSTK_U64] = {"u64", 8},   [PSTK_I64] = {"i64", 8}, [PSTK_F16] = {"f16", 2},
    [PSTK_BF16] = {"bf16", 2}, [PSTK_F32] = {"f32", 4}, [PSTK_F64] = {"f64", 8},
};

#define N_DTYPES (sizeof dtypes / sizeof dtypes[0])

uint32_t pstk_dtype_size(uint32_t dtype)
{
    return dtype < N_DTYPES ? dtypes[dtype].size : 0;
}

const char *pstk_dtype_name(uint32_t dtype)
{
    return dtype < N_DTYPES && dtypes[dtype].name ? dtypes[dtype].name : "?";
}

uint32_t pstk_dtype_parse(const char *name)
{
    if (!name)
        return 0;
    for (uint32_t i = 0; i < N_DTYPES; i++)
        if (dtypes[i].name && strcmp(dtypes[i].name, name) == 0)
            return i;
    return 0;
}
