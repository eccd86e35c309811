/* SPDX-License-Identifier: Apache-2.0 */
#include "command/labels.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/penstock.h>

#include "option/opening.h"
#include "option/role.h"
#include "ui/json.h"
#include "ui/message.h"
#include "ui/text.h"
#include "ui/unit.h"

#define BATCH 4096 /* labels */
#define LISTED 20  /* classes without --all */

int labels_field(const struct pstk_dataset *dataset)
{
    struct pstk_field fields[PSTK_MAX_FIELDS];
    uint32_t n = 0;
    while (n < PSTK_MAX_FIELDS && pstk_dataset_get_field(dataset, n, &fields[n], NULL) == 0)
        n++;
    return role_find(fields, n, PSTK_ROLE_LABEL, NULL);
}

/* Return a little-endian integer of `size` bytes. A negative one, which is no class, becomes
 * UINT64_MAX, which is no class either. */
static uint64_t number_at(const uint8_t *data, uint32_t size, int is_signed)
{
    uint64_t value = 0;
    memcpy(&value, data, size);
    const int is_negative = is_signed && data[size - 1] >= 0x80;
    return is_negative ? UINT64_MAX : value;
}

static void count(struct labels *labels, const struct pstk_batch *batch, uint32_t dtype)
{
    const struct pstk_tensor *tensor = &batch->tensors[0];
    const uint32_t size = pstk_dtype_size(dtype);
    const int is_signed = pstk_dtype_name(dtype)[0] == 'i';
    for (uint32_t i = 0; i < batch->n_valid; i++) {
        const uint64_t number =
            number_at((const uint8_t *)tensor->data + (size_t)i * size, size, is_signed);
        if (number < labels->n_names)
            labels->n[number]++;
        else
            labels->n_other++;
    }
}

static int count_all(struct labels *labels, const char *path, const struct fields *fields,
                     const struct pstk_field *field, struct pstk_error *err)
{
    struct opening opening;
    const struct pstk_output output = {.field = field->name, .kind = PSTK_OUTPUT_SCALAR};
    struct pstk_settings s;
    struct pstk_loader *loader;
    struct pstk_batch *batch;
    opening_init(&opening);
    if (fields)
        fields_apply(fields, &opening.foreign);
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.foreign = &opening.foreign;
    s.outputs = &output;
    s.n_outputs = 1;
    s.batch_size = BATCH;
    s.order.kind = PSTK_ORDER_SEQUENTIAL;
    s.last_batch = PSTK_LAST_SHORT;
    int r = pstk_open(&loader, &s, err);
    while (r >= 0 && (r = pstk_next(loader, &batch, NULL, -1, err)) == 1) {
        count(labels, batch, field->dtype);
        pstk_release(&batch, NULL);
    }
    pstk_close(&loader);
    return r;
}

int labels_count(struct labels *labels, const char *path, const struct fields *fields,
                 const struct pstk_dataset *dataset, struct pstk_error *err)
{
    struct pstk_dataset_info info = {.size = offsetof(struct pstk_dataset_info, n_left_out)};
    struct pstk_field field;
    *labels = (struct labels){.field = ROLE_NONE};
    int r = pstk_dataset_get_info(dataset, &info);
    if (r < 0 || info.n_names == 0 || info.n_samples == 0)
        return r;
    labels->field = labels_field(dataset);
    if (labels->field < 0)
        return 0;
    pstk_dataset_get_field(dataset, (uint32_t)labels->field, &field, NULL);
    labels->n_names = info.n_names;
    labels->n = calloc(info.n_names, sizeof *labels->n);
    if (!labels->n)
        message_no_memory();
    return count_all(labels, path, fields, &field, err);
}

void labels_print(const struct labels *labels, const struct pstk_dataset *dataset, int all)
{
    struct pstk_dataset_info info = {.size = offsetof(struct pstk_dataset_info, n_left_out)};
    char n[UNIT_SIZE];
    if (pstk_dataset_get_info(dataset, &info) < 0 || info.n_names == 0)
        return;
    const uint64_t listed = all || info.n_names <= LISTED ? info.n_names : LISTED;
    printf("\n  %9s%s  name\n", "class", labels->n ? "     samples" : "");
    for (uint64_t i = 0; i < listed; i++) {
        printf("  %9" PRIu64, i);
        if (labels->n)
            printf("  %10s", unit_count(n, labels->n[i]));
        fputs("  ", stdout);
        text_print(stdout, pstk_dataset_name(dataset, i));
        putchar('\n');
    }
    if (listed < info.n_names)
        printf("  and %s more (--all lists them)\n", unit_count(n, info.n_names - listed));
    if (labels->n_other)
        printf("  %s sample%s a class number that has no name\n", unit_count(n, labels->n_other),
               labels->n_other == 1 ? " has" : "s have");
}

void labels_put(const struct labels *labels, struct json_t *object)
{
    if (!labels->n) {
        json_put_null(object, "class_counts");
        json_put_null(object, "n_unnamed");
        return;
    }
    struct json_t *counts = json_make_array();
    for (uint64_t i = 0; i < labels->n_names; i++)
        json_append_count(counts, labels->n[i]);
    json_put(object, "class_counts", counts);
    json_put_count(object, "n_unnamed", labels->n_other);
}

void labels_close(struct labels *labels)
{
    free(labels->n);
    *labels = (struct labels){.field = ROLE_NONE};
}
