/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a manifest from JSON. The functions of manifest_parse.h take a value from jansson's tree,
 * and check its type and range; every object has exactly the keys that its table lists.
 *
 * The text is parsed value by value, a list element by element, so that jansson's tree is never
 * larger than one of them: a tree of the whole would take up to 30 times its text.
 *
 * Parsing takes the sum of four parts. First the text itself. Second, for the current element,
 * twice its text, for jansson's buffer and tree; its values are at most MAX_SEPARATORS of
 * manifest_parse.c and 1, of 100 bytes each, which is negligible. Third, the results, which are at
 * most about as large as the text: a name takes its bytes, a terminating 0 and an offset of 4
 * bytes; a shard of at least 111 bytes of text takes 48 bytes, 24 in open.c, and at least 32 of the
 * heap for its name and as many for its list; a checksum of a column's file has at least 11 bytes
 * of text and takes 4 to 12. Fourth, 16 bytes a file, to find repeated names.
 *
 * A text that is copied is itself the current element; its tree is freed before the next is parsed.
 * So the sum is at most 3.5 times the text. Freed buffers below 32 MiB that the heap keeps come on
 * top: with a name of 12 MB that made it 52 MiB.
 */
#include "format/pstk/manifest_json.h"

#include "base/codec.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "format/pstk/manifest_columns.h"
#include "format/pstk/manifest_parse.h"

#include <stdio.h>
#include <string.h>

#define MAX_FEATURES 64           /* max names in a list of features */
#define MAX_FEATURE_NAME 63       /* max bytes of a name */
#define FEATURE_COLUMNS "columns" /* a feature, and its key in `extra` */

_Static_assert(sizeof PSTK__TAIL_BEFORE - 1 + 8 + sizeof PSTK__TAIL_AFTER - 1 ==
                   PSTK__MANIFEST_TAIL,
               "FORMAT.md");

/* ---- fields ---------------------------------------------------------------------------------- */

static void parse_shape(struct pstk__parse *parse, json_t *object, struct pstk_field *field)
{
    json_t *list = pstk__parse_get(parse, object, "shape", JSON_ARRAY, "a list");
    size_t n = json_array_size(list);
    if (n > PSTK_MAX_DIMS)
        pstk__parse_fail_key(parse, "shape", "has %zu dimensions; must be at most %d", n,
                             PSTK_MAX_DIMS);
    for (size_t d = 0; d < n && parse->code == 0; d++) {
        json_t *dim = json_array_get(list, d);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            pstk__parse_fail_key(parse, "shape", "has an element that is not a whole number");
        field->shape[d] = (uint64_t)json_integer_value(dim);
    }
    field->n_dims = (uint32_t)n;
}

static uint32_t parse_codec(struct pstk__parse *parse, json_t *object)
{
    const char *name = pstk__parse_text(parse, object, "codec");
    for (uint32_t c = 0; c < PSTK__N_CODECS; c++)
        if (strcmp(pstk__codec_name(c), name) == 0)
            return c;
    pstk__parse_fail_key(parse, "codec", "is \"%.32s\", which this version does not know", name);
    return 0;
}

/* Parse a name into the PSTK_MAX_NAME bytes at `to`. is_optional: the key may be absent. */
static void parse_name(struct pstk__parse *parse, json_t *object, const char *key, int is_optional,
                       char *to)
{
    if (is_optional && !json_object_get(object, key))
        return;
    const char *name = pstk__parse_text(parse, object, key);
    if (strlen(name) >= PSTK_MAX_NAME || !name[0])
        pstk__parse_fail_key(parse, key, "must have 1 to %d bytes", PSTK_MAX_NAME - 1);
    else
        memcpy(to, name, strlen(name));
}

/* Parse a word of a list, or return 0. */
static uint32_t parse_word(struct pstk__parse *parse, json_t *object, const char *key,
                           uint32_t (*word_parse)(const char *))
{
    const char *name = pstk__parse_text(parse, object, key);
    const uint32_t word = word_parse(name);
    if (word == 0)
        pstk__parse_fail_key(parse, key, "is \"%.32s\", which this version does not know", name);
    return word;
}

