/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_webdataset: writes plain tar shards (POSIX ustar, with a PAX header if a name needs one).
 * Each field is a member KEY.SUFFIX. By the last extension of the suffix webdataset chooses how to
 * decode it:
 *
 *   images                           jpg or png
 *   masks                            png
 *   scalars of whole numbers         cls
 *   other scalars, lists of texts    json
 *   texts                            txt
 *   arrays, scalars of uint64        npy
 *   bytes                            bin
 *
 * The suffix is FIELD.EXTENSION, or FIELD alone if its own last extension decodes in the same way:
 * the field cls is KEY.cls. Members have mode 0644, time 0 and no owner, so that equal data give
 * equal files.
 */
#include "base/error.h"
#include "export/array.h"
#include "export/export.h"
#include "export/json_value.h"
#include "export/names.h"
#include "export/shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BLOCK 512 /* bytes of a block in a tar file */
#define TAIL (2 * BLOCK)
#define NAME_ROOM 100 /* bytes for a name in a header */
#define SUFFIX_SIZE (PSTK_MAX_NAME + 8)

struct webdataset {
    struct pstk__export *export;  /* borrowed */
    struct pstk__shards shards;   /* tar files */
    struct pstk__bytes sample;    /* members of a sample, in tar's form; owned */
    struct pstk__bytes key, name; /* key of the sample, name of the member; owned */
    struct pstk__bytes value;     /* a value in the target's form; owned */
    struct pstk__name_set keys;   /* keys in the open shard; owned */
};

/* ---- suffixes -------------------------------------------------------------------------------- */

/* Extensions that decode like the first one of their row. */
static const char *const synonyms[][12] = {
    {"jpg", "jpeg", "png"},
    {"png", "jpg", "jpeg"},
    {"cls", "cls2", "index", "inx", "id"},
    {"json", "jsn"},
    {"txt", "text", "transcript", "json", "jsn"},
    {"npy"},
    {"bin", "mp3", "wav", "flac", "ogg", "mp4", "webm", "webp", "gif", "tif", "tiff"},
};

static int is_synonym(const char *extension, const char *other)
{
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++) {
        if (strcmp(synonyms[i][0], extension) != 0)
            continue;
        for (size_t k = 0; k < sizeof *synonyms / sizeof **synonyms && synonyms[i][k]; k++)
            if (strcasecmp(synonyms[i][k], other) == 0)
                return 1;
    }
    return 0;
}

/* Return the extension of a field's values. encoding: of an image. */
static const char *extension_of(const struct pstk_field *field, uint32_t encoding)
{
    switch (field->kind) {
    case PSTK_FIELD_IMAGE:
        return encoding == PSTK_ENCODING_JPEG ? "jpg" : "png";
    case PSTK_FIELD_MASK:
        return "png";
    case PSTK_FIELD_UTF8:
        return "txt";
    case PSTK_FIELD_UTF8_LIST:
        return "json";
    case PSTK_FIELD_BYTES:
        return "bin";
    case PSTK_FIELD_SCALAR:
        return field->dtype == PSTK_U64             ? "npy" /* readers of cls return int64 */
               : pstk__array_is_whole(field->dtype) ? "cls"
                                                    : "json";
    default:
        return "npy";
    }
}

/* Write the suffix of a field's members. If an image field is named for one encoding, files of the
 * other encoding have that one's name: field jpg, KEY.png. */
static void suffix_of(const struct pstk_field *field, uint32_t encoding, char suffix[SUFFIX_SIZE])
{
    const char *extension = extension_of(field, encoding);
    const char *dot = strrchr(field->name, '.'), *last = dot ? dot + 1 : field->name;
    const int is_image = field->kind == PSTK_FIELD_IMAGE || field->kind == PSTK_FIELD_MASK;
    if (!is_synonym(extension, last))
        snprintf(suffix, SUFFIX_SIZE, "%s.%s", field->name, extension);
    else if (is_image && (strcmp(extension, "png") == 0) != (strcasecmp(last, "png") == 0))
        snprintf(suffix, SUFFIX_SIZE, "%.*s%s", (int)(last - field->name), field->name, extension);
    else
        snprintf(suffix, SUFFIX_SIZE, "%s", field->name);
}

/* Return 1 if a sample may have two members of one suffix, of fields i and k. webdataset makes
 * suffixes lower case. */
static int may_clash(const struct pstk__export *e, uint32_t i, uint32_t k)
{
    static const uint32_t encodings[] = {PSTK_ENCODING_JPEG, PSTK_ENCODING_PNG};
    char a[SUFFIX_SIZE], b[SUFFIX_SIZE];
    for (uint32_t m = 0; m < 4; m++) {
        suffix_of(&e->fields[i], encodings[m / 2], a);
        suffix_of(&e->fields[k], encodings[m % 2], b);
        if (strcasecmp(a, b) == 0)
            return 1;
    }
    return 0;
}

