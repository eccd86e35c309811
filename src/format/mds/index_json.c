/* SPDX-License-Identifier: Apache-2.0 */
#include "format/mds/index_json.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/json_piece.h"
#include "store/unpack/whole.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Max separators in a shard: those of 64 columns in three lists, of its keys, and of the hashes of
 * two files. */
#define MAX_SEPARATORS 1024
#define MAX_SHARDS 16777216u
#define MAX_BASENAME 1024 /* max bytes of a name */
/* An index.json of shards has its key "shards" within this many first bytes. */
#define PROBED 4096

static const struct pstk__mds_packing packings[] = {
    {"", "", 0}, /* none */
    {"gz", ".gz", 1},
    {"zstd", ".zstd", 2},
    {"bz2", ".bz2", PSTK__WHOLE_BZIP2},
    {"br", ".br", PSTK__WHOLE_BROTLI},
    {"snappy", ".snappy", PSTK__WHOLE_SNAPPY},
};

#define N_PACKINGS (sizeof packings / sizeof packings[0])

const struct pstk__mds_packing *pstk__mds_packing(uint32_t packing)
{
    return &packings[packing];
}

/* ---- a parse --------------------------------------------------------------------------------- */

struct parse {
    const char *path; /* path of the file, for messages */
    struct pstk_error *err;
    int code;       /* code of the first failure; 0: none yet */
    uint64_t index; /* number of the current shard; PSTK_NONE: none */
    struct pstk__mds *mds;
    struct pstk__texts *names;
    uint64_t *digest;
    uint64_t n_texts, max_texts; /* bytes of mds->texts */
    json_t *columns[3]; /* lists of the first shard, owned: column_names, _encodings, _sizes */
};

static const char *const column_keys[] = {"column_names", "column_encodings", "column_sizes"};

static void fail(struct parse *parse, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Keep the first failure. */
static void fail(struct parse *parse, int code, const char *fmt, ...)
{
    char where[32] = "", what[320];
    if (parse->code < 0)
        return;
    if (parse->index != PSTK_NONE)
        snprintf(where, sizeof where, ": shards[%" PRIu64 "]", parse->index);
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(what, sizeof what, fmt, args) < 0)
        what[0] = 0;
    va_end(args);
    parse->code =
        pstk__fail(parse->err, code, PSTK_STAGE_OPEN, "%s%s %s", parse->path, where, what);
}

static json_t *get(struct parse *parse, json_t *object, const char *key, json_type type,
                   const char *noun)
{
    json_t *value = json_object_get(object, key);
    if (value && json_typeof(value) == type)
        return value;
    fail(parse, PSTK_EBADMSG, "%s '%s'%s%s", value ? "has" : "lacks", key,
         value ? " that is not " : ", ", noun);
    return NULL;
}

static uint64_t get_number(struct parse *parse, json_t *object, const char *key)
{
    json_t *value = get(parse, object, key, JSON_INTEGER, "a whole number");
    const json_int_t n = value ? json_integer_value(value) : 0;
    if (n < 0 || n > (json_int_t)UINT32_MAX)
        fail(parse, PSTK_EBADMSG, "has '%s' of %lld; must be from 0 to 2^32 - 1", key,
             (long long)n);
    return (uint64_t)n;
}

/* ---- a shard --------------------------------------------------------------------------------- */

/* Return why a name cannot be that of a file below the folder, as a noun phrase, or NULL. */
static const char *name_wrong(const char *name)
{
    if (name[0] == 0 || name[0] == '/')
        return "empty or absolute";
    if (strlen(name) > MAX_BASENAME)
        return "longer than 1024 bytes";
    for (const char *c = name; *c; c++)
        if ((uint8_t)*c < 32 || *c == 127)
            return "a text of control characters";
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == 0 || part[2] == '/'))
            return "a path with '..'";
    }
    return NULL;
}

/* Add the columns of the first shard. */
static void add_columns(struct parse *parse)
{
    const size_t n = json_array_size(parse->columns[0]);
    for (int k = 1; k < 3; k++)
        if (json_array_size(parse->columns[k]) != n)
            fail(parse, PSTK_EBADMSG, "has %zu column_names, but %zu %s", n,
                 json_array_size(parse->columns[k]), column_keys[k]);
    if (n == 0)
        fail(parse, PSTK_EBADMSG, "has no columns");
    for (size_t i = 0; i < n && parse->code == 0; i++) {
        char text[160];
        int code;
        json_t *name = json_array_get(parse->columns[0], i);
        json_t *encoding = json_array_get(parse->columns[1], i);
        json_t *size = json_array_get(parse->columns[2], i);
        if (!json_is_string(name) || !json_is_string(encoding) ||
            !(json_is_null(size) || (json_is_integer(size) && json_integer_value(size) > 0))) {
            fail(parse, PSTK_EBADMSG,
                 "describes column %zu by values that are not a text, a text, "
                 "and a size above 0 or null",
                 i);
            return;
        }
        const char *wrong = pstk__mds_add(&parse->mds->columns, json_string_value(name),
                                          json_string_value(encoding),
                                          (uint64_t)json_integer_value(size), &code, text);
        if (wrong)
            fail(parse, code, "%s", wrong);
        pstk__index_digest(parse->digest, json_string_value(name), json_string_length(name));
        pstk__index_digest(parse->digest, json_string_value(encoding),
                           json_string_length(encoding));
        const uint64_t fixed = (uint64_t)json_integer_value(size); /* 0 for null */
        pstk__index_digest(parse->digest, &fixed, sizeof fixed);
    }
}

