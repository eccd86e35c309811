/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "base/crc32c.h"
#include "format/pstk/manifest_file.h"
#include "format/pstk/manifest_json.h"
#include "format/pstk/shard.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int with_kinds; /* 1: the sample has fields with attributes, too */

/* A manifest with something of everything. */
static int make_manifest(struct pstk__manifest *m)
{
    static const struct pstk_field fields[] = {
        {.name = "jpg", .kind = PSTK_FIELD_IMAGE},
        {.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64},
        {.name = "txt", .kind = PSTK_FIELD_UTF8, .codec = PSTK_CODEC_ZSTD, .codec_level = -5},
        {.name = "arr",
         .kind = PSTK_FIELD_NDARRAY,
         .dtype = PSTK_F32,
         .n_dims = 2,
         .shape = {0, 4}},
        {.name = "box",
         .kind = PSTK_FIELD_BOXES,
         .dtype = PSTK_F32,
         .n_dims = 2,
         .shape = {0, 4},
         .of = "jpg",
         .rows = "objects",
         .box_format = PSTK_BOX_FORMAT_XYWH,
         .coordinates = PSTK_COORDINATES_UNIT},
        {.name = "len",
         .kind = PSTK_FIELD_NDARRAY,
         .dtype = PSTK_U8,
         .n_dims = 1,
         .rows = "objects",
         .splits = "masks"},
        {.name = "mask", .kind = PSTK_FIELD_MASK_LIST, .of = "jpg", .rows = "masks"},
    };
    const uint32_t n_fields = with_kinds ? 7 : 4;
    static const char *const names[] = {"tench, \"fish\"", "caf\xc3\xa9\n\\"};
    uint32_t numbers[] = {0};
    char dictionary[] = "d0.zdict", first[] = "s-0.pstk", second[] = "s-1.pstk";
    memset(m, 0, sizeof *m);
    pstk__schema_init(&m->schema, fields, n_fields, NULL);
    for (uint32_t i = 0; i < n_fields; i++)
        m->stats[i] = (struct pstk_field_stats){.size = sizeof m->stats[i],
                                                .max_stored_size = 1000,
                                                .max_plain_size = 2000,
                                                .stored_bytes = 5000,
                                                .plain_bytes = 14000,
                                                .n_codec = {3, 4}};
    if (with_kinds)
        m->stats[6].max_width = 31;
    m->stats[0].max_width = 640;
    m->stats[0].max_height = 480;
    m->stats[0].n_encoding[PSTK_ENCODING_JPEG] = 5;
    m->stats[0].n_encoding[PSTK_ENCODING_PNG] = 2;
    snprintf(m->identity, sizeof m->identity, "%s", "0123456789abcdef0123456789abcdef");
    m->part = 1;
    m->n_parts = 3;
    const struct pstk__manifest_dictionary d = {
        .file = dictionary, .field = 2, .crc = 0xab, .bytes = 300};
    const struct pstk__manifest_shard a = {.file = first,
                                           .n_records = 4,
                                           .bytes = 12288,
                                           .header_crc = 1,
                                           .index_crc = 0xffffffff,
                                           .n_dictionaries = 1,
                                           .dictionaries = numbers};
    const struct pstk__manifest_shard b = {.file = second, .n_records = 3, .bytes = 16384};
    int r = pstk__manifest_set_names(m, names, 2, NULL);
    r = r ? r : pstk__manifest_set_note(m, "packed \"by\" a test", NULL);
    r = r ? r : pstk__manifest_add_dictionary(m, &d, NULL);
    r = r ? r : pstk__manifest_add_shard(m, &a, NULL);
    return r ? r : pstk__manifest_add_shard(m, &b, NULL);
}

/* The sample manifest's text, terminated; owned. Not inlined: gcc 12 would warn of a dangling
 * pointer where there is none. */
__attribute__((noinline)) static char *make_text(uint64_t *size)
{
    struct pstk__manifest m;
    char *bytes = NULL;
    if (make_manifest(&m) == 0 && pstk__manifest_print(&m, &bytes, size, NULL) == 0) {
        bytes = realloc(bytes, *size + 1);
        bytes[*size] = 0;
    }
    pstk__manifest_free(&m);
    return bytes;
}

/* Replace the first `from` in the sample's text by `to`, give it a right checksum again, parse it.
 */
