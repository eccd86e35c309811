/* SPDX-License-Identifier: Apache-2.0 */
/* get: write one field of one record, raw, to standard output. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <penstock/format.h>

#include "command.h"
#include "option/opening.h"
#include "option/options.h"
#include "ui/message.h"
#include "ui/status.h"
#include "ui/text.h"

static const struct option_row table[] = {FIELDS_OPTIONS, OPTION_END};

/* Print the texts of a list, a line each, with control characters escaped. Returns an exit
 * status. */
static int show_texts(const void *data, uint64_t size)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const int64_t n = pstk_list_read(PSTK_FIELD_UTF8_LIST, data, size, NULL, 0, &err);
    if (n < 0) {
        message_say("%s", err.message);
        return STATUS_DAMAGED;
    }
    struct pstk_list_item *items = calloc((size_t)n + 1, sizeof *items);
    if (!items)
        message_no_memory();
    pstk_list_read(PSTK_FIELD_UTF8_LIST, data, size, items, (uint64_t)n, &err);
    for (int64_t i = 0; i < n; i++) {
        char *text = strndup(items[i].data, items[i].size);
        if (!text)
            message_no_memory();
        text_print(stdout, text);
        putchar('\n');
        free(text);
    }
    free(items);
    return message_finish(STATUS_OK);
}

/* Print a value on a terminal. Control characters in text are escaped, and binary values are
 * refused, because the terminal would obey them. Returns an exit status. */
static int show_value(const struct pstk_field *field, const void *data, uint64_t size)
{
    if (field->kind == PSTK_FIELD_UTF8_LIST)
        return show_texts(data, size);
    if (field->kind != PSTK_FIELD_UTF8)
        return message_usage(
            "%s is not text, and standard output is a terminal: write it to a file "
            "(> FILE), or into a pipe",
            field->name);
    char *text = strndup(data, size);
    if (!text)
        message_no_memory();
    text_print(stdout, text);
    putchar('\n');
    free(text);
    return message_finish(STATUS_OK);
}

static int write_value(const void *data, uint64_t size)
{
    if (size && fwrite(data, 1, size, stdout) != size) {
        message_say("cannot write to standard output: %s", strerror(errno));
        return STATUS_DAMAGED;
    }
    return message_finish(STATUS_OK);
}

/* Return the number of the field of that name, or -1 after a message that lists the fields. */
static int find_field(const struct pstk_dataset *dataset, uint32_t n_fields, const char *name)
{
    struct pstk_field fields[PSTK_MAX_FIELDS];
    const char *names[PSTK_MAX_FIELDS + 1];
    char list[512] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < n_fields; i++) {
        if (pstk_dataset_get_field(dataset, i, &fields[i], NULL) < 0)
            return -1;
        if (strcmp(fields[i].name, name) == 0)
            return (int)i;
        names[i] = fields[i].name;
        if (n < sizeof list)
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", names[i]);
    }
    names[n_fields] = NULL;
    const char *near = option_nearest(name, names);
    if (near)
        message_say("no field '%s'; did you mean '%s'?", name, near);
    else
        message_say("no field '%s'; there are: %s", name, list);
    return -1;
}

static int get(struct pstk_dataset *dataset, const char *path, const char *id_text,
               const char *name)
{
    struct pstk_dataset_info info = {.size = offsetof(struct pstk_dataset_info, n_left_out)};
    struct pstk_error err;
    uint64_t id, size;
    void *data;
    pstk_error_init(&err, sizeof err);
    int r = pstk_dataset_get_info(dataset, &info);
    if (r < 0)
        return status_of_code(r);
    if (option_count("ID", id_text, (struct range){0, info.n_samples - (info.n_samples > 0)}, &id) <
        0)
        return STATUS_USAGE;
    int field = find_field(dataset, info.n_fields, name);
    if (field < 0)
        return STATUS_USAGE;
    if (pstk_dataset_get(dataset, id, (uint32_t)field, &data, &size, NULL, &err) < 0)
        return status_refuse(&err, path);
    struct pstk_field kind;
    int status =
        isatty(STDOUT_FILENO) && pstk_dataset_get_field(dataset, (uint32_t)field, &kind, NULL) == 0
            ? show_value(&kind, data, size)
            : write_value(data, size);
    pstk_free(data);
    return status;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options = {.command = self, .argc = argc, .argv = argv};
    struct pstk_dataset *dataset;
    struct fields fields = {.n = 0};
    struct pstk_error err;
    int c;
    while ((c = options_next(&options)) > 0)
        if (fields_take(&fields, c, optarg) < 0)
            return STATUS_USAGE;
    if (c < 0 || options_operands(&options, 3, 3, "DATA, ID and FIELD") < 0)
        return options.status;
    const char *path = options_operand(&options, 0);
    pstk_error_init(&err, sizeof err);
    if (opening_dataset_as(&dataset, path, &fields, &err) < 0)
        return status_refuse(&err, path);
    int status = get(dataset, path, options_operand(&options, 1), options_operand(&options, 2));
    pstk_dataset_close(&dataset);
    return status;
}

const struct command command_get = {
    .name = "get",
    .summary = "write one field of one record to standard output",
    .operands = "DATA ID FIELD",
    .text = "Write one field of record ID (from 0) to standard output, raw: an image file as it "
            "was packed (or, where `penstock info` counts some, an equivalent JPEG: the same "
            "coefficients and markers), decoded pixels as rows of gray, RGB or RGBA, text without "
            "newline, scalars and arrays little-endian, lists as FORMAT.md says. Get checks their "
            "checksums. On a terminal "
            "it prints text "
            "alone, with control characters as \\x1b.\n",
    .options = table,
    .examples = "penstock get train 7 jpg > 7.jpg\n"
                "penstock get train 7 key\n"
                "penstock get train 7 cls | od -An -t d8\n",
    .exit_status = "0; 1 the record is damaged; 2 wrong usage, path, id or field",
    .run = run,
};
