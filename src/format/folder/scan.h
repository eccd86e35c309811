/* SPDX-License-Identifier: Apache-2.0 */
/* scan: the index of a folder of images. It is built again if the time of change of a directory
 * differs. */
#ifndef PSTK_FOLDER_SCAN_H
#define PSTK_FOLDER_SCAN_H

#include "format/format.h"
#include "store/index/location.h"

#include <limits.h>

enum pstk__folder_layout {
    PSTK__FOLDER_CLASSES = 0, /* class folders; images at the top are only counted */
    PSTK__FOLDER_FLAT = 1,    /* no folder below the top has images */
    PSTK__FOLDER_TABLE = 2,   /* a table lists the images: table/scan.h */
};
#define PSTK__FOLDER_LAYOUTS 2 /* layouts of a folder without a table, from 0 */

/* Facts of an index. */
enum pstk__folder_fact {
    PSTK__FACT_LAYOUT = 0,
    PSTK__FACT_ODD = 1, /* 1: a path is not UTF-8 */
    PSTK__FACT_MAX = 2, /* max bytes of a sample's values, with its columns in a table */
    PSTK__FACT_DIGEST =
        3, /* digest, with fact 4, of the samples' values and sizes, and of a table's columns */
    PSTK__FACT_TABLE_SIZE = 5,    /* bytes of the table's file */
    PSTK__FACT_TABLE_CHANGED = 6, /* time of change of that file */
    PSTK__FACT_LEFT_OUT = 7,      /* number of images directly in a folder that has classes */
};

/* Fields by number. Without labels, the path has number 1. */
enum pstk__folder_field { PSTK__FIELD_OF_IMAGE = 0, PSTK__FIELD_OF_LABEL = 1 };

/* The position of an index. The index of class folders lies next to their folder: a folder in it
 * would be an empty class for torchvision. */
struct pstk__folder_location {
    char root[PATH_MAX];   /* absolute path of the folder */
    char parent[PATH_MAX]; /* absolute path of its parent */
    struct pstk__index_location location;
};
int pstk__folder_location_of(struct pstk__folder_location *to, const struct pstk__opening *opening,
                             enum pstk__folder_layout layout, struct pstk_error *err);

/* Open the index, or build it first. Returns owned. */
int pstk__folder_get_index(struct pstk__index **out, const struct pstk__opening *opening,
                           struct pstk_error *err);

#endif