static int parse_edited(const char *from, const char *to, struct pstk_error *err)
{
    uint64_t size;
    char *text = make_text(&size), *edited = malloc(size + strlen(to) + 64);
    struct pstk__manifest m;
    const char *at = strstr(text, from);
    if (!at) {
        printf("# the text has no %s\n", from);
        return 1;
    }
    size_t n = (size_t)sprintf(edited, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    n -= 22;
    n += (size_t)sprintf(edited + n, ",\"crc32c\":\"%08x\"}\n", pstk__crc32c(0, edited, n));
    char *exact = malloc(n); /* so that ASan sees a read past the end */
    memcpy(exact, edited, n);
    pstk_error_init(err, sizeof *err);
    int r = pstk__manifest_parse(&m, exact, n, "manifest.json", err);
    pstk__manifest_free(&m);
    free(exact);
    free(edited);
    free(text);
    return r;
}

TEST(a_manifest_comes_back_as_it_was_printed)
{
    uint64_t size, size_again;
    char *text = make_text(&size), *again = NULL;
    struct pstk__manifest m, made;
    struct pstk_error err = {0};
    CHECK(text != NULL);
    if (pstk__manifest_parse(&m, text, size, "m", &err) < 0)
        printf("# %s\n", err.message);
    CHECK_EQ(err.code, 0);
    CHECK_EQ(make_manifest(&made), 0);
    CHECK(memcmp(&m.schema, &made.schema, sizeof m.schema) == 0);
    CHECK(memcmp(m.stats, made.stats, sizeof m.stats) == 0);
    CHECK_EQ(m.n_samples, 7);
    CHECK_EQ(m.bytes, 12288 + 16384 + 300);
    CHECK_EQ(m.part, 1);
    CHECK_EQ(m.n_parts, 3);
    CHECK_EQ(m.names.n, 2);
    CHECK(pstk__texts_equal(&m.names, &made.names));
    CHECK_STR(m.note, made.note);
    CHECK_EQ(m.n_shards, 2);
    CHECK_EQ(m.shards[0].index_crc, 0xffffffff);
    CHECK_EQ(m.shards[0].n_dictionaries, 1);
    CHECK_EQ(m.n_dictionaries, 1);
    CHECK_EQ(m.dictionaries[0].field, 2);
    CHECK_EQ(pstk__manifest_print(&m, &again, &size_again, NULL), 0);
    CHECK_EQ(size, size_again);
    CHECK(memcmp(text, again, size) == 0);
    pstk__manifest_free(&m);
    pstk__manifest_free(&made);
    free(text);
    free(again);
}

TEST(attributes_come_back_as_they_were_printed)
{
    uint64_t size, size_again;
    struct pstk__manifest m, made;
    char *again;
    with_kinds = 1;
    char *text = make_text(&size);
    CHECK(strstr(text, "\"dtype\":\"f32\",\"shape\":[0,4],\"of\":\"jpg\",\"rows\":\"objects\","
                       "\"form\":\"xywh\",\"coordinates\":\"unit\",\"codec\":\"none\""));
    CHECK(strstr(text, "\"shape\":[0],\"rows\":\"objects\",\"splits\":\"masks\","));
    CHECK_EQ(pstk__manifest_parse(&m, text, size, "m", NULL), 0);
    CHECK_EQ(make_manifest(&made), 0);
    CHECK(memcmp(&m.schema, &made.schema, sizeof m.schema) == 0);
    CHECK(memcmp(m.stats, made.stats, sizeof m.stats) == 0);
    CHECK_EQ(pstk__manifest_print(&m, &again, &size_again, NULL), 0);
    CHECK(size == size_again && memcmp(text, again, size) == 0);
    pstk__manifest_free(&m);
    pstk__manifest_free(&made);
    free(text);
    free(again);
    with_kinds = 0;
}

TEST(each_wrong_attribute_is_named)
{
    static const struct {
        const char *from, *to, *names;
    } edits[] = {
        {",\"form\":\"xywh\"", "", "fields[4].form is missing"},
        {"\"form\":\"xywh\"", "\"form\":\"yxyx\"", "fields[4].form is \"yxyx\""},
        {"\"form\":\"xywh\"", "\"form\":2", "fields[4].form must be a text"},
        {",\"coordinates\":\"unit\"", "", "fields[4].coordinates is missing"},
        {"\"coordinates\":\"unit\"", "\"coordinates\":\"metres\"", "fields[4].coordinates is"},
        {",\"of\":\"jpg\"", "", "fields[4].of is missing"},
        {"\"of\":\"jpg\"", "\"of\":\"cls\"", "of: value is \"cls\""},
        {"\"of\":\"jpg\"", "\"of\":\"\"", "fields[4].of must have 1 to 63 bytes"},
        {"\"rows\":\"objects\"", "\"rows\":\"a/b\"", "rows: value is \"a/b\""},
        {"\"rows\":\"objects\"", "\"rows\":[]", "fields[4].rows must be a text"},
        {"\"splits\":\"masks\"", "\"splits\":\"nothing\"", "splits: value is \"nothing\""},
        {"\"kind\":\"image\"", "\"kind\":\"image\",\"of\":\"jpg\"", "fields[0].of is unknown"},
        {"\"kind\":\"scalar\"", "\"kind\":\"scalar\",\"rows\":\"x\"", "fields[1].rows is unknown"},
        {"\"kind\":\"utf8\"", "\"kind\":\"utf8\",\"form\":\"xyxy\"", "fields[2].form is unknown"},
        {"\"kind\":\"utf8\"", "\"kind\":\"utf8\",\"splits\":\"masks\"",
         "fields[2].splits is unknown"},
        {",\"max_width\":31", "", "fields[6].max_width is missing"},
        {"\"kind\":\"mask_list\"", "\"kind\":\"utf8_list\"", "fields[6].of is unknown"},
    };
    with_kinds = 1;
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        struct pstk_error err;
        int r = parse_edited(edits[i].from, edits[i].to, &err);
        if (r != PSTK_EBADMSG || !strstr(err.message, edits[i].names))
            printf("# edit %zu: %s\n", i, err.message);
        CHECK_EQ(r, PSTK_EBADMSG);
        CHECK(strstr(err.message, edits[i].names));
    }
    with_kinds = 0;
}