static void parse_attributes(struct pstk__parse *parse, json_t *object, struct pstk_field *field,
                             uint32_t traits)
{
    if (traits & PSTK__TRAIT_OF)
        parse_name(parse, object, "of", 0, field->of);
    if (traits & (PSTK__TRAIT_ARRAY | PSTK__TRAIT_LIST))
        parse_name(parse, object, "rows", 1, field->rows);
    if (traits & PSTK__TRAIT_ARRAY)
        parse_name(parse, object, "splits", 1, field->splits);
    if (traits & PSTK__TRAIT_BOX_FORMAT)
        field->box_format = parse_word(parse, object, "form", pstk__form_parse);
    if (traits & PSTK__TRAIT_COORDINATES)
        field->coordinates = parse_word(parse, object, "coordinates", pstk__coordinates_parse);
}

static void parse_field_schema(struct pstk__parse *parse, json_t *object, struct pstk_field *field)
{
    const char *name = pstk__parse_text(parse, object, "name");
    if (strlen(name) >= sizeof field->name)
        pstk__parse_fail_key(parse, "name", "is longer than %d bytes", PSTK_MAX_NAME - 1);
    else
        memcpy(field->name, name, strlen(name));
    field->kind = pstk__field_kind_parse(pstk__parse_text(parse, object, "kind"));
    if (field->kind == 0)
        pstk__parse_fail_key(parse, "kind", "is not a kind that this version knows");
    const uint32_t traits = pstk__field_traits(field->kind);
    if (field->kind == PSTK_FIELD_SCALAR || traits & PSTK__TRAIT_ARRAY) {
        field->dtype = pstk_dtype_parse(pstk__parse_text(parse, object, "dtype"));
        if (field->dtype == 0)
            pstk__parse_fail_key(parse, "dtype", "is not a dtype that this version knows");
    }
    if (traits & PSTK__TRAIT_ARRAY)
        parse_shape(parse, object, field);
    parse_attributes(parse, object, field, traits);
    field->codec = parse_codec(parse, object);
    json_t *level = pstk__parse_get(parse, object, "level", JSON_INTEGER, "a whole number");
    json_int_t n = level ? json_integer_value(level) : 0;
    if (n < INT32_MIN || n > INT32_MAX)
        pstk__parse_fail_key(parse, "level", "is %lld, which is not a level of zstd", (long long)n);
    else
        field->codec_level = (int32_t)n;
}

/* Parse an object of counts by name; absent ones are 0. */
static void parse_counts(struct pstk__parse *parse, json_t *o, const char *key, uint64_t *counts,
                         const char *(*name_of)(uint32_t), uint32_t n)
{
    json_t *object = pstk__parse_get(parse, o, key, JSON_OBJECT, "an object of counts");
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        uint32_t i = 0;
        while (i < n && strcmp(name_of(i), name) != 0)
            i++;
        if (i == n)
            pstk__parse_fail_key(parse, key, "has \"%.32s\", which this version does not know",
                                 name);
        else if (!json_is_integer(value) || json_integer_value(value) < 1)
            pstk__parse_fail_key(parse, key,
                                 "has a count of %.32s that is not a whole number above 0", name);
        else
            counts[i] = (uint64_t)json_integer_value(value);
    }
}

static void parse_field_stats(struct pstk__parse *parse, json_t *object,
                              const struct pstk_field *field, struct pstk_field_stats *stats)
{
    stats->size = sizeof *stats;
    stats->max_stored_size = pstk__parse_number(parse, object, "max_stored", UINT32_MAX);
    stats->max_plain_size = pstk__parse_number(parse, object, "max_plain", UINT32_MAX);
    stats->stored_bytes = pstk__parse_number(parse, object, "stored_bytes", INT64_MAX);
    stats->plain_bytes = pstk__parse_number(parse, object, "plain_bytes", INT64_MAX);
    if (pstk__field_traits(field->kind) & PSTK__TRAIT_IMAGES) {
        stats->max_width = (uint32_t)pstk__parse_number(parse, object, "max_width", UINT32_MAX);
        stats->max_height = (uint32_t)pstk__parse_number(parse, object, "max_height", UINT32_MAX);
    }
    if (field->kind == PSTK_FIELD_IMAGE)
        stats->n_damaged = pstk__parse_number(parse, object, "damaged", INT64_MAX);
    parse_counts(parse, object, "encodings", stats->n_encoding, pstk__encoding_name,
                 PSTK__N_ENCODINGS);
    parse_counts(parse, object, "codecs", stats->n_codec, pstk__codec_name, PSTK__N_CODECS);
    if (field->codec == PSTK_CODEC_PLANES)
        stats->n_equivalent = pstk__parse_number(parse, object, "equivalent", INT64_MAX);
}

