/* SPDX-License-Identifier: Apache-2.0 */
#include "option/opening.h"

#include <stdlib.h>
#include <unistd.h>

#include "command.h"
#include "ui/interrupt.h"
#include "ui/message.h"

void opening_find_cache(char path[OPENING_PATH_SIZE])
{
    pstk_find_cache((const char *const *)environ, path, OPENING_PATH_SIZE, NULL, NULL);
}

uint64_t opening_cache_size(void)
{
    struct pstk_error err;
    uint64_t size;
    pstk_error_init(&err, sizeof err);
    if (pstk_find_cache((const char *const *)environ, NULL, 0, &size, &err) < 0) {
        message_say("%s", err.message);
        exit(STATUS_USAGE);
    }
    return size;
}

/* Show the progress in bytes of files: a pstk_progress_fn. */
static int on_progress(void *user, uint64_t n_done, uint64_t n_total)
{
    struct opening *opening = user;
    if (!opening->has_begun)
        progress_begin(&opening->progress, "indexing", "bytes");
    opening->has_begun = 1;
    if (n_done >= n_total) {
        progress_end(&opening->progress);
        opening->has_begun = 0;
    } else {
        progress_update(&opening->progress, (double)n_done / (double)n_total, n_done);
    }
    return interrupt_seen() != 0;
}

/* Show the reason of a wait: a pstk_wait_fn. */
static void on_wait(void *user, const char *text)
{
    struct opening *opening = user;
    if (opening->has_begun)
        progress_end(&opening->progress);
    message_say("%s", text);
}

void opening_init(struct opening *opening)
{
    *opening = (struct opening){.foreign = {.size = sizeof opening->foreign,
                                            .field_size = sizeof(struct pstk_field),
                                            .on_progress = on_progress,
                                            .on_wait = on_wait,
                                            .user = opening}};
    opening_find_cache(opening->cache);
    opening->foreign.cache_path = opening->cache[0] ? opening->cache : NULL;
    opening->foreign.cache_size = opening_cache_size();
}

int opening_dataset_as(struct pstk_dataset **out, const char *path, const struct fields *fields,
                       struct pstk_error *err)
{
    static const struct fields none;
    struct opening opening;
    opening_init(&opening);
    if (!fields)
        fields = &none;
    fields_apply(fields, &opening.foreign);
    const int r = pstk_dataset_open(out, path, &opening.foreign, err);
    if (opening.has_begun)
        progress_end(&opening.progress);
    if (r < 0 && err)
        fields_explain(fields, err);
    return r;
}

int opening_dataset(struct pstk_dataset **out, const char *path, struct pstk_error *err)
{
    return opening_dataset_as(out, path, NULL, err);
}
