/* SPDX-License-Identifier: Apache-2.0 */
#include "command/explain.h"

#include <inttypes.h>
#include <stdio.h>

#include "option/files.h"
#include "ui/json.h"
#include "ui/message.h"
#include "ui/status.h"
#include "ui/text.h"
#include "ui/unit.h"

#define TEXT_SIZE 400
#define INDENT 13 /* columns before the text of a line */

/* An order, and the bytes of the data set (or of its subset) spread over the samples. */
struct explained {
    const struct pipeline *pipeline;
    struct pstk_order_explanation order;
    double record;       /* bytes, mean */
    double block;        /* bytes, mean; 0: the order has no blocks */
    double memory;       /* bytes of the blocks that this rank's windows lie in */
    double rank_reading; /* bytes that this rank reads in an epoch; mean of all ranks */
};

static void measure(struct explained *explained)
{
    const struct pstk_order_explanation *order = &explained->order;
    const struct pstk_dataset_info *info = &explained->pipeline->info;
    explained->record = (double)info->bytes / (double)info->n_samples;
    const double bytes = explained->record * (double)explained->pipeline->n_samples;
    explained->block = order->n_blocks ? bytes / (double)order->n_blocks : 0;
    explained->memory = explained->block * (double)order->blocks_of_rank;
    explained->rank_reading = bytes * order->n_readings / (double)explained->pipeline->world;
}

static void line(const char *title, const char *text)
{
    printf("  %-10s ", title);
    text_print_wrapped(stdout, text, INDENT);
}

static void print_ways(const struct explained *explained)
{
    const struct pstk_order_explanation *order = &explained->order;
    const uint64_t others = order->ranks_of_way - 1;
    const int is_one = order->ways_of_rank == 1;
    char text[TEXT_SIZE], n[UNIT_SIZE], ranks[UNIT_SIZE];
    unit_count(n, order->ways_of_rank);
    if (others == 0)
        snprintf(text, sizeof text, "%s of %u; no other rank reads %s", n, order->ways,
                 is_one ? "it" : "them");
    else
        snprintf(text, sizeof text, "%s of %u; %s other rank%s %s, too", n, order->ways,
                 unit_count(ranks, others), others == 1 ? " reads" : "s read",
                 is_one ? "it" : "each of them");
    line("ways", text);
}

static void print_mixed(const struct explained *explained)
{
    const struct pstk_order_explanation *order = &explained->order;
    const uint64_t n_samples = explained->pipeline->n_samples;
    char text[TEXT_SIZE], n[UNIT_SIZE];
    if (subset_draws(&explained->pipeline->subset))
        snprintf(text, sizeof text,
                 "each sample is drawn from all, by weight: some come several times in an epoch, "
                 "others not at all");
    else if (order->n_mixed == n_samples)
        snprintf(text, sizeof text, "all samples with each other");
    else if (order->n_mixed == 1)
        snprintf(text, sizeof text, "nothing: samples come by their ids");
    else
        snprintf(text, sizeof text,
                 "%s samples at a time, in the windows of all ways: %.3g %% of %s",
                 unit_count(n, order->n_mixed), 100 * (double)order->n_mixed / (double)n_samples,
                 explained->pipeline->members ? "the subset" : "the data set");
    line("mixed", text);
}

static void print_reading(const struct explained *explained)
{
    const struct pstk_order_explanation *order = &explained->order;
    char text[TEXT_SIZE], n[UNIT_SIZE], size[UNIT_SIZE], block[UNIT_SIZE], rank[UNIT_SIZE];
    unit_bytes(size, explained->record);
    unit_bytes(rank, explained->rank_reading);
    if (!order->n_blocks && order->n_mixed > 1) {
        snprintf(text, sizeof text,
                 "one random read of %s on average for each sample; %s an epoch for each rank",
                 size, rank);
        line("reads", text);
        return;
    }
    if (!order->n_blocks) {
        snprintf(text, sizeof text,
                 "one sample after the other, %s on average; %s an epoch for each rank", size,
                 rank);
        line("reads", text);
        return;
    }
    snprintf(text, sizeof text, "%s of %u samples, %s on average; a sample has %s",
             unit_count(n, order->n_blocks), order->block, unit_bytes(block, explained->block),
             size);
    line("blocks", text);
    const char *what = subset_is_range(&explained->pipeline->subset)
                           ? "whole blocks, each"
                           : "the samples of a block, which the subset has scattered, each";
    if (order->n_readings < 1.005)
        snprintf(text, sizeof text, "%s once by all ranks together; %s an epoch for each rank",
                 what, rank);
    else
        snprintf(text, sizeof text,
                 "%s %.3g times by all ranks together; %s an epoch for each rank", what,
                 order->n_readings, rank);
    line("reads", text);
}

static void print_memory(const struct explained *explained)
{
    const struct pstk_order_explanation *order = &explained->order;
    char text[TEXT_SIZE], n[UNIT_SIZE], bytes[UNIT_SIZE];
    if (!order->n_blocks)
        return;
    snprintf(text, sizeof text,
             "%s for each rank, of %s block%s that its windows lie in at a time; a loader holds "
             "more, what it reads ahead",
             unit_bytes(bytes, explained->memory), unit_count(n, order->blocks_of_rank),
             order->blocks_of_rank == 1 ? "" : "s");
    line("memory", text);
}