TEST(every_flipped_bit_and_every_cut_is_found)
{
    uint64_t size;
    char *text = make_text(&size);
    struct pstk__manifest m;
    CHECK(text != NULL);
    for (uint64_t bit = 0; bit < 8 * size; bit++) {
        text[bit / 8] ^= (char)(1 << bit % 8);
        CHECK_EQ(pstk__manifest_parse(&m, text, size, "m", NULL), PSTK_EBADMSG);
        text[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (uint64_t cut = 0; cut < size; cut++)
        CHECK_EQ(pstk__manifest_parse(&m, text, cut, "m", NULL), PSTK_EBADMSG);
    CHECK_EQ(pstk__manifest_parse(&m, text, size + 1, "m", NULL), PSTK_EBADMSG);
    free(text);
}

TEST(another_version_is_named_before_its_keys_are_looked_at)
{
    struct pstk_error err;
    CHECK_EQ(parse_edited("\"version\":2", "\"version\":3,\"new\":[]", &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message,
                 "a newer penstock wrote it: its version is 3; this penstock reads version 2"));
    CHECK(strstr(err.message, "manifest.json"));
    CHECK_EQ(parse_edited("\"version\":2", "\"version\":1,\"old\":[]", &err), PSTK_ENOTSUP);
    CHECK_STR(err.message, "manifest.json is of version 1; this library reads version 2 (pack "
                           "again, to another directory)");
    CHECK_EQ(parse_edited("\"version\":2", "\"version\":0", &err), PSTK_EBADMSG);
    CHECK_EQ(parse_edited("\"penstock\"", "\"webdataset\"", &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "another program"));
}

TEST(a_required_feature_that_is_unknown_is_named_before_keys_are_looked_at)
{
    struct pstk_error err;
    CHECK_EQ(parse_edited("\"requires\":[]", "\"requires\":[\"zebra\",\"ant\"],\"new\":[]", &err),
             PSTK_ENOTSUP);
    CHECK(strstr(err.message, "manifest.json: the data set requires the feature zebra, which this "
                              "version does not know; reading it needs a newer penstock"));
}

TEST(features_that_may_be_ignored_and_what_is_under_extra_are)
{
    static const char *const right[] = {
        "\"uses\":[\"side-columns\"]",
        "\"uses\":[\"x_1\",\"0\",\"-\"],\"extra\":{\"x_1\":{\"a\":[1,{\"b\":null}]},\"\":7}",
        "\"uses\":[\"a23456789012345678901234567890123456789012345678901234567890123\"]",
        "\"extra\":{\"a\":1,\"a\":2},\"uses\":[]",
        "\"uses\":[],\"extra\":{}",
    };
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        struct pstk_error err;
        const int r = parse_edited("\"uses\":[]", right[i], &err);
        if (r < 0)
            printf("# %zu: %s\n", i, err.message);
        CHECK_EQ(r, 0);
    }
}

TEST(lists_of_features_that_are_none_are_refused)
{
    static const struct {
        const char *to, *names;
    } edits[] = {
        {"\"uses\":{}", "the key uses must be a list of at most 64 names"},
        {"\"uses\":7", "the key uses must be a list"},
        {"\"uses\":[7]", "the key uses has an element that is not 1 to 63"},
        {"\"uses\":[\"\"]", "the key uses has an element that is not 1 to 63"},
        {"\"uses\":[\"A\"]", "the key uses has an element that is not 1 to 63"},
        {"\"uses\":[\"a b\"]", "the key uses has an element that is not 1 to 63"},
        {"\"uses\":[\"a234567890123456789012345678901234567890123456789012345678901234\"]",
         "the key uses has an element that is not 1 to 63"},
        {"\"uses\":[\"a\",\"b\",\"a\"]", "the key uses has the name a, which is in these lists"},
        {"\"uses\":[],\"extra\":[]", "the key extra is not an object"},
        {"\"uses\":[],\"extra\":7", "the key extra is not an object"},
        {"\"uses\":[],\"extra\":{\"a\"}", "a value, a comma or a bracket is missing here"},
        {"\"uses\":[],\"extra\":{},\"extra\":{}", "the key extra appears twice"},
        {"\"uses\":[],\"extras\":{}", "the key extras is unknown to this version"},
    };
    struct pstk_error err;
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        const int r = parse_edited("\"uses\":[]", edits[i].to, &err);
        if (r == 0 || !strstr(err.message, edits[i].names))
            printf("# %zu: %s\n", i, err.message);
        CHECK_EQ(r, PSTK_EBADMSG);
        CHECK(strstr(err.message, edits[i].names));
    }
    CHECK_EQ(parse_edited("\"requires\":[],\n\"uses\":[]", "\"requires\":[\"a\"],\"uses\":[\"a\"]",
                          &err),
             PSTK_EBADMSG);
    CHECK(strstr(err.message, "the key uses has the name a, which is in these lists twice"));
    char many[1024] = "\"uses\":[\"a\"";
    for (size_t i = 0, n = strlen(many); i < 64; i++)
        n += (size_t)snprintf(many + n, sizeof many - n, ",\"a%zu\"", i);
    strcat(many, "]");
    CHECK_EQ(parse_edited("\"uses\":[]", many, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "must be a list of at most 64 names"));
}

#define COLUMN(text) "\"uses\":[\"columns\"],\"extra\":{\"columns\":[{" text "}]}"
#define CLS "\"name\":\"cls\",\"dtype\":\"i64\",\"files\":\"cls\""
#define OF_CLS "\"field\":\"cls\",\"fact\":\"value\""
#define CRCS "\"header_crc32c\":[\"0000ab01\",\"00000002\"]"

TEST(columns_come_back_as_they_were_printed)
{
    const struct pstk__manifest_column added = {
        .name = "w.1", .files = "w.1.3", .dtype = PSTK_F32, .fact = PSTK_COLUMN_ADDED};
    const struct pstk__manifest_column derived = {.name = "arr.length",
                                                  .files = "arr.length",
                                                  .dtype = PSTK_U32,
                                                  .fact = PSTK_COLUMN_LENGTH,
                                                  .field = 3};
    struct pstk__manifest m, back;
    char *text, *again, file[PSTK__MAX_COLUMN_FILE];
    uint64_t size, size_again;
    CHECK_EQ(make_manifest(&m), 0);
    CHECK_EQ(pstk__manifest_add_column(&m, &added, NULL), 0);
    CHECK_EQ(pstk__manifest_add_column(&m, &derived, NULL), 0);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_EQ(pstk__manifest_add_column_crc(&m.columns[i % 2], 0xfffffff0 + i, NULL), 0);
    CHECK_EQ(pstk__manifest_print(&m, &text, &size, NULL), 0);
    CHECK_EQ(pstk__manifest_parse(&back, text, size, "m", NULL), 0);
    CHECK_EQ(back.n_columns, 2);
    CHECK_EQ(pstk__manifest_find_column(&back, "arr.length"), 1);
    CHECK_EQ(back.columns[1].fact, PSTK_COLUMN_LENGTH);
    CHECK_EQ(back.columns[1].field, 3);
    CHECK_EQ(back.columns[0].header_crcs[1], 0xfffffff2);
    CHECK_EQ(pstk__manifest_column_file(&back.columns[0], back.shards[1].file, file), 0);
    CHECK_STR(file, "s-1.w.1.3.pcol");
    CHECK_EQ(pstk__manifest_print(&back, &again, &size_again, NULL), 0);
    CHECK(size == size_again && memcmp(text, again, size) == 0);
    free(again);
    pstk__manifest_remove_column(&back, 0);
    pstk__manifest_remove_column(&back, 0);
    CHECK_EQ(pstk__manifest_print(&back, &again, &size_again, NULL), 0);
    free(text);
    text = make_text(&size);
    CHECK(size == size_again && memcmp(text, again, size) == 0);
    free(again);
    free(text);
    pstk__manifest_free(&m);
    pstk__manifest_free(&back);
}

