/* SPDX-License-Identifier: Apache-2.0 */
/* records: the samples of a data set in another format, as pack takes them: every field, with the
 * picture, PSTK_ROLE_IMAGE, checked and converted as files are (prefetcher.h). */
#ifndef PSTK_CLI_RECORDS_H
#define PSTK_CLI_RECORDS_H

#include <penstock/format.h>

#include "command/profile.h"
#include "option/fields.h"
#include "ui/json.h"

/* Zeroed at the start. */
struct records {
    struct pstk_dataset *dataset; /* owned; NULL: pack's source is no such data set */
    struct pstk_dataset_info info;
    struct pstk_field fields[PSTK_MAX_FIELDS];
    int image;                          /* number of the picture's field; negative: none */
    const char **names;                 /* owned; info.n_names class names */
    void *values[PSTK_MAX_FIELDS];      /* owned until release */
    uint32_t absent[PSTK_MAX_FIELDS];   /* 1: the last sample lacks the field */
    uint64_t n_absent[PSTK_MAX_FIELDS]; /* packed samples that lack the field */
};

/* Open the data set at `src`, with these fields, if it is one that pack reads record by record.
 * Returns 0 with dataset NULL if it is not, or an exit status after a message. */
int records_open(struct records *records, const char *src, const struct fields *fields);
/* Write the fields of the new data set. Returns their number. */
uint32_t records_fields(const struct records *records, const struct profile *profile,
                        struct pstk_field *fields);
/* Read all values of a sample except the image field, in the order of the fields. 0, or a negative
 * result; the caller releases in both cases. */
int records_read(struct records *records, uint64_t sample_id, struct pstk_value *values,
                 struct pstk_error *err);
/* Count the absent fields of the last sample, once it is packed. */
void records_count(struct records *records);
/* Print the fields that some samples lack, and their values there. */
void records_print(const struct records *records, const struct fields *fields);
/* Put these counts as {field: samples}. */
void records_put(const struct records *records, struct json_t *object);
void records_release(struct records *records);
void records_close(struct records *records);

#endif
