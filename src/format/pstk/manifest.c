/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a manifest, and checks its invariants. */
#include "format/pstk/manifest.h"

#include "base/error.h"
#include "format/pstk/column.h"
#include "format/pstk/shard.h"
#include "format/pstk/tally.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the manifest");
}

void pstk__manifest_free(struct pstk__manifest *m)
{
    for (uint32_t i = 0; i < m->n_dictionaries; i++)
        free(m->dictionaries[i].file);
    for (uint32_t i = 0; i < m->n_shards; i++) {
        free(m->shards[i].file);
        free(m->shards[i].dictionaries);
    }
    for (uint32_t i = 0; i < m->n_columns; i++)
        free(m->columns[i].header_crcs);
    pstk__texts_close(&m->names);
    free(m->columns);
    free(m->dictionaries);
    free(m->shards);
    free(m->note);
    memset(m, 0, sizeof *m);
}

/* Make room for one more element; doubles, so that n additions cost O(n). NULL: out of memory. */
static void *grow(void *array, uint32_t n, uint32_t *capacity, size_t element_size)
{
    if (n < *capacity)
        return array;
    uint64_t more = *capacity ? 2 * (uint64_t)*capacity : 4;
    more = more < UINT32_MAX ? more : UINT32_MAX;
    if (n >= more)
        return NULL;
    void *larger = reallocarray(array, more, element_size);
    if (larger)
        *capacity = (uint32_t)more;
    return larger;
}

int pstk__manifest_add_dictionary(struct pstk__manifest *m,
                                  const struct pstk__manifest_dictionary *dictionary,
                                  struct pstk_error *err)
{
    struct pstk__manifest_dictionary *list =
        grow(m->dictionaries, m->n_dictionaries, &m->dictionary_capacity, sizeof *list);
    if (!list)
        return no_memory(err);
    m->dictionaries = list;
    uint64_t bytes;
    if (__builtin_add_overflow(m->bytes, dictionary->bytes, &bytes))
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN, "dictionary %s: its size overflows",
                          dictionary->file);
    char *file = strdup(dictionary->file);
    if (!file)
        return no_memory(err);
    list[m->n_dictionaries] = *dictionary;
    list[m->n_dictionaries++].file = file;
    m->bytes = bytes;
    return 0;
}

int pstk__manifest_add_shard(struct pstk__manifest *m, const struct pstk__manifest_shard *shard,
                             struct pstk_error *err)
{
    struct pstk__manifest_shard *list =
        grow(m->shards, m->n_shards, &m->shard_capacity, sizeof *list);
    if (!list)
        return no_memory(err);
    m->shards = list;
    uint64_t n_samples, bytes;
    if (shard->n_dictionaries > PSTK_MAX_FIELDS ||
        __builtin_add_overflow(m->n_samples, shard->n_records, &n_samples) ||
        __builtin_add_overflow(m->bytes, shard->bytes, &bytes))
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                          "shard %s: %llu records, %llu bytes, %u dictionaries are too many",
                          shard->file, (unsigned long long)shard->n_records,
                          (unsigned long long)shard->bytes, shard->n_dictionaries);
    size_t size = shard->n_dictionaries * sizeof *shard->dictionaries;
    char *file = strdup(shard->file);
    uint32_t *dictionaries = size ? malloc(size) : NULL;
    if (!file || (size && !dictionaries)) {
        free(file);
        free(dictionaries);
        return no_memory(err);
    }
    if (size)
        memcpy(dictionaries, shard->dictionaries, size);
    list[m->n_shards] = *shard;
    list[m->n_shards].file = file;
    list[m->n_shards++].dictionaries = dictionaries;
    m->n_samples = n_samples;
    m->bytes = bytes;
    return 0;
}

int pstk__manifest_add_column(struct pstk__manifest *m, const struct pstk__manifest_column *column,
                              struct pstk_error *err)
{
    struct pstk__manifest_column *list =
        reallocarray(m->columns, (size_t)m->n_columns + 1, sizeof *list); /* at most 256 columns */
    if (!list)
        return no_memory(err);
    m->columns = list;
    list[m->n_columns] = *column;
    list[m->n_columns].header_crcs = NULL;
    list[m->n_columns].n_header_crcs = list[m->n_columns].crc_capacity = 0;
    m->n_columns++;
    return 0;
}

