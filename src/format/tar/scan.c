/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tar/scan.h"

#include "base/error.h"
#include "base/random.h"
#include "format/coding.h"
#include "format/tar/dots.h"
#include "format/tar/member.h"
#include "format/tar/suffixes.h"
#include "format/file_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define INFERRED 1000 /* samples whose members give the fields */
#define NEAR_BYTES                                                                                 \
    65536 /* max bytes, in all, between the members of a sample that are read with them, because   \
             skipping costs more */
#define MAX_VALUE 0xffffffffull

/* Advice in messages about suffixes. */
#define OR_LAST "or set split_at to 'last', which takes the last dot"

/* ---- bytes of the archive -------------------------------------------------------------------- */

/* An archive that is read. reader.at: begin of the next member. */
struct walk {
    struct pstk__file_reader reader;
    uint64_t n_members; /* members passed */
    uint64_t number;    /* number of the current member */
};

static int fail_at(struct walk *walk, uint64_t at, int code, const char *why)
{
    struct pstk_error *err = walk->reader.err;
    pstk__fail(err, code, PSTK_STAGE_OPEN, "%s: member %" PRIu64 " (byte %" PRIu64 "): %s",
               walk->reader.scan->path, walk->number, at, why);
    return pstk__fail_at(err, code, walk->reader.scan->name, PSTK_NONE, at, 0);
}

static int walk_open(struct walk *walk, const struct pstk__scan *scan, struct pstk_error *err)
{
    walk->n_members = walk->number = 0;
    return pstk__file_reader_open(&walk->reader, scan, err);
}

/* Check that only zeros follow the blocks of zeros that end an archive. */
static int check_end(struct walk *walk)
{
    for (;;) {
        const int64_t n = pstk__file_reader_fill(&walk->reader, PSTK__TAR_BLOCK);
        if (n <= 0)
            return (int)n;
        const uint8_t *bytes = pstk__file_reader_bytes(&walk->reader);
        for (int64_t i = 0; i < n; i++)
            if (bytes[i])
                return fail_at(walk, walk->reader.at + (uint64_t)i, PSTK_EBADMSG,
                               "bytes follow the end of the archive: if archives were joined by "
                               "cat, join them by tar --concatenate");
        walk->reader.at += (uint64_t)n;
    }
}

/* Explain a file with a plain archive's name, and no header at its begin. Returns the type that its
 * first bytes show, with advice; NULL: unknown. */
