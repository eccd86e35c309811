/* SPDX-License-Identifier: Apache-2.0 */
/* mixture: several data sets in given shares, as --mixture names them. */
#ifndef PSTK_CLI_MIXTURE_H
#define PSTK_CLI_MIXTURE_H

#include <penstock/format.h>
#include <penstock/mixture.h>

#include "option/fields.h"
#include "ui/json.h"

/* Zero it; mixture_close frees what it holds. It must not move once mixture_settings was called. */
struct mixture {
    uint32_t n;                      /* data sets; 0: no mixture */
    char *paths[PSTK_MAX_DATA_SETS]; /* owned */
    double weights[PSTK_MAX_DATA_SETS];
    uint64_t n_delivered[PSTK_MAX_DATA_SETS];
    char name[48]; /* for messages */
    struct pstk_mixture_segment segment;
    struct pstk_mixture settings;
};

/* Read PATH=WEIGHT, or several with commas between them, and append them. Returns 0, or -1 after a
 * message. */
int mixture_add(struct mixture *mixture, const char *text);
/* Look into all data sets: sum their numbers, and keep the fields of the first that all data sets
 * have alike. read_as: from --field, which every data set must have. Sets the name. Returns 0 or an
 * exit status after a message. */
int mixture_look(struct mixture *mixture, struct pstk_dataset_info *info,
                 struct pstk_field fields[PSTK_MAX_FIELDS], const struct fields *read_as);
/* Return the settings of a loader: data sets repeat, and an epoch has as many samples as they have
 * together. */
const struct pstk_mixture *mixture_settings(struct mixture *mixture);
/* Store the counts of each data set that a loader delivered. */
void mixture_count(struct mixture *mixture, const struct pstk_loader *loader);
/* Print those counts, a line for each data set; or put them into a JSON object. */
void mixture_print(const struct mixture *mixture);
void mixture_put(const struct mixture *mixture, struct json_t *object);
void mixture_close(struct mixture *mixture);

#endif
