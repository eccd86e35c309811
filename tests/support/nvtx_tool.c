/* SPDX-License-Identifier: Apache-2.0 */
/* A profiler for tests/observe/test_trace.c: NVTX loads it into the program, and it counts ranges
 * by name.
 */
#include <nvtx3/nvToolsExt.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* Counted by the test: "" counts ends. */
EXPORT int nvtx_tool_count(const char *name);
EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);

static const char *const names[] = {"", "read", "decode", "copy", "next", "lease"};
static atomic_int counts[sizeof names / sizeof *names];
static int domain; /* its address is the domain */

static void count(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            atomic_fetch_add(&counts[i], 1);
}

int nvtx_tool_count(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return atomic_load(&counts[i]);
    return -1;
}

static nvtxDomainHandle_t create(const char *name)
{
    return strcmp(name, "penstock") == 0 ? (nvtxDomainHandle_t)(void *)&domain : NULL;
}

static int push(nvtxDomainHandle_t d, const nvtxEventAttributes_t *a)
{
    if ((void *)d == &domain)
        count(a->message.ascii);
    return 0;
}

static int pop(nvtxDomainHandle_t d)
{
    if ((void *)d == &domain)
        count("");
    return 0;
}

static nvtxRangeId_t start(nvtxDomainHandle_t d, const nvtxEventAttributes_t *a)
{
    push(d, a);
    return 7;
}

static void end(nvtxDomainHandle_t d, nvtxRangeId_t range)
{
    if (range == 7)
        pop(d);
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *tables = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned int size = 0;
    if (!tables || !tables->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) ||
        size <= NVTX_CBID_CORE2_DomainCreateA)
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    *table[NVTX_CBID_CORE2_DomainRangeStartEx] = (NvtxFunctionPointer)start;
    *table[NVTX_CBID_CORE2_DomainRangeEnd] = (NvtxFunctionPointer)end;
    return 1;
}
