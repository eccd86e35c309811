/* SPDX-License-Identifier: Apache-2.0 */
#include "command/local_ranks.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "option/pipeline.h"
#include "ui/json.h"
#include "ui/unit.h"

#define IPC_LOCK 14 /* CAP_IPC_LOCK: RLIMIT_MEMLOCK does not apply */
#define NAME "ranks"

__attribute__((format(printf, 4, 5))) static struct finding *
find(struct local_ranks *ranks, const char *what, enum finding_level level, const char *format, ...)
{
    struct finding *finding = &ranks->found.findings[ranks->found.n++];
    *finding = (struct finding){.what = what, .level = level};
    va_list args;
    va_start(args, format);
    vsnprintf(finding->text, sizeof finding->text, format, args);
    va_end(args);
    return finding;
}

static void advise(struct finding *finding, const char *text)
{
    snprintf(finding->advice, sizeof finding->advice, "%s", text);
}

/* Return the number of files that this process has open. */
static uint32_t count_files(void)
{
    uint32_t n = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        return 0;
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

/* Return 1 when this process may lock any amount of memory. */
static int may_lock_all(void)
{
    char line[256];
    unsigned long long capabilities = 0;
    FILE *stream = fopen("/proc/self/status", "re");
    if (!stream)
        return 0;
    while (fgets(line, sizeof line, stream))
        if (sscanf(line, "CapEff: %llx", &capabilities) == 1)
            break;
    fclose(stream);
    return capabilities >> IPC_LOCK & 1;
}

/* Add the resources of one rank. */
static void add(struct local_ranks *ranks, const struct pstk_stats *stats)
{
    if (ranks->n_opened == 0 || stats->n_threads < ranks->min_workers)
        ranks->min_workers = stats->n_threads;
    if (stats->n_threads > ranks->max_workers)
        ranks->max_workers = stats->n_threads;
    ranks->n_workers += stats->n_threads;
    ranks->slots += stats->slot_memory;
    ranks->io += stats->io_memory;
    ranks->index += stats->index_memory;
    ranks->scratch += stats->scratch_memory;
    ranks->registered += stats->registered ? stats->io_memory : 0;
    ranks->n_opened++;
}

/* Open the loader of one rank, and read a batch with the first one. Returns 0, or -1 after adding
 * an error to the findings. */
static int open_rank(struct local_ranks *ranks, const struct pstk_settings *settings)
{
    struct pstk_loader *loader;
    struct pstk_batch *batch;
    struct pstk_stats stats = {.size = sizeof stats};
    struct pstk_error err;
    const uint32_t n_before = count_files();
    pstk_error_init(&err, sizeof err);
    if (pstk_open(&loader, settings, &err) < 0) {
        find(ranks, NAME, FINDING_ERROR, "rank %u of %u cannot open the data set: %s",
             settings->ranks.local_rank, ranks->n, err.message);
        return -1;
    }
    if (ranks->n_opened == 0) {
        if (pstk_next(loader, &batch, NULL, -1, &err) == 1)
            pstk_release(&batch, NULL);
        const uint32_t n_after = count_files();
        ranks->n_files = n_after > n_before ? n_after - n_before : 0;
    }
    pstk_get_stats(loader, &stats);
    pstk_close(&loader);
    add(ranks, &stats);
    return 0;
}

/* Open the loaders, one after the other. Returns 0, or -1 when one was refused. */
static int open_all(struct local_ranks *ranks, const char *path, const struct checkup *checkup)
{
    struct pipeline pipeline;
    int r = 0;
    pipeline_init(&pipeline);
    pipeline.read_as = *checkup->fields;
    pipeline.last = PSTK_LAST_SHORT;
    pipeline.ranks.is_world_given = 1;
    pipeline.ranks.found.world = checkup->world > ranks->n ? checkup->world : ranks->n;
    if (pipeline_look(&pipeline, path) || pipeline_build(&pipeline, 0)) {
        find(ranks, NAME, FINDING_ERROR, "see the message on standard error");
        pipeline_free(&pipeline);
        return -1;
    }
    ranks->data_set = pipeline.info.bytes;
    pipeline.settings.ranks.local_world = ranks->n;
    for (uint32_t i = 0; r == 0 && i < ranks->n; i++) {
        pipeline.settings.ranks.rank = pipeline.settings.ranks.local_rank = i;
        r = open_rank(ranks, &pipeline.settings);
    }
    pipeline_free(&pipeline);
    return r;
}

static void judge_cores(struct local_ranks *ranks, const struct pstk_machine *machine)
{
    char workers[64] = "";
    if (ranks->n_opened && ranks->min_workers == ranks->max_workers)
        snprintf(workers, sizeof workers, ", with %u worker%s each", ranks->max_workers,
                 ranks->max_workers == 1 ? "" : "s");
    else if (ranks->n_opened)
        snprintf(workers, sizeof workers, ", with %u to %u workers each", ranks->min_workers,
                 ranks->max_workers);
    struct finding *finding =
        find(ranks, NAME, ranks->n > machine->n_usable ? FINDING_WARNING : FINDING_OK,
             "%u on the %u core%s of this machine%s", ranks->n, machine->n_usable,
             machine->n_usable == 1 ? "" : "s", workers);
    if (ranks->n > machine->n_usable)
        advise(finding, "several ranks share a core: start fewer ranks, or let them use more cores "
                        "(taskset, cpuset and --cpus of a container)");
}

static void judge_memory(struct local_ranks *ranks, const struct pstk_machine *machine)
{
    char all[UNIT_SIZE], slots[UNIT_SIZE], reads[UNIT_SIZE], scratch[UNIT_SIZE], of[UNIT_SIZE];
    const uint64_t total = ranks->slots + ranks->io + ranks->index + ranks->scratch;
    ranks->page_cache = machine->memory > total ? machine->memory - total : 0;
    struct finding *finding = find(
        ranks, "memory", total > machine->memory ? FINDING_WARNING : FINDING_OK,
        "up to %s of %s in all ranks together: %s for batches, %s for reads, up to %s for decoding",
        unit_bytes(all, (double)total), unit_bytes(of, (double)machine->memory),
        unit_bytes(slots, (double)ranks->slots),
        unit_bytes(reads, (double)(ranks->io + ranks->index)),
        unit_bytes(scratch, (double)ranks->scratch));
    if (total > machine->memory)
        advise(finding, "lower batch_size, n_slots or n_threads of each rank");
    const int fits = ranks->data_set <= ranks->page_cache;
    find(ranks, "page cache", FINDING_OK, "%s left; the data set, %s, %s",
         unit_bytes(all, (double)ranks->page_cache), unit_bytes(of, (double)ranks->data_set),
         fits ? "fits: the ranks share it, so it is read from storage once"
              : "does not fit: each epoch reads from storage");
}

static void judge_limits(struct local_ranks *ranks, const struct pstk_machine *machine)
{
    char needed[UNIT_SIZE], limit[UNIT_SIZE];
    ranks->memlock = may_lock_all() ? UINT64_MAX : machine->memlock;
    const int is_over = ranks->io > ranks->memlock && machine->io_uring == 1;
    unit_bytes(needed, (double)ranks->io);
    unit_bytes(limit, (double)ranks->memlock);
    struct finding *finding = find(
        ranks, "memlock", is_over ? FINDING_WARNING : FINDING_OK,
        "%s of I/O memory, which direct reads register; all ranks of a user may lock %s together",
        needed, ranks->memlock == UINT64_MAX ? "any amount" : limit);
    if (is_over)
        advise(finding, "the ranks that come last read without registered buffers, with more CPU "
                        "time: ulimit -l unlimited, LimitMEMLOCK=infinity (systemd), --ulimit "
                        "memlock=-1 (docker)");
    find(ranks, "rank's files", FINDING_OK,
         "%u open after a batch; each rank may have %" PRIu64 " open for itself", ranks->n_files,
         machine->open_files);
}

void local_ranks(struct local_ranks *ranks, const char *path, const struct checkup *checkup,
                 const struct pstk_machine *machine)
{
    if (ranks->n == 0)
        return;
    ranks->found.is_data_set = 1;
    if (checkup->is_data_set && open_all(ranks, path, checkup) < 0)
        return;
    judge_cores(ranks, machine);
    if (ranks->n_opened) {
        judge_memory(ranks, machine);
        judge_limits(ranks, machine);
        return;
    }
    char share[UNIT_SIZE];
    find(ranks, "memory", FINDING_OK,
         "at most %s in each rank, three quarters of the memory over all of them; with a data set "
         "as PATH doctor counts what they take",
         unit_bytes(share, (double)(machine->memory / 4 * 3 / ranks->n)));
}

void local_ranks_put(const struct local_ranks *ranks, struct json_t *object)
{
    if (ranks->n == 0) {
        json_put_null(object, "ranks");
        return;
    }
    struct json_t *one = json_make_object();
    const int is_known = ranks->n_opened == ranks->n;
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {{"workers", ranks->n_workers},
                  {"slot_bytes", ranks->slots},
                  {"io_bytes", ranks->io},
                  {"index_bytes", ranks->index},
                  {"scratch_bytes", ranks->scratch},
                  {"registered_bytes", ranks->registered},
                  {"page_cache_bytes", ranks->page_cache},
                  {"open_files", ranks->n_files},
                  {"data_set_bytes", ranks->data_set}};
    json_put_count(one, "n", ranks->n);
    json_put_count(one, "min_workers", is_known ? ranks->min_workers : PSTK_NONE);
    json_put_count(one, "max_workers", is_known ? ranks->max_workers : PSTK_NONE);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        json_put_count(one, counts[i].name, is_known ? counts[i].value : PSTK_NONE);
    json_put_count(one, "memlock_bytes", is_known ? ranks->memlock : PSTK_NONE); /* any: null */
    checkup_put_findings(&ranks->found, one, "findings");
    json_put(object, "ranks", one);
}
