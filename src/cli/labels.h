/* SPDX-License-Identifier: Apache-2.0 */
/* labels: how many samples each class has, counted through the loader, which reads no more of a
 * record than its label. */
#ifndef PSTK_CLI_LABELS_H
#define PSTK_CLI_LABELS_H

#include <penstock/format.h>

struct json_t;

/* The counts of a data set's classes. */
struct labels {
    uint64_t *n;      /* owned; by class number */
    uint64_t n_names; /* classes */
    uint64_t n_other; /* samples whose number is that of no class */
    int field;        /* the field that was counted; below 0: none is known to hold class numbers */
};

/* What labels_field returns where no field is known to hold class numbers. */
enum { LABELS_NONE = -1, LABELS_SEVERAL = -2 };

/* Return the field that holds class numbers: `cls`, or the only scalar of integers. LABELS_NONE: no
 * scalar of integers; LABELS_SEVERAL: more than one, and none is `cls`. */
int labels_field(const struct pstk_dataset *dataset);
/* Count the samples of each class of the data set at `path`. 0, with field below 0 where nothing
 * can be counted, or a result with err filled in. Close takes it in any case. */
int labels_count(struct labels *labels, const char *path, const struct pstk_dataset *dataset,
                 struct pstk_error *err);
/* Print a table of the classes, with their counts where there are some: all of them, or the first
 * ones and how many more there are. */
void labels_print(const struct labels *labels, const struct pstk_dataset *dataset, int all);
/* Put class_counts, an array, and n_unnamed, samples of no class; null where nothing was counted.
 */
void labels_put(const struct labels *labels, struct json_t *object);
void labels_close(struct labels *labels);

#endif
