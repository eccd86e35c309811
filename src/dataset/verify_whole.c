/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/verify_whole.h"

#include "base/error.h"
#include "base/hash.h"
#include "format/files.h"

#include <strings.h>

int pstk__verify_is_damage(int rc, const struct pstk_error *bad)
{
    return rc == PSTK_EBADMSG || rc == PSTK_EIO || (rc < 0 && bad->stage == PSTK_STAGE_DECODE) ||
           (bad->stage == PSTK_STAGE_SHARD &&
            (rc == PSTK_ENOENT || rc == PSTK_EACCES || rc == PSTK_EPERM));
}

/* ---- a field --------------------------------------------------------------------------------- */

/* Read the piece of a cover at offset `at`. Returns 0, or the code of *bad. */
static int read_piece(const struct pstk__verify_whole *whole, const struct pstk__cover *cover,
                      const struct pstk__file *file, uint64_t at, uint64_t size,
                      struct pstk_error *bad)
{
    const struct pstk__source *source = whole->source;
    const int64_t n = pstk__file_read(file, whole->piece, size, cover->offset + at);
    if (n >= 0 && (uint64_t)n == size)
        return 0;
    char name[PSTK__MAX_SHOWN];
    const struct pstk__unread unread = {.name = pstk__source_file_name(source, cover->file, name),
                                        .what = "an array",
                                        .record = PSTK_NONE,
                                        .offset = cover->offset + at,
                                        .size = size,
                                        .got = n};
    return pstk__unread_fail(&unread, bad);
}

static int fail_crc(const struct pstk__verify_whole *whole, uint32_t field, uint32_t crc,
                    struct pstk_error *bad)
{
    const struct pstk__source *source = whole->source;
    const struct pstk__cover *cover = pstk__source_cover(source, field);
    char buffer[PSTK__MAX_SHOWN];
    const char *name = pstk__source_file_name(source, cover->file, buffer);
    pstk__fail(bad, PSTK_EBADMSG, PSTK_STAGE_RECORD,
               "%s: field %s (bytes %llu to %llu): the CRC-32 is %08x; must be %08x: the values "
               "were damaged or changed",
               name, source->schema.fields[field].name, (unsigned long long)cover->offset,
               (unsigned long long)(cover->offset + cover->size - 1), crc, cover->crc32);
    return pstk__fail_at(bad, PSTK_EBADMSG, name, PSTK_NONE, cover->offset, cover->size);
}

/* Report progress in samples, in proportion to the field's bytes. */
static int tick(const struct pstk__verify_whole *whole, const struct pstk__cover *cover,
                uint64_t from, uint64_t to, const struct pstk__map_sink *sink)
{
    const unsigned __int128 n = whole->source->n_samples;
    return sink->progress(sink->user,
                          (uint64_t)(n * to / cover->size) - (uint64_t)(n * from / cover->size));
}

/* Check the bytes of a field in an open file. Returns 0, PSTK_ECANCELED if the sink ended the
 * check, or the code of *bad. */
static int check_bytes(const struct pstk__verify_whole *whole, uint32_t field,
                       const struct pstk__file *file, const struct pstk__map_sink *sink,
                       struct pstk_error *bad)
{
    const struct pstk__source *source = whole->source;
    const struct pstk__cover *cover = pstk__source_cover(source, field);
    uint32_t crc = 0;
    int rc = 0;
    for (uint64_t at = 0, size; at < cover->size && rc == 0; at += size) {
        size = cover->size - at < PSTK__VERIFY_PIECE ? cover->size - at : PSTK__VERIFY_PIECE;
        rc = read_piece(whole, cover, file, at, size, bad);
        if (rc == 0)
            crc = pstk__crc32_continue(&whole->crc32, crc, whole->piece, size);
        if (rc == 0 && tick(whole, cover, at, at + size, sink))
            return PSTK_ECANCELED;
    }
    return rc == 0 && crc != cover->crc32 ? fail_crc(whole, field, crc, bad) : rc;
}

int pstk__verify_field(const struct pstk__verify_whole *whole, uint32_t field,
                       const struct pstk__map_sink *sink, struct pstk_error *err)
{
    const struct pstk__source *source = whole->source;
    const struct pstk__cover *cover = pstk__source_cover(source, field);
    struct pstk__file file;
    struct pstk_error bad;
    pstk_error_init(&bad, sizeof bad);
    int rc = pstk__source_open_file(source, cover->file, &file, &bad);
    if (rc == 0) {
        rc = check_bytes(whole, field, &file, sink, &bad);
        pstk__file_end(&file);
    }
    if (rc == PSTK_EBADMSG || rc == PSTK_EIO)
        return sink->bad(sink->user, &bad) ? PSTK_ECANCELED : 0;
    return rc < 0 && rc != PSTK_ECANCELED ? pstk__fail_copy(err, &bad) : rc;
}

