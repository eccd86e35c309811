/* SPDX-License-Identifier: Apache-2.0 */
#include "record/field.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "image/planes/file.h"
#include "record/translate.h"

uint64_t pstk__field_scratch(const struct pstk__field_view *v)
{
    return v->codec == PSTK_CODEC_PLANES
               ? pstk__planes_decode_scratch(v->width, v->height, UINT64_MAX, v->plain_size)
               : 0;
}

int pstk__field_check_pixels(const struct pstk__record *record, uint32_t i, uint64_t max_pixels,
                             struct pstk_error *err)
{
    const struct pstk__field_view *v = &record->fields[i];
    if ((uint64_t)v->width * v->height <= max_pixels)
        return 0;
    return pstk__record_fail(record, i, PSTK_EFBIG, PSTK_STAGE_DECODE, err,
                             "image of %u x %u pixels is over the limit of %llu pixels; if it is "
                             "really this large, raise max_pixels of the loader that reads it",
                             v->width, v->height, (unsigned long long)max_pixels);
}

/* Translate a value of another format to plain bytes. */
static int translate(const struct pstk__record *record, uint32_t i,
                     const struct pstk__field_reading *reading, const uint8_t **plain,
                     struct pstk_error *err)
{
    const struct pstk__field_view *v = &record->fields[i];
    struct pstk__field_memory field_memory;
    char text[160];
    const int rc = reading->memory(reading->user, record, i, &field_memory, err);
    if (rc < 0)
        return rc;
    const char *wrong = pstk__translate(v->codec, &record->schema->fields[i], v->data,
                                        v->stored_size, field_memory.plain, v->plain_size, text);
    if (wrong)
        return pstk__record_fail(record, i, PSTK_EBADMSG, PSTK_STAGE_RECORD, err, "%s", wrong);
    *plain = field_memory.plain;
    return 0;
}

/* Decompress the stored bytes, which were checked, and check the result. */
static int decompress(const struct pstk__record *record, uint32_t i,
                      const struct pstk__field_reading *reading, const uint8_t **plain,
                      struct pstk_error *err)
{
    const struct pstk__field_view *v = &record->fields[i];
    struct pstk__field_memory field_memory;
    struct pstk_error why;
    int rc = pstk__field_check_pixels(record, i, reading->max_pixels, err);
    if (rc == 0)
        rc = reading->memory(reading->user, record, i, &field_memory, err);
    if (rc < 0)
        return rc;
    pstk_error_init(&why, sizeof why);
    rc = v->codec == PSTK_CODEC_PLANES
             ? pstk__planes_decode(field_memory.decoder,
                                   &(const struct pstk__planes_field){
                                       v->data, v->stored_size, v->width, v->height, v->plain_size},
                                   field_memory.plain, field_memory.scratch, &why)
             : pstk__codec_decode(field_memory.decoder, v->codec, field_memory.dictionary, v->data,
                                  v->stored_size, field_memory.plain, v->plain_size, &why);
    if (rc < 0)
        return pstk__record_fail(record, i, rc, PSTK_STAGE_RECORD, err, "%.400s", why.message);
    const uint32_t crc = pstk__crc32c(0, field_memory.plain, v->plain_size);
    if (crc != v->plain_crc)
        return pstk__record_fail(record, i, PSTK_EBADMSG, PSTK_STAGE_RECORD, err,
                                 "decompresses to bytes whose checksum is %08x; the record head "
                                 "says %08x",
                                 crc, v->plain_crc);
    *plain = field_memory.plain;
    return 0;
}

int pstk__field_read(const struct pstk__record *record, uint32_t i,
                     const struct pstk__field_reading *reading, const uint8_t **plain,
                     struct pstk_error *err)
{
    const struct pstk__field_view *v = &record->fields[i];
    const int rc = pstk__record_check_field(record, i, err);
    if (rc < 0)
        return rc;
    if (pstk__codec_is_foreign(v->codec))
        return translate(record, i, reading, plain, err);
    if (v->codec != PSTK_CODEC_NONE && v->checksum != PSTK__CHECKSUM_HEAD)
        return decompress(record, i, reading, plain, err);
    *plain = v->data;
    return 0;
}
