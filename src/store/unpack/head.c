/* SPDX-License-Identifier: Apache-2.0 */
/* head: the first bytes that a compressed file unpacks to. */
#include "store/unpack/packing.h"
#include "store/unpack/unpack.h"

#include <errno.h>
#include <stdlib.h>

#define INPUT 65536 /* bytes of the file, which are enough to unpack the head */

static int64_t unpack(const uint8_t *input, uint64_t size, uint8_t *head, uint64_t n)
{
    const struct pstk__packing *packing = pstk__packing_of(pstk__packing_find(input, size));
    if (!packing)
        return 0;
    struct pstk__unpack_io io = {.in = input, .n_in = size, .out = head, .n_out = n};
    uint8_t *memory = aligned_alloc(64, packing->memory());
    struct pstk__unpacker *unpacker = memory ? packing->init(memory, packing->memory()) : NULL;
    const char *why;
    int64_t r = unpacker ? 0 : -ENOMEM;
    if (unpacker) {
        packing->begin(unpacker);
        packing->step(unpacker, &io, 0, &why); /* damage leaves fewer bytes than wanted */
        r = (int64_t)(n - io.n_out);
    }
    free(memory);
    return r;
}

int64_t pstk__unpack_head(const struct pstk__store *store, const char *path, uint8_t *head,
                          uint64_t n)
{
    struct pstk__file file;
    uint8_t *input = malloc(INPUT);
    int64_t r = input ? store->open(store, &file, path) : -ENOMEM;
    if (r == 0) {
        r = pstk__file_read(&file, input, INPUT, 0);
        pstk__file_end(&file);
        r = r > 0 ? unpack(input, (uint64_t)r, head, n) : r;
    }
    free(input);
    return r;
}