/* Check that a field has only the keys of all kinds, and those of its kind. */
static void check_field_keys(struct pstk__parse *parse, json_t *object,
                             const struct pstk_field *field)
{
    static const char *const all[] = {"name",       "kind",      "codec",        "level",
                                      "max_stored", "max_plain", "stored_bytes", "plain_bytes",
                                      "encodings",  "codecs"};
    const uint32_t traits = pstk__field_traits(field->kind);
    const uint32_t is_array = traits & PSTK__TRAIT_ARRAY;
    const struct {
        const char *key;
        uint32_t is_known;
    } some[] = {
        {"dtype", is_array || field->kind == PSTK_FIELD_SCALAR},
        {"shape", is_array},
        {"max_width", traits & PSTK__TRAIT_IMAGES},
        {"max_height", traits & PSTK__TRAIT_IMAGES},
        {"equivalent", field->codec == PSTK_CODEC_PLANES},
        {"damaged", field->kind == PSTK_FIELD_IMAGE},
        {"of", traits & PSTK__TRAIT_OF},
        {"rows", traits & (PSTK__TRAIT_ARRAY | PSTK__TRAIT_LIST)},
        {"splits", is_array},
        {"form", traits & PSTK__TRAIT_BOX_FORMAT},
        {"coordinates", traits & PSTK__TRAIT_COORDINATES},
    };
    const char *known[(sizeof all + sizeof some) / sizeof all[0]];
    size_t n = sizeof all / sizeof all[0];
    memcpy(known, all, sizeof all);
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        if (some[i].is_known)
            known[n++] = some[i].key;
    pstk__parse_check_keys(parse, object, known, n);
}

static void parse_fields(struct pstk__parse *parse, const struct pstk__json_piece *piece)
{
    struct pstk_field fields[PSTK_MAX_FIELDS];
    struct pstk__parse_list list = pstk__parse_list_begin(parse, piece, "fields");
    if (list.n < 1 || list.n > PSTK_MAX_FIELDS)
        pstk__parse_fail_key(parse, "fields", "has %llu elements; must be from 1 to %d",
                             (unsigned long long)list.n, PSTK_MAX_FIELDS);
    memset(fields, 0, sizeof fields);
    for (size_t i = 0; i < list.n && parse->code == 0; i++) {
        json_t *object = pstk__parse_element(parse, &list, "fields", i);
        parse_field_schema(parse, object, &fields[i]);
        parse_field_stats(parse, object, &fields[i], &parse->m->stats[i]);
        check_field_keys(parse, object, &fields[i]);
        json_decref(object);
    }
    parse->list = NULL;
    if (parse->code < 0)
        return;
    struct pstk_error why;
    pstk_error_init(&why, sizeof why);
    int r = pstk__schema_init(&parse->m->schema, fields, (uint32_t)list.n, &why);
    if (r < 0) /* EINVAL of a caller's argument is damage here; ENOTSUP stays ENOTSUP */
        parse->code = pstk__manifest_wrong(parse->name, r == PSTK_EINVAL ? PSTK_EBADMSG : r,
                                           parse->err, "%s", why.message);
}

/* ---- names and files ------------------------------------------------------------------------- */

