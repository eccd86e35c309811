/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_manifest: any bytes as a manifest: as they are, and as the text before a right checksum, so
 * that the keys are reached. What parses must print, and what was printed must parse to the same
 * text.
 */
#include "base/crc32c.h"
#include "format/pstk/manifest_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round(struct pstk__manifest *m)
{
    char *first, *second;
    uint64_t first_size, second_size;
    struct pstk__manifest again;
    if (pstk__manifest_print(m, &first, &first_size, NULL) < 0 ||
        pstk__manifest_parse(&again, first, first_size, "again", NULL) < 0 ||
        pstk__manifest_print(&again, &second, &second_size, NULL) < 0 ||
        first_size != second_size || memcmp(first, second, first_size) != 0)
        abort();
    pstk__manifest_free(&again);
    free(first);
    free(second);
}

static void parse(const void *bytes, size_t size)
{
    struct pstk__manifest m;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    int r = pstk__manifest_parse(&m, bytes, size, "manifest.json", &err);
    if (r < 0 && (r != err.code || err.message[0] == 0 || m.shards || m.names.n))
        abort();
    if (r == 0)
        check_round(&m);
    pstk__manifest_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse(data, size);
    char *sealed = malloc(size + 23);
    if (!sealed)
        return 0;
    if (size)
        memcpy(sealed, data, size);
    snprintf(sealed + size, 23, ",\"crc32c\":\"%08x\"}\n", pstk__crc32c(0, data, size));
    parse(sealed, size + 22);
    free(sealed);
    return 0;
}
