/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tfrecord/defaults.h"

#include "base/error.h"
#include "format/tfrecord/example.h"
#include "format/tfrecord/frame.h"
#include "record/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return why a field can have no default, as a phrase; NULL: it can. */
static const char *refused(const struct pstk__index_field *field)
{
    if (field->coding == PSTK__TFRECORD_WHOLE)
        return "every record has it";
    if (field->field.kind == PSTK_FIELD_NDARRAY && pstk__value_n_variable(&field->field))
        return "it is variable, and empty in records without it";
    switch (field->field.kind) {
    case PSTK_FIELD_SCALAR:
    case PSTK_FIELD_NDARRAY:
    case PSTK_FIELD_BYTES:
    case PSTK_FIELD_UTF8:
        return NULL;
    case PSTK_FIELD_IMAGE:
        return "it is an image; read it as bytes";
    default:
        return "it is a list, and empty in records without it";
    }
}

static int check(const struct pstk_default *given, const struct pstk__inferred_schema *found,
                 struct pstk_error *err)
{
    char text[160];
    const int i = pstk__index_find_field(found, given->name);
    if (i < 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "fields: value has a default for '%.63s'; must be a field of the records",
                          given->name);
    const struct pstk_field *field = &found->fields[i].field;
    const char *why = refused(&found->fields[i]);
    if (why)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "fields: value has a default for '%s'; must be without one: %s",
                          field->name, why);
    const char *wrong = given->size > UINT32_MAX
                            ? "more than 4 GiB"
                            : pstk__value_check(field, given->data, given->size, text);
    return wrong ? pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "fields: value has a wrong default for '%s': %s", field->name, wrong)
                 : 0;
}

static uint64_t aligned(uint64_t size)
{
    return (size + 7) / 8 * 8;
}

int pstk__tfrecord_defaults_make(struct pstk__tfrecord_defaults **out,
                                 const struct pstk__inferred_schema *found,
                                 const struct pstk__opening *opening, struct pstk_error *err)
{
    const struct pstk_foreign *foreign = opening->foreign;
    const uint32_t n = foreign ? foreign->n_defaults : 0;
    uint64_t size = aligned(sizeof **out);
    *out = NULL;
    /* A damaged data set has the fields of its first intact file, which may lack fields with a
     * default. */
    for (uint32_t i = 0; i < n; i++) {
        const struct pstk_default *given = &foreign->defaults[i];
        if (opening->salvage && pstk__index_find_field(found, given->name) < 0)
            continue;
        const int r = check(given, found, err);
        if (r < 0)
            return r;
        size += aligned(given->size);
    }
    if (n == 0)
        return 0;
    struct pstk__tfrecord_defaults *made = calloc(1, size);
    if (!made)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to open %s", opening->path);
    uint8_t *at = (uint8_t *)made + aligned(sizeof *made);
    for (uint32_t i = 0; i < n; i++) {
        const struct pstk_default *given = &foreign->defaults[i];
        const int f = pstk__index_find_field(found, given->name);
        if (f < 0)
            continue;
        made->of[f].is_given = 1;
        made->of[f].size = (uint32_t)given->size;
        made->of[f].at = at;
        if (given->size)
            memcpy(at, given->data, given->size);
        at += aligned(given->size);
    }
    *out = made;
    return 0;
}

void pstk__tfrecord_defaults_describe(const struct pstk__tfrecord_defaults *defaults,
                                      const struct pstk__inferred_schema *found,
                                      struct pstk__source *source)
{
    uint64_t digest[2] = {1, 2};
    pstk__index_digest(digest, source->identity, strlen(source->identity));
    for (uint32_t i = 0; i < source->schema.n_fields; i++) {
        const uint64_t n = found->fields[i].n;
        uint64_t *max_plain = &source->limits.max_plain[i];
        if (found->fields[i].coding != PSTK__TFRECORD_WHOLE && n < source->n_samples)
            source->stats[i].n_absent = source->n_samples - n;
        if (!defaults || !defaults->of[i].is_given)
            continue;
        if (*max_plain < defaults->of[i].size)
            source->stats[i].max_plain_size = *max_plain = defaults->of[i].size;
        pstk__index_digest(digest, &i, sizeof i);
        pstk__index_digest(digest, defaults->of[i].at, defaults->of[i].size);
    }
    if (defaults)
        snprintf(source->identity, sizeof source->identity, "%016" PRIx64 "%016" PRIx64, digest[0],
                 digest[1]);
}

void pstk__tfrecord_defaults_view(const struct pstk__tfrecord_defaults *defaults,
                                  const struct pstk__inferred_schema *found, uint32_t i,
                                  const uint8_t *data, struct pstk__field_view *view)
{
    if (defaults && defaults->of[i].is_given)
        *view = (struct pstk__field_view){.data = defaults->of[i].at,
                                          .stored_size = defaults->of[i].size,
                                          .plain_size = defaults->of[i].size,
                                          .codec = PSTK_CODEC_NONE,
                                          .checksum = PSTK__CHECKSUM_NONE};
    else
        pstk__tfrecord_view(view, &found->fields[i], data, 0);
    view->offset = PSTK__TFRECORD_HEAD;
    view->flags |= PSTK__FIELD_ABSENT;
}