static void parse_names(struct pstk__parse *parse, const struct pstk__json_piece *piece)
{
    struct pstk__parse_list list = pstk__parse_list_begin(parse, piece, "names");
    struct pstk__json_piece text;
    /* A text is at most as long as its piece, whose quotes leave room for its 0. */
    if (parse->code == 0 && pstk__texts_open(&parse->m->names, list.n, piece->size) < 0)
        parse->code = pstk__fail(parse->err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                                 "no memory for %llu names", (unsigned long long)list.n);
    while (list.n && pstk__parse_next(parse, &list.walk, NULL, &text)) {
        json_t *name = pstk__parse_piece(parse, &text);
        if (json_is_string(name))
            pstk__texts_add(&parse->m->names, json_string_value(name), json_string_length(name));
        else
            pstk__parse_fail_key(parse, "names", "has an element that is not a text");
        json_decref(name);
    }
}

static void parse_dictionaries(struct pstk__parse *parse, struct pstk__parse_list *list)
{
    static const char *const keys[] = {"file", "field", "bytes", "crc32c"};
    for (size_t i = 0; i < list->n && parse->code == 0; i++) {
        json_t *object = pstk__parse_element(parse, list, "dictionaries", i);
        char file[PSTK__MAX_FILE_NAME + 2];
        snprintf(file, sizeof file, "%s", pstk__parse_text(parse, object, "file"));
        int field = pstk__schema_find(&parse->m->schema, pstk__parse_text(parse, object, "field"));
        if (field < 0)
            pstk__parse_fail_key(parse, "field", "does not name a field");
        const struct pstk__manifest_dictionary dictionary = {
            .file = file, /* cut names are longer than allowed, so they are refused */
            .field = (uint32_t)field,
            .bytes = pstk__parse_number(parse, object, "bytes", PSTK__MAX_DICTIONARY),
            .crc = pstk__parse_crc(parse, object, "crc32c"),
        };
        PSTK__PARSE_CHECK_KEYS(parse, object, keys);
        if (parse->code == 0)
            parse->code = pstk__manifest_add_dictionary(parse->m, &dictionary, parse->err);
        json_decref(object);
    }
    parse->list = NULL;
}

/* Parse a shard's list of dictionary numbers into `numbers`, and return their number. */
static uint32_t parse_numbers(struct pstk__parse *parse, json_t *object,
                              uint32_t numbers[PSTK_MAX_FIELDS])
{
    json_t *list = pstk__parse_get(parse, object, "dictionaries", JSON_ARRAY, "a list");
    size_t n = json_array_size(list);
    if (n > PSTK_MAX_FIELDS) {
        pstk__parse_fail_key(parse, "dictionaries", "has more elements than there are fields");
        return 0;
    }
    for (size_t i = 0; i < n && parse->code == 0; i++) {
        json_t *number = json_array_get(list, i);
        json_int_t v = json_is_integer(number) ? json_integer_value(number) : -1;
        if (v < 0 || v >= parse->m->n_dictionaries)
            pstk__parse_fail_key(parse, "dictionaries",
                                 "has an element that is not the number of a dictionary");
        numbers[i] = (uint32_t)v;
    }
    return (uint32_t)n;
}

static void parse_shards(struct pstk__parse *parse, struct pstk__parse_list *list)
{
    static const char *const keys[] = {"file",          "n_records",    "bytes",
                                       "header_crc32c", "index_crc32c", "dictionaries"};
    for (size_t i = 0; i < list->n && parse->code == 0; i++) {
        json_t *object = pstk__parse_element(parse, list, "shards", i);
        char file[PSTK__MAX_FILE_NAME + 2];
        uint32_t numbers[PSTK_MAX_FIELDS];
        snprintf(file, sizeof file, "%s", pstk__parse_text(parse, object, "file"));
        const struct pstk__manifest_shard shard = {
            .file = file, /* cut names are longer than allowed, so they are refused */
            .n_records = pstk__parse_number(parse, object, "n_records", UINT32_MAX),
            .bytes = pstk__parse_number(parse, object, "bytes", INT64_MAX),
            .header_crc = pstk__parse_crc(parse, object, "header_crc32c"),
            .index_crc = pstk__parse_crc(parse, object, "index_crc32c"),
            .n_dictionaries = parse_numbers(parse, object, numbers),
            .dictionaries = numbers,
        };
        PSTK__PARSE_CHECK_KEYS(parse, object, keys);
        if (parse->code == 0)
            parse->code = pstk__manifest_add_shard(parse->m, &shard, parse->err);
        json_decref(object);
    }
    parse->list = NULL;
}

