/* SPDX-License-Identifier: Apache-2.0 */
#include "record/field.h"

#include "base/error.h"
#include "image/image.h"
#include "image/planes/file.h"

int pstk__field_check(const struct pstk__field_view *v, uint64_t max_pixels, struct pstk_error *err)
{
    if (v->encoding == PSTK_ENCODING_NONE || v->codec == PSTK_CODEC_NONE)
        return 0;
    return pstk__image_check_size("image", v->width, v->height, max_pixels, err);
}

uint64_t pstk__field_scratch(const struct pstk__field_view *v)
{
    return v->codec == PSTK_CODEC_PLANES
               ? pstk__planes_decode_scratch(v->width, v->height, UINT64_MAX, v->plain_size)
               : 0;
}

int pstk__field_decode(struct pstk__decoder *d, const struct pstk__field_view *v,
                       const struct pstk__dictionary *dictionary, struct pstk__arena *scratch,
                       void *out, struct pstk_error *err)
{
    if (v->codec != PSTK_CODEC_PLANES)
        return pstk__codec_decode(d, v->codec, dictionary, v->data, v->stored_size, out,
                                  v->plain_size, err);
    if (scratch == NULL)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_RECORD, "no scratch memory for planes");
    return pstk__planes_decode(d, v->data, v->stored_size, v->width, v->height, out, v->plain_size,
                               scratch, err);
}