static const char *named_wrongly(const uint8_t *bytes, int64_t n)
{
    static const struct {
        const char *begin, *why;
        int64_t n;
    } kinds[] = {
        {"\x1f\x8b", "it begins as a gzip file: name it .tar.gz, and all archives of the data set",
         2},
        {"\x28\xb5\x2f\xfd",
         "it begins as a zstd file: name it .tar.zst, and all archives of the data set", 4},
        {"BZh", "it begins as a bzip2 file: unpack it (bunzip2)", 3},
        {"\xfd"
         "7zXZ",
         "it begins as an xz file: unpack it (unxz)", 5},
        {"PK\x03\x04", "it begins as a zip file: make a tar archive of what it holds", 4},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (n >= kinds[i].n && memcmp(bytes, kinds[i].begin, (size_t)kinds[i].n) == 0)
            return kinds[i].why;
    return NULL;
}

/* Step to the next regular file. 1: *member; 0: the archive ends; <0: damage, ... */
static int walk_next(struct walk *walk, struct pstk__tar_member *member)
{
    for (uint64_t wanted = PSTK__TAR_BLOCK;;) {
        struct pstk__tar_fault fault;
        walk->number = walk->n_members;
        int r = pstk__file_reader_report(&walk->reader);
        const int64_t n = r < 0 ? r : pstk__file_reader_fill(&walk->reader, wanted);
        if (n < 0)
            return (int)n;
        if (n == 0)
            return fail_at(walk, walk->reader.at, PSTK_EBADMSG,
                           "the archive ends here without the blocks of zeros that end one: it is "
                           "cut short; copy it again");
        const enum pstk__tar_step step = pstk__tar_read(
            member, walk->reader.at, pstk__file_reader_bytes(&walk->reader), (uint64_t)n, &fault);
        const int is_bad = step == PSTK__TAR_BAD || (step == PSTK__TAR_MORE && n < (int64_t)wanted);
        const char *why = is_bad && walk->reader.at == 0
                              ? named_wrongly(pstk__file_reader_bytes(&walk->reader), n)
                              : NULL;
        if (why)
            return fail_at(walk, 0, PSTK_ENOTSUP, why);
        switch (step) {
        case PSTK__TAR_END:
            return check_end(walk);
        case PSTK__TAR_MORE:
            if ((uint64_t)n < wanted ||
                wanted >= PSTK__TAR_MAX_HEADERS + 2 * PSTK__FILE_READER_HEADER)
                return fail_at(walk, walk->reader.at, PSTK_EBADMSG,
                               "the archive ends within a header: it is cut short; copy it again");
            wanted = wanted * 4 < PSTK__TAR_MAX_HEADERS + 2 * PSTK__FILE_READER_HEADER
                         ? wanted * 4
                         : PSTK__TAR_MAX_HEADERS + 2 * PSTK__FILE_READER_HEADER;
            continue;
        case PSTK__TAR_BAD:
            return fail_at(walk, fault.at, PSTK_EBADMSG, fault.why);
        case PSTK__TAR_MEMBER:
        case PSTK__TAR_OTHER:
            break;
        }
        if (member->data + member->size > walk->reader.scan->size)
            return fail_at(walk, walk->reader.at, PSTK_EBADMSG,
                           "the archive ends within the member's data: it is cut short; copy it "
                           "again");
        pstk__file_reader_adapt(&walk->reader, member->size);
        walk->reader.at = member->next;
        walk->n_members++;
        wanted = PSTK__TAR_BLOCK;
        if (step == PSTK__TAR_MEMBER)
            return 1;
    }
}

/* ---- fields ---------------------------------------------------------------------------------- */

static int compare_fields(const void *a, const void *b)
{
    return strcmp(((const struct pstk__index_field *)a)->field.name,
                  ((const struct pstk__index_field *)b)->field.name);
}

static int fail_long(struct walk *walk, uint64_t at)
{
    return fail_at(walk, at, PSTK_ENOTSUP,
                   "its suffix, all after the first dot of its name, has 64 bytes or more; must "
                   "be the name of a field: rename it, " OR_LAST);
}

static int fail_named(struct walk *walk, const char *suffix, uint64_t at)
{
    char why[256];
    snprintf(why, sizeof why,
             "its suffix '%.63s' is the name that fields gives to members with other suffixes: "
             "give the field another name, or list this suffix, too",
             suffix);
    return fail_at(walk, at, PSTK_EINVAL, why);
}

/* 1: the suffix is __key__, and the caller wants the key of samples by that name. */
static int is_key(const struct walk *walk, const char *suffix)
{
    return strcmp(suffix, PSTK__TAR_KEY) == 0 && pstk__tar_wants_key(walk->reader.scan->foreign);
}

static int fail_key(struct walk *walk, uint64_t at)
{
    return fail_at(walk, at, PSTK_EINVAL,
                   "its suffix is '" PSTK__TAR_KEY "', which fields asks for as the key of "
                   "samples: leave it out of fields");
}

/* Add the field of a suffix if it is new. *field: its number. */
static int add_field(struct walk *walk, struct pstk__inferred_schema *found, const char *suffix,
                     uint64_t at, int *field)
{
    const char *first, *name = pstk__tar_suffix_name(walk->reader.scan->foreign, suffix, &first);
    if (!name)
        return fail_named(walk, suffix, at);
    *field = pstk__index_find_field(found, name);
    if (*field >= 0)
        return 0;
    if (found->n_fields == PSTK_MAX_FIELDS)
        return fail_at(
            walk, at, PSTK_ENOTSUP,
            "the samples have more than 64 different suffixes, all after the first dot of a name; "
            "must be at most 64, because each suffix becomes a field: rename members, " OR_LAST);
    if (strspn(suffix, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") !=
        strlen(suffix))
        return fail_at(walk, at, PSTK_ENOTSUP,
                       "its suffix, all after the first dot of its name, is not the name of a "
                       "field: must be of A-Z a-z 0-9 _ . -: rename it, " OR_LAST);
    *field = (int)found->n_fields;
    struct pstk__index_field *one = &found->fields[found->n_fields++];
    *one = (struct pstk__index_field){0};
    snprintf(one->field.name, sizeof one->field.name, "%s", name);
    pstk__coding_by_suffix(one, first);
    return 0;
}

/* Add the fields that the caller names, if no inspected sample has them. */
static int add_wanted(struct walk *walk, const struct pstk_foreign *wanted,
                      struct pstk__inferred_schema *found)
{
    int r = 0, field;
    for (uint32_t i = 0; r >= 0 && wanted && i < wanted->n_first_of; i++) {
        char first[PSTK_MAX_NAME];
        snprintf(first, sizeof first, "%.*s", (int)strcspn(wanted->first_of[i].suffixes, ";"),
                 wanted->first_of[i].suffixes);
        r = add_field(walk, found, first, 0, &field);
    }
    for (uint32_t i = 0; r >= 0 && wanted && i < wanted->n_fields; i++)
        if (pstk__index_find_field(found, wanted->fields[i].name) < 0)
            r = add_field(walk, found, wanted->fields[i].name, 0, &field);
    return r;
}

/* Read the first bytes of a member that was passed, at most `most`. */
static int64_t read_head(struct walk *walk, const struct pstk__tar_member *member, uint64_t most)
{
    walk->reader.at = member->data;
    const int64_t n =
        pstk__file_reader_fill(&walk->reader, member->size < most ? member->size : most);
    return n < 0 || (uint64_t)n <= member->size ? n : (int64_t)member->size;
}

/* Derive the type of a field from the head of an array in a file. */
static int look_at_array(struct walk *walk, const struct pstk__tar_member *member,
                         struct pstk__index_field *field)
{
    int64_t n = read_head(walk, member, PSTK__CODING_HEAD);
    if (n >= 0 &&
        pstk__coding_head_size(pstk__file_reader_bytes(&walk->reader), (uint64_t)n) > (uint64_t)n)
        n = read_head(walk, member, PSTK__CODING_HEAD_MAX);
    if (n >= 0)
        pstk__coding_observe(field, pstk__file_reader_bytes(&walk->reader), (uint64_t)n);
    walk->reader.at = member->next;
    return n < 0 ? (int)n : 0;
}

/* Add the field of a member, and note that its sample has it. */
static int look_at(struct walk *walk, const struct pstk__tar_member *member,
                   struct pstk__inferred_schema *found, struct pstk__tar_together *together)
{
    struct pstk__tar_name name;
    int field;
    pstk__tar_split(&name, member->name, pstk__tar_at_last(walk->reader.scan->foreign));
    if (name.suffix_size == 0)
        return 0;
    if (name.is_too_long)
        return fail_long(walk, member->begin);
    if (is_key(walk, name.suffix))
        return fail_key(walk, member->begin);
    const int r = add_field(walk, found, name.suffix, member->begin, &field);
    if (r < 0)
        return r;
    pstk__tar_together_add(together, name.key, name.key_size, (uint32_t)field);
    return found->fields[field].coding == PSTK__CODING_NPY
               ? look_at_array(walk, member, &found->fields[field])
               : 0;
}

/* The first member whose suffix has a dot: the example in a message. */
struct example {
    uint64_t number; /* number of the member */
    uint64_t begin;  /* begin of the member, byte of the archive */
    char suffix[64]; /* "": none yet */
    char name[64];   /* name of the member, cut for a message */
};

/* Keep the member if it is the first with such a suffix. */
static void see_example(struct example *example, uint64_t number,
                        const struct pstk__tar_member *member, const struct pstk__tar_name *name)
{
    if (example->suffix[0] || name->suffix_size == 0 || name->is_too_long ||
        !strchr(name->suffix, '.'))
        return;
    example->number = number;
    example->begin = member->begin;
    memcpy(example->suffix, name->suffix, sizeof example->suffix);
    const char *slash = strrchr(member->name, '/');
    snprintf(example->name, sizeof example->name, "%.63s", slash ? slash + 1 : member->name);
}

/* Refuse names whose keys may end at another dot, unless the caller has chosen a dot. */
static int check_dots(struct walk *walk, const struct example *example,
                      const struct pstk__inferred_schema *found,
                      const struct pstk__tar_together *together)
{
    const struct pstk_foreign *foreign = walk->reader.scan->foreign;
    char why[512];
    if ((foreign && foreign->split_at) || !example->suffix[0] ||
        !pstk__tar_dots_doubtful(together, found))
        return 0;
    snprintf(why, sizeof why,
             "'%s' ends its key at the first dot, so its field is '%s', and names like it give "
             "other fields; set split_at to 'last' to end keys at the last dot, or to 'first' if "
             "this is meant",
             example->name, example->suffix);
    walk->number = example->number;
    return fail_at(walk, example->begin, PSTK_ENOTSUP, why);
}

/* Infer the fields from the first samples. */
static int look_at_first(struct walk *walk, struct pstk__inferred_schema *found,
                         struct pstk__tar_together *together)
{
    const int at_last = pstk__tar_at_last(walk->reader.scan->foreign);
    struct pstk__tar_member member;
    struct pstk__tar_name name;
    struct example example = {.suffix = ""};
    char key[PSTK__TAR_MAX_NAME] = "";
    uint64_t n_samples = 0;
    int r = 0;
    while (r >= 0 && n_samples <= INFERRED && (r = walk_next(walk, &member)) > 0) {
        pstk__tar_split(&name, member.name, at_last);
        if (name.suffix_size &&
            (strlen(key) != name.key_size || memcmp(key, name.key, name.key_size) != 0)) {
            memcpy(key, name.key, name.key_size);
            key[name.key_size] = 0;
            n_samples++;
        }
        see_example(&example, walk->number, &member, &name);
        r = look_at(walk, &member, found, together);
    }
    const int checked =
        r == PSTK_ENOTSUP || r >= 0 ? check_dots(walk, &example, found, together) : 0;
    return checked < 0 ? checked : r;
}

int pstk__tar_infer(const struct pstk__scan *scan, const struct pstk_foreign *wanted,
                    struct pstk__inferred_schema *found, struct pstk_error *err)
{
    struct walk walk;
    struct pstk__tar_together together;
    found->n_fields = 0;
    if (pstk__tar_together_open(&together) < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to index %s", scan->path);
    int r = walk_open(&walk, scan, err);
    if (r >= 0)
        r = look_at_first(&walk, found, &together);
    pstk__tar_together_join(&together, found, wanted);
    pstk__tar_together_close(&together);
    for (uint32_t i = 0; i < found->n_fields; i++)
        pstk__coding_settle(&found->fields[i]);
    if (r >= 0 && found->n_fields)
        r = add_wanted(&walk, wanted, found);
    pstk__file_reader_close(&walk.reader);
    qsort(found->fields, found->n_fields, sizeof found->fields[0], compare_fields);
    return r < 0 ? r : 0;
}

uint32_t pstk__tar_n_columns(const struct pstk__inferred_schema *found)
{
    return 1 + 2 * found->n_fields;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The keys of an archive's samples, as digests of 128 bits, and their rows. */
struct keys {
    struct key {
        uint64_t digest[2]; /* 0 and 0: free */
        uint64_t row;
    } * buckets; /* hash table, owned; its size is a power of two */
    uint64_t n, max;
};

static struct key *find_key(const struct keys *keys, const uint64_t digest[2])
{
    uint64_t i = digest[0] & (keys->max - 1);
    while ((keys->buckets[i].digest[0] || keys->buckets[i].digest[1]) &&
           (keys->buckets[i].digest[0] != digest[0] || keys->buckets[i].digest[1] != digest[1]))
        i = (i + 1) & (keys->max - 1);
    return &keys->buckets[i];
}

/* Grow the hash table so that at most half of its buckets are taken. */
static int grow_keys(struct keys *keys)
{
    if (2 * (keys->n + 1) <= keys->max)
        return 0;
    const struct keys old = *keys;
    keys->max = old.max ? 2 * old.max : 4096;
    keys->buckets = calloc(keys->max, sizeof *keys->buckets);
    if (!keys->buckets) {
        *keys = old;
        return PSTK_ENOMEM;
    }
    for (uint64_t i = 0; i < old.max; i++)
        if (old.buckets[i].digest[0] || old.buckets[i].digest[1])
            *find_key(keys, old.buckets[i].digest) = old.buckets[i];
    free(old.buckets);
    return 0;
}

/* The member that a row has for a field with a choice. */
struct chosen {
    uint32_t suffix; /* number of its suffix + 1 */
    uint32_t size;   /* bytes of its data */
};

/* A scan: the archive, its keys, and the current row. */
struct samples {
    struct walk walk;
    struct keys keys;
    struct pstk__index_rows *rows;
    struct pstk__inferred_schema *found;
    char key[PSTK__TAR_MAX_NAME]; /* key of the row */
    uint32_t key_size;
    uint64_t row; /* PSTK_NONE: none yet */
    struct pstk__tar_suffixes suffixes;
    struct chosen *chosen; /* for each row and field, if suffixes have choices, owned; or NULL */
    uint64_t n_chosen;     /* elements of it */
    int has_either;        /* 1: some image has another type than the one that names its field */
};

static int no_memory(struct samples *samples)
{
    return pstk__fail(samples->walk.reader.err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                      "no memory for the index of %s", samples->walk.reader.scan->path);
}

/* Note the bytes before a member's data, if they are the most so far. */
static void see_headers(struct samples *samples, const struct pstk__tar_member *member)
{
    uint64_t *most = &samples->found->facts[PSTK__TAR_HEADERS];
    const uint64_t headers = member->data - member->first;
    *most = headers > *most ? headers : *most;
}

/* Put the key of a new row into its cells: the headers of the row's first member. */
static void add_key(struct samples *samples, const struct pstk__tar_name *name,
                    const struct pstk__tar_member *member, uint64_t *cells)
{
    if (samples->suffixes.key < 0)
        return;
    const uint32_t f = (uint32_t)samples->suffixes.key;
    struct pstk__index_field *field = &samples->found->fields[f];
    const uint64_t stored = member->named == PSTK_NONE ? PSTK__TAR_BLOCK : name->key_size;
    cells[pstk__tar_begin(f)] = 0;
    cells[pstk__tar_size(f)] = member->data - member->first;
    see_headers(samples, member);
    field->n++;
    field->bytes += name->key_size;
    field->max_size = stored > field->max_size ? stored : field->max_size;
    field->max_plain = name->key_size > field->max_plain ? name->key_size : field->max_plain;
}

/* Find or begin the row of a member's sample. */
static int find_row(struct samples *samples, const struct pstk__tar_name *name,
                    const struct pstk__tar_member *member)
{
    const uint64_t begin = member->first;
    if (samples->row != PSTK_NONE && samples->key_size == name->key_size &&
        memcmp(samples->key, name->key, name->key_size) == 0)
        return 0;
    memcpy(samples->key, name->key, name->key_size);
    samples->key_size = name->key_size;
    uint64_t digest[2] = {1, 2};
    pstk__index_digest(digest, name->key, name->key_size);
    if (grow_keys(&samples->keys) < 0)
        return no_memory(samples);
    struct key *key = find_key(&samples->keys, digest);
    if (key->digest[0] || key->digest[1]) {
        samples->row = key->row;
        return 0;
    }
    uint64_t cells[PSTK__INDEX_TABLE_MAX_COLUMNS] = {begin};
    add_key(samples, name, member, cells);
    *key = (struct key){.digest = {digest[0], digest[1]}, .row = samples->rows->n};
    samples->keys.n++;
    samples->row = samples->rows->n;
    if (samples->rows->n >= 0xffffffffu)
        return fail_at(&samples->walk, begin, PSTK_EFBIG, "an archive has 2^32 samples: split it");
    return pstk__index_rows_add(samples->rows, cells) < 0 ? no_memory(samples) : 0;
}

static int fail_suffix(struct samples *samples, const struct pstk__tar_name *name, uint64_t begin)
{
    const int may_end_later = samples->suffixes.may_be_last && strchr(name->suffix, '.');
    char why[320];
    snprintf(why, sizeof why,
             "its suffix '%.63s' is on none of the first %u samples, which gave the fields: name "
             "it in fields, or write the archives again without it%s",
             name->suffix, INFERRED, may_end_later ? "; " PSTK__TAR_LAST_DOT : "");
    return fail_at(&samples->walk, begin, PSTK_EBADMSG, why);
}

static int fail_twice(struct samples *samples, const struct pstk__tar_name *name, uint64_t begin,
                      uint64_t before)
{
    char why[320];
    snprintf(why, sizeof why,
             "the archive has the member with the suffix '%.63s' of this sample twice, here and at "
             "byte %" PRIu64,
             name->suffix, before);
    return fail_at(&samples->walk, begin, PSTK_EBADMSG, why);
}

static int fail_second(struct samples *samples, const struct pstk__tar_name *name, uint64_t begin,
                       uint64_t before)
{
    char why[384];
    snprintf(why, sizeof why,
             "the sample has a second image, with the suffix '%.63s'; the first is at byte %" PRIu64
             ". Images of different types share one field here, because none of the first %u "
             "samples has both: name this suffix in fields to get both",
             name->suffix, before, INFERRED);
    return fail_at(&samples->walk, begin, PSTK_EBADMSG, why);
}

/* Choose between two members of a row for a field that takes the first of several suffixes. 1: take
 * the new one; the counts of an old one were subtracted; 0: the old one stays; 2: the old one has
 * the same suffix; ENOMEM. */
static int choose(struct samples *samples, int suffix, uint64_t size, uint32_t f)
{
    const struct pstk__index_rows *rows = samples->rows;
    const uint64_t n_fields = samples->found->n_fields,
                   needed = rows->max_cells / rows->n_columns * n_fields;
    if (needed > samples->n_chosen) {
        struct chosen *larger = realloc(samples->chosen, needed * sizeof *larger);
        if (!larger)
            return no_memory(samples);
        memset(larger + samples->n_chosen, 0, (needed - samples->n_chosen) * sizeof *larger);
        samples->chosen = larger;
        samples->n_chosen = needed;
    }
    struct chosen *chosen = &samples->chosen[samples->row * n_fields + f];
    const uint32_t number = (uint32_t)suffix + 1;
    if (chosen->suffix && chosen->suffix < number)
        return 0;
    if (chosen->suffix > number) {
        samples->found->fields[f].n--;
        samples->found->fields[f].bytes -= chosen->size;
    } else if (chosen->suffix == number) {
        return 2;
    }
    *chosen = (struct chosen){.suffix = number, .size = (uint32_t)size};
    return 1;
}

/* 1: the member goes into its row; 0: it does not; EBADMSG: the row has such a member already;
 * ENOMEM. */
static int is_taken(struct samples *samples, int suffix, const struct pstk__tar_name *name,
                    const struct pstk__tar_member *member)
{
    const struct pstk__tar_suffix *entry = &samples->suffixes.at[suffix];
    const uint64_t *cells = samples->rows->cells + samples->row * samples->rows->n_columns;
    const int is_first = !cells[pstk__tar_size(entry->field)];
    const uint64_t before = cells[0] + cells[pstk__tar_begin(entry->field)];
    if (entry->rule == PSTK__TAR_CHOICE) {
        const int r = choose(samples, suffix, member->size, entry->field);
        return r == 2 ? fail_twice(samples, name, member->begin, before) : r;
    }
    samples->has_either |=
        strcmp(entry->text, samples->found->fields[entry->field].field.name) != 0;
    if (is_first)
        return 1;
    return samples->has_either && entry->rule == PSTK__TAR_EITHER
               ? fail_second(samples, name, member->begin, before)
               : fail_twice(samples, name, member->begin, before);
}

/* Put a member into its sample's row. */
static int add_member(struct samples *samples, const struct pstk__tar_member *member)
{
    struct pstk__tar_name name;
    pstk__tar_split(&name, member->name, samples->suffixes.at_last);
    if (name.suffix_size == 0)
        return 0;
    if (name.is_too_long)
        return fail_long(&samples->walk, member->begin);
    const int suffix = pstk__tar_suffixes_find(&samples->suffixes, name.suffix);
    if (suffix < 0 && is_key(&samples->walk, name.suffix))
        return fail_key(&samples->walk, member->begin);
    if (suffix < 0)
        return fail_suffix(samples, &name, member->begin);
    const int f = samples->suffixes.at[suffix].field;
    if (member->size > MAX_VALUE)
        return fail_at(&samples->walk, member->begin, PSTK_EFBIG,
                       "the member has 4 GiB or more; must be less: split it");
    int r = find_row(samples, &name, member);
    if (r == 0)
        r = is_taken(samples, suffix, &name, member);
    if (r <= 0)
        return r;
    uint64_t *cells = samples->rows->cells + samples->row * samples->rows->n_columns;
    cells[pstk__tar_begin((uint32_t)f)] = member->first - cells[0];
    cells[pstk__tar_size((uint32_t)f)] = member->data + member->size - member->first;
    struct pstk__index_field *field = &samples->found->fields[f];
    const uint64_t plain = pstk__coding_plain_size(field, member->size);
    see_headers(samples, member);
    field->n++;
    field->bytes += member->size;
    field->max_size = member->size > field->max_size ? member->size : field->max_size;
    field->max_plain = plain > field->max_plain ? plain : field->max_plain;
    return 0;
}

/* Compute the bytes from the first to the last member of each sample, and set whether they lie far
 * apart. */
static void measure(struct samples *samples)
{
    const struct pstk__index_rows *rows = samples->rows;
    for (uint64_t i = 0; i < rows->n; i++) {
        const uint64_t *cells = rows->cells + i * rows->n_columns;
        uint64_t end = 0, sum = 0;
        for (uint32_t f = 0; f < samples->found->n_fields; f++) {
            const uint64_t size = cells[pstk__tar_size(f)];
            const uint64_t last = cells[pstk__tar_begin(f)] + size;
            end = size && last > end ? last : end;
            sum += size;
        }
        if (end > samples->found->max_record)
            samples->found->max_record = end;
        if (end > sum + NEAR_BYTES)
            samples->found->facts[PSTK__TAR_SCATTERED] = 1;
    }
}

/* Drop the last sample of a damaged archive if the damage has cut it. */
static void drop_begun(struct samples *samples)
{
    struct pstk__index_rows *rows = samples->rows;
    int is_cut = 0;
    if (rows->n == 0 || samples->row != rows->n - 1)
        return;
    const uint64_t *cells = rows->cells + samples->row * rows->n_columns;
    for (uint32_t f = 0; f < samples->found->n_fields; f++)
        is_cut |= !cells[pstk__tar_size(f)];
    rows->n -= (uint64_t)is_cut;
}

int pstk__tar_scan(const struct pstk__scan *scan, struct pstk__index_rows *rows,
                   struct pstk__inferred_schema *found, struct pstk_error *err)
{
    struct samples *samples = calloc(1, sizeof *samples);
    struct pstk__tar_member member;
    if (!samples)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to index %s", scan->path);
    samples->rows = rows;
    samples->found = found;
    samples->row = PSTK_NONE;
    pstk__tar_suffixes_init(&samples->suffixes, found, scan->foreign);
    int r = walk_open(&samples->walk, scan, err);
    while (r >= 0 && (r = walk_next(&samples->walk, &member)) > 0)
        r = add_member(samples, &member);
    if (r < 0)
        drop_begun(samples);
    measure(samples);
    samples->walk.reader.at = scan->size;
    if (r == 0)
        r = pstk__file_reader_report(&samples->walk.reader);
    pstk__file_reader_close(&samples->walk.reader);
    free(samples->keys.buckets);
    free(samples->chosen);
    free(samples);
    return r;
}
