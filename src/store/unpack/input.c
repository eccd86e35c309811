/* SPDX-License-Identifier: Apache-2.0 */
#include "store/unpack/input.h"

#include "base/error.h"

#include <inttypes.h>

#define PROGRESS (4u << 20) /* bytes of the file between two reports */

static int check_same(const struct pstk__unpack_input *input, struct pstk_error *err)
{
    const int r = pstk__file_check_same(&input->file, input->path, input->size, input->changed_ns,
                                        PSTK_STAGE_OPEN, err);
    return r == PSTK_EBADMSG ? pstk__fail_at(err, r, input->name, PSTK_NONE, 0, 0) : r;
}

int pstk__unpack_input_open(struct pstk__unpack_input *input, const struct pstk__store *store,
                            struct pstk_error *err)
{
    const int r = store->open(store, &input->file, input->path);
    return r < 0 ? pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot open %s", input->path)
                 : check_same(input, err);
}

int pstk__unpack_input_more(struct pstk__unpack_input *input, struct pstk_error *err)
{
    const uint64_t left = input->size - input->n_read;
    if (input->n_read - input->reported >= PROGRESS || left == 0) {
        const uint64_t n = input->n_read - input->reported;
        input->reported = input->n_read;
        if (n && input->progress && input->progress(input->user, n))
            return PSTK_ECANCELED;
    }
    const int64_t n =
        pstk__file_read(&input->file, input->buffer,
                        left < PSTK__UNPACK_READ ? left : PSTK__UNPACK_READ, input->n_read);
    if (n < 0)
        return pstk__fail_errno(err, (int)-n, PSTK_STAGE_OPEN, "cannot read %s", input->path);
    input->io.in = input->buffer;
    input->io.n_in = (uint64_t)n;
    input->n_read += (uint64_t)n;
    return n > 0;
}

int pstk__unpack_input_end(const struct pstk__unpack_input *input, struct pstk_error *err)
{
    const int r = check_same(input, err);
    return r < 0 || input->n_read == input->size
               ? r
               : pstk__unpack_input_fail(input, PSTK_EBADMSG,
                                         "the file ends here: it was cut while it was read",
                                         "open it again", err);
}

int pstk__unpack_input_fail(const struct pstk__unpack_input *input, int code, const char *why,
                            const char *repair, struct pstk_error *err)
{
    const uint64_t at = pstk__unpack_input_at(input);
    pstk__fail(err, code, PSTK_STAGE_OPEN, "%s: byte %" PRIu64 " of the %s file: %s; %s",
               input->path, at, input->packing, why, repair);
    return pstk__fail_at(err, code, input->name, PSTK_NONE, at, 0);
}