TEST(checksums_of_columns_may_have_escapes_as_any_text)
{
    struct pstk_error err;
    CHECK_EQ(parse_edited("\"uses\":[]",
                          COLUMN(CLS ",\"header_crc32c\":[\"\\u0030000ab01\", \"00000002\" ]"),
                          &err),
             0);
    CHECK_EQ(parse_edited("\"uses\":[]",
                          COLUMN(CLS ",\"header_crc32c\":[\"\\u00300000ab01\",\"00000002\"]"),
                          &err),
             PSTK_EBADMSG);
    CHECK(strstr(err.message, "not 8 lower-case hex digits"));
}

TEST(the_key_columns_means_nothing_unless_the_feature_is_used)
{
    struct pstk_error err;
    CHECK_EQ(parse_edited("\"uses\":[]", COLUMN(CLS "," OF_CLS "," CRCS), &err), 0);
    CHECK_EQ(parse_edited("\"uses\":[]", COLUMN(CRCS "," CLS), &err), 0);
    CHECK_EQ(parse_edited("\"uses\":[]", "\"uses\":[\"a\"],\"extra\":{\"columns\":7}", &err), 0);
    CHECK_EQ(parse_edited("\"uses\":[]", "\"uses\":[\"columns\"],\"extra\":{\"columns\":[]}", &err),
             0);
}

TEST(each_wrong_column_is_named)
{
    static const struct {
        const char *to, *names;
    } edits[] = {
        {"\"uses\":[\"columns\"]", "the key extra.columns is missing"},
        {"\"uses\":[\"columns\"],\"extra\":{}", "the key extra.columns is missing"},
        {"\"uses\":[\"columns\"],\"extra\":{\"columns\":{}}", "extra.columns is not a list"},
        {"\"uses\":[\"columns\"],\"extra\":{\"columns\":[],\"columns\":[]}",
         "the key extra.columns appears twice"},
        {"\"uses\":[\"columns\"],\"extra\":{\"columns\":[7]}",
         "extra.columns[0]. is not an object"},
        {COLUMN(CLS), "extra.columns[0].header_crc32c is missing"},
        {COLUMN(CRCS), "extra.columns[0].name is missing"},
        {COLUMN(CLS ",\"new\":1," CRCS), "extra.columns[0].new is unknown"},
        {COLUMN(CLS "," CLS "," CRCS), "extra.columns[0].name appears twice"},
        {COLUMN(CLS "," CRCS "," CRCS), "extra.columns[0].header_crc32c appears twice"},
        {COLUMN(CLS ",\"field\":\"cls\"," CRCS), "extra.columns[0].fact is missing"},
        {COLUMN(CLS ",\"fact\":\"value\"," CRCS), "extra.columns[0].field is missing"},
        {COLUMN(CLS ",\"field\":\"x\",\"fact\":\"value\"," CRCS), "does not name a field"},
        {COLUMN(CLS ",\"field\":\"cls\",\"fact\":\"x\"," CRCS), "fact must be value, size"},
        {COLUMN(CLS ",\"field\":\"jpg\",\"fact\":\"value\"," CRCS),
         "which its field does not have"},
        {COLUMN(CLS ",\"field\":\"jpg\",\"fact\":\"width\"," CRCS),
         "which its field does not have"},
        {COLUMN("\"name\":\"\",\"dtype\":\"u8\",\"files\":\"c\"," CRCS),
         "is not a name that a column"},
        {COLUMN("\"name\":\"a b\",\"dtype\":\"u8\",\"files\":\"c\"," CRCS), "is not a name that a"},
        {COLUMN("\"name\":\"a\",\"dtype\":\"u8\",\"files\":\"a/b\"," CRCS),
         "cannot be part of a file"},
        {COLUMN("\"name\":\"a\",\"dtype\":\"u7\",\"files\":\"a\"," CRCS), "dtype is not a dtype"},
        {COLUMN(CLS ",\"header_crc32c\":[\"00000001\"]"), "has 1 elements; there are 2 shards"},
        {COLUMN(CLS ",\"header_crc32c\":[\"00000001\",\"0000000G\"]"),
         "not 8 lower-case hex digits"},
        {COLUMN(CLS ",\"header_crc32c\":[1,2]"), "not 8 lower-case hex digits"},
        {COLUMN(CLS ",\"header_crc32c\":7"), "header_crc32c is not a list"},
        {COLUMN(CLS "," CRCS "},{" CLS "," CRCS), "two columns of the name cls"},
        {COLUMN(CLS "," CRCS "},{\"name\":\"b\",\"dtype\":\"u8\",\"files\":\"cls\"," CRCS),
         "two columns with the files cls"},
    };
    struct pstk_error err;
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        const int r = parse_edited("\"uses\":[]", edits[i].to, &err);
        if (r == 0 || !strstr(err.message, edits[i].names))
            printf("# %zu: %s\n", i, err.message);
        CHECK_EQ(r, PSTK_EBADMSG);
        CHECK(strstr(err.message, edits[i].names));
    }
}

TEST(a_manifest_with_too_many_values_is_refused_before_it_is_parsed)
{
    static const struct {
        const char *before, *after;
    } places[] = {
        {"\"dictionaries\":[0", "]"},  {"\"shape\":[0,4", "]"},  {"\"part\":[1", "]"},
        {"\"names\":[\"a\",[1", "],"}, {"\"shards\":[[1", "],"},
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct pstk_error err;
        char dense[8192], from[64];
        const char *bracket = strchr(places[i].before, '[');
        int n = snprintf(dense, sizeof dense, "%s", places[i].before);
        for (int k = 0; k < 300; k++)
            n += snprintf(dense + n, sizeof dense - (size_t)n, ",[]");
        snprintf(dense + n, sizeof dense - (size_t)n, "%s", places[i].after);
        snprintf(from, sizeof from, "%.*s", (int)(bracket - places[i].before), places[i].before);
        strcat(from, i < 2 ? places[i].before + strlen(from) : i == 2 ? "1" : "[");
        strcat(from, i < 2 ? "]" : "");
        CHECK_EQ(parse_edited(from, dense, &err), PSTK_EBADMSG);
        if (!strstr(err.message, "too many values"))
            printf("# place %zu: %s\n", i, err.message);
        CHECK(strstr(err.message, "line "));
        CHECK(strstr(err.message, "too many values in one place for a manifest"));
    }
}