static void print_batches(const struct explained *explained)
{
    const struct pipeline *pipeline = explained->pipeline;
    const struct pstk_order_explanation *order = &explained->order;
    char text[TEXT_SIZE], n[UNIT_SIZE];
    if (order->n_batches == 0)
        snprintf(text, sizeof text, "none: there are fewer samples than a batch of all ranks has");
    else
        snprintf(text, sizeof text, "%s of %u row%s; the last has %u",
                 unit_count(n, order->n_batches), pipeline->batch_size,
                 pipeline->batch_size == 1 ? "" : "s", order->last_rows);
    line("batches", text);
}

/* Return 1 when another number of ways gives each rank ways of its own. */
static int is_advised(const struct explained *explained)
{
    const struct pstk_order_explanation *order = &explained->order;
    return order->n_blocks && order->ranks_of_way > 1 &&
           explained->pipeline->world <= PSTK_MAX_WAYS;
}

static int print_text(const struct explained *explained)
{
    const struct pipeline *pipeline = explained->pipeline;
    const struct pstk_order_explanation *order = &explained->order;
    char n[UNIT_SIZE], bytes[UNIT_SIZE], files[FILES_SIZE], text[TEXT_SIZE];
    char ranks[RANKS_TEXT];
    text_print(stdout, pipeline->path);
    printf(": ");
    if (pipeline->members)
        printf("%s %s%s an epoch, of ", unit_count(n, pipeline->n_samples),
               subset_draws(&pipeline->subset) ? "draw" : "sample",
               pipeline->n_samples == 1 ? "" : "s");
    printf("%s sample%s, %s in %s\n", unit_count(n, pipeline->info.n_samples),
           pipeline->info.n_samples == 1 ? "" : "s",
           unit_bytes(bytes, (double)pipeline->info.bytes), files_text(&pipeline->info, files));
    printf("%s order", option_choice_name(names_order, pipeline->order));
    if (order->n_blocks)
        printf(" (%u way%s, blocks of %u, windows of %u)", order->ways, order->ways == 1 ? "" : "s",
               order->block, order->window);
    printf(", %s\n\n", ranks_text(&pipeline->ranks, ranks));
    print_mixed(explained);
    if (order->n_blocks)
        print_ways(explained);
    print_reading(explained);
    print_memory(explained);
    print_batches(explained);
    if (is_advised(explained)) {
        snprintf(text, sizeof text,
                 "--ways %u gives each of %u ranks ways of its own, so that each block is "
                 "read once; it is another order",
                 order->advised_ways, pipeline->world);
        line("advice", text);
    }
    return message_finish(STATUS_OK);
}

static void put_blocks(struct json_t *object, const struct explained *explained)
{
    const struct pstk_order_explanation *order = &explained->order;
    const int has_blocks = order->n_blocks > 0;
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {{"ways", order->ways},
                  {"block", order->block},
                  {"window", order->window},
                  {"n_blocks", order->n_blocks},
                  {"ways_of_rank", order->ways_of_rank},
                  {"ranks_of_way", order->ranks_of_way},
                  {"blocks_of_rank", order->blocks_of_rank},
                  {"block_bytes", (uint64_t)(explained->block + 0.5)},
                  {"memory_bytes", (uint64_t)(explained->memory + 0.5)}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        json_put_count(object, counts[i].name, has_blocks ? counts[i].value : PSTK_NONE);
    json_put_count(object, "advised_ways", is_advised(explained) ? order->advised_ways : PSTK_NONE);
}

static int print_json(const struct explained *explained)
{
    const struct pipeline *pipeline = explained->pipeline;
    const struct pstk_order_explanation *order = &explained->order;
    struct json_t *object = json_make_object();
    json_put_text(object, "path", pipeline->path);
    json_put_count(object, "n_samples", pipeline->n_samples);
    json_put_text(object, "order", option_choice_name(names_order, pipeline->order));
    ranks_put(&pipeline->ranks, object);
    json_put_count(object, "n_mixed", order->n_mixed);
    put_blocks(object, explained);
    json_put_real(object, "readings", order->n_readings);
    json_put_count(object, "record_bytes", (uint64_t)(explained->record + 0.5));
    json_put_count(object, "rank_reads_bytes", (uint64_t)(explained->rank_reading + 0.5));
    json_put_count(object, "batch_size", pipeline->batch_size);
    json_put_count(object, "n_batches", order->n_batches);
    json_put_count(object, "last_rows", order->last_rows);
    return json_print(object, STATUS_OK);
}

int explain_print(const struct pipeline *pipeline, int json)
{
    struct explained explained = {.pipeline = pipeline, .order.size = sizeof explained.order};
    const struct pstk_order_settings settings = pipeline_order(pipeline);
    const int r = pstk_order_explain(&settings, &explained.order);
    if (r < 0) {
        message_say("--explain: %s", pstk_strerror(r));
        return status_of_code(r);
    }
    measure(&explained);
    return json ? print_json(&explained) : print_text(&explained);
}
