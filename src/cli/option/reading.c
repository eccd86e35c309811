/* SPDX-License-Identifier: Apache-2.0 */
#include "option/reading.h"

#include <stdio.h>
#include <string.h>

#include "ui/unit.h"

/* Bytes of a read that takes longer than a seek of a spinning disk, some 10 ms, or than a request
 * to another machine. Larger reads gain little. */
#define LARGE_ON_DISK 4e6
#define LARGE_REMOTE 1e6

int reading_is_remote(const char *file_system)
{
    return strcmp(file_system, "nfs") == 0 || strcmp(file_system, "lustre") == 0 ||
           strcmp(file_system, "gpfs") == 0 || strcmp(file_system, "fuse") == 0;
}

static double record_size(const struct pstk_dataset_info *info)
{
    return info->n_samples ? (double)info->bytes / (double)info->n_samples : 0;
}

int reading_is_scattered(uint32_t order, const struct pstk_dataset_info *info)
{
    return order == PSTK_ORDER_FULL && record_size(info) < LARGE_REMOTE;
}

int reading_judge(const struct pstk_machine *machine, const struct pstk_dataset_info *info,
                  uint32_t world, struct reading *reading)
{
    const int is_remote = reading_is_remote(machine->file_system), spins = machine->rotational == 1;
    const double record = record_size(info);
    struct pstk_order_settings settings = {.size = sizeof settings,
                                           .order = PSTK_ORDER_WINDOWED,
                                           .n_samples = info->n_samples,
                                           .batch_size = 1,
                                           .world = world};
    struct pstk_order_explanation order = {.size = sizeof order};
    char size[UNIT_SIZE], memory[UNIT_SIZE];
    if (info->bytes < machine->memory || (!is_remote && !spins) ||
        record >= (spins ? LARGE_ON_DISK : LARGE_REMOTE))
        return 0;
    if (pstk_order_explain(&settings, &order) < 0)
        return 0;
    settings.ways = order.advised_ways;
    if (pstk_order_explain(&settings, &order) < 0 || order.n_blocks == 0)
        return 0;
    const double block = (double)info->bytes / (double)order.n_blocks;
    snprintf(reading->text, sizeof reading->text,
             "random reads of %s, a sample on average, are slow on %s", unit_bytes(size, record),
             spins ? "a spinning disk, as the kernel calls this one" : "files of another machine");
    snprintf(reading->advice, sizeof reading->advice,
             "for %u rank%s --order windowed --ways %u reads blocks of %s, each once, and holds "
             "%s of them for each rank; it mixes less: `penstock order --explain`",
             world, world == 1 ? "" : "s", order.ways, unit_bytes(size, block),
             unit_bytes(memory, block * (double)order.blocks_of_rank));
    return 1;
}
