/* SPDX-License-Identifier: Apache-2.0 */
#include "format/form.h"

#include "base/error.h"
#include "image/image.h"
#include "record/translate.h"
#include "record/utf8.h"

#include <stdio.h>
#include <string.h>

/* Suffixes as webdataset/autodecode.py and its decoders have them; all others are bytes. */
static const struct {
    const char *suffix;
    uint8_t kind, dtype, form;
} suffixes[] = {
    {"jpg", PSTK_FIELD_IMAGE, 0, PSTK__FORM_PLAIN},
    {"jpeg", PSTK_FIELD_IMAGE, 0, PSTK__FORM_PLAIN},
    {"png", PSTK_FIELD_IMAGE, 0, PSTK__FORM_PLAIN},
    {"cls", PSTK_FIELD_SCALAR, PSTK_I64, PSTK__FORM_TEXT_INTEGER},
    {"cls2", PSTK_FIELD_SCALAR, PSTK_I64, PSTK__FORM_TEXT_INTEGER},
    {"index", PSTK_FIELD_SCALAR, PSTK_I64, PSTK__FORM_TEXT_INTEGER},
    {"inx", PSTK_FIELD_SCALAR, PSTK_I64, PSTK__FORM_TEXT_INTEGER},
    {"id", PSTK_FIELD_SCALAR, PSTK_I64, PSTK__FORM_TEXT_INTEGER},
    {"txt", PSTK_FIELD_UTF8, 0, PSTK__FORM_PLAIN},
    {"text", PSTK_FIELD_UTF8, 0, PSTK__FORM_PLAIN},
    {"transcript", PSTK_FIELD_UTF8, 0, PSTK__FORM_PLAIN},
    {"json", PSTK_FIELD_UTF8, 0, PSTK__FORM_PLAIN},
    {"jsn", PSTK_FIELD_UTF8, 0, PSTK__FORM_PLAIN},
};

void pstk__form_by_suffix(struct pstk__index_field *field)
{
    const char *dot = strrchr(field->field.name, '.');
    const char *last = dot ? dot + 1 : field->field.name;
    field->field.kind = PSTK_FIELD_BYTES;
    field->field.dtype = 0;
    field->form = PSTK__FORM_PLAIN;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (strcmp(last, suffixes[i].suffix) == 0) {
            field->field.kind = suffixes[i].kind;
            field->field.dtype = suffixes[i].dtype;
            field->form = suffixes[i].form;
        }
}

static int is_integer(uint32_t dtype)
{
    return pstk_dtype_size(dtype) > 0 && dtype != PSTK_F16 && dtype != PSTK_F32 &&
           dtype != PSTK_F64 && dtype != PSTK_BF16;
}

int pstk__form_retype(struct pstk__index_field *field, const struct pstk_field *wanted,
                      struct pstk_error *err)
{
    const char *name = field->field.name;
    switch (wanted->kind) {
    case PSTK_FIELD_SCALAR:
        if (!is_integer(wanted->dtype))
            return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                              "field %s: a scalar is read from text, and must be of an integer "
                              "dtype; read others as utf8 or bytes",
                              name);
        field->form = PSTK__FORM_TEXT_INTEGER;
        break;
    case PSTK_FIELD_BYTES:
    case PSTK_FIELD_UTF8:
    case PSTK_FIELD_IMAGE:
    case PSTK_FIELD_NDARRAY:
        field->form = PSTK__FORM_PLAIN;
        break;
    default:
        return pstk__fail(
            err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
            "field %s: its kind is %u; must be bytes, utf8, image, scalar or ndarray, "
            "which files hold: for others pack the data set",
            name, wanted->kind);
    }
    field->field = *wanted;
    field->field.codec = PSTK_CODEC_NONE;
    return 0;
}

static uint32_t codec_of(const struct pstk__index_field *field)
{
    return field->form == PSTK__FORM_TEXT_INTEGER ? PSTK__FOREIGN_TEXT_INTEGER : PSTK_CODEC_NONE;
}

uint64_t pstk__form_plain_size(const struct pstk__index_field *field, uint64_t size)
{
    const uint32_t codec = codec_of(field);
    if (codec == PSTK_CODEC_NONE)
        return size;
    const int64_t plain = pstk__translated_size(codec, &field->field, NULL, size);
    return plain < 0 ? 0 : (uint64_t)plain;
}

/* Set what the header of an image says. */
static const char *view_image(struct pstk__field_view *view, const uint8_t *data, uint64_t size,
                              char text[160])
{
    struct pstk__image_info info;
    struct pstk_error why;
    pstk_error_init(&why, sizeof why);
    if (pstk__image_probe(data, size, UINT64_MAX, &info, &why) < 0) {
        snprintf(text, 160, "%.150s", why.message);
        return text;
    }
    view->encoding = (uint8_t)info.encoding;
    view->channels = info.channels;
    view->bit_depth = info.bit_depth;
    view->width = info.width;
    view->height = info.height;
    view->flags = info.has_palette ? PSTK__FIELD_PALETTE : 0;
    return NULL;
}

const char *pstk__form_view(struct pstk__field_view *view, const struct pstk__index_field *field,
                            const uint8_t *data, uint64_t size, char text[160])
{
    *view = (struct pstk__field_view){.data = data,
                                      .stored_size = (uint32_t)size,
                                      .plain_size = (uint32_t)size,
                                      .codec = (uint8_t)codec_of(field),
                                      .checksum = PSTK__CHECKSUM_NONE};
    if (view->codec != PSTK_CODEC_NONE) {
        const int64_t plain = pstk__translated_size(view->codec, &field->field, data, size);
        view->plain_size = plain < 0 ? 0 : (uint32_t)plain;
    }
    if (field->field.kind == PSTK_FIELD_IMAGE)
        return view_image(view, data, size, text);
    if (field->field.kind == PSTK_FIELD_UTF8) {
        const uint64_t end = pstk__utf8_end(data, size);
        if (end == size)
            return NULL;
        snprintf(text, 160, "is not UTF-8 from byte %llu on: read it as bytes",
                 (unsigned long long)end);
        return text;
    }
    return NULL;
}
