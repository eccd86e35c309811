/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_folder_values: any bytes as a sample's values in the index of a folder, as they are and with
 * a right CRC32C. Values that pass are within the bytes. Any bytes as a name, shown as a line of
 * text.
 */
#include "base/crc32c.h"
#include "base/little.h"
#include "format/folder/name.h"
#include "format/folder/values.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_within(const void *at, const uint8_t *bytes, size_t size)
{
    return (uintptr_t)at >= (uintptr_t)bytes && (uintptr_t)at < (uintptr_t)bytes + size;
}

static void check_values(const uint8_t *bytes, size_t size)
{
    struct pstk__folder_values values;
    if (pstk__folder_values_read(&values, bytes, size))
        return;
    if (!is_within(values.number + 7, bytes, size) || !is_within(values.path, bytes, size) ||
        !is_within(values.path + values.path_size, bytes, size) ||
        !is_within(values.shown + strlen(values.shown), bytes, size) || values.path_size == 0 ||
        strlen(values.path) != values.path_size)
        abort();
}

/* 1: the path leads out of its folder. */
static int leads_out(const char *path)
{
    char text[PSTK__VALUES_MAX_PATH + 2];
    snprintf(text, sizeof text, "/%s/", path);
    return path[0] == '/' || strstr(text, "/../") != NULL;
}

/* Values are read as they were written, and refused if the path leads out of the folder. */
static void check_name(const char *name)
{
    uint8_t bytes[PSTK__VALUES_MAX];
    struct pstk__folder_values values;
    if (!name[0] || strlen(name) >= PSTK__VALUES_MAX_PATH)
        return;
    const uint32_t size = pstk__folder_values_write(bytes, 5, name);
    if (leads_out(name)) {
        if (!pstk__folder_values_read(&values, bytes, size))
            abort();
        return;
    }
    if (pstk__folder_values_read(&values, bytes, size) || strcmp(values.path, name) != 0 ||
        pstk__utf8_end(values.shown, strlen(values.shown)) != strlen(values.shown))
        abort();
    for (const char *at = values.shown; *at; at++)
        if ((uint8_t)*at < 0x20 || *at == 0x7f)
            abort();
    pstk__folder_name(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* In memory of exactly its size, so that a read past it is seen. */
    uint8_t *exact = malloc(size + 1);
    if (!exact)
        return 0;
    memcpy(exact, data, size);
    exact[size] = 0;
    check_name((const char *)exact);
    uint8_t *shrunk = realloc(exact, size ? size : 1);
    if (!shrunk)
        return free(exact), 0;
    check_values(shrunk, size);
    if (size >= 4)
        pstk__put32(shrunk, pstk__crc32c(0, shrunk + 4, size - 4));
    check_values(shrunk, size);
    free(shrunk);
    return 0;
}