TEST(keys_count_by_what_they_say_and_once)
{
    struct pstk_error err;
    CHECK_EQ(parse_edited("\"names\"", "\"n\\u0061mes\"", &err), 0);
    CHECK_EQ(parse_edited("\"names\"", "\"names\":[],\"n\\u0061mes\"", &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "the key names appears twice"));
    CHECK_EQ(parse_edited("\"version\":2", "\"new\":[],\"version\":3", &err), PSTK_ENOTSUP);
    CHECK_EQ(parse_edited("\"version\":2", "\"\":[],\"version\":2", &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "is unknown"));
}

TEST(invalid_JSON_is_reported_with_its_line)
{
    static const char *const edits[][3] = {
        {"\"names\":[", "\"names\":[,", "line 15"},
        {"\"n_samples\":7,", "\"n_samples\":7", "line 5"},
        {"\"n_samples\":7,", "\"n_samples\",", "line 4"},
        {"\"n_samples\":7,", "\"n_samples\":,", "line 4"},
        {"\"n_samples\":7,", "\"n_samples\":7,7,", "line 4"},
        {"\"n_samples\":7,", "\"n_samples\":7;", "line 5"},
        {"\"n_samples\":7,", "\"n_samples\":7},", "line 4"},
        {"\"n_samples\":7,", "\"n_samples\":7],", "line 4"},
        {"{\"file\":\"d0", "{]\"file\":\"d0", "line "},
        {"\"dictionaries\":[0]", "\"dictionaries\":[0}", "line "},
        {"\"dictionaries\":[0]", "\"dictionaries\":[0,]", "line "},
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        struct pstk_error err;
        int r = parse_edited(edits[i][0], edits[i][1], &err);
        if (r != PSTK_EBADMSG || !strstr(err.message, edits[i][2]))
            printf("# edit %zu: %s\n", i, err.message);
        CHECK_EQ(r, PSTK_EBADMSG);
        CHECK(strstr(err.message, edits[i][2]));
    }
}

/* The keys of a part of unknown number, in place of part and n_parts. */
#define TASK_PART(part)                                                                            \
    "\"part\":" part ",\n\"n_parts\":0,\"pack\":\"00112233445566778899aabbccddeeff\","             \
    "\"task\":\"a:/=b\",\"attempt\":4"

/* A whole data set that claims to be of a pack. */
#define WHOLE_PACK "\"part\":0,\n\"n_parts\":1,\"pack\":\"00112233445566778899aabbccddeeff\""

TEST(each_wrong_key_is_named)
{
    static const struct {
        const char *from, *to, *names;
    } edits[] = {
        {"\"n_samples\":7", "\"n_sample\":7", "n_sample"},
        {"\"n_samples\":7", "\"n_samples\":7,\"n_samples\":7", "n_samples"},
        {"\"n_samples\":7", "\"n_samples\":7,\"more\":1", "more is unknown"},
        {"\"n_samples\":7", "\"n_samples\":\"7\"", "n_samples must be a whole number"},
        {"\"n_samples\":7", "\"n_samples\":7.0", "n_samples must be a whole number"},
        {"\"n_samples\":7", "\"n_samples\":-7", "n_samples is -7"},
        {"\"n_samples\":7", "\"n_samples\":8", "n_samples is 8"},
        {"\"n_samples\":7", "\"n_samples\":1152921504606846976", "n_samples"},
        {"\"n_samples\":7", "\"n_samples\":9223372036854775808", "line"},
        {"\"n_shards\":2", "\"n_shards\":1152921504606846976", "n_shards"},
        {"\"n_shards\":2", "\"n_shards\":3", "n_shards is 3"},
        {"\"bytes\":28972", "\"bytes\":28973", "bytes is 28973"},
        {"\"identity\":\"0", "\"identity\":\"G", "identity"},
        {"\"identity\":\"0", "\"identity\":\"00", "identity"},
        {"\"part\":1", "\"part\":3", "part is 3"},
        {"\"n_parts\":3", "\"n_parts\":1", "part is 1 of n_parts 1"},
        {"\"n_parts\":3", "\"n_parts\":0", "pack is missing"},
        {"\"n_parts\":3", "\"n_parts\":3,\"attempt\":0", "attempt belongs to parts of unknown"},
        {"\"n_parts\":3", "\"n_parts\":3,\"pack\":null", "pack must be a text"},
        {"\"n_parts\":3", "\"n_parts\":3,\"pack\":\"a\"", "pack must be 32 lower-case hex"},
        {"\"part\":1,\n\"n_parts\":3", WHOLE_PACK, "pack belongs to parts; this is a whole"},
        {"\"n_parts\":3", "\"n_parts\":3,\"task\":\"a\"", "task belongs to parts of unknown"},
        {"\"part\":1,\n\"n_parts\":3", TASK_PART("1"), "part is 1 of n_parts 0"},
        {"\"note\":\"", "\"note\":5,\"x\":\"", "x is unknown"},
        {"\"note\":\"", "\"note\":\"\\u0000", "line"},
        {"\"names\":[", "\"names\":[3,", "names"},
        {"\"kind\":\"image\"", "\"kind\":\"movie\"", "fields[0].kind"},
        {"\"name\":\"jpg\"", "\"name\":\"j/g\"", "j/g"},
        {"\"name\":\"cls\"", "\"name\":\"jpg\"", "jpg"},
        {"\"dtype\":\"i64\"", "\"dtype\":\"i65\"", "fields[1].dtype"},
        {",\"dtype\":\"i64\"", "", "fields[1].dtype is missing"},
        {"\"codec\":\"none\"", "\"codec\":\"none\",\"dtype\":\"u8\"", "fields[0].dtype is unknown"},
        {"\"codec\":\"none\"", "\"codec\":\"lzma\"", "lzma"},
        {"\"level\":-5", "\"level\":99", "codec_level: value is 99"},
        {"\"level\":-5", "\"level\":4294967296", "fields[2].level"},
        {"\"shape\":[0,4]", "\"shape\":[]", "n_dims: value is 0"},
        {"\"shape\":[0,4]", "\"shape\":[1,1,1,1,1,1,1,1,1]", "shape"},
        {"\"shape\":[0,4]", "\"shape\":[-1]", "shape"},
        {"\"shape\":[0,4]", "\"shape\":[9223372036854775807]", "shape"},
        {"\"max_width\":640", "\"max_width\":4294967296", "fields[0].max_width"},
        {",\"max_width\":640", "", "fields[0].max_width is missing"},
        {"\"max_stored\":1000", "\"max_stored\":4294967296", "fields[0].max_stored"},
        {"\"jpeg\":5", "\"jpeg\":0", "jpeg"},
        {"\"jpeg\":5", "\"webp\":5", "webp"},
        {"\"jpeg\":5", "\"jpeg\":8", "encodings"},
        {"\"zstd\":4", "\"brotli\":4", "brotli"},
        {"\"field\":\"txt\"", "\"field\":\"jpg\"", "dictionaries[0].field"},
        {"\"field\":\"txt\"", "\"field\":\"none\"", "dictionaries[0].field"},
        {"\"bytes\":300", "\"bytes\":0", "dictionaries[0].bytes"},
        {"\"bytes\":300", "\"bytes\":1152921504606846976", "dictionaries[0].bytes"},
        {"\"crc32c\":\"000000ab\"", "\"crc32c\":\"000000AB\"", "dictionaries[0].crc32c"},
        {"d0.zdict", "../d0.zdict", "dictionaries[0].file"},
        {"s-0.pstk", ".s-0.pstk", "shards[0].file"},
        {"s-0.pstk", "", "shards[0].file"},
        {"s-0.pstk", "s-1.pstk", "named twice"},
        {"s-0.pstk", "d0.zdict", "named twice"},
        {"\"n_records\":4", "\"n_records\":0", "shards[0].n_records"},
        {"\"n_records\":4", "\"n_records\":4294967296", "shards[0].n_records"},
        {"\"n_records\":4", "\"n_records\":4000000000", "shards[0].bytes"},
        {"\"bytes\":12288", "\"bytes\":12289", "shards[0].bytes"},
        {"\"bytes\":12288", "\"bytes\":9223372036854771712", "shards[0].bytes"},
        {"\"bytes\":12288", "\"bytes\":4096", "shards[0].bytes"},
        {"\"dictionaries\":[0]", "\"dictionaries\":[1]", "shards[0].dictionaries"},
        {"\"dictionaries\":[0]", "\"dictionaries\":[-1]", "shards[0].dictionaries"},
        {"\"dictionaries\":[0]", "\"dictionaries\":[0,0]", "shards[0].dictionaries"},
        {"\"dictionaries\":[0]", "\"dictionaries\":0", "shards[0].dictionaries"},
        {"\"shards\":[", "\"shards\":[7,", "shards[0]."},
        {"{\"format\"", "[{\"format\"", "line"},
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        struct pstk_error err;
        int r = parse_edited(edits[i].from, edits[i].to, &err);
        if (r != PSTK_EBADMSG || !strstr(err.message, edits[i].names))
            printf("# edit %zu: %s\n", i, err.message);
        CHECK_EQ(r, PSTK_EBADMSG);
        CHECK(strstr(err.message, edits[i].names));
    }
}

