/* SPDX-License-Identifier: Apache-2.0 */
/* checkup: the findings of `doctor` about the data set at its path: whether it can be opened and
 * read, whether it fits the loader's memory, and what makes loading slow or pictures wrong. */
#ifndef PSTK_CLI_CHECKUP_H
#define PSTK_CLI_CHECKUP_H

#include <penstock/format.h>
#include <penstock/penstock.h>

#include "option/fields.h"

struct json_t;

enum finding_level { FINDING_OK, FINDING_NOTE, FINDING_WARNING, FINDING_ERROR };

#define FINDING_SIZE 600

struct finding {
    const char *what; /* subject, for example "shards"; static storage */
    enum finding_level level;
    char text[FINDING_SIZE];   /* finding */
    char advice[FINDING_SIZE]; /* remedy; "": none */
    int is_damage;             /* 1: `penstock verify` lists all of the damage */
};

/* Two findings of each image field, and ten more: data set, shards, columns, open files, two of
 * storage, order, records, labels, loader. */
#define CHECKUP_MAX (2 * PSTK_MAX_FIELDS + 10)

/* Zeroed at the start, except world and fields. */
struct checkup {
    uint32_t world;              /* number of ranks that will read it */
    const struct fields *fields; /* options that it is read with; borrowed */
    int is_data_set;             /* 0: the path is no data set, and there are no findings */
    uint32_t n;
    struct finding findings[CHECKUP_MAX];
};

/* Check the path. `machine` comes from pstk_get_machine. */
void checkup(struct checkup *checkup, const char *path, const struct pstk_machine *machine);
/* Return the exit status: STATUS_DAMAGED when there is an error. */
int checkup_status(const struct checkup *checkup);
void checkup_print(const struct checkup *checkup);
/* Put the findings as a list of that name. */
void checkup_put_findings(const struct checkup *checkup, struct json_t *object, const char *name);
/* Put the findings as `data_set`, or null when there is no data set. */
void checkup_put(const struct checkup *checkup, struct json_t *object);

#endif