void pstk__manifest_remove_column(struct pstk__manifest *m, uint32_t i)
{
    free(m->columns[i].header_crcs);
    m->n_columns--;
    memmove(&m->columns[i], &m->columns[i + 1], (m->n_columns - i) * sizeof *m->columns);
}

int pstk__manifest_add_column_crc(struct pstk__manifest_column *column, uint32_t crc,
                                  struct pstk_error *err)
{
    uint32_t *list =
        grow(column->header_crcs, column->n_header_crcs, &column->crc_capacity, sizeof *list);
    if (!list)
        return no_memory(err);
    column->header_crcs = list;
    list[column->n_header_crcs++] = crc;
    return 0;
}

int pstk__manifest_find_column(const struct pstk__manifest *m, const char *name)
{
    for (uint32_t i = 0; i < m->n_columns; i++)
        if (strcmp(m->columns[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* Return the bytes of a shard's name before ".pstk". */
static int stem_size(const char *shard)
{
    const char *end = strrchr(shard, '.');
    return (int)(end && end > shard && strcmp(end, ".pstk") == 0 ? (size_t)(end - shard)
                                                                 : strlen(shard));
}

int pstk__manifest_column_file(const struct pstk__manifest_column *column, const char *shard,
                               char file[PSTK__MAX_COLUMN_FILE])
{
    const int n = snprintf(file, PSTK__MAX_COLUMN_FILE, "%.*s.%s.pcol", stem_size(shard), shard,
                           column->files);
    return n > 0 && n < PSTK__MAX_COLUMN_FILE ? 0 : PSTK_EINVAL;
}

int pstk__manifest_reserve(struct pstk__manifest *m, uint32_t n_shards, uint32_t n_dictionaries,
                           struct pstk_error *err)
{
    struct pstk__manifest_shard *shards = reallocarray(m->shards, n_shards, sizeof *shards);
    m->shards = shards || !n_shards ? shards : m->shards;
    struct pstk__manifest_dictionary *dictionaries =
        reallocarray(m->dictionaries, n_dictionaries, sizeof *dictionaries);
    m->dictionaries = dictionaries || !n_dictionaries ? dictionaries : m->dictionaries;
    if ((n_shards && !shards) || (n_dictionaries && !dictionaries))
        return no_memory(err);
    m->shard_capacity = n_shards;
    m->dictionary_capacity = n_dictionaries;
    return 0;
}

static int open_names(struct pstk__manifest *m, uint64_t n, uint64_t size, struct pstk_error *err)
{
    int r = pstk__texts_open(&m->names, n, size);
    if (r == -EFBIG)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                          "names has %llu bytes; must be below 2^32", (unsigned long long)size);
    return r < 0 ? no_memory(err) : 0;
}

int pstk__manifest_set_names(struct pstk__manifest *m, const char *const *names, uint64_t n,
                             struct pstk_error *err)
{
    uint64_t size = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (!names[i] || !pstk__manifest_text_ok(names[i]))
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "names[%llu] is %s",
                              (unsigned long long)i, names[i] ? "not UTF-8" : "NULL");
        size += strlen(names[i]) + 1;
    }
    int r = open_names(m, n, size, err);
    for (uint64_t i = 0; r == 0 && i < n; i++)
        pstk__texts_add(&m->names, names[i], strlen(names[i]));
    return r;
}

int pstk__manifest_copy_names(struct pstk__manifest *m, const struct pstk__manifest *from,
                              struct pstk_error *err)
{
    const struct pstk__texts *names = &from->names;
    int r = open_names(m, names->n, names->size, err);
    for (uint64_t i = 0; r == 0 && i < names->n; i++)
        pstk__texts_add(&m->names, pstk__texts_get(names, i), strlen(pstk__texts_get(names, i)));
    return r;
}

int pstk__manifest_set_note(struct pstk__manifest *m, const char *note, struct pstk_error *err)
{
    if (note && !pstk__manifest_text_ok(note))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "note is not UTF-8");
    char *copy = note ? strdup(note) : NULL;
    if (note && !copy)
        return no_memory(err);
    free(m->note);
    m->note = copy;
    return 0;
}

