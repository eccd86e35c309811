/* SPDX-License-Identifier: Apache-2.0 */
/* column: adds a side column to a data set, or removes one. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <penstock/format.h>

#include "command.h"
#include "ui/interrupt.h"
#include "ui/json.h"
#include "ui/message.h"
#include "option/opening.h"
#include "option/options.h"
#include "ui/progress.h"
#include "ui/status.h"
#include "ui/text.h"
#include "ui/unit.h"

enum { OPT_OVERWRITE = 256, OPT_REMOVE, OPT_JSON };

static const struct option_row table[] = {
    {.name = "overwrite", .code = OPT_OVERWRITE, .text = "replace a column of that name"},
    {.name = "remove", .code = OPT_REMOVE, .text = "remove the column (without FILE.npy)"},
    OPTION_JSON("print one JSON object"),
    OPTION_END};

struct column {
    const char *data, *name, *file; /* operands; file NULL: none */
    int overwrite, remove, json;    /* options */
    struct progress progress;
};

static int on_progress(void *user, uint64_t n_done, uint64_t n_total)
{
    struct column *column = user;
    progress_update(&column->progress, n_total ? (double)n_done / (double)n_total : -1, n_done);
    return interrupt_seen();
}

/* Print the result. */
static int report(const struct column *column)
{
    struct pstk_dataset *dataset;
    struct pstk_dataset_info info = {.size = offsetof(struct pstk_dataset_info, n_left_out)};
    struct pstk_column_info added = {.size = sizeof added};
    struct pstk_error err;
    char n[UNIT_SIZE], bytes[UNIT_SIZE];
    pstk_error_init(&err, sizeof err);
    if (opening_dataset(&dataset, column->data, &err) < 0)
        return status_refuse(&err, column->data);
    pstk_dataset_get_info(dataset, &info);
    for (uint32_t i = 0; pstk_dataset_get_column_info(dataset, i, &added) == 0; i++)
        if (strcmp(added.name, column->name) == 0)
            break;
    const uint32_t n_columns = pstk_dataset_n_columns(dataset);
    pstk_dataset_close(&dataset);
    if (column->json) {
        struct json_t *object = json_make_object();
        json_put_text(object, "path", column->data);
        json_put_text(object, "column", column->name);
        json_put_bool(object, "removed", column->remove);
        json_put_text(object, "dtype", column->remove ? NULL : pstk_dtype_name(added.dtype));
        json_put_count(object, "n_columns", n_columns);
        json_put_text(object, "identity", info.identity);
        return json_print(object, STATUS_OK);
    }
    text_print(stdout, column->data);
    if (column->remove)
        printf(": removed column %s\n", column->name);
    else
        printf(": added column %s of %s values, %s, in %s\n", column->name,
               unit_count(n, info.n_samples), pstk_dtype_name(added.dtype),
               unit_bytes(bytes, (double)added.bytes));
    return message_finish(STATUS_OK);
}

static int change(struct column *column)
{
    struct pstk_error err;
    const struct pstk_new_column new_column = {.size = sizeof new_column,
                                               .name = column->name,
                                               .file = column->file,
                                               .overwrite = (uint32_t)column->overwrite};
    pstk_error_init(&err, sizeof err);
    progress_begin(&column->progress, "adding", "values");
    const int r = column->remove
                      ? pstk_column_remove(column->data, column->name, &err)
                      : pstk_column_add(column->data, &new_column, on_progress, column, &err);
    progress_end(&column->progress);
    if (r == PSTK_ECANCELED && interrupt_seen())
        return interrupt_say("the columns are unchanged");
    if (r == PSTK_EEXIST && strstr(err.message, "set overwrite"))
        return message_usage("%s has a column %s already; --overwrite replaces it", column->data,
                             column->name);
    return r < 0 ? status_refuse(&err, column->data) : report(column);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options = {.command = self, .argc = argc, .argv = argv};
    struct column column = {.json = 0};
    int c;
    while ((c = options_next(&options)) > 0)
        *(c == OPT_OVERWRITE ? &column.overwrite
          : c == OPT_REMOVE  ? &column.remove
                             : &column.json) = 1;
    const int n = column.remove ? 2 : 3;
    if (c < 0 || options_operands(&options, n, n,
                                  column.remove ? "DATA and NAME" : "DATA, NAME and FILE.npy") < 0)
        return options.status;
    if (column.remove && column.overwrite)
        return message_usage("--overwrite and --remove exclude each other");
    column.data = options_operand(&options, 0);
    column.name = options_operand(&options, 1);
    column.file = column.remove ? NULL : options_operand(&options, 2);
    interrupt_install();
    interrupt_ignore_pipe();
    return change(&column);
}

const struct command command_column = {
    .name = "column",
    .summary = "add a column of values to a data set, or remove one",
    .operands = "DATA NAME [FILE.npy]",
    .text =
        "Add the side column NAME to the data set DATA: the values of FILE.npy, an array of one "
        "dimension with a value for each sample, in their order. Programs read a range of a column "
        "without reading samples, to select or to weigh them (Dataset.column in Python). Pack "
        "makes columns of its own, of scalars and sizes; `penstock info` lists all.\n\nThe samples "
        "and the identity stay as they are. A program that has the data set open goes on, and sees "
        "the column when it opens the data set again. The last step replaces the manifest: until "
        "then, and after Ctrl-C, the columns are unchanged. A part of a data set can have columns, "
        "too; `penstock merge` keeps those that all parts have.\n",
    .options = table,
    .examples = "penstock column train weight weights.npy\n"
                "penstock column train weight better.npy --overwrite\n"
                "penstock column train weight --remove\n",
    .exit_status = "0 changed; 1 damaged data, or a failing machine; 2 wrong usage or path, or "
                   "wrong values, such as a NaN or a wrong number of them; 130 Ctrl-C",
    .run = run,
};
