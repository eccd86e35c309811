/* SPDX-License-Identifier: Apache-2.0 */
#include "command/verdict.h"

#include <stdio.h>
#include <string.h>

#include "command/checkup.h"

#define FEW_FILES 1024

unsigned verdict_lacks(const struct pstk_machine *machine, const struct checkup *checkup)
{
    unsigned lacks = 0;
    if (machine->kernels == PSTK_KERNELS_C)
        lacks |= LACK_KERNELS;
    if (machine->cpu_quota > 0 && machine->cpu_quota < machine->n_cores)
        lacks |= LACK_QUOTA;
    if (machine->io_uring != 1)
        lacks |= LACK_URING;
    else
        lacks |= (machine->fixed_buffers != 1 ? LACK_FIXED_BUFFERS : 0u) |
                 (machine->single_issuer != 1 ? LACK_SINGLE_ISSUER : 0u);
    if (machine->open_files < FEW_FILES && !checkup->is_data_set)
        lacks |= LACK_OPEN_FILES;
    if (machine->direct != 1 && !checkup->is_data_set)
        lacks |= LACK_DIRECT;
    return lacks;
}

/* Append a name to a list, unless it is there already. */
static void list(char *names, size_t size, const char *name)
{
    const size_t n = strlen(names);
    if (!strstr(names, name))
        snprintf(names + n, size - n, "%s%s", n ? ", " : "", name);
}

static void list_findings(const struct checkup *checkup, int are_errors, char *names, size_t size)
{
    for (uint32_t i = 0; i < checkup->n; i++) {
        const struct finding *finding = &checkup->findings[i];
        if (are_errors ? finding->level == FINDING_ERROR
                       : finding->level != FINDING_OK && finding->level != FINDING_ERROR)
            list(names, size, finding->what);
    }
}

static void list_lacks(unsigned lacks, char *names, size_t size)
{
    static const struct {
        unsigned lack;
        const char *name; /* name in doctor's output */
    } lines[] = {{LACK_KERNELS, "kernels"},
                 {LACK_QUOTA, "CPU quota"},
                 {LACK_URING, "io_uring"},
                 {LACK_FIXED_BUFFERS, "fixed buffers"},
                 {LACK_SINGLE_ISSUER, "single issuer"},
                 {LACK_OPEN_FILES, "open files"},
                 {LACK_DIRECT, "direct I/O"},
                 {LACK_GPU, "CUDA"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (lacks & lines[i].lack)
            list(names, size, lines[i].name);
}

static int is_damaged(const struct checkup *checkup)
{
    for (uint32_t i = 0; i < checkup->n; i++)
        if (checkup->findings[i].is_damage)
            return 1;
    return 0;
}

struct verdict verdict_of(const struct checkup *data_set, const struct checkup *ranks,
                          unsigned lacks)
{
    const struct checkup *const checkups[] = {data_set, ranks};
    struct verdict verdict = {.next = NULL};
    char errors[320] = "", others[320] = "";
    list_lacks(lacks, others, sizeof others);
    for (int i = 0; i < 2; i++) {
        list_findings(checkups[i], 1, errors, sizeof errors);
        list_findings(checkups[i], 0, others, sizeof others);
    }
    if (errors[0]) {
        snprintf(verdict.text, sizeof verdict.text, "not usable as it is: see %s", errors);
        verdict.next = is_damaged(data_set) ? "verify" : NULL;
    } else if (others[0]) {
        snprintf(verdict.text, sizeof verdict.text, "works, and could be better: see %s", others);
    } else {
        snprintf(verdict.text, sizeof verdict.text, "fine");
        verdict.next = data_set->is_data_set ? "bench" : NULL;
    }
    return verdict;
}
