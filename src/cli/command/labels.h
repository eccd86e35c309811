/* SPDX-License-Identifier: Apache-2.0 */
/* labels: the number of samples of each class, counted through the loader, which reads only the
 * label of a record. */
#ifndef PSTK_CLI_LABELS_H
#define PSTK_CLI_LABELS_H

#include <penstock/format.h>

struct fields;
struct json_t;

/* The counts of a data set's classes. */
struct labels {
    uint64_t *n;      /* owned; by class number */
    uint64_t n_names; /* classes */
    uint64_t n_other; /* samples whose label is no class number */
    int field; /* field that was counted; negative: no field is known to hold class numbers */
};

/* Return the field that holds class numbers, PSTK_ROLE_LABEL, or another result of role_find. */
int labels_field(const struct pstk_dataset *dataset);
/* Count the samples of each class of the data set at `path`, which was opened with these fields, or
 * NULL. Returns 0, with a negative field when nothing can be counted, or a negative result with err
 * filled in. The caller always calls labels_close. */
int labels_count(struct labels *labels, const char *path, const struct fields *fields,
                 const struct pstk_dataset *dataset, struct pstk_error *err);
/* Print a table of the classes, with their counts if there are any: all classes, or the first ones
 * and the number of the others. */
void labels_print(const struct labels *labels, const struct pstk_dataset *dataset, int all);
/* Put class_counts (an array) and n_unnamed (samples of no class), or null when nothing was
 * counted. */
void labels_put(const struct labels *labels, struct json_t *object);
void labels_close(struct labels *labels);

#endif