static const char *refuse(const struct pstk__export *e, uint32_t i)
{
    switch (e->fields[i].kind) {
    case PSTK_FIELD_IMAGE_LIST:
    case PSTK_FIELD_MASK_LIST:
        return "is a list of images, for which webdataset has no type";
    case PSTK_FIELD_BYTES_LIST:
        return "is a list of bytes, for which webdataset has no type";
    default:
        return NULL;
    }
}

/* ---- tar ------------------------------------------------------------------------------------- */

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "POSIX.1-2001, ustar interchange format");

static void put_header(struct pstk__bytes *to, const char *name, uint64_t size, char type)
{
    struct header header = {.type = type, .magic = "ustar", .version = {'0', '0'}};
    unsigned sum = 0;
    strncpy(header.name, name, sizeof header.name - 1);
    if (strlen(name) == sizeof header.name)
        memcpy(header.name, name, sizeof header.name); /* a name of the full length has no 0 */
    memcpy(header.mode, "0000644", 8);
    memcpy(header.uid, "0000000", 8);
    memcpy(header.gid, "0000000", 8);
    snprintf(header.size, sizeof header.size, "%011llo", (unsigned long long)size);
    memcpy(header.mtime, "00000000000", 12);
    memset(header.checksum, ' ', sizeof header.checksum);
    for (uint32_t i = 0; i < BLOCK; i++)
        sum += ((const uint8_t *)&header)[i];
    snprintf(header.checksum, sizeof header.checksum, "%06o", sum); /* a 0 and the space follow */
    pstk__bytes_put(to, &header, sizeof header);
}

static void put_padded(struct pstk__bytes *to, const void *data, uint64_t size)
{
    pstk__bytes_put(to, data, size);
    pstk__bytes_zeros(to, (BLOCK - size % BLOCK) % BLOCK);
}

/* Append a PAX header that holds the name of the next member. Its record begins with the record's
 * length in decimal digits, which count themselves. */
static void put_long_name(struct pstk__bytes *to, const char *name)
{
    struct pstk__bytes record = {0};
    const uint64_t bare = strlen(" path=\n") + strlen(name);
    uint64_t n = bare + 1;
    for (uint64_t power = 10; n >= power; power *= 10)
        n++;
    pstk__bytes_format(&record, "%llu path=", (unsigned long long)n);
    pstk__bytes_text(&record, name);
    pstk__bytes_text(&record, "\n");
    put_header(to, "././@PaxHeader", record.size, 'x');
    put_padded(to, record.data, record.size);
    to->failed |= record.failed;
    pstk__bytes_free(&record);
}

