/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suffixes: maps the suffixes of members to fields. Most fields have one suffix, which is their
 * name. A field has several if the caller asks for the first of some (foreign.h). A field of images
 * has the suffixes of JPEG and PNG, unless another field has images of its stem. Pure, except
 * `together`.
 */
#ifndef PSTK_TAR_SUFFIXES_H
#define PSTK_TAR_SUFFIXES_H

#include "store/index/index.h"

#include <penstock/foreign.h>

/* Max suffixes: one for each field, all that the caller lists, and two more for each field of
 * images. */
#define PSTK__TAR_MAX_SUFFIXES (PSTK_MAX_FIELDS * 3 + PSTK_MAX_FIRST_OF * PSTK_MAX_FIELDS)

/* The rule for a member with a suffix. */
enum pstk__tar_rule {
    PSTK__TAR_ONLY = 0, /* the only suffix of the field; a second member with it is an error */
    PSTK__TAR_CHOICE =
        1, /* one of several; the member with the first of them in this list counts */
    PSTK__TAR_EITHER =
        2, /* one of several; a sample has one of them, and a second member is an error */
};

struct pstk__tar_suffix {
    char text[PSTK_MAX_NAME];
    uint8_t field; /* number of the field */
    uint8_t rule;  /* enum pstk__tar_rule */
};

/* The list of suffixes. Invariant: all texts differ; the suffixes of a field with a choice are in
 * the order of preference. */
struct pstk__tar_suffixes {
    uint32_t n;
    uint32_t n_choices; /* suffixes with the rule PSTK__TAR_CHOICE */
    int at_last;        /* 1: suffixes begin after the last dot of a name */
    int may_be_last; /* 1: suffixes begin after the first dot, and the caller has not chosen that */
    int key;         /* number of the field that is the key; -1: none */
    struct pstk__tar_suffix at[PSTK__TAR_MAX_SUFFIXES];
};

/* 1: the caller wants suffixes to begin after the last dot of a name. */
static inline int pstk__tar_at_last(const struct pstk_foreign *foreign)
{
    return foreign && foreign->split_at == PSTK_SPLIT_LAST;
}

/* Name of the field that is the key of a sample. pstk__tar_wants_key: 1: the caller names this
 * field, and gives it no list of suffixes; then it is the field of no suffix. */
#define PSTK__TAR_KEY "__key__"
int pstk__tar_wants_key(const struct pstk_foreign *foreign);

/* Text that a message adds if names with several dots may explain the failure. */
#define PSTK__TAR_LAST_DOT                                                                         \
    "keys end at the first dot of a name; if the last is meant, set split_at to 'last'"

/* List the suffixes of these fields. */
void pstk__tar_suffixes_init(struct pstk__tar_suffixes *suffixes,
                             const struct pstk__inferred_schema *found,
                             const struct pstk_foreign *foreign);
/* Return the number of a suffix's entry, or -1: no field has this suffix. */
int pstk__tar_suffixes_find(const struct pstk__tar_suffixes *suffixes, const char *text);

/* Return the name of the field for a suffix: the suffix itself, or the name of the caller's list
 * that has it. *first: a text that begins with the suffix that gives the type. NULL: the suffix is
 * the name of a list that does not have it. */
const char *pstk__tar_suffix_name(const struct pstk_foreign *foreign, const char *suffix,
                                  const char **first);

/* ---- images of either type ---- */

/* The fields of each sample: a bit for each field, by the digest of the sample's key. */
struct pstk__tar_together {
    struct pstk__tar_seen {
        uint64_t digest[2]; /* 0 and 0: free */
        uint64_t fields;    /* a set */
    } * buckets;            /* hash table of PSTK__TAR_SEEN buckets, owned */
    uint64_t n;             /* buckets taken */
};
#define PSTK__TAR_SEEN 4096 /* buckets; a power of two */

/* Open an empty table. 0, or ENOMEM. */
int pstk__tar_together_open(struct pstk__tar_together *together);
void pstk__tar_together_close(struct pstk__tar_together *together);
/* Note that the sample with this key has a field. A further sample is ignored once half of the
 * buckets are taken. */
void pstk__tar_together_add(struct pstk__tar_together *together, const char *key, uint32_t key_size,
                            uint32_t field);
/* Join fields of images that differ only in their type, if no noted sample has two of them: remove
 * all but the first type of `images`. The numbers of fields change, so *together is invalid
 * afterwards. */
void pstk__tar_together_join(const struct pstk__tar_together *together,
                             struct pstk__inferred_schema *found,
                             const struct pstk_foreign *foreign);

#endif
