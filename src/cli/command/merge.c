/* SPDX-License-Identifier: Apache-2.0 */
/* merge: joins the parts that several packs wrote into one data set. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/format.h>

#include "command.h"
#include "ui/interrupt.h"
#include "ui/json.h"
#include "ui/message.h"
#include "option/opening.h"
#include "option/options.h"
#include "ui/output.h"
#include "ui/progress.h"
#include "ui/status.h"
#include "command/task.h"
#include "ui/unit.h"

enum { OPT_OVERWRITE = 256, OPT_PACK_ID, OPT_JSON };

static const struct option_row table[] = {
    {.name = "overwrite",
     .code = OPT_OVERWRITE,
     .text = "replace OUT if it is a data set; until the last step OUT is unchanged"},
    {.name = "pack-id",
     .code = OPT_PACK_ID,
     .value = "ID",
     .text = "refuse parts that were not packed with this --pack-id"},
    OPTION_JSON("print one JSON object"),
    OPTION_END};

static int find_column(const struct pstk_dataset *dataset, const char *name,
                       struct pstk_column_info *info)
{
    for (uint32_t i = 0; pstk_dataset_get_column_info(dataset, i, info) == 0; i++)
        if (strcmp(info->name, name) == 0)
            return 1;
    return 0;
}

/* A column that the merged data set lacks: the first part that has it, and the first part where its
 * dtype is another. */
struct lost {
    char name[PSTK_MAX_COLUMN_NAME];
    const char *part, *other; /* other: or NULL */
    uint32_t dtype, other_dtype;
};

/* The lost columns. All zero is an empty list. */
struct losses {
    struct lost *at; /* owned */
    size_t n;
};

/* Return the entry of a column, and add it if there is none. */
static struct lost *lost_of(struct losses *losses, const char *part,
                            const struct pstk_column_info *column)
{
    for (size_t i = 0; i < losses->n; i++)
        if (strcmp(losses->at[i].name, column->name) == 0)
            return &losses->at[i];
    struct lost *at = realloc(losses->at, (losses->n + 1) * sizeof *at);
    if (!at)
        message_no_memory();
    losses->at = at;
    at[losses->n] = (struct lost){.part = part, .dtype = column->dtype};
    memcpy(at[losses->n].name, column->name, sizeof at->name);
    return &at[losses->n++];
}

static void report_lost(const struct lost *lost, const char *part, uint32_t dtype)
{
    const int is_first = dtype == lost->dtype;
    if (lost->other)
        message_say("column %s of %s was left out: its dtype is %s, and that of %s is %s; must be "
                    "the same in all parts",
                    lost->name, part, pstk_dtype_name(dtype), is_first ? lost->other : lost->part,
                    pstk_dtype_name(is_first ? lost->other_dtype : lost->dtype));
    else
        message_say("column %s of %s was left out: not all parts have it", lost->name, part);
}

/* Find the columns of a part that the merged data set lacks, or report them after all parts were
 * examined. An empty part cannot be opened, and has no columns. */
static void look_at_part(struct losses *losses, const char *part, const struct pstk_dataset *merged,
                         int reports)
{
    struct pstk_dataset *dataset;
    struct pstk_column_info info = {.size = sizeof info}, kept = info;
    if (opening_dataset(&dataset, part, NULL) < 0)
        return;
    for (uint32_t i = 0; pstk_dataset_get_column_info(dataset, i, &info) == 0; i++) {
        if (find_column(merged, info.name, &kept))
            continue;
        struct lost *lost = lost_of(losses, part, &info);
        if (reports) {
            report_lost(lost, part, info.dtype);
        } else if (!lost->other && info.dtype != lost->dtype) {
            lost->other = part;
            lost->other_dtype = info.dtype;
        }
    }
    pstk_dataset_close(&dataset);
}

/* Report the columns of all parts that the merged data set lacks. Opens each part at most twice. */
static void report_all_lost(const char *const *parts, uint32_t n_parts,
                            const struct pstk_dataset *merged)
{
    struct losses losses = {0};
    for (uint32_t i = 0; i < n_parts; i++)
        look_at_part(&losses, parts[i], merged, 0);
    for (uint32_t i = 0; losses.n && i < n_parts; i++)
        look_at_part(&losses, parts[i], merged, 1);
    free(losses.at);
}

