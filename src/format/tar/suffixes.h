/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suffixes: which suffix of a member is which field. Most fields have one suffix, which is their
 * name. A field has several where the caller asks for the first of some (foreign.h), or where
 * samples have their image as a JPEG or as a PNG, but never as both. Pure, except `together`.
 */
#ifndef PSTK_TAR_SUFFIXES_H
#define PSTK_TAR_SUFFIXES_H

#include "store/index/index.h"

#include <penstock/foreign.h>

/* All fields, all suffixes that the caller lists, and two more of each image. */
#define PSTK__TAR_MAX_SUFFIXES (PSTK_MAX_FIELDS * 3 + PSTK_MAX_FIRST_OF * PSTK_MAX_FIELDS)

/* What a member with a suffix is. */
enum pstk__tar_rule {
    PSTK__TAR_ONLY = 0,   /* the field's one suffix: twice is damage */
    PSTK__TAR_CHOICE = 1, /* one of several; the first in this list counts */
    PSTK__TAR_EITHER = 2, /* one of several of which a sample has one: two are an error */
};

struct pstk__tar_suffix {
    char text[PSTK_MAX_NAME];
    uint8_t field; /* its number */
    uint8_t rule;  /* enum pstk__tar_rule */
};

/* Invariant: all texts differ; those of a field with a choice are in the order of preference. */
struct pstk__tar_suffixes {
    uint32_t n;
    uint32_t n_choices; /* suffixes with that rule */
    int at_last;        /* 1: they begin after the last dot of a name */
    int may_be_last;    /* 1: after the first one, which the caller has not asked for */
    int key;            /* the number of the field that is the key; -1: none is */
    struct pstk__tar_suffix at[PSTK__TAR_MAX_SUFFIXES];
};

/* 1: suffixes begin after the last dot of a name, as the caller wants it. */
static inline int pstk__tar_at_last(const struct pstk_foreign *foreign)
{
    return foreign && foreign->split_at == PSTK_SPLIT_LAST;
}

/* The field that is the key of a sample, if the caller names it; no suffix has it then. */
#define PSTK__TAR_KEY "__key__"
int pstk__tar_wants_key(const struct pstk_foreign *foreign);

/* What a message adds where names with more dots explain it. */
#define PSTK__TAR_LAST_DOT                                                                         \
    "keys end at the first dot of a name; if the last is meant, set split_at to 'last'"

/* List them for these fields. */
void pstk__tar_suffixes_init(struct pstk__tar_suffixes *suffixes,
                             const struct pstk__inferred_schema *found,
                             const struct pstk_foreign *foreign);
/* The number of an entry, or -1: no field has this suffix. */
int pstk__tar_suffixes_find(const struct pstk__tar_suffixes *suffixes, const char *text);

/* The field that the caller wants of a suffix: its own, or that of a list which has it. *first: the
 * suffix that gives the type. NULL: its name is that of another field. */
const char *pstk__tar_suffix_name(const struct pstk_foreign *foreign, const char *suffix,
                                  const char **first);

/* ---- images of either type ---- */

/* Which fields samples have at once: by the digest of the key, a bit for each field. */
struct pstk__tar_together {
    struct pstk__tar_seen {
        uint64_t digest[2]; /* 0 and 0: free */
        uint64_t fields;    /* a set */
    } * places;             /* owned; PSTK__TAR_SEEN of them */
    uint64_t n;             /* taken */
};
#define PSTK__TAR_SEEN 4096 /* a power of two */

/* 0, or ENOMEM. */
int pstk__tar_together_open(struct pstk__tar_together *together);
void pstk__tar_together_close(struct pstk__tar_together *together);
/* Note that the sample with this key has a field. Samples past half of the places are not noted. */
void pstk__tar_together_add(struct pstk__tar_together *together, const char *key, uint32_t key_size,
                            uint32_t field);
/* Remove the fields of images that are one field with another, which no sample noted has at once.
 * The numbers of fields are those that were noted; after it they are others. */
void pstk__tar_together_join(const struct pstk__tar_together *together,
                             struct pstk__inferred_schema *found,
                             const struct pstk_foreign *foreign);

#endif
