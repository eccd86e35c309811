/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules: decides which folders are refused, with one message for a folder that is read in place
 * (tree.c, scan.c) and for one that is packed (images.c). A message has `before`, which is "" or
 * the folder above with a slash, and then the first 500 bytes of the name, so that its end fits.
 */
#ifndef PSTK_FOLDER_RULES_H
#define PSTK_FOLDER_RULES_H

#include "base/signature.h"

#include <penstock/types.h>

/* A folder being walked, with those above it. The first one has the depth 0. */
struct pstk__folder_above {
    const struct pstk__folder_above *parent; /* NULL: the first one */
    uint64_t device, inode;
    int depth;
};

/* The name of a folder in a message. */
struct pstk__folder_named {
    const char *before, *name; /* borrowed */
};

/* Enter a folder, whose device and inode are set, below `parent`; NULL: it is the first one. Refuse
 * a folder at a depth of more than 64, and one that lies in itself, by a link. */
int pstk__folder_enter(struct pstk__folder_above *above, const struct pstk__folder_above *parent,
                       struct pstk__folder_named named, struct pstk_error *err);
/* Refuse a folder because folders are nested too deeply. */
int pstk__folder_refuse_deep(struct pstk__folder_named named, struct pstk_error *err);

/* Refuse a class folder whose `name` is not UTF-8; named: the same name in its displayed form. */
int pstk__folder_check_class(struct pstk__folder_named named, const char *name,
                             struct pstk_error *err);
/* The contents of a class folder without images. */
enum pstk__folder_empty {
    PSTK__EMPTY_NONE = 0,     /* no image of any format */
    PSTK__EMPTY_FOREIGN = 1,  /* images of formats that are not packed */
    PSTK__EMPTY_MANIFEST = 2, /* PSTK__FOLDER_MANIFEST, a file that every packed data set has */
};
#define PSTK__FOLDER_MANIFEST "manifest.json"
/* Refuse a class folder without images. */
int pstk__folder_refuse_empty(struct pstk__folder_named named, enum pstk__folder_empty empty,
                              struct pstk_error *err);

/* 1: a file whose first bytes are of this kind is a sample, whatever its name (by_content). */
static inline int pstk__folder_takes(enum pstk__signature found)
{
    return found == PSTK__SIGNATURE_JPEG || found == PSTK__SIGNATURE_PNG;
}

#endif
