/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/residency.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#define WEIGHT 32u /* an answer moves the share by 1 / WEIGHT of the way */
/* From this share on, reads are handed over. */
#define HOT (PSTK__RESIDENT_ALL - PSTK__RESIDENT_ALL / 64)
#define BEGIN 128u /* reads of a lane that are all probed */
#define PERIOD 16u /* of later ones, one in so many is */
#define PAGE 4096u /* bytes, or more */

void pstk__residency_init(struct pstk__residency *residency, int off)
{
    *residency = (struct pstk__residency){.off = off, .share = PSTK__RESIDENT_ALL / 2};
}

static void learn(struct pstk__residency *residency, int is_resident)
{
    const uint32_t share = residency->share;
    residency->share = is_resident ? share + (PSTK__RESIDENT_ALL - share + WEIGHT - 1) / WEIGHT
                                   : share - share / WEIGHT;
}

/* Take what workers found to be gone into the share. */
static void learn_from_workers(struct pstk__residency *residency)
{
    const uint32_t n = atomic_load_explicit(&residency->n_gone, memory_order_relaxed);
    for (uint32_t i = 0; i < WEIGHT && residency->n_seen != n; i++, residency->n_seen++)
        learn(residency, 0);
    residency->n_seen = n;
}

/* Try once to read at an offset: bytes read, or a negative errno. flags: RWF_NOWAIT: do not wait
 * for storage. */
static int64_t read_parts(const struct pstk__read *read, const struct iovec *parts,
                          uint32_t n_parts, uint64_t offset, int flags)
{
    const ssize_t n = preadv2(read->from->fd, parts, (int)n_parts, (off_t)offset, flags);
    return n < 0 ? -errno : n;
}

static int is_refusal(int64_t n)
{
    return n == -EOPNOTSUPP || n == -EINVAL || n == -ENOSYS || n == -EPERM;
}

static int has_byte(struct pstk__residency *residency, const struct pstk__read *read,
                    uint64_t offset)
{
    uint8_t byte;
    const struct iovec part = {.iov_base = &byte, .iov_len = 1};
    const int64_t n = read_parts(read, &part, 1, offset, RWF_NOWAIT);
    if (is_refusal(n)) /* for this file, and likely for all */
        residency->off = residency->refused = 1;
    else if (n == 1 || n == -EAGAIN)
        learn(residency, n == 1);
    return n == 1; /* other errors: the backend meets them again, and reports them */
}

/* Return 1 if the last byte of the read is in the page cache and, where it lies on another page,
 * the first one too: neighbours of the record that were read have left a page at each end. */
static int probe(struct pstk__residency *residency, const struct pstk__read *read)
{
    const uint64_t first = read->offset, last = first + read->size - 1;
    return has_byte(residency, read, last) &&
           (first / PAGE == last / PAGE || has_byte(residency, read, first));
}

/* Probes that miss cost the storage a page each, so they are few once the begin is over. */
static int probe_is_due(const struct pstk__residency *residency)
{
    return residency->n_asked <= BEGIN || residency->n_asked % PERIOD == 0;
}

int pstk__residency_holds(struct pstk__residency *residency, const struct pstk__read *read)
{
    if (residency->off || read->size == 0)
        return 0;
    if (read->from->in_memory)
        return 1;
    learn_from_workers(residency);
    residency->n_asked++;
    if (probe_is_due(residency) && !probe(residency, read))
        return 0;
    /* Of a data set that is read for the first time, more and more reads have both ends in the page
     * cache, left there by their neighbours, and nothing between. So one answer is not enough. */
    return residency->share >= HOT;
}

/* Read the bytes of the read from `start` on, and wait for storage. */
static int64_t read_rest(const struct pstk__read *read, const struct iovec *parts, uint32_t n_parts,
                         uint32_t start)
{
    struct iovec rest[PSTK__READ_PARTS];
    uint32_t skipped = 0;
    uint64_t before = start; /* bytes of the parts that are left before `start` */
    for (; before >= parts[skipped].iov_len; skipped++)
        before -= parts[skipped].iov_len;
    memcpy(rest, parts + skipped, (n_parts - skipped) * sizeof *rest);
    rest[0].iov_base = (uint8_t *)rest[0].iov_base + before;
    rest[0].iov_len -= before;
    const int64_t got = read_parts(read, rest, n_parts - skipped, read->offset + start, 0);
    if (!is_refusal(got))
        return got;
    return read->from->store->read_at(read->from, rest[0].iov_base, rest[0].iov_len,
                                      read->offset + start);
}

int pstk__read_resident(struct pstk__read *read, const struct iovec *parts, uint32_t n_parts)
{
    pstk__reader_begin(read);
    const int is_sure = read->from->in_memory;
    int64_t got = is_sure ? 0 : read_parts(read, parts, n_parts, read->offset, RWF_NOWAIT);
    const int has_waited = !is_sure && got != (int64_t)read->size && !is_refusal(got);
    /* Nothing was there, for which Linux 5.9 and 5.10 say 0, or an error or the end of the file,
     * which the plain read meets again. */
    if (got <= 0)
        got = read_rest(read, parts, n_parts, 0);
    while (!pstk__reader_result(read, (int32_t)got))
        got = read_rest(read, parts, n_parts, pstk__reader_start(read));
    return !has_waited;
}
