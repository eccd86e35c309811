/* SPDX-License-Identifier: Apache-2.0 */
#include "command/passthrough.h"

#include <stddef.h>
#include <stdio.h>

#include "names.h"
#include "ui/interrupt.h"
#include "ui/progress.h"
#include "ui/unit.h"

static const char *const phrases[N_PASSTHROUGH] = {
    [PSTK_PASSTHROUGH_NOT_JPEG] = "not a JPEG",
    [PSTK_PASSTHROUGH_NO_GAIN] = "planes would not be smaller",
    [PSTK_PASSTHROUGH_INCOMPLETE] = "a progressive JPEG that lacks bits of some coefficients",
    [PSTK_PASSTHROUGH_UNUSUAL] = "a JPEG whose colours, sampling or scans planes do not support",
    [PSTK_PASSTHROUGH_DAMAGED] = "a JPEG whose coefficients cannot all be read",
    [PSTK_PASSTHROUGH_NOT_EXACT] = "planes would not give it back byte for byte (--jpeg exact)",
    [PASSTHROUGH_ASKED] = "as asked (--jpeg keep)",
};

const char *passthrough_word(uint32_t reason)
{
    return reason == PASSTHROUGH_ASKED ? "asked" : option_choice_name(names_passthrough, reason);
}

const char *passthrough_phrase(uint32_t reason)
{
    return reason < N_PASSTHROUGH && phrases[reason] ? phrases[reason]
                                                     : "for a reason of a newer version";
}

/* Find the reason why this image is still a file; 0: it is not a file. Returns 0 or a negative
 * result. */
static int find_reason(struct pstk_dataset *dataset, uint64_t id, uint32_t i, uint32_t *reason,
                       struct pstk_error *err)
{
    struct pstk_value_info info = {.size = sizeof info};
    struct pstk_field field;
    uint64_t size;
    void *data;
    *reason = 0;
    int r = pstk_dataset_get_field(dataset, i, &field, NULL);
    if (r == 0)
        r = pstk_dataset_look(dataset, id, i, &info, err);
    if (r < 0 || info.codec == PSTK_CODEC_PLANES || info.encoding == PSTK_ENCODING_PIXELS)
        return r;
    *reason = info.encoding == PSTK_ENCODING_JPEG ? PASSTHROUGH_ASKED : PSTK_PASSTHROUGH_NOT_JPEG;
    if (*reason != PASSTHROUGH_ASKED || field.codec != PSTK_CODEC_PLANES)
        return 0;
    if (info.damaged) {
        *reason = PSTK_PASSTHROUGH_DAMAGED;
        return 0;
    }
    r = pstk_dataset_get(dataset, id, i, &data, &size, NULL, err);
    if (r < 0)
        return r;
    r = pstk_image_passthrough(data, size, field.codec_level, reason, err);
    pstk_free(data);
    return r;
}

/* Find the kept images of one image field. */
static int find_in_field(struct passthrough *passthrough, struct pstk_dataset *dataset, uint32_t i,
                         uint64_t n, struct pstk_error *err)
{
    struct progress progress;
    uint32_t reason;
    int r = 0;
    progress_begin(&progress, "looking", "images");
    for (uint64_t id = 0; id < n && r == 0; id++) {
        progress_update(&progress, (double)id / (double)n, id);
        r = find_reason(dataset, id, i, &reason, err);
        if (r < 0 || reason == 0 || reason >= N_PASSTHROUGH)
            continue;
        passthrough->n[reason]++;
        if (reason != PSTK_PASSTHROUGH_NOT_JPEG && passthrough->on_jpeg)
            passthrough->on_jpeg(passthrough->user, id, i, reason);
    }
    progress_end(&progress);
    return r;
}

int passthrough_find(struct passthrough *passthrough, struct pstk_dataset *dataset,
                     struct pstk_error *err)
{
    struct pstk_dataset_info info = {.size = offsetof(struct pstk_dataset_info, n_left_out)};
    struct pstk_field field;
    int r = pstk_dataset_get_info(dataset, &info);
    interrupt_install();
    interrupt_at_once("not all images were looked at");
    for (uint32_t i = 0; i < info.n_fields && r == 0; i++) {
        r = pstk_dataset_get_field(dataset, i, &field, NULL);
        if (r == 0 && field.kind == PSTK_FIELD_IMAGE)
            r = find_in_field(passthrough, dataset, i, info.n_samples, err);
    }
    interrupt_at_once(NULL);
    return r;
}

void passthrough_print(const struct passthrough *passthrough)
{
    char n[UNIT_SIZE];
    for (uint32_t reason = 0; reason < N_PASSTHROUGH; reason++)
        if (passthrough->n[reason])
            printf("  %9s kept as %s: %s\n", unit_count(n, passthrough->n[reason]),
                   passthrough->n[reason] == 1 ? "a file" : "files", passthrough_phrase(reason));
}

struct json_t *passthrough_json(const struct passthrough *passthrough)
{
    struct json_t *object = json_make_object();
    for (uint32_t reason = 0; reason < N_PASSTHROUGH; reason++)
        if (passthrough->n[reason])
            json_put_count(object, passthrough_word(reason), passthrough->n[reason]);
    return object;
}