/* ---- a file with a listed hash --------------------------------------------------------------- */

static int fail_hash(const char *file, const char *name, const char *is, const char *listed,
                     struct pstk_error *bad)
{
    pstk__fail(bad, PSTK_EBADMSG, PSTK_STAGE_RECORD,
               "%s: the %s of the file is %s; must be %.128s, which the data set lists: it was "
               "damaged, or written again; copy the file again",
               file, name, is, listed);
    return pstk__fail_at(bad, PSTK_EBADMSG, file, PSTK_NONE, PSTK_NONE, 0);
}

/* Add the bytes of an open file to its hash, and report progress in samples. Returns as check_bytes
 * does. */
static int hash_file(const struct pstk__verify_whole *whole, uint32_t number,
                     const struct pstk__file *file, struct pstk__hash *hash,
                     const struct pstk__map_sink *sink, struct pstk_error *bad)
{
    const struct pstk__source *source = whole->source;
    struct pstk__cover all = {.file = number};
    int64_t changed_ns;
    uint64_t first, n, done = 0;
    int rc = file->store->stat(file, &all.size, &changed_ns);
    if (rc < 0)
        return pstk__fail_errno(bad, -rc, PSTK_STAGE_SHARD, "cannot read a file");
    pstk__source_range(source, number, &first, &n);
    for (uint64_t at = 0, size; at < all.size && rc == 0; at += size) {
        size = all.size - at < PSTK__VERIFY_PIECE ? all.size - at : PSTK__VERIFY_PIECE;
        rc = read_piece(whole, &all, file, at, size, bad);
        if (rc == 0)
            pstk__hash_add(hash, whole->piece, size);
        const uint64_t now = (uint64_t)((unsigned __int128)n * (at + size) / all.size);
        if (rc == 0 && sink->progress(sink->user, now - done))
            return PSTK_ECANCELED;
        done = now;
    }
    return rc;
}

int pstk__verify_hash(const struct pstk__verify_whole *whole, uint32_t number,
                      const struct pstk__map_sink *sink, struct pstk_error *err)
{
    const struct pstk__source *source = whole->source;
    const char *listed, *name = source->format->file_hash(source, number, &listed);
    char is[PSTK__HASH_HEX], shown[PSTK__MAX_SHOWN];
    struct pstk__file file;
    struct pstk_error bad;
    if (!name || !pstk__hash_is_known(name))
        return 0;
    struct pstk__hash *hash = pstk__hash_open(name);
    if (!hash)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a hash");
    pstk_error_init(&bad, sizeof bad);
    int rc = pstk__source_open_file(source, number, &file, &bad);
    if (rc == 0) {
        rc = hash_file(whole, number, &file, hash, sink, &bad);
        pstk__file_end(&file);
    }
    pstk__hash_get(hash, is);
    pstk__hash_close(hash);
    if (rc == 0 && strcasecmp(is, listed) != 0)
        rc = fail_hash(pstk__source_file_name(source, number, shown), name, is, listed, &bad);
    if (pstk__verify_is_damage(rc, &bad))
        return sink->bad(sink->user, &bad) ? PSTK_ECANCELED : 0;
    return rc < 0 && rc != PSTK_ECANCELED ? pstk__fail_copy(err, &bad) : rc;
}

/* ---- a file whose copy is read --------------------------------------------------------------- */

/* Ask the sink during the store's check whether to stop; samples are counted when the check ends.
 */
static int is_ended(void *user, uint64_t n)
{
    const struct pstk__map_sink *sink = user;
    (void)n;
    return sink->progress(sink->user, 0);
}

int pstk__verify_copy(const struct pstk__verify_whole *whole, uint32_t number,
                      const struct pstk__map_sink *sink, struct pstk_error *err)
{
    const struct pstk__source *source = whole->source;
    char path[4096];
    uint64_t first, n;
    struct pstk_error bad;
    pstk_error_init(&bad, sizeof bad);
    int rc = pstk__source_file_path(source, number, path, sizeof path);
    if (rc == 0)
        rc = source->store->check(source->store, path, is_ended, (void *)(uintptr_t)sink, &bad);
    if (rc == PSTK_ECANCELED)
        return rc;
    bad.stage = PSTK_STAGE_SHARD;
    if (rc < 0 && !pstk__verify_is_damage(rc, &bad))
        return pstk__fail_copy(err, &bad);
    if (rc < 0 && sink->bad(sink->user, &bad))
        return PSTK_ECANCELED;
    pstk__source_range(source, number, &first, &n);
    return sink->progress(sink->user, n) ? PSTK_ECANCELED : 0;
}