/* Parse both lists, after making room for them at once. */
static void parse_files(struct pstk__parse *parse, const struct pstk__json_piece *dictionaries,
                        const struct pstk__json_piece *shards)
{
    struct pstk__parse_list d = pstk__parse_list_begin(parse, dictionaries, "dictionaries");
    struct pstk__parse_list s = pstk__parse_list_begin(parse, shards, "shards");
    if (parse->code == 0) /* fewer than the bytes of the text, which fit 32 bits */
        parse->code = pstk__manifest_reserve(parse->m, (uint32_t)s.n, (uint32_t)d.n, parse->err);
    parse_dictionaries(parse, &d);
    parse_shards(parse, &s);
}

/* ---- the top object -------------------------------------------------------------------------- */

/* Check the version before all else: in another version, keys have other meanings. */
static void parse_version(struct pstk__parse *parse, json_t *top)
{
    if (strcmp(pstk__parse_text(parse, top, "format"), "penstock") != 0)
        pstk__parse_fail_key(parse, "format",
                             "is not \"penstock\": the file belongs to another program");
    uint64_t version = pstk__parse_number(parse, top, "version", INT64_MAX);
    if (parse->code == 0 && version > PSTK_FORMAT_VERSION)
        parse->code = pstk__fail(
            parse->err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
            "%s: a newer penstock wrote it: its version is %llu; this penstock reads version %d",
            parse->name, (unsigned long long)version, PSTK_FORMAT_VERSION);
    else if (parse->code == 0 && version == 0)
        pstk__parse_fail_key(parse, "version", "is 0, which is not a version");
    else if (parse->code == 0 && version < PSTK_FORMAT_VERSION)
        parse->code = pstk__fail(parse->err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                                 "%s is of version %llu; this library reads version %d (pack "
                                 "again, to another directory)",
                                 parse->name, (unsigned long long)version, PSTK_FORMAT_VERSION);
}

/* Keys of the top object; the lists, which are parsed element by element, come last. */
enum top_key {
    KEY_FORMAT,
    KEY_VERSION,
    KEY_IDENTITY,
    KEY_N_SAMPLES,
    KEY_N_SHARDS,
    KEY_BYTES,
    KEY_PART,
    KEY_N_PARTS,
    KEY_NOTE,
    KEY_CRC32C,
    KEY_PACK,
    KEY_TASK,
    KEY_ATTEMPT,
    KEY_FIELDS,
    KEY_NAMES,
    KEY_DICTIONARIES,
    KEY_SHARDS,
    KEY_REQUIRES,
    KEY_USES,
    KEY_EXTRA,
    N_TOP_KEYS,
};

static const char *const top_keys[N_TOP_KEYS] = {
    "format",  "version",      "identity", "n_samples", "n_shards", "bytes",   "part",
    "n_parts", "note",         "crc32c",   "pack",      "task",     "attempt", "fields",
    "names",   "dictionaries", "shards",   "requires",  "uses",     "extra"};

/* The positions of the top object's values. */
struct top {
    struct pstk__json_piece values[N_TOP_KEYS];
    char unknown[64]; /* a key of no known version, or "" */
};

static void find_value(struct pstk__parse *parse, struct top *top,
                       const struct pstk__json_piece *key, const struct pstk__json_piece *value)
{
    json_t *text = pstk__parse_piece(parse, key);
    const char *name = text ? json_string_value(text) : "";
    uint32_t i = 0;
    while (i < N_TOP_KEYS && strcmp(top_keys[i], name) != 0)
        i++;
    if (parse->code == 0 && i == N_TOP_KEYS && !top->unknown[0])
        snprintf(top->unknown, sizeof top->unknown, "%s", name[0] ? name : "\"\"");
    else if (i < N_TOP_KEYS && top->values[i].at)
        pstk__parse_fail_key(parse, name, "appears twice");
    else if (i < N_TOP_KEYS)
        top->values[i] = *value;
    json_decref(text);
}

