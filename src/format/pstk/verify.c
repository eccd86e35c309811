/* SPDX-License-Identifier: Apache-2.0 */
/* Each job of the parallel map checks a whole shard. The caller's thread checks the manifest and
 * the dictionaries, which span shards, before and after. */
#include "format/pstk/shard_verify.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "format/pstk/manifest_file.h"
#include "format/pstk/pstk.h"
#include "format/pstk/tally.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state of the whole check. */
struct verify {
    struct pstk__manifest manifest;
    struct pstk__verify_input input;
    struct pstk__verify_found total;
    uint64_t *first; /* owned; input.first */
    uint64_t n_done; /* records reported as done */
    pstk_verify_fn on_bad;
    pstk_progress_fn on_progress;
    void *user;
};

/* ---- reporting ------------------------------------------------------------------------------- */

static int report_damage(void *user, const struct pstk_error *bad)
{
    struct verify *verify = user;
    return verify->on_bad ? verify->on_bad(verify->user, bad) : 0;
}

static int report_progress(void *user, uint64_t n)
{
    struct verify *verify = user;
    verify->n_done += n;
    return verify->on_progress
               ? verify->on_progress(verify->user, verify->n_done, verify->manifest.n_samples)
               : 0;
}

static int report_bad(struct verify *verify, const char *file, struct pstk_error *bad)
{
    pstk__fail_at(bad, bad->code, file, PSTK_NONE, PSTK_NONE, 0);
    verify->total.n_bad++;
    return report_damage(verify, bad) ? PSTK_ECANCELED : 0;
}

/* Report damage outside the shards, in the file `file`. */
static int __attribute__((format(printf, 3, 4)))
report_file(struct verify *verify, const char *file, const char *fmt, ...)
{
    struct pstk_error bad;
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pstk_error_init(&bad, sizeof bad);
    pstk__fail(&bad, PSTK_EBADMSG, PSTK_STAGE_OPEN, "%s: %s", file, text);
    return report_bad(verify, file, &bad);
}

static int canceled(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_CONSUMER, "verify was stopped by its caller");
}

/* ---- dictionaries ------------------------------------------------------------------------------
 */

static int check_dictionary(struct verify *verify, uint32_t i, struct pstk_error *err)
{
    const struct pstk__manifest_dictionary *dictionary = &verify->manifest.dictionaries[i];
    char path[4096];
    struct pstk_error why;
    void *bytes;
    uint64_t size;
    pstk_error_init(&why, sizeof why);
    int n = snprintf(path, sizeof path, "%s/%s", verify->input.path, dictionary->file);
    if (n < 0 || (size_t)n >= sizeof path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "%s: the path is too long",
                          verify->input.path);
    int r = pstk__store_load(verify->input.store, path, PSTK__MAX_DICTIONARY, &bytes, &size, &why);
    if (r == PSTK_ENOMEM || pstk__file_is_refused(why.native))
        return pstk__fail_copy(err, &why); /* an error of the machine, as with a shard */
    if (r < 0)
        return report_bad(verify, dictionary->file, &why) < 0 ? canceled(err) : 0;
    uint32_t crc = pstk__crc32c(0, bytes, size);
    if (size != dictionary->bytes)
        r = report_file(verify, dictionary->file,
                        "the dictionary has %" PRIu64 " bytes, the manifest says %" PRIu64, size,
                        dictionary->bytes);
    else if (crc != dictionary->crc)
        r = report_file(verify, dictionary->file,
                        "the dictionary has the checksum %08x, the manifest says %08x", crc,
                        dictionary->crc);
    else if ((r = pstk__dictionary_open(&verify->input.dictionaries[i], bytes, size, &why)) < 0)
        r = r == PSTK_ENOMEM ? pstk__fail(err, r, PSTK_STAGE_OPEN, "%s: %s", path, why.message)
                             : report_file(verify, dictionary->file,
                                           "the dictionary cannot be used: %s", why.message);
    free(bytes);
    return r == PSTK_ECANCELED ? canceled(err) : r;
}

/* ---- opening, closing
 * ---------------------------------------------------------------------------- */

static int open_input(struct verify *verify, const struct pstk__verify_request *verify_request,
                      struct pstk_error *err)
{
    struct pstk__manifest *m = &verify->manifest;
    const char *path = verify_request->path;
    int r = pstk__manifest_load(m, verify_request->store, path, err);
    if (r < 0)
        return r;
    if (m->n_samples == 0 && m->n_parts == 1)
        return pstk__fail(err, PSTK_ENODATA, PSTK_STAGE_OPEN,
                          "%s is empty: the data set has 0 samples", path);
    verify->input.path = path;
    verify->input.store = verify_request->store;
    verify->input.manifest = m;
    verify->input.decode = (int)verify_request->decode;
    pstk__manifest_limits(m, &verify->input.limits);
    verify->first = calloc((size_t)m->n_shards + 1, sizeof *verify->first);
    verify->input.dictionaries =
        calloc((size_t)m->n_dictionaries + 1, sizeof *verify->input.dictionaries);
    if (!verify->first || !verify->input.dictionaries)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "%s: out of memory", path);
    verify->input.first = verify->first;
    for (uint32_t i = 0; i < m->n_shards; i++)
        verify->first[i + 1] = verify->first[i] + m->shards[i].n_records;
    return 0;
}

static void close_input(struct verify *verify)
{
    for (uint32_t i = 0; verify->input.dictionaries && i < verify->manifest.n_dictionaries; i++)
        if (verify->input.dictionaries[i])
            pstk__dictionary_close(verify->input.dictionaries[i]);
    free(verify->input.dictionaries);
    free(verify->first);
    pstk__manifest_free(&verify->manifest);
}