/* Edit the sample's text into that of a part of unknown number, and then this of it. */
static int parse_task(const char *from, const char *to, struct pstk_error *err)
{
    char text[512] = TASK_PART("0"), edited[512];
    const char *at = strstr(text, from);
    snprintf(edited, sizeof edited, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return parse_edited("\"part\":1,\n\"n_parts\":3", edited, err);
}

TEST(each_wrong_key_of_a_part_of_unknown_number_is_named)
{
    static const struct {
        const char *from, *to, *names;
    } edits[] = {
        {"\"pack\":\"0", "\"pack\":\"", "pack must be 32 lower-case hex digits"},
        {"\"pack\":\"0", "\"pack\":\"A", "pack must be 32 lower-case hex digits"},
        {"\"pack\":\"0", "\"pack\":\"00", "pack is longer than 32 bytes"},
        {"\"00112233445566778899aabbccddeeff\"", "7", "pack must be a text"},
        {"\"task\":\"a:/=b\"", "\"task\":\"\"", "task must be 1 to 200 of the characters"},
        {"a:/=b", "a b", "task must be 1 to 200 of the characters"},
        {"a:/=b", "\\\"", "task must be 1 to 200 of the characters"},
        {"\"task\":\"a:/=b\"", "\"task\":[]", "task must be a text"},
        {"\"task\":\"a:/=b\",", "", "task is missing"},
        {",\"attempt\":4", "", "attempt is missing"},
        {"\"attempt\":4", "\"attempt\":4294967296", "attempt is 4294967296; must be from 0 to"},
        {"\"attempt\":4", "\"attempt\":-1", "attempt is -1"},
        {"\"attempt\":4", "\"attempt\":\"4\"", "attempt must be a whole number"},
        {"\"attempt\":4", "\"attempt\":4,\"attempt\":4", "the key attempt appears twice"},
    };
    struct pstk_error err;
    char long_key[220] = "";
    memset(long_key, 'k', 201);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        const int r = parse_task(edits[i].from, edits[i].to, &err);
        if (r != PSTK_EBADMSG || !strstr(err.message, edits[i].names))
            printf("# edit %zu: %s\n", i, err.message);
        CHECK_EQ(r, PSTK_EBADMSG);
        CHECK(strstr(err.message, edits[i].names));
    }
    CHECK_EQ(parse_task("a:/=b", long_key, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "task is longer than 200 bytes"));
    CHECK_EQ(parse_task("a:/=b", long_key + 1, &err), 0);
    CHECK_EQ(parse_task("\"attempt\":4", "\"attempt\":4294967295", &err), 0);
}

