/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/remade.h"

#include "image/image.h"
#include "image/png/remake.h"

#include <stdlib.h>
#include <string.h>

/* Return 1 for a damaged PNG file that Pillow loads; *info is filled in. */
static int is_wanted(const struct pstk_value *value, struct pstk__image_info *info)
{
    uint32_t damaged = PSTK_DAMAGE_NONE;
    if (!value->data || value->damaged != PSTK_DAMAGED_ACCEPT ||
        pstk__signature_find(value->data, value->size, NULL) != PSTK__SIGNATURE_PNG)
        return 0;
    (void)pstk_image_check_damaged(value->data, value->size, PSTK__MAX_PIXELS, &damaged, NULL);
    return damaged == PSTK_DAMAGE_REMADE &&
           pstk__image_probe(value->data, value->size, PSTK__MAX_PIXELS, info, NULL) == 0;
}

int pstk__remade_open(struct pstk__remade *remade, const struct pstk__schema *schema,
                      const struct pstk_value *values, const struct pstk__descriptions *pixels,
                      struct pstk_error *err)
{
    remade->values = values;
    remade->n = 0;
    for (uint32_t i = 0; i < schema->n_fields; i++) {
        struct pstk__image_info info;
        void *file;
        uint64_t size;
        if (schema->fields[i].kind != PSTK_FIELD_IMAGE ||
            pstk__descriptions_find(pixels, i, &info) || !is_wanted(&values[i], &info))
            continue;
        const int r = pstk__png_remake(values[i].data, values[i].size, &info, &file, &size, err);
        if (r < 0)
            return r;
        if (remade->n == 0)
            memcpy(remade->copies, values, schema->n_fields * sizeof *values);
        remade->values = remade->copies;
        remade->files[remade->n++] = file;
        remade->copies[i] = (struct pstk_value){.data = file, .size = size};
    }
    return 0;
}

void pstk__remade_close(struct pstk__remade *remade)
{
    for (uint32_t i = 0; i < remade->n; i++)
        free(remade->files[i]);
}
