/* SPDX-License-Identifier: Apache-2.0 */
/* checkup: what `doctor` finds in the data set at its path: can it be opened and read, does it fit
 * the loader's memory, and what in it makes loading slow or pictures wrong. */
#ifndef PSTK_CLI_CHECKUP_H
#define PSTK_CLI_CHECKUP_H

#include <penstock/format.h>
#include <penstock/penstock.h>

struct json_t;

enum finding_level { FINDING_OK, FINDING_NOTE, FINDING_WARNING, FINDING_ERROR };

#define FINDING_SIZE 600

struct finding {
    const char *what; /* "shards": what was looked at; static storage */
    enum finding_level level;
    char text[FINDING_SIZE];   /* what is so */
    char advice[FINDING_SIZE]; /* what to do; "": nothing */
    int is_damage;             /* `penstock verify` lists all of it */
};

/* Two of each field of images, and eight: data set, shards, open files, two of storage, records,
 * labels, loader. */
#define CHECKUP_MAX (2 * PSTK_MAX_FIELDS + 8)

/* Zeroed at the start. */
struct checkup {
    int is_data_set; /* 0: the path has none, and nothing was found */
    uint32_t n;
    struct finding findings[CHECKUP_MAX];
};

/* Look at the path. `machine`: what pstk_get_machine says of it. */
void checkup(struct checkup *checkup, const char *path, const struct pstk_machine *machine);
/* Return the exit status: that of damage where there is an error. */
int checkup_status(const struct checkup *checkup);
void checkup_print(const struct checkup *checkup);
/* Put `data_set`: null, or its findings. */
void checkup_put(const struct checkup *checkup, struct json_t *object);

#endif