/* Check that the shard has the columns of the first one, and add those of the first. */
static void check_columns(struct parse *parse, json_t *object)
{
    for (int k = 0; k < 3 && parse->code == 0; k++) {
        json_t *list = get(parse, object, column_keys[k], JSON_ARRAY, "a list");
        if (list && parse->index == 0)
            parse->columns[k] = json_incref(list);
        else if (list && !json_equal(list, parse->columns[k]))
            fail(parse, PSTK_EBADMSG,
                 "has other %s than shards[0]; must be the same in all: open "
                 "them as two data sets",
                 column_keys[k]);
    }
    if (parse->code == 0 && parse->index == 0)
        add_columns(parse);
}

static uint32_t packing_of(json_t *object)
{
    const char *name = json_string_value(json_object_get(object, "compression"));
    const size_t n = name ? strcspn(name, ":") : 0; /* the name may have a level: "zstd:7" */
    for (uint32_t i = 1; i < N_PACKINGS; i++)
        if (n && strlen(packings[i].name) == n && memcmp(packings[i].name, name, n) == 0)
            return i;
    return 0;
}

/* Append the name of the shard's uncompressed file. */
static void add_name(struct parse *parse, json_t *raw)
{
    json_t *value = get(parse, raw, "basename", JSON_STRING, "a text");
    const char *name = value ? json_string_value(value) : "x";
    const char *wrong = name_wrong(name);
    if (wrong)
        fail(parse, PSTK_EBADMSG,
             "has a basename that is %s; must be a file below the folder of "
             "index.json",
             wrong);
    if (parse->code == 0)
        pstk__texts_add(parse->names, name, strlen(name));
}

/* Store a text, and return its byte of texts. */
static uint32_t add_text(struct parse *parse, const char *text)
{
    const uint64_t n = strlen(text) + 1, at = parse->n_texts;
    if (n > parse->max_texts - at)
        return 0; /* not reached: every text is part of the file, and its two quotes are longer than
                     its 0 */
    memcpy(parse->mds->texts + at, text, n);
    parse->n_texts += n;
    return (uint32_t)at;
}

/* Store one of the hashes that are listed for the uncompressed file: the last one that this build
 * can compute, or else the first. Only verify uses it, so no data set is refused because of it. */
static void add_hash(struct parse *parse, json_t *raw, struct pstk__mds_shard *shard)
{
    const char *name, *best = NULL;
    json_t *value, *hashes = json_object_get(raw, "hashes");
    json_object_foreach(hashes, name, value) if (json_is_string(value) &&
                                                 (!best || pstk__hash_is_known(name))) best = name;
    if (!best || parse->code < 0)
        return;
    shard->hash = add_text(parse, best);
    shard->digits = add_text(parse, json_string_value(json_object_get(hashes, best)));
}

