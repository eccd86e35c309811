/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/scalars.h"

#include "base/cast.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define AT_ONCE 65536u /* values read at once */

#define FAIL(code, fmt, ...)                                                                       \
    pstk__fail(err, code, PSTK_STAGE_OPEN, "%s: " fmt, setting, ##__VA_ARGS__)

static int find_column(const struct pstk_dataset *dataset, const char *name,
                       struct pstk_column_info *info)
{
    for (uint32_t i = 0; pstk_dataset_get_column_info(dataset, i, info) == 0; i++)
        if (strcmp(info->name, name) == 0)
            return 1;
    return 0;
}

int pstk__scalars_open(struct pstk__scalars *scalars, struct pstk_dataset *dataset,
                       const char *setting, const char *name, uint64_t n, struct pstk_error *err)
{
    struct pstk_column_info info = {.size = sizeof info};
    if (!name || !name[0])
        return FAIL(PSTK_EINVAL, "column: value is %s; must be the name of a side column",
                    name ? "empty" : "NULL");
    if (!find_column(dataset, name, &info)) {
        struct pstk_error missing; /* message that lists the existing columns */
        uint8_t nothing = 0;
        pstk_error_init(&missing, sizeof missing);
        pstk_dataset_read_column(dataset, name, 0, 0, &nothing, 1, &missing);
        return FAIL(PSTK_EINVAL, "%.700s", missing.message);
    }
    *scalars = (struct pstk__scalars){
        .dataset = dataset, .name = name, .dtype = info.dtype, .n = n, .room = NULL};
    scalars->room = malloc(AT_ONCE * sizeof(uint64_t));
    return scalars->room ? 0 : FAIL(PSTK_ENOMEM, "no memory to read column %s", name);
}

int pstk__scalars_are_whole(const struct pstk__scalars *scalars)
{
    return scalars->dtype >= PSTK_U8 && scalars->dtype <= PSTK_I64;
}

int pstk__scalars_next(struct pstk__scalars *scalars, const uint8_t **value, struct pstk_error *err)
{
    const uint32_t size = pstk_dtype_size(scalars->dtype);
    if (scalars->next == scalars->first + scalars->n_room) {
        const uint64_t left = scalars->n - scalars->next;
        scalars->first = scalars->next;
        scalars->n_room = left < AT_ONCE ? left : AT_ONCE;
        const int r =
            pstk_dataset_read_column(scalars->dataset, scalars->name, scalars->first,
                                     scalars->n_room, scalars->room, scalars->n_room * size, err);
        if (r < 0)
            return r;
    }
    *value = scalars->room + (scalars->next++ - scalars->first) * size;
    return 0;
}

int64_t pstk__scalars_whole(const struct pstk__scalars *scalars, const uint8_t *value, int *fits)
{
    int64_t whole = 0;
    *fits = 1;
    if (scalars->dtype != PSTK_U64) {
        pstk__cast(&whole, PSTK_I64, value, scalars->dtype);
        return whole;
    }
    memcpy(&whole, value, sizeof whole); /* the integer types are two's complement */
    *fits = whole >= 0;
    return whole;
}

double pstk__scalars_real(const struct pstk__scalars *scalars, const uint8_t *value)
{
    int64_t whole = 0;
    uint64_t large = 0;
    double real = 0;
    if (scalars->dtype == PSTK_U64) {
        memcpy(&large, value, sizeof large);
        return (double)large;
    }
    if (scalars->dtype == PSTK_I64) {
        memcpy(&whole, value, sizeof whole);
        return (double)whole;
    }
    pstk__cast(&real, PSTK_F64, value, scalars->dtype);
    return real;
}

void pstk__scalars_close(struct pstk__scalars *scalars)
{
    free(scalars->room);
    scalars->room = NULL;
}
