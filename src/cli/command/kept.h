/* SPDX-License-Identifier: Apache-2.0 */
/* kept: why images are stored as their original files, counted for people and for programs. */
#ifndef PSTK_CLI_KEPT_H
#define PSTK_CLI_KEPT_H

#include <penstock/format.h>

#include "ui/json.h"

struct pstk_dataset;

/* The reason after those of the library: the field's codec is not planes, as with `--jpeg keep`. */
enum { KEPT_ASKED = PSTK_KEPT_NOT_EXACT + 1, N_KEPT };

/* Zeroed at the start. */
struct kept {
    uint64_t n[N_KEPT]; /* images by enum pstk_kept, or KEPT_ASKED */
    /* kept_find calls this for each JPEG; may be NULL */
    void (*on_jpeg)(void *user, uint64_t sample_id, uint32_t field, uint32_t reason);
    void *user;
};

/* Return the reason as a word for programs, or as the end of "1 file: ..." for people. */
const char *kept_word(uint32_t reason);
const char *kept_phrase(uint32_t reason);
/* Print one line a reason, or nothing when no image was kept. */
void kept_print(const struct kept *kept);
/* Find the kept images in all fields of a data set, count them, and report each JPEG among them.
 * Every record's head is read, and each such JPEG is encoded again. Returns 0, or a negative result
 * with err filled in. */
int kept_find(struct kept *kept, struct pstk_dataset *dataset, struct pstk_error *err);
/* Return an object of the counts by word. */
struct json_t *kept_json(const struct kept *kept);

#endif