/* Find all values before any is parsed: the version is checked first, wherever it stands. */
static void find_values(struct pstk__parse *parse, struct top *top, uint64_t size)
{
    const char *end = parse->text + size;
    struct pstk__json_walk walk;
    struct pstk__json_piece key, value;
    memset(top, 0, sizeof *top);
    if (!pstk__json_walk_begin(&walk, parse->text, end, '{'))
        pstk__parse_fail_at(parse, parse->text, "it is not an object");
    while (pstk__parse_next(parse, &walk, &key, &value))
        find_value(parse, top, &key, &value);
    if (parse->code == 0 && walk.at != end)
        pstk__parse_fail_at(parse, walk.at, "the file goes on after the end of the object");
}

/* Put the values of the keys [from, to) into an object of their own. */
static void put_values(struct pstk__parse *parse, const struct top *top, json_t *object,
                       uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to && parse->code == 0; i++) {
        if (!top->values[i].at)
            continue; /* the function that needs it reports it */
        json_t *value = pstk__parse_piece(parse, &top->values[i]);
        if (value && json_object_set_new(object, top_keys[i], value) < 0)
            parse->code = pstk__parse_no_memory(parse);
    }
}

/* ---- features -------------------------------------------------------------------------------- */

static int feature_name_ok(const char *name)
{
    const size_t n = strlen(name);
    return n >= 1 && n <= MAX_FEATURE_NAME &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == n;
}

/* Check the names of a list of features. A feature may be in only one of the two lists, and once:
 * `seen` has the names of both. Returns owned; NULL after a failure. */
static json_t *parse_features(struct pstk__parse *parse, const struct top *top, enum top_key key,
                              json_t *seen)
{
    const char *list = top_keys[key];
    if (!top->values[key].at)
        pstk__parse_fail_key(parse, list, "is missing");
    json_t *names = pstk__parse_piece(parse, &top->values[key]);
    if (names && (!json_is_array(names) || json_array_size(names) > MAX_FEATURES))
        pstk__parse_fail_key(parse, list, "must be a list of at most %d names", MAX_FEATURES);
    for (size_t i = 0; parse->code == 0 && i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (!name || !feature_name_ok(name))
            pstk__parse_fail_key(parse, list,
                                 "has an element that is not 1 to %d of the characters a-z 0-9 _ -",
                                 MAX_FEATURE_NAME);
        else if (json_object_get(seen, name))
            pstk__parse_fail_key(parse, list, "has the name %s, which is in these lists twice",
                                 name);
        else if (json_object_set_new(seen, name, json_true()) < 0)
            parse->code = pstk__parse_no_memory(parse);
    }
    return names;
}

/* Check the features after the version, and before any key whose meaning a feature might change. No
 * feature that a reader must know exists yet. 1: the data set uses side columns. */
static int check_features(struct pstk__parse *parse, const struct top *top)
{
    json_t *seen = json_object();
    if (!seen && parse->code == 0)
        parse->code = pstk__parse_no_memory(parse);
    json_t *required = parse_features(parse, top, KEY_REQUIRES, seen);
    json_decref(parse_features(parse, top, KEY_USES, seen));
    const int has_columns = json_object_get(seen, FEATURE_COLUMNS) != NULL;
    if (parse->code == 0 && json_array_size(required) > 0)
        parse->code =
            pstk__fail(parse->err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                       "%s: the data set requires the feature %s, which this version does not "
                       "know; reading it needs a newer penstock",
                       parse->name, json_string_value(json_array_get(required, 0)));
    json_decref(required);
    json_decref(seen);
    return has_columns;
}

/* Find the list of columns in `extra`, if the data set uses them. Other programs own the other
 * keys, so they are not checked; `extra` must be an object. */