/* ---- shards: the map's jobs ------------------------------------------------------------------
 */

static int open_shard_verifier(void *user, void **state, struct pstk_error *err)
{
    const struct verify *verify = user;
    struct pstk__shard_verifier *verifier = NULL;
    const int r = pstk__shard_verifier_open(&verifier, &verify->input, err);
    *state = verifier;
    return r;
}

static void close_shard_verifier(void *state)
{
    pstk__shard_verifier_close(state);
}

static int run_shard_verifier(void *state, uint64_t shard, const struct pstk__map_sink *sink,
                              void *result, struct pstk_error *err)
{
    return pstk__shard_verifier_run(state, (uint32_t)shard, sink, result, err);
}

static void join(void *user, const void *result)
{
    struct verify *verify = user;
    const struct pstk__verify_found *found = result;
    verify->total.n_bad += found->n_bad;
    pstk__identity_join(&verify->total.identity, &found->identity);
    pstk__tally_join(verify->total.stats, found->stats, verify->manifest.schema.n_fields);
}

static int verify_shards(struct verify *verify, uint32_t n_threads, struct pstk_error *err)
{
    const struct pstk__parallel_map work = {.what = "verify",
                                            .n_jobs = verify->manifest.n_shards,
                                            .n_threads = n_threads,
                                            .result_size = sizeof(struct pstk__verify_found),
                                            .user = verify,
                                            .open = open_shard_verifier,
                                            .close = close_shard_verifier,
                                            .run = run_shard_verifier,
                                            .join = join,
                                            .bad = report_damage,
                                            .progress = report_progress};
    return pstk__parallel_map_run(&work, err);
}

/* ---- the manifest against what was found -------------------------------------------------------
 */

/* Compare one number of a field. */
static int compare(struct verify *verify, uint32_t i, const char *key, uint64_t said,
                   uint64_t found)
{
    if (said == found)
        return 0;
    return report_file(verify, PSTK__MANIFEST_FILE,
                       "%s of field %s is %" PRIu64 ", but the records have %" PRIu64, key,
                       verify->manifest.schema.fields[i].name, said, found);
}

static int compare_field(struct verify *verify, uint32_t i)
{
    const struct pstk_field_stats *a = &verify->manifest.stats[i], *b = &verify->total.stats[i];
    const uint32_t kind = verify->manifest.schema.fields[i].kind;
    const int has_images = (pstk__field_traits(kind) & PSTK__TRAIT_IMAGES) != 0;
    int r = compare(verify, i, "max_stored", a->max_stored_size, b->max_stored_size);
    if (r == 0)
        r = compare(verify, i, "max_plain", a->max_plain_size, b->max_plain_size);
    if (r == 0)
        r = compare(verify, i, "stored_bytes", a->stored_bytes, b->stored_bytes);
    if (r == 0)
        r = compare(verify, i, "plain_bytes", a->plain_bytes, b->plain_bytes);
    if (r == 0 && has_images)
        r = compare(verify, i, "max_width", a->max_width, b->max_width);
    if (r == 0 && has_images)
        r = compare(verify, i, "max_height", a->max_height, b->max_height);
    for (uint32_t k = 0; r == 0 && k < PSTK__N_ENCODINGS_ROOM; k++)
        r = compare(verify, i, "encodings", a->n_encoding[k], b->n_encoding[k]);
    for (uint32_t k = 0; r == 0 && k < PSTK__N_CODECS_ROOM; k++)
        r = compare(verify, i, "codecs", a->n_codec[k], b->n_codec[k]);
    if (r == 0 && has_images)
        r = compare(verify, i, "equivalent", a->n_equivalent, b->n_equivalent);
    if (r == 0 && has_images)
        r = compare(verify, i, "damaged", a->n_damaged, b->n_damaged);
    return r;
}

static int compare_manifest(struct verify *verify, struct pstk_error *err)
{
    char identity[40];
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < verify->manifest.schema.n_fields; i++)
        r = compare_field(verify, i);
    pstk__identity_text(&verify->total.identity, verify->manifest.schema.crc, identity);
    if (r == 0 && strcmp(identity, verify->manifest.identity) != 0)
        r = report_file(verify, PSTK__MANIFEST_FILE,
                        "its identity is %s, but that of the records is %s",
                        verify->manifest.identity, identity);
    return r < 0 ? canceled(err) : 0;
}

static int verify_all(struct verify *verify, uint32_t n_threads, struct pstk_error *err)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < verify->manifest.n_dictionaries; i++)
        r = check_dictionary(verify, i, err);
    if (r == 0)
        r = verify_shards(verify, n_threads, err);
    /* Sums over damaged shards would only report the same damage again. */
    return r < 0 || verify->total.n_bad ? r : compare_manifest(verify, err);
}

int64_t pstk__pstk_verify(const struct pstk__verify_request *verify_request, struct pstk_error *err)
{
    struct verify *verify = calloc(1, sizeof *verify);
    if (!verify)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "%s: out of memory",
                          verify_request->path);
    verify->on_bad = verify_request->on_bad;
    verify->on_progress = verify_request->on_progress;
    verify->user = verify_request->user;
    int r = open_input(verify, verify_request, err);
    if (r == 0)
        r = verify_all(verify, verify_request->n_threads, err);
    uint64_t n_bad = verify->total.n_bad;
    close_input(verify);
    free(verify);
    return r < 0 ? r : n_bad < INT32_MAX ? (int64_t)n_bad : INT32_MAX;
}
