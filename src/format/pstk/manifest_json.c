/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifest from JSON and to JSON. A value is taken from jansson's tree only by the functions that
 * check its type and range; every object's keys are exactly the ones that its table lists.
 *
 * The text is parsed value by value, a list element by element, so that jansson's tree is never
 * larger than one of them: a tree of the whole takes up to 30 times its text.
 *
 * What parsing takes is the sum of four parts. The text itself. Of the element at hand twice its
 * text, for jansson's buffer and tree; its values are at most MAX_SEPARATORS and 1, of 100 bytes
 * each, which is nothing. What is kept, which is at most about the text: a name takes its bytes, a
 * terminating 0 and an offset of 4 bytes; a shard of at least 111 bytes of text takes 48 bytes, 24
 * in open.c, and at least 32 of the heap for its name and as many for its list. And 16 bytes
 * a file, to find names that are there twice.
 *
 * A text that is copied is itself the element at hand; its tree goes before the next is parsed. So
 * all of it is at most 3.5 times the text. What the heap keeps of freed buffers, which it does
 * below 32 MiB, comes on top: of a name of 12 MB that made it 52 MiB.
 */
#include "format/pstk/manifest.h"

#include "base/codec.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/json_piece.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the values that are parsed at once. A shard with dictionaries for all fields has the most: 6
 * colons, 5 and 63 commas, 2 brackets. */
#define MAX_SEPARATORS 256

/* ,"crc32c":"xxxxxxxx"} and a newline: the file's last bytes. */
#define TAIL_BEFORE ",\"crc32c\":\""
#define TAIL_AFTER "\"}\n"
_Static_assert(sizeof TAIL_BEFORE - 1 + 8 + sizeof TAIL_AFTER - 1 == PSTK__MANIFEST_TAIL,
               "FORMAT.md");

static const char *const encoding_names[] = {"none", "jpeg", "png", "pixels"};
#define N_ENCODINGS (sizeof encoding_names / sizeof encoding_names[0])
#define N_CODECS 3

const char *pstk__encoding_name(uint32_t encoding)
{
    return encoding < N_ENCODINGS ? encoding_names[encoding] : "?";
}

int pstk__manifest_wrong(const char *name, int code, struct pstk_error *err, const char *fmt, ...)
{
    char what[384];
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(what, sizeof what, fmt, args) < 0)
        what[0] = 0;
    va_end(args);
    return pstk__fail(err, code, PSTK_STAGE_OPEN, "%s: the manifest is wrong: %s", name, what);
}

int pstk__manifest_text_ok(const char *text)
{
    json_t *value = json_string(text); /* refuses what is not UTF-8 */
    json_decref(value);
    return value != NULL;
}

/* ---- parsing --------------------------------------------------------------------------------- */

/* One parse. The first failure stays in `code` and `err`; after it, the get functions give 0. */
struct parse {
    struct pstk__manifest *m;
    const char *name; /* of the file, for messages */
    const char *text; /* the whole file */
    struct pstk_error *err;
    int code;
    const char *list; /* the list and ... */
    size_t index;     /* ... the place in it of the object at hand; list NULL: the top one */
};

/* "shards[3]." or "": what stands before a key in messages. */
static void __attribute__((format(printf, 3, 4)))
fail_key(struct parse *p, const char *key, const char *fmt, ...)
{
    if (p->code < 0)
        return;
    char where[96] = "", what[256];
    if (p->list)
        snprintf(where, sizeof where, "%s[%zu].", p->list, p->index);
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(what, sizeof what, fmt, args) < 0)
        what[0] = 0;
    va_end(args);
    p->code =
        pstk__manifest_wrong(p->name, PSTK_EBADMSG, p->err, "the key %s%.64s %s", where, key, what);
}

/* Of the byte at `at`, from 1. */
static int line_of(const struct parse *p, const char *at)
{
    int line = 1;
    for (const char *c = p->text; c < at; c++)
        line += *c == '\n';
    return line;
}

static void fail_text(struct parse *p, const char *at, const char *what)
{
    if (p->code == 0)
        p->code = pstk__manifest_wrong(p->name, PSTK_EBADMSG, p->err, "line %d: %s", line_of(p, at),
                                       what);
}