TEST(a_part_of_unknown_number_comes_back_as_it_was_printed)
{
    struct pstk__manifest m, back;
    char *text = NULL, *again = NULL;
    uint64_t size, size_again;
    struct pstk_error err = {0};
    CHECK_EQ(make_manifest(&m), 0);
    m.task = (struct pstk__task){"00112233445566778899aabbccddeeff", "day=3/00042", 7};
    CHECK_EQ(pstk__manifest_print(&m, &text, &size, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "task belongs to parts of unknown number; part is 1 of 3"));
    m.part = m.n_parts = 0;
    CHECK_EQ(pstk__manifest_print(&m, &text, &size, NULL), 0);
    CHECK_EQ(pstk__manifest_parse(&back, text, size, "m", NULL), 0);
    CHECK_EQ(back.n_parts, 0);
    CHECK(strcmp(back.task.pack_id, m.task.pack_id) == 0 && strcmp(back.task.key, m.task.key) == 0);
    CHECK_EQ(back.task.attempt, m.task.attempt);
    CHECK_EQ(pstk__manifest_print(&back, &again, &size_again, NULL), 0);
    CHECK(size == size_again && memcmp(text, again, size) == 0);
    m.task.key[0] = 0;
    free(text);
    CHECK_EQ(pstk__manifest_print(&m, &text, &size, NULL), PSTK_EINVAL);
    free(again);
    pstk__manifest_free(&m);
    pstk__manifest_free(&back);
}

TEST(a_numbered_part_may_have_the_id_of_its_pack)
{
    struct pstk__manifest m, back;
    char *text = NULL;
    uint64_t size;
    CHECK_EQ(make_manifest(&m), 0);
    m.task = (struct pstk__task){.pack_id = "00112233445566778899aabbccddeeff"};
    CHECK_EQ(pstk__manifest_print(&m, &text, &size, NULL), 0);
    CHECK_EQ(pstk__manifest_parse(&back, text, size, "m", NULL), 0);
    CHECK(back.part == 1 && back.n_parts == 3 && !back.task.key[0]);
    CHECK_STR(back.task.pack_id, m.task.pack_id);
    free(text);
    m.task.pack_id[0] = 'A';
    CHECK_EQ(pstk__manifest_print(&m, &text, &size, NULL), PSTK_EINVAL);
    m.task.pack_id[0] = '0';
    m.part = 0;
    m.n_parts = 1;
    CHECK_EQ(pstk__manifest_print(&m, &text, &size, NULL), PSTK_EINVAL);
    pstk__manifest_free(&m);
    pstk__manifest_free(&back);
}

TEST(every_key_of_every_object_is_required)
{
    uint64_t size;
    char *text = make_text(&size);
    int n = 0;
    for (char *quote = strchr(text, '"'); quote; quote = strchr(quote + 1, '"')) {
        char from[64], to[66];
        const char *end = strchr(quote + 1, '"');
        if (!end)
            break;
        size_t length = (size_t)(end - quote);
        if (end[1] != ':' || (quote[-1] != ',' && quote[-1] != '{' && quote[-1] != '\n'))
            continue; /* no key */
        if (length > 60 || strncmp(quote, "\"crc32c\":", 9) == 0)
            continue; /* the tail is another test's */
        snprintf(from, sizeof from, "%.*s:", (int)length + 1, quote);
        snprintf(to, sizeof to, "\"x%s", from + 1);
        struct pstk_error err;
        CHECK_EQ(parse_edited(from, to, &err), PSTK_EBADMSG);
        n++;
    }
    CHECK(n > 30);
    free(text);
}

TEST(an_empty_data_set_has_a_manifest)
{
    struct pstk__manifest m, back;
    char *bytes;
    uint64_t size;
    static const struct pstk_field field = {.name = "a", .kind = PSTK_FIELD_BYTES};
    memset(&m, 0, sizeof m);
    CHECK_EQ(pstk__schema_init(&m.schema, &field, 1, NULL), 0);
    memset(m.identity, '0', 32);
    m.n_parts = 1;
    CHECK_EQ(pstk__manifest_print(&m, &bytes, &size, NULL), 0);
    CHECK_EQ(pstk__manifest_parse(&back, bytes, size, "m", NULL), 0);
    CHECK_EQ(back.n_samples, 0);
    CHECK_STR(back.note, "");
    free(bytes);
    pstk__manifest_free(&back);
}

/* A manifest of `n` full shards and one of `rest` records. */
static int make_large(struct pstk__manifest *m, uint32_t n, uint64_t rest)
{
    static const struct pstk_field field = {
        .name = "a", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_U8};
    memset(m, 0, sizeof *m);
    int r = pstk__schema_init(&m->schema, &field, 1, NULL);
    memset(m->identity, '0', 32);
    m->n_parts = 1;
    m->stats[0] = (struct pstk_field_stats){.max_stored_size = 1, .max_plain_size = 1};
    for (uint32_t i = 0; r == 0 && i <= n; i++) {
        char file[32];
        snprintf(file, sizeof file, "s-%u.pstk", i);
        const struct pstk__manifest_shard shard = {
            .file = file, .n_records = i < n ? 0xffffffffull : rest, .bytes = 1ull << 44};
        r = pstk__manifest_add_shard(m, &shard, NULL);
    }
    return r;
}

TEST(a_data_set_may_have_2_to_the_40_samples_and_no_more)
{
    struct pstk__manifest m, back;
    char *bytes;
    uint64_t size;
    struct pstk_error err = {0};
    CHECK_EQ(make_large(&m, 256, 256), 0);
    CHECK_EQ(m.n_samples, 1ull << 40);
    CHECK_EQ(pstk__manifest_print(&m, &bytes, &size, &err), 0);
    CHECK_EQ(pstk__manifest_parse(&back, bytes, size, "m", &err), 0);
    CHECK_EQ(back.n_samples, 1099511627776);
    CHECK_EQ(back.bytes, 257ll << 44);
    free(bytes);
    pstk__manifest_free(&m);
    pstk__manifest_free(&back);
    CHECK_EQ(make_large(&m, 256, 257), 0);
    CHECK_EQ(pstk__manifest_print(&m, &bytes, &size, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "n_samples: the shards have more than 2^40 records"));
    pstk__manifest_free(&m);
}

