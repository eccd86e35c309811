/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opening: opens data sets for the commands, with the choices that the library leaves to programs:
 * the folder for indexes of data that cannot be written next to it, and the progress of building
 * one. The library finds the folder in the environment, pstk_find_cache.
 */
#ifndef PSTK_CLI_OPENING_H
#define PSTK_CLI_OPENING_H

#include <penstock/foreign.h>

#include "option/fields.h"
#include "ui/progress.h"

#define OPENING_PATH_SIZE 4096

struct opening {
    struct pstk_foreign foreign; /* for pstk_settings.foreign and pstk_verify_settings.foreign */
    char cache[OPENING_PATH_SIZE];
    struct progress progress;
    int has_begun; /* 1: an index is being built */
};

/* Write the path of the folder; "": there is none. */
void opening_find_cache(char path[OPENING_PATH_SIZE]);
/* Return the bytes of $PENSTOCK_CACHE_SIZE; 0: it is not set. Exits with STATUS_USAGE after a
 * message if it is wrong. */
uint64_t opening_cache_size(void);
/* Fill *opening, which must not move while it is used. */
void opening_init(struct opening *opening);
/* Open a data set as pstk_dataset_open does. fields: borrowed; NULL: none are named. */
int opening_dataset_as(struct pstk_dataset **out, const char *path, const struct fields *fields,
                       struct pstk_error *err);
int opening_dataset(struct pstk_dataset **out, const char *path, struct pstk_error *err);

#endif