/* A piece as a tree of its own, or NULL. Returns owned. */
static json_t *parse_piece(struct parse *p, const struct pstk__json_piece *piece)
{
    if (p->code < 0)
        return NULL;
    if (piece->n_separators > MAX_SEPARATORS) {
        fail_text(p, piece->at, "more values in one place than a manifest has");
        return NULL;
    }
    json_error_t why;
    json_t *value =
        json_loadb(piece->at, piece->size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (value)
        return value;
    if (json_error_code(&why) == json_error_out_of_memory)
        p->code =
            pstk__fail(p->err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to parse %s", p->name);
    else
        p->code = pstk__manifest_wrong(p->name, PSTK_EBADMSG, p->err, "line %d: %s",
                                       line_of(p, piece->at) + why.line - 1, why.text);
    return NULL;
}

/* The next of a walk. 1: *value and, of an object, *key; 0: no more, or a failure. */
static int next(struct parse *p, struct pstk__json_walk *w, struct pstk__json_piece *key,
                struct pstk__json_piece *value)
{
    if (p->code < 0)
        return 0;
    int r = pstk__json_walk_next(w, key, value);
    if (r < 0)
        fail_text(p, w->at, "a value, a comma or a bracket is missing here");
    return r > 0;
}

/* A key of its type, or NULL. */
static json_t *get(struct parse *p, json_t *o, const char *key, json_type type, const char *noun)
{
    json_t *value = json_object_get(o, key);
    if (!value)
        fail_key(p, key, "is missing");
    else if (json_typeof(value) != type)
        fail_key(p, key, "is no %s", noun);
    return p->code < 0 ? NULL : value;
}

static const char *get_text(struct parse *p, json_t *o, const char *key)
{
    json_t *value = get(p, o, key, JSON_STRING, "text");
    return value ? json_string_value(value) : "";
}

/* 0 .. max, of at most 63 bits: jansson refuses larger numbers. */
static uint64_t get_number(struct parse *p, json_t *o, const char *key, uint64_t max)
{
    json_t *value = get(p, o, key, JSON_INTEGER, "whole number");
    json_int_t n = value ? json_integer_value(value) : 0;
    if (n < 0 || (uint64_t)n > max) {
        fail_key(p, key, "is %lld, not 0 to %llu", (long long)n, (unsigned long long)max);
        return 0;
    }
    return (uint64_t)n;
}

static int parse_hex(const char *text, uint32_t *value)
{
    if (strlen(text) != 8 || strspn(text, "0123456789abcdef") != 8)
        return -1;
    *value = (uint32_t)strtoul(text, NULL, 16);
    return 0;
}

static uint32_t get_crc(struct parse *p, json_t *o, const char *key)
{
    uint32_t value = 0;
    if (parse_hex(get_text(p, o, key), &value) < 0)
        fail_key(p, key, "is not 8 lower-case hex digits");
    return value;
}

/* Refuse keys that are not in `known`, so that nothing that a newer writer says goes unheard. */
static void check_keys(struct parse *p, json_t *o, const char *const *known, size_t n)
{
    const char *key;
    json_t *value;
    json_object_foreach(o, key, value)
    {
        size_t i = 0;
        while (i < n && strcmp(known[i], key) != 0)
            i++;
        if (i == n)
            fail_key(p, key, "is unknown to this version");
    }
}

#define CHECK_KEYS(p, o, known) check_keys(p, o, known, sizeof(known) / sizeof((known)[0]))

/* A list that is parsed element by element. */
struct list {
    struct pstk__json_walk walk;
    uint64_t n; /* elements */
};

/* Begin a list of the top object; of what is missing or none, an empty one. */
static struct list list_begin(struct parse *p, const struct pstk__json_piece *piece,
                              const char *name)
{
    struct list list = {.n = 0};
    struct pstk__json_piece value;
    const char *end = piece->at ? piece->at + piece->size : NULL;
    if (!piece->at)
        fail_key(p, name, "is missing");
    else if (!pstk__json_walk_begin(&list.walk, piece->at, end, '['))
        fail_key(p, name, "is no list");
    while (next(p, &list.walk, NULL, &value))
        list.n++;
    if (p->code < 0)
        return (struct list){.n = 0};
    pstk__json_walk_begin(&list.walk, piece->at, end, '[');
    return list;
}

/* Element i of a list, which must be an object; names the place for messages. Returns owned. */
static json_t *element(struct parse *p, struct list *list, const char *list_name, size_t i)
{
    struct pstk__json_piece piece;
    p->list = list_name;
    p->index = i;
    if (!next(p, &list->walk, NULL, &piece))
        return NULL;
    json_t *o = parse_piece(p, &piece);
    if (o && !json_is_object(o))
        fail_key(p, "", "is no object");
    return o;
}

static void parse_shape(struct parse *p, json_t *o, struct pstk_field *f)
{
    json_t *list = get(p, o, "shape", JSON_ARRAY, "list");
    size_t n = json_array_size(list);
    if (n > PSTK_MAX_DIMS)
        fail_key(p, "shape", "has %zu dimensions; at most %d go", n, PSTK_MAX_DIMS);
    for (size_t d = 0; d < n && p->code == 0; d++) {
        json_t *dim = json_array_get(list, d);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            fail_key(p, "shape", "has an element that is no whole number");
        f->shape[d] = (uint64_t)json_integer_value(dim);
    }
    f->n_dims = (uint32_t)n;
}

static uint32_t parse_codec(struct parse *p, json_t *o)
{
    const char *name = get_text(p, o, "codec");
    for (uint32_t c = 0; c < N_CODECS; c++)
        if (strcmp(pstk__codec_name(c), name) == 0)
            return c;
    fail_key(p, "codec", "is \"%.32s\", which this version does not know", name);
    return 0;
}

static void parse_field_schema(struct parse *p, json_t *o, struct pstk_field *f)
{
    const char *name = get_text(p, o, "name");
    if (strlen(name) >= sizeof f->name)
        fail_key(p, "name", "is longer than %d bytes", PSTK_MAX_NAME - 1);
    else
        memcpy(f->name, name, strlen(name));
    f->kind = pstk__field_kind_parse(get_text(p, o, "kind"));
    if (f->kind == 0)
        fail_key(p, "kind", "is none of bytes, utf8, image, scalar, ndarray");
    if (f->kind == PSTK_FIELD_SCALAR || f->kind == PSTK_FIELD_NDARRAY) {
        f->dtype = pstk_dtype_parse(get_text(p, o, "dtype"));
        if (f->dtype == 0)
            fail_key(p, "dtype", "is no dtype that this version knows");
    }
    if (f->kind == PSTK_FIELD_NDARRAY)
        parse_shape(p, o, f);
    f->codec = parse_codec(p, o);
    json_t *level = get(p, o, "level", JSON_INTEGER, "whole number");
    json_int_t n = level ? json_integer_value(level) : 0;
    if (n < INT32_MIN || n > INT32_MAX)
        fail_key(p, "level", "is %lld, which is no zstd level", (long long)n);
    else
        f->codec_level = (int32_t)n;
}

/* An object of counts by name; absent ones are 0. */
static void parse_counts(struct parse *p, json_t *o, const char *key, uint64_t *counts,
                         const char *(*name_of)(uint32_t), uint32_t n)
{
    json_t *object = get(p, o, key, JSON_OBJECT, "object of counts");
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        uint32_t i = 0;
        while (i < n && strcmp(name_of(i), name) != 0)
            i++;
        if (i == n)
            fail_key(p, key, "has \"%.32s\", which this version does not know", name);
        else if (!json_is_integer(value) || json_integer_value(value) < 1)
            fail_key(p, key, "has a count of %.32s that is no whole number above 0", name);
        else
            counts[i] = (uint64_t)json_integer_value(value);
    }
}

static void parse_field_stats(struct parse *p, json_t *o, const struct pstk_field *f,
                              struct pstk_field_stats *s)
{
    s->size = sizeof *s;
    s->max_stored_size = get_number(p, o, "max_stored", UINT32_MAX);
    s->max_plain_size = get_number(p, o, "max_plain", UINT32_MAX);
    s->stored_bytes = get_number(p, o, "stored_bytes", INT64_MAX);
    s->plain_bytes = get_number(p, o, "plain_bytes", INT64_MAX);
    if (f->kind == PSTK_FIELD_IMAGE) {
        s->max_width = (uint32_t)get_number(p, o, "max_width", UINT16_MAX);
        s->max_height = (uint32_t)get_number(p, o, "max_height", UINT16_MAX);
    }
    parse_counts(p, o, "encodings", s->n_encoding, pstk__encoding_name, N_ENCODINGS);
    parse_counts(p, o, "codecs", s->n_codec, pstk__codec_name, N_CODECS);
    if (f->codec == PSTK_CODEC_PLANES)
        s->n_equivalent = get_number(p, o, "equivalent", INT64_MAX);
}

/* Keys common to all kinds stand first; those of an image, a scalar and an ndarray follow. */
static void check_field_keys(struct parse *p, json_t *o, const struct pstk_field *f)
{
    static const char *const keys[] = {
        "equivalent",  "max_width", "max_height", "name",      "kind",
        "codec",       "level",     "max_stored", "max_plain", "stored_bytes",
        "plain_bytes", "encodings", "codecs",     "dtype",     "shape",
    };
    const size_t n = sizeof keys / sizeof keys[0];
    const size_t skip = f->codec != PSTK_CODEC_PLANES;
    switch (f->kind) {
    case PSTK_FIELD_IMAGE:
        check_keys(p, o, keys + skip, n - 2 - skip);
        break;
    case PSTK_FIELD_SCALAR:
        check_keys(p, o, keys + 3, n - 4);
        break;
    case PSTK_FIELD_NDARRAY:
        check_keys(p, o, keys + 3, n - 3);
        break;
    default:
        check_keys(p, o, keys + 3, n - 5);
    }
}

static void parse_fields(struct parse *p, const struct pstk__json_piece *piece)
{
    struct pstk_field fields[PSTK_MAX_FIELDS];
    struct list list = list_begin(p, piece, "fields");
    if (list.n < 1 || list.n > PSTK_MAX_FIELDS)
        fail_key(p, "fields", "has %llu elements, not 1 to %d", (unsigned long long)list.n,
                 PSTK_MAX_FIELDS);
    memset(fields, 0, sizeof fields);
    for (size_t i = 0; i < list.n && p->code == 0; i++) {
        json_t *o = element(p, &list, "fields", i);
        parse_field_schema(p, o, &fields[i]);
        parse_field_stats(p, o, &fields[i], &p->m->stats[i]);
        check_field_keys(p, o, &fields[i]);
        json_decref(o);
    }
    p->list = NULL;
    if (p->code < 0)
        return;
    struct pstk_error why;
    pstk_error_init(&why, sizeof why);
    int r = pstk__schema_init(&p->m->schema, fields, (uint32_t)list.n, &why);
    if (r < 0) /* what is no argument of a caller's here is damage; ENOTSUP stays itself */
        p->code = pstk__manifest_wrong(p->name, r == PSTK_EINVAL ? PSTK_EBADMSG : r, p->err, "%s",
                                       why.message);
}

static void parse_names(struct parse *p, const struct pstk__json_piece *piece)
{
    struct list list = list_begin(p, piece, "names");
    struct pstk__json_piece text;
    /* A text is no longer than its piece, whose quotes leave room for its 0. */
    if (p->code == 0 && pstk__texts_open(&p->m->names, list.n, piece->size) < 0)
        p->code = pstk__fail(p->err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for %llu names",
                             (unsigned long long)list.n);
    while (list.n && next(p, &list.walk, NULL, &text)) {
        json_t *name = parse_piece(p, &text);
        if (json_is_string(name))
            pstk__texts_add(&p->m->names, json_string_value(name), json_string_length(name));
        else
            fail_key(p, "names", "has an element that is no text");
        json_decref(name);
    }
}

static void parse_dictionaries(struct parse *p, struct list *list)
{
    static const char *const keys[] = {"file", "field", "bytes", "crc32c"};
    for (size_t i = 0; i < list->n && p->code == 0; i++) {
        json_t *o = element(p, list, "dictionaries", i);
        char file[PSTK__MAX_FILE_NAME + 2];
        snprintf(file, sizeof file, "%s", get_text(p, o, "file"));
        int field = pstk__schema_find(&p->m->schema, get_text(p, o, "field"));
        if (field < 0)
            fail_key(p, "field", "names no field");
        const struct pstk__manifest_dictionary d = {
            .file = file, /* cut names are longer than may be, and so refused */
            .field = (uint32_t)field,
            .bytes = get_number(p, o, "bytes", PSTK__MAX_DICTIONARY),
            .crc = get_crc(p, o, "crc32c"),
        };
        CHECK_KEYS(p, o, keys);
        if (p->code == 0)
            p->code = pstk__manifest_add_dictionary(p->m, &d, p->err);
        json_decref(o);
    }
    p->list = NULL;
}

/* A shard's list of dictionary numbers into `numbers`; returns how many. */
static uint32_t parse_numbers(struct parse *p, json_t *o, uint32_t numbers[PSTK_MAX_FIELDS])
{
    json_t *list = get(p, o, "dictionaries", JSON_ARRAY, "list");
    size_t n = json_array_size(list);
    if (n > PSTK_MAX_FIELDS) {
        fail_key(p, "dictionaries", "has more elements than there are fields");
        return 0;
    }
    for (size_t i = 0; i < n && p->code == 0; i++) {
        json_t *number = json_array_get(list, i);
        json_int_t v = json_is_integer(number) ? json_integer_value(number) : -1;
        if (v < 0 || v >= p->m->n_dictionaries)
            fail_key(p, "dictionaries", "has an element that is no number of a dictionary");
        numbers[i] = (uint32_t)v;
    }
    return (uint32_t)n;
}

static void parse_shards(struct parse *p, struct list *list)
{
    static const char *const keys[] = {"file",          "n_records",    "bytes",
                                       "header_crc32c", "index_crc32c", "dictionaries"};
    for (size_t i = 0; i < list->n && p->code == 0; i++) {
        json_t *o = element(p, list, "shards", i);
        char file[PSTK__MAX_FILE_NAME + 2];
        uint32_t numbers[PSTK_MAX_FIELDS];
        snprintf(file, sizeof file, "%s", get_text(p, o, "file"));
        const struct pstk__manifest_shard s = {
            .file = file, /* cut names are longer than may be, and so refused */
            .n_records = get_number(p, o, "n_records", UINT32_MAX),
            .bytes = get_number(p, o, "bytes", INT64_MAX),
            .header_crc = get_crc(p, o, "header_crc32c"),
            .index_crc = get_crc(p, o, "index_crc32c"),
            .n_dictionaries = parse_numbers(p, o, numbers),
            .dictionaries = numbers,
        };
        CHECK_KEYS(p, o, keys);
        if (p->code == 0)
            p->code = pstk__manifest_add_shard(p->m, &s, p->err);
        json_decref(o);
    }
    p->list = NULL;
}

/* Both lists, for which room is made at once. */
static void parse_files(struct parse *p, const struct pstk__json_piece *dictionaries,
                        const struct pstk__json_piece *shards)
{
    struct list d = list_begin(p, dictionaries, "dictionaries");
    struct list s = list_begin(p, shards, "shards");
    if (p->code == 0) /* fewer than bytes of the text, which fit 32 bits */
        p->code = pstk__manifest_reserve(p->m, (uint32_t)s.n, (uint32_t)d.n, p->err);
    parse_dictionaries(p, &d);
    parse_shards(p, &s);
}

/* Before anything else: what a newer version's keys mean, this one cannot know. */
static void parse_version(struct parse *p, json_t *top)
{
    if (strcmp(get_text(p, top, "format"), "penstock") != 0)
        fail_key(p, "format", "is not \"penstock\": the file belongs to another program");
    uint64_t version = get_number(p, top, "version", INT64_MAX);
    if (p->code == 0 && version > PSTK_FORMAT_VERSION)
        p->code = pstk__fail(p->err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                             "%s: written by a newer penstock: version %llu; this one reads %d",
                             p->name, (unsigned long long)version, PSTK_FORMAT_VERSION);
    else if (p->code == 0 && version < PSTK_FORMAT_VERSION)
        fail_key(p, "version", "is %llu; there is no such version", (unsigned long long)version);
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
    KEY_FIELDS,
    KEY_NAMES,
    KEY_DICTIONARIES,
    KEY_SHARDS,
    N_TOP_KEYS,
};

static const char *const top_keys[N_TOP_KEYS] = {
    "format",  "version", "identity", "n_samples", "n_shards", "bytes",        "part",
    "n_parts", "note",    "crc32c",   "fields",    "names",    "dictionaries", "shards"};

/* Where the values of the top object lie. */
struct top {
    struct pstk__json_piece values[N_TOP_KEYS];
    char unknown[64]; /* a key of no version that we know, or "" */
};

static void find_value(struct parse *p, struct top *top, const struct pstk__json_piece *key,
                       const struct pstk__json_piece *value)
{
    json_t *text = parse_piece(p, key);
    const char *name = text ? json_string_value(text) : "";
    uint32_t i = 0;
    while (i < N_TOP_KEYS && strcmp(top_keys[i], name) != 0)
        i++;
    if (p->code == 0 && i == N_TOP_KEYS && !top->unknown[0])
        snprintf(top->unknown, sizeof top->unknown, "%s", name[0] ? name : "\"\"");
    else if (i < N_TOP_KEYS && top->values[i].at)
        fail_key(p, name, "is there twice");
    else if (i < N_TOP_KEYS)
        top->values[i] = *value;
    json_decref(text);
}

/* Everything is found before anything is parsed: the version comes first, wherever it stands. */
static void find_values(struct parse *p, struct top *top, uint64_t size)
{
    const char *end = p->text + size;
    struct pstk__json_walk walk;
    struct pstk__json_piece key, value;
    memset(top, 0, sizeof *top);
    if (!pstk__json_walk_begin(&walk, p->text, end, '{'))
        fail_text(p, p->text, "it is no object");
    while (next(p, &walk, &key, &value))
        find_value(p, top, &key, &value);
    if (p->code == 0 && walk.at != end)
        fail_text(p, walk.at, "the object ends here, but the file does not");
}

/* Put the values of the keys [from, to) into an object of their own. */
static void put_values(struct parse *p, const struct top *top, json_t *o, uint32_t from,
                       uint32_t to)
{
    for (uint32_t i = from; i < to && p->code == 0; i++) {
        if (!top->values[i].at)
            continue; /* who asks for it names it */
        json_t *value = parse_piece(p, &top->values[i]);
        if (value && json_object_set_new(o, top_keys[i], value) < 0)
            p->code =
                pstk__fail(p->err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to parse %s", p->name);
    }
}

/* What is no list. *n_samples, ... are compared with the lists later. */
static void parse_facts(struct parse *p, json_t *o)
{
    struct pstk__manifest *m = p->m;
    snprintf(m->identity, sizeof m->identity, "%s", get_text(p, o, "identity"));
    m->part = (uint32_t)get_number(p, o, "part", UINT32_MAX);
    m->n_parts = (uint32_t)get_number(p, o, "n_parts", UINT32_MAX);
    const char *note = get_text(p, o, "note");
    if (p->code == 0)
        p->code = pstk__manifest_set_note(m, note, p->err);
    json_object_del(o, "note"); /* which may be as long as the text */
}

static void parse_lists(struct parse *p, const struct top *top, json_t *o)
{
    struct pstk__manifest *m = p->m;
    const uint64_t n_samples = get_number(p, o, "n_samples", PSTK__MAX_SAMPLES);
    const uint64_t n_shards = get_number(p, o, "n_shards", UINT32_MAX);
    const uint64_t bytes = get_number(p, o, "bytes", INT64_MAX);
    if (p->code == 0)
        parse_fields(p, &top->values[KEY_FIELDS]);
    if (p->code == 0)
        parse_names(p, &top->values[KEY_NAMES]);
    if (p->code == 0)
        parse_files(p, &top->values[KEY_DICTIONARIES], &top->values[KEY_SHARDS]);
    if (n_shards != m->n_shards)
        fail_key(p, "n_shards", "is %llu; the list has %u", (unsigned long long)n_shards,
                 m->n_shards);
    if (p->code < 0)
        return;
    m->n_samples = n_samples; /* compared with the shards' sums by the check */
    m->bytes = bytes;
    p->code = pstk__manifest_check(m, p->name, PSTK_EBADMSG, p->err);
}

static void parse_top(struct parse *p, uint64_t size)
{
    struct top top;
    json_t *o = json_object();
    if (!o)
        p->code =
            pstk__fail(p->err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to parse %s", p->name);
    find_values(p, &top, size);
    put_values(p, &top, o, KEY_FORMAT, KEY_IDENTITY);
    parse_version(p, o);
    if (top.unknown[0])
        fail_key(p, top.unknown, "is unknown to this version");
    put_values(p, &top, o, KEY_IDENTITY, KEY_FIELDS);
    parse_facts(p, o);
    parse_lists(p, &top, o);
    json_decref(o);
}

static int check_tail(const char *bytes, uint64_t size, const char *name, struct pstk_error *err)
{
    uint32_t said = 0;
    char hex[9] = "";
    const char *tail = bytes + size - PSTK__MANIFEST_TAIL;
    const size_t before = sizeof TAIL_BEFORE - 1, after = sizeof TAIL_AFTER - 1;
    int whole = size > PSTK__MANIFEST_TAIL && memcmp(tail, TAIL_BEFORE, before) == 0 &&
                memcmp(tail + before + 8, TAIL_AFTER, after) == 0;
    if (whole)
        memcpy(hex, tail + before, 8);
    if (!whole || parse_hex(hex, &said) < 0)
        return pstk__fail(
            err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
            "%s does not end with its checksum: it is cut short, was edited, or is no "
            "penstock manifest",
            name);
    uint32_t crc = pstk__crc32c(0, bytes, size - PSTK__MANIFEST_TAIL);
    if (crc != said)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%s is damaged or was edited: its checksum is %08x, it says %08x", name,
                          crc, said);
    return 0;
}

int pstk__manifest_parse(struct pstk__manifest *m, const void *bytes, uint64_t size,
                         const char *name, struct pstk_error *err)
{
    memset(m, 0, sizeof *m);
    if (size <= PSTK__MANIFEST_TAIL || size > PSTK__MANIFEST_MAX)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%s has %llu bytes, which no manifest has", name,
                          (unsigned long long)size);
    int r = check_tail(bytes, size, name, err);
    if (r < 0)
        return r;
    struct parse p = {.m = m, .name = name, .text = bytes, .err = err};
    parse_top(&p, size);
    if (p.code < 0)
        pstk__manifest_free(m);
    return p.code;
}

/* ---- printing -------------------------------------------------------------------------------- */

/* Text that grows. After `failed` (out of memory) nothing more is added. */
struct text {
    char *data; /* owned */
    size_t size, capacity;
    int failed;
};

static int text_add(const char *data, size_t size, void *user)
{
    struct text *t = user;
    if (!t->failed && t->capacity - t->size < size) {
        size_t capacity = 2 * t->capacity + size + 4096;
        char *larger = realloc(t->data, capacity);
        t->failed = !larger;
        t->data = larger ? larger : t->data;
        t->capacity = larger ? capacity : t->capacity;
    }
    if (t->failed)
        return -1;
    memcpy(t->data + t->size, data, size);
    t->size += size;
    return 0;
}

/* For what is known to be short: file and field names, numbers. */
static void __attribute__((format(printf, 2, 3))) text_print(struct text *t, const char *fmt, ...)
{
    char line[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof line)
        t->failed = 1;
    else
        text_add(line, (size_t)n, t);
}

/* Any UTF-8, quoted and escaped. */
static void text_quote(struct text *t, const char *string)
{
    json_t *value = json_string(string);
    if (!value || json_dump_callback(value, text_add, t, JSON_ENCODE_ANY) != 0)
        t->failed = 1;
    json_decref(value);
}

static void print_counts(struct text *t, const char *key, const uint64_t *counts,
                         const char *(*name_of)(uint32_t), uint32_t n)
{
    const char *comma = "";
    text_print(t, ",\"%s\":{", key);
    for (uint32_t i = 0; i < n; i++) {
        if (counts[i] == 0)
            continue;
        text_print(t, "%s\"%s\":%llu", comma, name_of(i), (unsigned long long)counts[i]);
        comma = ",";
    }
    text_print(t, "}");
}

static void print_field(struct text *t, const struct pstk_field *f,
                        const struct pstk_field_stats *s)
{
    text_print(t, "{\"name\":\"%s\",\"kind\":\"%s\"", f->name, pstk__field_kind_name(f->kind));
    if (f->dtype)
        text_print(t, ",\"dtype\":\"%s\"", pstk_dtype_name(f->dtype));
    for (uint32_t d = 0; d < f->n_dims; d++)
        text_print(t, "%s%llu%s", d ? "," : ",\"shape\":[", (unsigned long long)f->shape[d],
                   d + 1 == f->n_dims ? "]" : "");
    text_print(t, ",\"codec\":\"%s\",\"level\":%d", pstk__codec_name(f->codec), f->codec_level);
    text_print(t,
               ",\"max_stored\":%llu,\"max_plain\":%llu,\"stored_bytes\":%llu,\"plain_bytes\":%llu",
               (unsigned long long)s->max_stored_size, (unsigned long long)s->max_plain_size,
               (unsigned long long)s->stored_bytes, (unsigned long long)s->plain_bytes);
    if (f->kind == PSTK_FIELD_IMAGE)
        text_print(t, ",\"max_width\":%u,\"max_height\":%u", s->max_width, s->max_height);
    print_counts(t, "encodings", s->n_encoding, pstk__encoding_name, N_ENCODINGS);
    print_counts(t, "codecs", s->n_codec, pstk__codec_name, N_CODECS);
    if (f->codec == PSTK_CODEC_PLANES)
        text_print(t, ",\"equivalent\":%llu", (unsigned long long)s->n_equivalent);
    text_print(t, "}");
}

static void print_shard(struct text *t, const struct pstk__manifest_shard *s)
{
    text_print(t, "{\"file\":\"%s\",\"n_records\":%llu,\"bytes\":%llu", s->file,
               (unsigned long long)s->n_records, (unsigned long long)s->bytes);
    text_print(t, ",\"header_crc32c\":\"%08x\",\"index_crc32c\":\"%08x\",\"dictionaries\":[",
               s->header_crc, s->index_crc);
    for (uint32_t i = 0; i < s->n_dictionaries; i++)
        text_print(t, i ? ",%u" : "%u", s->dictionaries[i]);
    text_print(t, "]}");
}

/* Where element i of a list begins: one line each. */
static void print_line(struct text *t, uint64_t i)
{
    text_print(t, i ? ",\n  " : "\n  ");
}

static void print_lists(struct text *t, const struct pstk__manifest *m)
{
    text_print(t, ",\n\"fields\":[");
    for (uint32_t i = 0; i < m->schema.n_fields; i++) {
        print_line(t, i);
        print_field(t, &m->schema.fields[i], &m->stats[i]);
    }
    text_print(t, "],\n\"names\":[");
    for (uint64_t i = 0; i < m->names.n; i++) {
        print_line(t, i);
        text_quote(t, pstk__texts_get(&m->names, i));
    }
    text_print(t, "],\n\"dictionaries\":[");
    for (uint32_t i = 0; i < m->n_dictionaries; i++) {
        const struct pstk__manifest_dictionary *d = &m->dictionaries[i];
        print_line(t, i);
        text_print(t, "{\"file\":\"%s\",\"field\":\"%s\",\"bytes\":%llu,\"crc32c\":\"%08x\"}",
                   d->file, m->schema.fields[d->field].name, (unsigned long long)d->bytes, d->crc);
    }
    text_print(t, "],\n\"shards\":[");
    for (uint32_t i = 0; i < m->n_shards; i++) {
        print_line(t, i);
        print_shard(t, &m->shards[i]);
    }
    text_print(t, "]");
}

int pstk__manifest_print(const struct pstk__manifest *m, char **bytes, uint64_t *size,
                         struct pstk_error *err)
{
    *bytes = NULL;
    *size = 0;
    int r = pstk__manifest_check(m, "manifest to write", PSTK_EINVAL, err);
    if (r < 0)
        return r;
    struct text t = {0};
    text_print(&t, "{\"format\":\"penstock\",\n\"version\":%d,\n\"identity\":\"%s\"",
               PSTK_FORMAT_VERSION, m->identity);
    text_print(&t, ",\n\"n_samples\":%llu,\n\"n_shards\":%u,\n\"bytes\":%llu",
               (unsigned long long)m->n_samples, m->n_shards, (unsigned long long)m->bytes);
    text_print(&t, ",\n\"part\":%u,\n\"n_parts\":%u,\n\"note\":", m->part, m->n_parts);
    text_quote(&t, m->note ? m->note : "");
    print_lists(&t, m);
    uint32_t crc = t.failed ? 0 : pstk__crc32c(0, t.data, t.size);
    text_print(&t, TAIL_BEFORE "%08x" TAIL_AFTER, crc);
    if (t.failed || t.size > PSTK__MANIFEST_MAX) {
        free(t.data);
        return t.failed ? pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE,
                                     "no memory to print the manifest")
                        : pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_WRITE,
                                     "the manifest has over 256 MiB; use larger shards");
    }
    *bytes = t.data;
    *size = t.size;
    return 0;
}