TEST(a_manifest_that_breaks_an_invariant_is_not_printed)
{
    struct pstk__manifest m;
    char *bytes;
    uint64_t size;
    struct pstk_error err = {0};
    CHECK_EQ(make_manifest(&m), 0);
    m.shards[1].bytes++;
    CHECK_EQ(pstk__manifest_print(&m, &bytes, &size, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "shards[1].bytes"));
    CHECK(bytes == NULL);
    pstk__manifest_free(&m);
}

TEST(names_and_notes_that_are_not_utf8_are_refused)
{
    struct pstk__manifest m;
    const char *const bad[] = {"ok", "\xff\xfe"};
    memset(&m, 0, sizeof m);
    struct pstk_error err = {0};
    CHECK_EQ(pstk__manifest_set_names(&m, bad, 2, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "names[1]"));
    CHECK_EQ(pstk__manifest_set_note(&m, bad[1], &err), PSTK_EINVAL);
    CHECK_EQ(pstk__manifest_set_names(&m, (const char *const *)NULL, 0, NULL), 0);
    pstk__manifest_free(&m);
    CHECK_EQ(m.names.n, 0);
}

TEST(deep_nesting_is_refused_not_followed)
{
    struct pstk_error err;
    char *deep = malloc(200001);
    memset(deep, '[', 200000);
    deep[200000] = 0;
    int r = parse_edited("\"tench", deep, &err);
    free(deep);
    CHECK_EQ(r, PSTK_EBADMSG);
}

TEST(a_missing_manifest_is_refused_and_a_changed_one_is_noticed)
{
    char dir[] = "/tmp/pstk-manifest-XXXXXX", path[64];
    struct pstk__manifest m;
    struct pstk_error err = {0};
    CHECK(mkdtemp(dir) != NULL);
    CHECK_EQ(pstk__manifest_load(&m, &pstk__store_local, dir, &err), PSTK_ENOENT);
    CHECK(strstr(err.message, "no manifest.json"));
    snprintf(path, sizeof path, "%s/manifest.json", dir);
    CHECK_EQ(pstk__manifest_load(&m, &pstk__store_local, path, &err), PSTK_ENOENT);
    CHECK_EQ(mkfifo(path, 0600), 0);
    CHECK_EQ(pstk__manifest_load(&m, &pstk__store_local, dir, &err), PSTK_ENOTSUP);
    CHECK_EQ(pstk__manifest_load(&m, &pstk__store_local, path, &err), PSTK_ENOTSUP);
    CHECK_EQ(unlink(path), 0);
    uint64_t size;
    char *text = make_text(&size);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(fd >= 0 && write(fd, text, size) == (ssize_t)size && close(fd) == 0);
    CHECK_EQ(pstk__manifest_load(&m, &pstk__store_local, dir, &err), 0);
    CHECK_EQ(pstk__manifest_stands(&m, &pstk__store_local, dir), 1);
    CHECK_EQ(pstk__manifest_unchanged(&m, &pstk__store_local, dir), 1);
    text[60] ^= 1; /* another identity, and so another checksum */
    text[size - 5] ^= 1;
    fd = open(path, O_WRONLY);
    CHECK(fd >= 0 && write(fd, text, size) == (ssize_t)size);
    CHECK_EQ(pstk__manifest_stands(&m, &pstk__store_local, dir), 0);
    text[60] ^= 1; /* the same records; what follows them is another */
    CHECK(pwrite(fd, text, size, 0) == (ssize_t)size);
    CHECK_EQ(pstk__manifest_stands(&m, &pstk__store_local, dir), 1);
    CHECK_EQ(pstk__manifest_unchanged(&m, &pstk__store_local, dir), 0);
    text[size - 5] ^= 1;
    CHECK(pwrite(fd, text, size, 0) == (ssize_t)size && write(fd, text, 1) == 1);
    CHECK_EQ(pstk__manifest_unchanged(&m, &pstk__store_local, dir), 0);
    CHECK(ftruncate(fd, 300) == 0);
    CHECK_EQ(pstk__manifest_stands(&m, &pstk__store_local, dir), 0);
    CHECK(pwrite(fd, text, size, 0) == (ssize_t)size && close(fd) == 0);
    CHECK_EQ(pstk__manifest_stands(&m, &pstk__store_local, path), 0);
    CHECK_EQ(pstk__manifest_stands(&m, &pstk__store_local, dir), 1);
    free(text);
    CHECK_EQ(m.n_samples, 7);
    pstk__manifest_free(&m);
    CHECK(unlink(path) == 0 && rmdir(dir) == 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_manifest_comes_back_as_it_was_printed),
        CASE(attributes_come_back_as_they_were_printed),
        CASE(each_wrong_attribute_is_named),
        CASE(every_flipped_bit_and_every_cut_is_found),
        CASE(another_version_is_named_before_its_keys_are_looked_at),
        CASE(a_required_feature_that_is_unknown_is_named_before_keys_are_looked_at),
        CASE(features_that_may_be_ignored_and_what_is_under_extra_are),
        CASE(lists_of_features_that_are_none_are_refused),
        CASE(columns_come_back_as_they_were_printed),
        CASE(checksums_of_columns_may_have_escapes_as_any_text),
        CASE(the_key_columns_means_nothing_unless_the_feature_is_used),
        CASE(each_wrong_column_is_named),
        CASE(a_manifest_with_too_many_values_is_refused_before_it_is_parsed),
        CASE(keys_count_by_what_they_say_and_once),
        CASE(invalid_JSON_is_reported_with_its_line),
        CASE(each_wrong_key_is_named),
        CASE(each_wrong_key_of_a_part_of_unknown_number_is_named),
        CASE(a_part_of_unknown_number_comes_back_as_it_was_printed),
        CASE(a_numbered_part_may_have_the_id_of_its_pack),
        CASE(every_key_of_every_object_is_required),
        CASE(an_empty_data_set_has_a_manifest),
        CASE(a_data_set_may_have_2_to_the_40_samples_and_no_more),
        CASE(a_manifest_that_breaks_an_invariant_is_not_printed),
        CASE(names_and_notes_that_are_not_utf8_are_refused),
        CASE(deep_nesting_is_refused_not_followed),
        CASE(a_missing_manifest_is_refused_and_a_changed_one_is_noticed),
    };
    return RUN_CASES(cases);
}