static int report(const char *out, const char *const *parts, uint32_t n_parts, double seconds,
                  int json)
{
    struct pstk_dataset_info info = {.size = offsetof(struct pstk_dataset_info, n_left_out)};
    struct pstk_dataset *dataset;
    struct pstk_error err;
    char n[UNIT_SIZE], shards[UNIT_SIZE], time[UNIT_SIZE];
    pstk_error_init(&err, sizeof err);
    if (opening_dataset(&dataset, out, &err) < 0)
        return status_refuse(&err, out);
    int r = pstk_dataset_get_info(dataset, &info);
    report_all_lost(parts, n_parts, dataset);
    pstk_dataset_close(&dataset);
    if (r < 0)
        return status_of_code(r);
    if (json) {
        struct json_t *object = json_make_object();
        json_put_text(object, "path", out);
        json_put_count(object, "n_parts", n_parts);
        json_put_count(object, "n_samples", info.n_samples);
        json_put_count(object, "n_shards", info.n_shards);
        json_put_count(object, "bytes", info.bytes);
        json_put_text(object, "identity", info.identity);
        return json_print(object, STATUS_OK);
    }
    printf("merged %u part%s: %s samples in %s shard%s, in %s\n", n_parts, n_parts == 1 ? "" : "s",
           unit_count(n, info.n_samples), unit_count(shards, info.n_shards),
           info.n_shards == 1 ? "" : "s", unit_seconds(time, seconds));
    message_next("verify", out);
    return message_finish(STATUS_OK);
}

struct merge {
    const char *out, *pack_id;
    int json, overwrite;
    struct progress progress;
};

static int on_progress(void *user, uint64_t n_done, uint64_t n_total)
{
    struct merge *merge = user;
    progress_update(&merge->progress, n_total ? (double)n_done / (double)n_total : -1, n_done);
    return interrupt_seen();
}

/* Report that on_progress stopped the library. Nothing of the work is kept. */
static int say_stopped(const struct merge *merge)
{
    message_say("interrupted: nothing was merged, %s %s; the parts are unchanged", merge->out,
                output_stands(merge->out) ? "is unchanged" : "is not a data set");
    return interrupt_status();
}

/* Return 1 when the message names a part, so it is not about OUT. */
static int names_part(const struct pstk_error *err, const char *const *parts, uint32_t n_parts)
{
    for (uint32_t i = 0; err->code != PSTK_EEXIST && i < n_parts; i++) {
        const char *at = strstr(err->message, parts[i]);
        if (at && (at == err->message || at[-1] == ' ') &&
            strchr(" ,:;/", at[strlen(parts[i])])) /* or a terminating 0 */
            return 1;
    }
    return 0;
}

static int merge(struct merge *m, const char *const *parts, uint32_t n_parts)
{
    const struct pstk_merge_settings settings = {.size = sizeof settings,
                                                 .parts = parts,
                                                 .n_parts = n_parts,
                                                 .out = m->out,
                                                 .pack_id = m->pack_id,
                                                 .overwrite = (uint32_t)m->overwrite,
                                                 .on_progress = on_progress,
                                                 .user = m};
    struct pstk_error err;
    double start = unit_now();
    pstk_error_init(&err, sizeof err);
    progress_begin(&m->progress, "merging", "bytes");
    int r = pstk_merge(&settings, &err);
    progress_end(&m->progress);
    if (r == PSTK_ECANCELED && interrupt_seen())
        return say_stopped(m);
    if (r < 0)
        return names_part(&err, parts, n_parts) ? status_refuse(&err, NULL)
                                                : output_refuse(&err, m->out);
    int status = report(m->out, parts, n_parts, unit_now() - start, m->json);
    if (status)
        message_say("%s was still merged completely", m->out);
    else if (interrupt_seen())
        return interrupt_say("but the data set was complete already");
    return status;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options = {.command = self, .argc = argc, .argv = argv};
    struct merge m = {.json = 0};
    int c;
    while ((c = options_next(&options)) > 0)
        if (c == OPT_PACK_ID && task_set_pack_id(&m.pack_id, optarg) < 0)
            return STATUS_USAGE;
        else if (c != OPT_PACK_ID)
            *(c == OPT_JSON ? &m.json : &m.overwrite) = 1;
    if (c < 0 || options_operands(&options, 2, 0, "PART... and OUT") < 0)
        return options.status;
    int n = options_n_operands(&options);
    m.out = options_operand(&options, n - 1);
    interrupt_install();
    interrupt_ignore_pipe();
    return merge(&m, (const char *const *)(argv + optind), (uint32_t)(n - 1));
}

const struct command command_merge = {
    .name = "merge",
    .summary = "join the parts of a data set",
    .operands = "PART... OUT",
    .text =
        "Join the parts that `penstock pack --part I/N` wrote, all N of them, into the data set "
        "OUT. Or join parts that `penstock pack --task` wrote, any number of them and in the order "
        "given; merge refuses two attempts at one task, and parts of another pack. Merge links the "
        "shards and does not write them again (it copies them where the file system refuses "
        "links). The sample ids are those of a single pack. The parts stay, and may be removed "
        "afterwards. A merge that Ctrl-C stops leaves OUT and the parts unchanged.\n",
    .options = table,
    .examples = "penstock merge part0 part1 part2 part3 train\n",
    .exit_status = "0 merged; 1 a damaged part; 2 wrong usage, path, or parts that do not fit; "
                   "130 Ctrl-C",
    .run = run,
};
