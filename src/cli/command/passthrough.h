/* SPDX-License-Identifier: Apache-2.0 */
/* passthrough: the reasons why images are stored as their original files; counts for people and
 * programs. */
#ifndef PSTK_CLI_PASSTHROUGH_H
#define PSTK_CLI_PASSTHROUGH_H

#include <penstock/format.h>

#include "ui/json.h"

struct pstk_dataset;

/* An additional reason: the field's codec is not planes, as with `--jpeg keep`. */
enum { PASSTHROUGH_ASKED = PSTK_PASSTHROUGH_NOT_EXACT + 1, N_PASSTHROUGH };

/* Zeroed at the start. */
struct passthrough {
    uint64_t n[N_PASSTHROUGH]; /* images by enum pstk_passthrough, or PASSTHROUGH_ASKED */
    /* passthrough_find calls this for each JPEG; may be NULL */
    void (*on_jpeg)(void *user, uint64_t sample_id, uint32_t field, uint32_t reason);
    void *user;
};

/* Return the reason as a word for programs, or as the end of "1 file: ..." for people. */
const char *passthrough_word(uint32_t reason);
const char *passthrough_phrase(uint32_t reason);
/* Print one line a reason, or nothing when no image was kept. */
void passthrough_print(const struct passthrough *passthrough);
/* Find the kept images in all fields of a data set, count them, and report each JPEG among them. It
 * reads every record's head, and encodes each such JPEG again. Returns 0, or a negative result with
 * err filled in. */
int passthrough_find(struct passthrough *passthrough, struct pstk_dataset *dataset,
                     struct pstk_error *err);
/* Return an object of the counts by word. */
struct json_t *passthrough_json(const struct passthrough *passthrough);

#endif
