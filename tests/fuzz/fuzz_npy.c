/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_npy: any bytes as the head of a .npy file, as they are and behind a right preamble. A head
 * that passes gives an array whose sizes agree and fit. As a file of its own it gives a field, or
 * bytes, and then the elements of the field or what is wrong with them.
 */
#include "base/little.h"
#include "format/arrays/npy.h"
#include "format/coding.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *bytes, size_t size)
{
    struct pstk__array h;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const int rc = pstk__npy_header_parse(&h, bytes, size, "x.npy", &err);
    if (rc < 0) {
        if (rc != err.code || err.message[0] == 0)
            abort();
        return;
    }
    uint64_t row = pstk_dtype_size(h.dtype);
    if (row == 0 || h.n_dims < 1 || h.n_dims > PSTK__ARRAY_MAX_DIMS)
        abort();
    for (uint32_t d = 1; d < h.n_dims; d++) {
        if (h.shape[d] == 0 || h.shape[d] > 0xffffffffull / row)
            abort();
        row *= h.shape[d];
    }
    if (h.row_size != row || h.offset < 10 || h.offset > size || h.shape[0] > (1ull << 44) / row ||
        h.end != h.offset + h.shape[0] * row)
        abort();
}

/* The bytes as a value: those of a field that they gave, and of one that they may not fit. */
static void check_value(const uint8_t *bytes, size_t size)
{
    struct pstk__index_field fields[2] = {{.coding = PSTK__CODING_NPY}};
    pstk__coding_by_suffix(&fields[0], "x.npy");
    pstk__coding_observe(&fields[0], bytes, size < PSTK__CODING_HEAD ? size : PSTK__CODING_HEAD);
    pstk__coding_observe(&fields[0], bytes, size);
    pstk__coding_settle(&fields[0]);
    fields[1] = fields[0];
    fields[1].field = (struct pstk_field){
        .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_F32, .n_dims = 2, .shape = {0, 3}};
    for (uint32_t i = 0; i < 2; i++) {
        struct pstk__field_view view;
        char text[160] = "";
        const char *wrong = pstk__coding_view(&view, &fields[i], bytes, size, text);
        if (wrong ? !wrong[0] || !memchr(wrong, 0, sizeof text)
                  : view.data < bytes || view.data + view.stored_size != bytes + size)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* In memory of exactly its size, so that a read past it is seen. */
    uint8_t *exact = malloc(size + 10);
    if (!exact || size > 60000)
        return free(exact), 0;
    memcpy(exact, "\x93NUMPY\x01\x00", 8);
    pstk__put16(exact + 8, (uint16_t)size);
    if (size)
        memcpy(exact + 10, data, size);
    check(exact, size + 10);
    check_value(exact, size + 10);
    if (size)
        memmove(exact, data, size);
    uint8_t *shrunk = realloc(exact, size ? size : 1);
    check(shrunk ? shrunk : exact, size);
    check_value(shrunk ? shrunk : exact, size);
    free(shrunk ? shrunk : exact);
    return 0;
}