int pstk__manifest_text_ok(const char *text)
{
    const uint64_t size = strlen(text);
    return pstk__utf8_end(text, size) == size;
}

int pstk__manifest_file_name_ok(const char *name)
{
    size_t n = strlen(name);
    return n >= 1 && n <= PSTK__MAX_FILE_NAME && name[0] != '.' &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") == n;
}

/* ---- invariants ------------------------------------------------------------------------------ */

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

/* A check, and the code of its errors: EBADMSG for a file that was read, EINVAL for a manifest to
 * print. */
struct check {
    const struct pstk__manifest *m;
    const char *name;
    int code;
    struct pstk_error *err;
};

#define SUM_MAX (1ull << 62) /* max bytes of a field in all records: JSON readers have 63 bits */

#define WRONG(c, ...) pstk__manifest_wrong((c)->name, (c)->code, (c)->err, __VA_ARGS__)

static int check_dictionary(const struct check *check, uint32_t i)
{
    const struct pstk__manifest_dictionary *dictionary = &check->m->dictionaries[i];
    if (!dictionary->file || !pstk__manifest_file_name_ok(dictionary->file))
        return WRONG(
            check, "dictionaries[%u].file \"%.200s\" is not a file name that a dictionary may have",
            i, dictionary->file ? dictionary->file : "");
    if (dictionary->field >= check->m->schema.n_fields ||
        check->m->schema.fields[dictionary->field].codec != PSTK_CODEC_ZSTD)
        return WRONG(check, "dictionaries[%u].field is not a field whose codec is zstd", i);
    if (dictionary->bytes < 1 || dictionary->bytes > PSTK__MAX_DICTIONARY)
        return WRONG(check, "dictionaries[%u].bytes is %llu; must be from 1 to 16 MiB", i,
                     (unsigned long long)dictionary->bytes);
    return 0;
}

static int check_shard_dictionaries(const struct check *check, uint32_t i)
{
    const struct pstk__manifest_shard *shard = &check->m->shards[i];
    uint64_t seen = 0; /* a bit for each field */
    _Static_assert(PSTK_MAX_FIELDS <= 64, "a bit for each field");
    for (uint32_t k = 0; k < shard->n_dictionaries; k++) {
        if (shard->dictionaries[k] >= check->m->n_dictionaries)
            return WRONG(check, "shards[%u].dictionaries names dictionary %u; there are %u", i,
                         shard->dictionaries[k], check->m->n_dictionaries);
        uint64_t bit = 1ull << check->m->dictionaries[shard->dictionaries[k]].field;
        if (seen & bit)
            return WRONG(check, "shards[%u].dictionaries has two dictionaries for one field", i);
        seen |= bit;
    }
    return 0;
}