static void add_shard(struct parse *parse, json_t *object)
{
    struct pstk__mds_shard *shard = &parse->mds->shards[parse->index];
    json_t *format = get(parse, object, "format", JSON_STRING, "a text");
    if (format && strcmp(json_string_value(format), "mds") != 0)
        fail(parse, PSTK_ENOTSUP, "is of the format '%.40s'; must be mds: convert it to MDS",
             json_string_value(format));
    const uint64_t version = get_number(parse, object, "version");
    if (version != 2)
        fail(parse, PSTK_ENOTSUP,
             "is of version %" PRIu64 "; must be 2: write it again with "
             "a newer MosaicML streaming",
             version);
    check_columns(parse, object);
    shard->n_samples = get_number(parse, object, "samples");
    json_t *raw = get(parse, object, "raw_data", JSON_OBJECT, "an object");
    if (!raw)
        return;
    shard->size = get_number(parse, raw, "bytes");
    shard->packing = packing_of(object);
    add_name(parse, raw);
    add_hash(parse, raw, shard);
    pstk__index_digest(parse->digest, &shard->n_samples, sizeof shard->n_samples);
    pstk__index_digest(parse->digest, &shard->size, sizeof shard->size);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Parse a piece of the text as a tree of its own, or return NULL. */
static json_t *load(struct parse *parse, const struct pstk__json_piece *piece)
{
    json_error_t why;
    if (piece->n_separators > MAX_SEPARATORS) {
        fail(parse, PSTK_ENOTSUP, "has more than %d values; a data set may have at most %d columns",
             MAX_SEPARATORS, PSTK_MAX_FIELDS);
        return NULL;
    }
    json_t *value =
        json_loadb(piece->at, piece->size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (!value && json_error_code(&why) == json_error_out_of_memory)
        fail(parse, PSTK_ENOMEM, "does not fit into memory");
    else if (!value)
        fail(parse, PSTK_EBADMSG, "is not JSON: %.150s", why.text);
    return value;
}

static void fail_text(struct parse *parse, const char *text, const char *at)
{
    fail(parse, PSTK_EBADMSG,
         "is not JSON at byte %zu: a value, a comma or a bracket is missing; copy the file again",
         (size_t)(at - text));
}

/* Find the list of shards in the top object, and check its version. */
static void find_shards(struct parse *parse, const char *text, uint64_t size,
                        struct pstk__json_piece *shards)
{
    struct pstk__json_walk walk;
    struct pstk__json_piece key, value;
    int r = pstk__json_walk_begin(&walk, text, text + size, '{') ? 1 : -1;
    while (r > 0 && (r = pstk__json_walk_next(&walk, &key, &value)) > 0) {
        if (key.size == 8 && memcmp(key.at, "\"shards\"", 8) == 0) {
            if (shards->at)
                fail(parse, PSTK_EBADMSG, "has the key 'shards' twice");
            *shards = value;
        }
        if (key.size == 9 && memcmp(key.at, "\"version\"", 9) == 0 &&
            (value.size != 1 || *value.at != '2'))
            fail(parse, PSTK_ENOTSUP,
                 "is of version %.*s; must be 2: write it again with a newer MosaicML streaming",
                 (int)(value.size < 20 ? value.size : 20), value.at);
    }
    if (r < 0 || pstk__json_skip_space(walk.at, text + size) != text + size)
        fail_text(parse, text, walk.at);
    else if (!shards->at)
        fail(parse, PSTK_EBADMSG, "lacks 'shards', a list");
}

/* Count the shards. */
static uint64_t count_shards(struct parse *parse, const char *text,
                             const struct pstk__json_piece *list)
{
    struct pstk__json_walk walk;
    struct pstk__json_piece value;
    uint64_t n = 0;
    if (parse->code < 0)
        return 0;
    int r = pstk__json_walk_begin(&walk, list->at, list->at + list->size, '[') ? 1 : -1;
    while (r > 0 && (r = pstk__json_walk_next(&walk, NULL, &value)) > 0)
        n++;
    if (r < 0)
        fail_text(parse, text, walk.at);
    else if (n == 0)
        fail(parse, PSTK_ENODATA, "lists no shards: the data set is empty");
    else if (n > MAX_SHARDS)
        fail(parse, PSTK_EFBIG, "lists more than %u shards", MAX_SHARDS);
    return n;
}

static void add_shards(struct parse *parse, const struct pstk__json_piece *list)
{
    struct pstk__json_walk walk;
    struct pstk__json_piece piece;
    pstk__json_walk_begin(&walk, list->at, list->at + list->size, '[');
    for (parse->index = 0; parse->code == 0 && pstk__json_walk_next(&walk, NULL, &piece) > 0;
         parse->index++) {
        json_t *object = load(parse, &piece);
        if (object && !json_is_object(object))
            fail(parse, PSTK_EBADMSG, "is not an object");
        if (object && parse->code == 0)
            add_shard(parse, object);
        json_decref(object);
    }
}

int pstk__mds_index_probe(const char *text, uint64_t size)
{
    static const char key[] = "\"shards\"";
    const char *end = text + (size < PROBED ? size : PROBED);
    for (const char *at = text; at + sizeof key <= end; at++)
        if (memcmp(at, key, sizeof key - 1) == 0)
            return 1;
    return 0;
}

int pstk__mds_index_parse(struct pstk__mds **out, struct pstk__texts *names, uint64_t digest[2],
                          const char *text, uint64_t size, const char *path, struct pstk_error *err)
{
    struct pstk__json_piece shards = {0};
    struct parse parse = {
        .path = path, .err = err, .index = PSTK_NONE, .names = names, .digest = digest};
    *out = NULL;
    find_shards(&parse, text, size, &shards);
    const uint64_t n = count_shards(&parse, text, &shards);
    if (parse.code == 0) {
        /* Byte 0 of the texts means none. Pages of the texts that stay unused are never touched. */
        parse.max_texts = size + 1;
        parse.n_texts = 1;
        parse.mds = calloc(1, sizeof *parse.mds + n * sizeof parse.mds->shards[0] + size + 1);
        /* Every name is part of the text, and its 0 takes less room than its quotes. */
        if (!parse.mds || pstk__texts_open(names, n, size) < 0)
            fail(&parse, PSTK_ENOMEM, "does not fit into memory");
    }
    if (parse.code == 0) {
        parse.mds->n_shards = n;
        parse.mds->texts = (char *)(parse.mds->shards + n);
        add_shards(&parse, &shards);
    }
    for (int k = 0; k < 3; k++)
        json_decref(parse.columns[k]);
    if (parse.code == 0) {
        *out = parse.mds;
        return 0;
    }
    free(parse.mds);
    pstk__texts_close(names);
    return parse.code;
}
