/* SPDX-License-Identifier: Apache-2.0 */
/* merge: parts that several packs wrote become one data set. */
#include <stdio.h>

#include <penstock/format.h>

#include "command.h"
#include "interrupt.h"
#include "json.h"
#include "message.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "unit.h"

enum { OPT_OVERWRITE = 256, OPT_JSON };

static const struct option table[] = {{"overwrite", no_argument, NULL, OPT_OVERWRITE},
                                      {"json", no_argument, NULL, OPT_JSON},
                                      {"help", no_argument, NULL, 'h'},
                                      OPTION_END};

static const char help[] =
    "usage: penstock merge PART... OUT [--overwrite] [--json]\n"
    "\n"
    "Join the parts that `penstock pack --part I/N` wrote, all N of them, into the data set OUT.\n"
    "Shards are linked, not written again (copied where linking is refused), and the sample ids\n"
    "are those of a single pack. The parts stay, and may be removed after.\n"
    "\n"
    "  --overwrite   replace OUT if it is a data set; until the last step it is as it was\n"
    "  --json        print one JSON object\n"
    "\n"
    "example:\n"
    "  penstock merge part0 part1 part2 part3 train\n"
    "\n"
    "A merge that Ctrl-C stops leaves OUT and the parts as they were.\n"
    "\n"
    "exit status: 0 merged; 1 a damaged part; 2 wrong usage, path, or parts that do not fit; 130\n"
    "Ctrl-C\n";

static int report(const char *out, uint32_t n_parts, double seconds, int json)
{
    struct pstk_dataset_info info = {.size = sizeof info};
    struct pstk_dataset *d;
    struct pstk_error err;
    char n[UNIT_SIZE], shards[UNIT_SIZE], time[UNIT_SIZE];
    pstk_error_init(&err, sizeof err);
    if (pstk_dataset_open(&d, out, &err) < 0)
        return message_refuse(&err, out);
    int r = pstk_dataset_get_info(d, &info);
    pstk_dataset_close(&d);
    if (r < 0)
        return message_status(r);
    if (json) {
        struct json_t *o = json_make_object();
        json_put_text(o, "path", out);
        json_put_count(o, "n_parts", n_parts);
        json_put_count(o, "n_samples", info.n_samples);
        json_put_count(o, "n_shards", info.n_shards);
        json_put_count(o, "bytes", info.bytes);
        json_put_text(o, "identity", info.identity);
        return json_print(o, STATUS_OK);
    }
    printf("merged %u part%s: %s samples in %s shard%s, in %s\n", n_parts, n_parts == 1 ? "" : "s",
           unit_count(n, info.n_samples), unit_count(shards, info.n_shards),
           info.n_shards == 1 ? "" : "s", unit_seconds(time, seconds));
    message_next("penstock bench", out);
    return message_finish(STATUS_OK);
}

struct merge {
    const char *out;
    int json, overwrite;
    struct progress progress;
};

static int on_progress(void *user, uint64_t n_done, uint64_t n_total)
{
    struct merge *m = user;
    progress_update(&m->progress, n_total ? (double)n_done / (double)n_total : -1, n_done);
    return interrupt_seen();
}

/* The library was stopped by on_progress: nothing is left of the work. */
static int say_stopped(const struct merge *m)
{
    message_say("interrupted: nothing was merged, %s %s; the parts are as they were", m->out,
                output_stands(m->out) ? "is as it was" : "is no data set");
    return interrupt_status();
}

static int merge(struct merge *m, const char *const *parts, uint32_t n_parts)
{
    struct pstk_error err;
    double start = unit_now();
    pstk_error_init(&err, sizeof err);
    progress_begin(&m->progress, "merging", "bytes");
    int r = pstk_merge_watched(parts, n_parts, m->out, m->overwrite, on_progress, m, &err);
    progress_end(&m->progress);
    if (r == PSTK_ECANCELED && interrupt_seen())
        return say_stopped(m);
    if (r < 0)
        return output_refuse(&err, m->out);
    int status = report(m->out, n_parts, unit_now() - start, m->json);
    if (status)
        message_say("%s was merged all the same, whole", m->out);
    else if (interrupt_seen())
        return interrupt_say("but the data set was complete already");
    return status;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options o = {.command = self, .table = table, .letters = "", .argc = argc, .argv = argv};
    struct merge m = {.json = 0};
    int c;
    while ((c = options_next(&o)) > 0)
        *(c == OPT_JSON ? &m.json : &m.overwrite) = 1;
    if (c < 0 || options_operands(&o, 2, 0, "PART... and OUT") < 0)
        return o.status;
    int n = options_n_operands(&o);
    m.out = options_operand(&o, n - 1);
    interrupt_install();
    interrupt_ignore_pipe();
    return merge(&m, (const char *const *)(argv + optind), (uint32_t)(n - 1));
}

const struct command command_merge = {"merge", "join the parts of a data set", help, run};
