/* SPDX-License-Identifier: Apache-2.0 */
#include "command/records.h"

#include <stdlib.h>
#include <string.h>

#include <penstock/foreign.h>

#include "option/opening.h"
#include "option/role.h"
#include "ui/message.h"
#include "ui/status.h"
#include "ui/unit.h"

/* Return 1 when pack reads data sets of this format. Folders of images are packed in another way,
 * and penstock's own data sets are not packed again. */
static int is_taken(const char *format)
{
    return strcmp(format, "pstk") != 0 && strcmp(format, "folder") != 0;
}

/* Return 1 when pstk_find_format says that no format knows the path; 0: it could not find out. */
static int is_unknown(int code)
{
    return code == PSTK_ENOENT || code == PSTK_ENOTSUP;
}

static void describe(struct records *records)
{
    records->info.size = sizeof records->info;
    pstk_dataset_get_info(records->dataset, &records->info);
    for (uint32_t i = 0; i < records->info.n_fields; i++)
        pstk_dataset_get_field(records->dataset, i, &records->fields[i], NULL);
    records->image = role_find(records->fields, records->info.n_fields, PSTK_ROLE_IMAGE, NULL);
    const uint64_t n = records->info.n_names;
    records->names = calloc(n ? n : 1, sizeof *records->names);
    if (!records->names)
        message_no_memory();
    for (uint64_t i = 0; i < n; i++)
        records->names[i] = pstk_dataset_name(records->dataset, i);
}

int records_open(struct records *records, const char *src, const struct fields *fields)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const char *format = pstk_find_format(src, &err);
    if (!format && !is_unknown(err.code))
        return status_refuse(&err, src); /* another way to read SRC may give other labels */
    if (!format || !is_taken(format))
        return fields_given(fields)
                   ? message_usage("%s: must be left out, except for a data set in another format; "
                                   "%s is not a data set that pack reads record by record",
                                   fields_given(fields), src)
                   : 0;
    if (opening_dataset_as(&records->dataset, src, fields, &err) < 0)
        return status_refuse(&err, src);
    describe(records);
    return 0;
}

uint32_t records_fields(const struct records *records, const struct profile *profile,
                        struct pstk_field *fields)
{
    for (uint32_t i = 0; i < records->info.n_fields; i++) {
        fields[i] = records->fields[i];
        fields[i].codec = PSTK_CODEC_NONE;
        fields[i].codec_level = 0;
        if (fields[i].kind == PSTK_FIELD_IMAGE)
            profile_image_codec(profile, &fields[i]);
        else if (fields[i].kind == PSTK_FIELD_UTF8)
            profile_text_codec(profile, &fields[i]);
    }
    return records->info.n_fields;
}

int records_read(struct records *records, uint64_t sample_id, struct pstk_value *values,
                 struct pstk_error *err)
{
    int r = 0;
    memset(records->absent, 0, sizeof records->absent);
    for (uint32_t i = 0; r == 0 && i < records->info.n_fields; i++) {
        struct pstk_value_info info = {.size = sizeof info};
        uint64_t size;
        if ((int)i == records->image)
            continue;
        r = pstk_dataset_get(records->dataset, sample_id, i, &records->values[i], &size, &info,
                             err);
        if (r == 0)
            values[i] = (struct pstk_value){.data = records->values[i], .size = size};
        records->absent[i] = info.absent;
    }
    return r;
}

void records_count(struct records *records)
{
    for (uint32_t i = 0; i < records->info.n_fields; i++)
        records->n_absent[i] += records->absent[i];
}

/* Return 1 when the caller gave the field a default. */
static int has_default(const struct fields *fields, const char *name)
{
    for (uint32_t i = 0; i < fields->n_defaults; i++)
        if (strcmp(fields->defaults[i].name, name) == 0)
            return 1;
    return 0;
}

void records_print(const struct records *records, const struct fields *fields)
{
    char n[UNIT_SIZE];
    for (uint32_t i = 0; records->dataset && i < records->info.n_fields; i++)
        if (records->n_absent[i])
            message_say(
                "%s sample%s no field %s: packed with %s", unit_count(n, records->n_absent[i]),
                records->n_absent[i] == 1 ? " has" : "s have", records->fields[i].name,
                has_default(fields, records->fields[i].name) ? "its default" : "an empty value");
}

void records_put(const struct records *records, struct json_t *object)
{
    struct json_t *absent = json_make_object();
    for (uint32_t i = 0; records->dataset && i < records->info.n_fields; i++)
        if (records->n_absent[i])
            json_put_count(absent, records->fields[i].name, records->n_absent[i]);
    json_put(object, "absent", absent);
}

void records_release(struct records *records)
{
    for (uint32_t i = 0; i < records->info.n_fields; i++) {
        pstk_free(records->values[i]);
        records->values[i] = NULL;
    }
}

void records_close(struct records *records)
{
    free(records->names);
    records->names = NULL;
    pstk_dataset_close(&records->dataset);
}