static void find_columns(struct pstk__parse *parse, const struct pstk__json_piece *piece,
                         int has_columns, struct pstk__json_piece *columns)
{
    struct pstk__json_walk walk;
    struct pstk__json_piece key, value;
    *columns = (struct pstk__json_piece){0};
    if (!piece->at || parse->code < 0)
        return;
    if (!pstk__json_walk_begin(&walk, piece->at, piece->at + piece->size, '{'))
        pstk__parse_fail_key(parse, "extra", "is not an object");
    while (pstk__parse_next(parse, &walk, &key, &value)) {
        json_t *name = has_columns ? pstk__parse_piece(parse, &key) : NULL;
        if (name && strcmp(json_string_value(name), FEATURE_COLUMNS) == 0) {
            if (columns->at)
                pstk__parse_fail_key(parse, "extra.columns", "appears twice");
            *columns = value;
        }
        json_decref(name);
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Parse the keys of a part of unknown number. Other data sets lack these, except that numbered
 * parts may have the first. */
static void parse_task(struct pstk__parse *parse, json_t *object)
{
    struct pstk__task *task = &parse->m->task;
    const uint32_t n_parts = parse->m->n_parts;
    if (n_parts == 0 || (n_parts > 1 && json_object_get(object, top_keys[KEY_PACK])))
        pstk__parse_copy_text(parse, object, top_keys[KEY_PACK], task->pack_id,
                              sizeof task->pack_id);
    if (n_parts == 0) {
        pstk__parse_copy_text(parse, object, top_keys[KEY_TASK], task->key, sizeof task->key);
        task->attempt =
            (uint32_t)pstk__parse_number(parse, object, top_keys[KEY_ATTEMPT], UINT32_MAX);
        return;
    }
    if (n_parts == 1 && json_object_get(object, top_keys[KEY_PACK]))
        pstk__parse_fail_key(parse, top_keys[KEY_PACK],
                             "belongs to parts; this is a whole data set (n_parts 1)");
    for (uint32_t i = KEY_TASK; i <= KEY_ATTEMPT; i++)
        if (json_object_get(object, top_keys[i]))
            pstk__parse_fail_key(parse, top_keys[i],
                                 "belongs to parts of unknown number (n_parts 0)");
}

/* Parse everything except the lists. The check later compares *n_samples and the other sums with
 * the lists. */
static void parse_facts(struct pstk__parse *parse, json_t *object)
{
    struct pstk__manifest *m = parse->m;
    snprintf(m->identity, sizeof m->identity, "%s", pstk__parse_text(parse, object, "identity"));
    m->part = (uint32_t)pstk__parse_number(parse, object, "part", UINT32_MAX);
    m->n_parts = (uint32_t)pstk__parse_number(parse, object, "n_parts", UINT32_MAX);
    parse_task(parse, object);
    const char *note = pstk__parse_text(parse, object, "note");
    if (parse->code == 0)
        parse->code = pstk__manifest_set_note(m, note, parse->err);
    json_object_del(object, "note"); /* it may be as long as the text */
}

static void parse_lists(struct pstk__parse *parse, const struct top *top, json_t *object,
                        const struct pstk__json_piece *columns)
{
    struct pstk__manifest *m = parse->m;
    const uint64_t n_samples = pstk__parse_number(parse, object, "n_samples", PSTK__MAX_SAMPLES);
    const uint64_t n_shards = pstk__parse_number(parse, object, "n_shards", UINT32_MAX);
    const uint64_t bytes = pstk__parse_number(parse, object, "bytes", INT64_MAX);
    if (parse->code == 0)
        parse_fields(parse, &top->values[KEY_FIELDS]);
    if (parse->code == 0)
        parse_names(parse, &top->values[KEY_NAMES]);
    if (parse->code == 0)
        parse_files(parse, &top->values[KEY_DICTIONARIES], &top->values[KEY_SHARDS]);
    if (n_shards != m->n_shards)
        pstk__parse_fail_key(parse, "n_shards", "is %llu; the list has %u",
                             (unsigned long long)n_shards, m->n_shards);
    if (parse->code == 0 && columns)
        pstk__parse_columns(parse, columns);
    if (parse->code < 0)
        return;
    m->n_samples = n_samples; /* the check compares it with the sum over the shards */
    m->bytes = bytes;
    parse->code = pstk__manifest_check(m, parse->name, PSTK_EBADMSG, parse->err);
}

/* Find the bytes that describe the records, if all that may change without them comes later. */
static void find_records(struct pstk__parse *parse, const struct top *top)
{
    const struct pstk__json_piece *values = top->values;
    const char *end = values[KEY_SHARDS].at + values[KEY_SHARDS].size;
    for (uint32_t i = 0; i < N_TOP_KEYS; i++) {
        const int is_late = i == KEY_REQUIRES || i == KEY_USES || i == KEY_EXTRA || i == KEY_CRC32C;
        if (values[i].at && is_late != (values[i].at > end))
            return;
    }
    parse->m->records_size = (uint64_t)(end - parse->text);
    parse->m->records_crc = pstk__crc32c(0, parse->text, parse->m->records_size);
}

static void parse_top(struct pstk__parse *parse, uint64_t size)
{
    struct top top;
    struct pstk__json_piece columns;
    json_t *object = json_object();
    if (!object)
        parse->code = pstk__parse_no_memory(parse);
    find_values(parse, &top, size);
    put_values(parse, &top, object, KEY_FORMAT, KEY_IDENTITY);
    parse_version(parse, object);
    const int has_columns = check_features(parse, &top);
    find_columns(parse, &top.values[KEY_EXTRA], has_columns, &columns);
    if (top.unknown[0])
        pstk__parse_fail_key(parse, top.unknown, "is unknown to this version");
    put_values(parse, &top, object, KEY_IDENTITY, KEY_FIELDS);
    parse_facts(parse, object);
    parse_lists(parse, &top, object, has_columns ? &columns : NULL);
    json_decref(object);
    if (parse->code == 0)
        find_records(parse, &top);
}

static int check_tail(const char *bytes, uint64_t size, const char *name, struct pstk_error *err)
{
    uint32_t said = 0;
    char hex[9] = "";
    const char *tail = bytes + size - PSTK__MANIFEST_TAIL;
    const size_t before = sizeof PSTK__TAIL_BEFORE - 1, after = sizeof PSTK__TAIL_AFTER - 1;
    int whole = size > PSTK__MANIFEST_TAIL && memcmp(tail, PSTK__TAIL_BEFORE, before) == 0 &&
                memcmp(tail + before + 8, PSTK__TAIL_AFTER, after) == 0;
    if (whole)
        memcpy(hex, tail + before, 8);
    if (!whole || pstk__parse_hex(hex, &said) < 0)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%s does not end with its checksum: it is cut short, was edited, or is "
                          "not a penstock manifest",
                          name);
    uint32_t crc = pstk__crc32c(0, bytes, size - PSTK__MANIFEST_TAIL);
    if (crc != said)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%s is damaged or was edited: its checksum is %08x, but it states %08x",
                          name, crc, said);
    return 0;
}

int pstk__manifest_parse(struct pstk__manifest *m, const void *bytes, uint64_t size,
                         const char *name, struct pstk_error *err)
{
    memset(m, 0, sizeof *m);
    if (size <= PSTK__MANIFEST_TAIL || size > PSTK__MANIFEST_MAX)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%s has %llu bytes, too %s for a manifest: copy it again, or pack again",
                          name, (unsigned long long)size,
                          size > PSTK__MANIFEST_MAX ? "many" : "few");
    int r = check_tail(bytes, size, name, err);
    if (r < 0)
        return r;
    struct pstk__parse parse = {.m = m, .name = name, .text = bytes, .err = err};
    parse_top(&parse, size);
    if (parse.code < 0)
        pstk__manifest_free(m);
    return parse.code;
}

int pstk__manifest_quote(const char *text, int (*take)(const char *, size_t, void *), void *user)
{
    json_t *value = json_string(text);
    const int r = value ? json_dump_callback(value, take, user, JSON_ENCODE_ANY) : -1;
    json_decref(value);
    return r;
}