/* Append a member. `name` ends with 0. */
static void put_member(struct pstk__bytes *to, const char *name, const void *data, uint64_t size)
{
    if (strlen(name) > NAME_ROOM)
        put_long_name(to, name);
    put_header(to, name, size, '0');
    put_padded(to, data, size);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Append a key, and escape what would end it or make webdataset skip it: dots in the last part of
 * the path, and parts such as __this__. */
static void put_key(struct pstk__bytes *to, const char *path, uint64_t size)
{
    uint64_t begin = 0;
    while (begin < size) {
        const char *slash = memchr(path + begin, '/', size - begin);
        const uint64_t end = slash ? (uint64_t)(slash - path) : size;
        const int is_skipped = end - begin >= 4 && memcmp(path + begin, "__", 2) == 0 &&
                               memcmp(path + end - 2, "__", 2) == 0;
        for (uint64_t i = begin; i < end; i++)
            if ((!slash && path[i] == '.') || (is_skipped && i == begin))
                pstk__bytes_format(to, "%%%02x", (uint8_t)path[i]);
            else
                pstk__bytes_put(to, path + i, 1);
        pstk__bytes_text(to, slash ? "/" : "");
        begin = end + 1;
    }
}

/* Write the sample's key, without a 0: from its key field, or its number. */
static void find_key(struct webdataset *w, const struct pstk__export_sample *sample)
{
    const struct pstk__export *e = w->export;
    struct pstk__bytes *path = &w->value;
    pstk__bytes_clear(&w->key);
    pstk__bytes_clear(path);
    if (e->key >= 0) {
        const struct pstk__export_value *value = &sample->values[e->key];
        const char *text = (const char *)value->data;
        const uint64_t n = value->size - pstk__name_image_suffix(text, value->size);
        if (pstk__name_path(path, text, n) == 0)
            put_key(&w->key, (const char *)path->data, path->size);
        w->export->result.n_renamed += w->key.size != n || (n && memcmp(w->key.data, text, n) != 0);
    }
    if (w->key.size == 0)
        pstk__bytes_format(&w->key, "%09llu", (unsigned long long)sample->number);
}

/* Add the key to the keys of the open shard. If the shard has it already, append the sample's
 * number. */
static int add_key(struct webdataset *w, const struct pstk__export_sample *sample)
{
    int is_new = pstk__name_set_add(&w->keys, w->key.data, w->key.size);
    if (is_new == 0) {
        pstk__bytes_format(&w->key, "-%09llu", (unsigned long long)sample->number);
        w->export->result.n_renamed++;
        is_new = pstk__name_set_add(&w->keys, w->key.data, w->key.size);
    }
    return is_new;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Encode a value as a file: *data and *size, in w->value or in the sample. */
static void encode(struct webdataset *w, uint32_t i, const struct pstk__export_value *value,
                   const void **data, uint64_t *size)
{
    const struct pstk_field *field = &w->export->fields[i];
    struct pstk__array array;
    *data = value->data;
    *size = value->size;
    pstk__bytes_clear(&w->value);
    if (field->kind == PSTK_FIELD_UTF8_LIST) {
        pstk__json_texts(&w->value, value->data, value->size);
    } else if (pstk__array_is(field)) {
        pstk__array_of(&array, field, value->data, value->size);
        if (field->kind == PSTK_FIELD_SCALAR && field->dtype != PSTK_U64) {
            pstk__json_number(&w->value, array.dtype, array.data);
        } else {
            pstk__array_npy_head(&w->value, array.dtype, array.shape, array.n_dims);
            pstk__bytes_put(&w->value, array.data, array.n * pstk_dtype_size(array.dtype));
        }
    } else {
        return;
    }
    *data = w->value.data;
    *size = w->value.size;
}

static void put_value(struct webdataset *w, uint32_t i, const struct pstk__export_value *value)
{
    char suffix[SUFFIX_SIZE];
    const void *data;
    uint64_t size;
    suffix_of(&w->export->fields[i], value->encoding, suffix);
    pstk__bytes_clear(&w->name);
    pstk__bytes_put(&w->name, w->key.data, w->key.size);
    pstk__bytes_text(&w->name, ".");
    pstk__bytes_put(&w->name, suffix, strlen(suffix) + 1);
    encode(w, i, value, &data, &size);
    if (!w->name.failed && !w->value.failed)
        put_member(&w->sample, (const char *)w->name.data, data, size);
    w->sample.failed |= w->name.failed || w->value.failed;
}

static int end_shard(void *state, struct pstk_error *err)
{
    static const char zeros[TAIL];
    struct webdataset *w = state;
    pstk__name_set_clear(&w->keys);
    return pstk__shards_end(&w->shards, zeros, sizeof zeros, err);
}

static int add(void *state, const struct pstk__export_sample *sample, struct pstk_error *err)
{
    struct webdataset *w = state;
    int r = 0;
    find_key(w, sample);
    if (add_key(w, sample) < 0 || w->key.failed)
        return pstk__export_no_memory(w->export, err);
    pstk__bytes_clear(&w->sample);
    for (uint32_t i = 0; i < w->export->n_fields; i++)
        put_value(w, i, &sample->values[i]);
    if (w->sample.failed)
        return pstk__export_no_memory(w->export, err);
    if (pstk__shards_is_full(&w->shards, w->sample.size))
        r = end_shard(w, err);
    return r < 0 ? r : pstk__shards_add(&w->shards, w->sample.data, w->sample.size, err);
}

static int open_tars(void **state, struct pstk__export *e, struct pstk_error *err)
{
    for (uint32_t i = 0; i < e->n_fields; i++)
        for (uint32_t k = 0; k < i; k++)
            if (may_clash(e, i, k))
                return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                                  "fields: '%s' and '%s' would have members of one name; name one "
                                  "of them in a list of the others' fields only, and export twice",
                                  e->fields[k].name, e->fields[i].name);
    struct webdataset *w = *state = calloc(1, sizeof *w);
    if (!w)
        return pstk__export_no_memory(e, err);
    w->export = e;
    w->shards = (struct pstk__shards){
        .export = e, .prefix = "", .n_digits = 6, .suffix = ".tar", .tail_size = TAIL};
    return 0;
}

static int commit(void *state, struct pstk_error *err)
{
    (void)state, (void)err;
    return 0;
}

static void abort_tars(void *state)
{
    struct webdataset *w = state;
    if (!w)
        return;
    pstk__out_file_drop(&w->shards.file);
    pstk__bytes_free(&w->sample);
    pstk__bytes_free(&w->key);
    pstk__bytes_free(&w->name);
    pstk__bytes_free(&w->value);
    pstk__name_set_free(&w->keys);
    free(w);
}

const struct pstk__export_target pstk__export_webdataset = {
    .target = PSTK_EXPORT_WEBDATASET,
    .name = "webdataset",
    .one = "a sample of webdataset",
    .shard_size = UINT64_C(256) << 20,
    .max_shard_size = UINT64_MAX,
    .has_key = 1,
    .refuse = refuse,
    .open = open_tars,
    .add = add,
    .end_shard = end_shard,
    .commit = commit,
    .abort = abort_tars,
};