static int check_shard(const struct check *check, uint32_t i)
{
    const struct pstk__manifest_shard *shard = &check->m->shards[i];
    if (!shard->file || !pstk__manifest_file_name_ok(shard->file))
        return WRONG(check, "shards[%u].file \"%.200s\" is not a file name that a shard may have",
                     i, shard->file ? shard->file : "");
    if (shard->n_records < 1 || shard->n_records > PSTK__MAX_SHARD_RECORDS)
        return WRONG(check, "shards[%u].n_records is %llu; must be from 1 to 2^32-1", i,
                     (unsigned long long)shard->n_records);
    /* Minimal bytes of a shard of this many records: below 2^32 * 2^19, no overflow. */
    uint64_t least = PSTK__HEADER_SIZE + shard->n_records * check->m->schema.head_size +
                     pstk__shard_n_pages(shard->n_records) * PSTK__INDEX_PAGE;
    if (shard->bytes > PSTK__MAX_SHARD_SIZE || shard->bytes % PSTK__INDEX_PAGE != 0 ||
        shard->bytes < least)
        return WRONG(check, "shards[%u].bytes is %llu, which a shard of %llu records cannot have",
                     i, (unsigned long long)shard->bytes, (unsigned long long)shard->n_records);
    return check_shard_dictionaries(check, i);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Check that all files have different names: each byte on disk belongs to one entry. */
static int check_unique(const struct check *check)
{
    const struct pstk__manifest *m = check->m;
    uint64_t n = (uint64_t)m->n_shards + m->n_dictionaries;
    const char **names = n ? reallocarray(NULL, n, sizeof *names) : NULL;
    if (n && !names)
        return no_memory(check->err);
    for (uint32_t i = 0; i < m->n_shards; i++)
        names[i] = m->shards[i].file;
    for (uint32_t i = 0; i < m->n_dictionaries; i++)
        names[m->n_shards + i] = m->dictionaries[i].file;
    if (n)
        qsort(names, n, sizeof *names, compare_names);
    int r = 0;
    for (uint64_t i = 1; i < n && r == 0; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            r = WRONG(check, "the file %s is named twice", names[i]);
    free(names);
    return r;
}

/* Check the sums. Fewer than 2^32 shards of at most 2^44 bytes and 2^32 records could sum to nearly
 * 2^76, so each addition is checked for overflow. */
static int check_sums(const struct check *check)
{
    const struct pstk__manifest *m = check->m;
    uint64_t n_samples = 0, bytes = 0;
    int over = 0;
    for (uint32_t i = 0; i < m->n_shards; i++) {
        over |= __builtin_add_overflow(n_samples, m->shards[i].n_records, &n_samples);
        over |= __builtin_add_overflow(bytes, m->shards[i].bytes, &bytes);
    }
    for (uint32_t i = 0; i < m->n_dictionaries; i++)
        over |= __builtin_add_overflow(bytes, m->dictionaries[i].bytes, &bytes);
    if (over || n_samples > PSTK__MAX_SAMPLES)
        return WRONG(check, "n_samples: the shards have more than 2^40 records");
    if (n_samples != m->n_samples)
        return WRONG(check, "n_samples is %llu, but the shards have %llu records",
                     (unsigned long long)m->n_samples, (unsigned long long)n_samples);
    if (bytes != m->bytes)
        return WRONG(check, "bytes is %llu, but shards and dictionaries have %llu",
                     (unsigned long long)m->bytes, (unsigned long long)bytes);
    return 0;
}

static int check_field(const struct check *check, uint32_t i)
{
    const struct pstk_field_stats *stats = &check->m->stats[i];
    if (stats->max_stored_size > PSTK__MAX_VALUE_SIZE ||
        stats->max_plain_size > PSTK__MAX_VALUE_SIZE)
        return WRONG(check, "fields[%u].max_stored or max_plain is over 2^32-1 bytes", i);
    /* Sums over all records are bounded, so that merge can add the sums of parts. */
    const uint64_t n = check->m->n_samples;
    if (stats->stored_bytes > SUM_MAX || stats->plain_bytes > SUM_MAX ||
        stats->stored_bytes / (n ? n : 1) > stats->max_stored_size ||
        stats->plain_bytes / (n ? n : 1) > stats->max_plain_size)
        return WRONG(check,
                     "fields[%u].stored_bytes or plain_bytes is more than its records can have", i);
    for (uint32_t k = 0; k < PSTK__N_ENCODINGS_ROOM; k++)
        if (stats->n_encoding[k] > check->m->n_samples)
            return WRONG(check, "fields[%u].encodings counts more records than there are", i);
    for (uint32_t k = 0; k < PSTK__N_CODECS_ROOM; k++)
        if (stats->n_codec[k] > check->m->n_samples)
            return WRONG(check, "fields[%u].codecs counts more records than there are", i);
    if (stats->n_damaged > stats->n_encoding[PSTK_ENCODING_JPEG] ||
        stats->n_damaged > stats->n_codec[PSTK_CODEC_NONE])
        return WRONG(check, "fields[%u].damaged counts more records than are stored as JPEG files",
                     i);
    if (stats->n_equivalent > stats->n_codec[PSTK_CODEC_PLANES])
        return WRONG(check, "fields[%u].equivalent counts more records than are stored as planes",
                     i);
    return 0;
}

/* Check that a part has either a number or a task. A numbered part may have the id of its pack. */
static int check_part(const struct check *check)
{
    const struct pstk__manifest *m = check->m;
    if (m->part >= m->n_parts && (m->part || m->n_parts))
        return WRONG(check, "part is %u of n_parts %u", m->part, m->n_parts);
    if (m->n_parts && (m->task.key[0] || m->task.attempt))
        return WRONG(check, "task belongs to parts of unknown number; part is %u of %u", m->part,
                     m->n_parts);
    if (m->n_parts == 1 && m->task.pack_id[0])
        return WRONG(check, "pack belongs to parts; this is a whole data set");
    if (m->n_parts && !m->task.pack_id[0])
        return 0;
    if (!pstk__pack_id_ok(m->task.pack_id))
        return WRONG(check, "pack must be 32 lower-case hex digits");
    if (m->n_parts)
        return 0;
    if (!pstk__task_key_ok(m->task.key))
        return WRONG(check, "task must be 1 to %d of the characters A-Z a-z 0-9 _ . : = / -",
                     PSTK__TASK_KEY_MAX);
    return 0;
}

/* Check the values of a column that need no other column. */
static int check_column(const struct check *check, uint32_t i)
{
    const struct pstk__manifest_column *column = &check->m->columns[i];
    if (!pstk__column_name_ok(column->name))
        return WRONG(check, "extra.columns[%u].name \"%.80s\" is not a name that a column may have",
                     i, column->name);
    if (!pstk__column_text_ok(column->files, PSTK__MAX_COLUMN_FILES - 1))
        return WRONG(check, "extra.columns[%u].files \"%.96s\" cannot be part of a file name", i,
                     column->files);
    if (pstk_dtype_size(column->dtype) == 0)
        return WRONG(check, "extra.columns[%u].dtype is not a dtype", i);
    if (column->fact != PSTK_COLUMN_ADDED &&
        !pstk__column_fact_ok(&check->m->schema, column->field, column->fact, column->dtype))
        return WRONG(check, "extra.columns[%u].fact is %s of %s, which its field does not have", i,
                     pstk__column_fact_name(column->fact), pstk_dtype_name(column->dtype));
    if (column->n_header_crcs != check->m->n_shards)
        return WRONG(check, "extra.columns[%u].header_crc32c has %u elements; there are %u shards",
                     i, column->n_header_crcs, check->m->n_shards);
    for (uint32_t k = 0; k < i; k++) {
        if (strcmp(check->m->columns[k].name, column->name) == 0)
            return WRONG(check, "extra.columns has two columns of the name %s", column->name);
        if (strcmp(check->m->columns[k].files, column->files) == 0)
            return WRONG(check, "extra.columns has two columns with the files %s", column->files);
    }
    return 0;
}

static int check_columns(const struct check *check)
{
    const struct pstk__manifest *m = check->m;
    char file[PSTK__MAX_COLUMN_FILE];
    uint32_t longest = 0;
    int r = 0;
    if (m->n_columns > PSTK__MAX_COLUMNS)
        return WRONG(check, "extra.columns has %u columns; must be at most %u", m->n_columns,
                     PSTK__MAX_COLUMNS);
    for (uint32_t i = 0; m->n_columns && i < m->n_shards; i++)
        longest = stem_size(m->shards[i].file) > stem_size(m->shards[longest].file) ? i : longest;
    for (uint32_t i = 0; r == 0 && i < m->n_columns; i++) {
        r = check_column(check, i);
        if (r == 0 && m->n_shards &&
            pstk__manifest_column_file(&m->columns[i], m->shards[longest].file, file) < 0)
            r = WRONG(check, "extra.columns[%u].files makes a file name of over %d bytes", i,
                      PSTK__MAX_COLUMN_FILE - 1);
    }
    return r;
}

int pstk__manifest_check(const struct pstk__manifest *m, const char *name, int code,
                         struct pstk_error *err)
{
    const struct check check = {.m = m, .name = name, .code = code, .err = err};
    int r = 0;
    if (strlen(m->identity) != 32 || strspn(m->identity, "0123456789abcdef") != 32)
        return WRONG(&check, "identity must be 32 lower-case hex digits");
    r = check_part(&check);
    if (r < 0)
        return r;
    if (m->schema.n_fields < 1)
        return WRONG(&check, "fields is empty");
    for (uint32_t i = 0; i < m->n_dictionaries && r == 0; i++)
        r = check_dictionary(&check, i);
    for (uint32_t i = 0; i < m->n_shards && r == 0; i++)
        r = check_shard(&check, i);
    if (r == 0)
        r = check_unique(&check);
    if (r == 0)
        r = check_columns(&check);
    if (r == 0)
        r = check_sums(&check);
    for (uint32_t i = 0; i < m->schema.n_fields && r == 0; i++)
        r = check_field(&check, i);
    return r;
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* Max factor by which zstd expands bytes. Its densest block is a run: a head of 3 bytes and 1 byte
 * for up to 128 KiB (RFC 8878, 3.1.1.2). A compressed block gives no more, and has at least 7
 * bytes: a head, sizes of no literals and of the sequences, their modes, a byte of bits. */
#define ZSTD_EXPANSION ((128u << 10) / 4)

/* Return the bytes of the largest record that is possible. A shard's records lie between header and
 * index, and each of the others has at least its head. The check ensures that all of this fits. */
static uint64_t largest_record(const struct pstk__manifest *m)
{
    uint64_t largest = m->schema.head_size;
    for (uint32_t i = 0; i < m->n_shards; i++) {
        const struct pstk__manifest_shard *shard = &m->shards[i];
        const uint64_t size = shard->bytes - PSTK__HEADER_SIZE -
                              pstk__shard_n_pages(shard->n_records) * PSTK__INDEX_PAGE -
                              (shard->n_records - 1) * m->schema.head_size;
        largest = size > largest ? size : largest;
    }
    return largest < PSTK__MAX_RECORD_SIZE ? largest : PSTK__MAX_RECORD_SIZE;
}

/* Return the max plain bytes of a value of field i that has at most max_stored bytes. */
static uint64_t largest_plain(const struct pstk__manifest *m, uint32_t i, uint64_t max_stored)
{
    const uint32_t exact = m->schema.plain_size[i];
    switch (m->schema.fields[i].codec) {
    case PSTK_CODEC_NONE:
        return exact ? exact : max_stored;
    case PSTK_CODEC_ZSTD: /* below 2^32 * 2^15 */
        return exact ? exact : max_stored * ZSTD_EXPANSION;
    default:
        /* Planes have no such factor: coefficients that are all 0 take no bits, whatever their
         * number. The pixels bound them: max_pixels is checked before a file is rebuilt. */
        return PSTK__MAX_VALUE_SIZE;
    }
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void pstk__manifest_limits(const struct pstk__manifest *m, struct pstk__record_limits *limits)
{
    const uint64_t largest = largest_record(m);
    uint64_t size = m->schema.head_size; /* + 64 values up to 2^32: no overflow */
    for (uint32_t i = 0; i < m->schema.n_fields; i++) {
        const struct pstk_field_stats *stats = &m->stats[i];
        const int in_head = m->schema.entry[i] < 0;
        const uint64_t most = in_head ? m->schema.fixed_size[i] : largest - m->schema.head_size;
        limits->max_stored[i] = least(stats->max_stored_size, most);
        limits->max_plain[i] =
            least(stats->max_plain_size, largest_plain(m, i, limits->max_stored[i]));
        limits->max_width[i] = (uint32_t)least(stats->max_width, PSTK__MAX_SIDE);
        limits->max_height[i] = (uint32_t)least(stats->max_height, PSTK__MAX_SIDE);
        size += in_head ? 0 : pstk__record_aligned(limits->max_stored[i]);
    }
    limits->max_size = least(size, largest);
}
