/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder: an unpacked folder of images, an entry of format.c: class folders (CLASS/NAME.jpg, at any
 * depth below the class), or images directly in the folder. A sample is a file. Samples have the
 * order of torchvision.datasets.ImageFolder, and so its numbers.
 *
 * table: a table of images (table.h), another entry. Its rows are samples, in their order, wherever
 * the images lie below a root folder.
 *
 * A shard is a directory of the tree, perhaps without images, or a part of the table. Files have
 * the numbers of their samples; the index is the last file. Names are only in the index: memory is
 * O(directories).
 */
#ifndef PSTK_FORMAT_FOLDER_H
#define PSTK_FORMAT_FOLDER_H

#include "format/format.h"

extern const struct pstk__format pstk__format_folder, pstk__format_table;

/* 1: `path` is a folder with JPEG or PNG files among its first entries, or among those of the first
 * folders in it; 0: it is not; <0: it cannot be read. */
int pstk__folder_probe(const struct pstk__store *store, const char *path, struct pstk_error *err);
/* 1: a folder consists mostly of images: more than half of its first entries are images, or half or
 * more of the first folders in it have some; 0: it does not. */
int pstk__folder_is_most(const struct pstk__store *store, const char *path, struct pstk_error *err);
/* 1: `path` is a table of images, or a folder with one (table/paths.h); 0: it is not; <0: there are
 * two, or a file cannot be read. */
int pstk__table_probe(const struct pstk__store *store, const char *path, struct pstk_error *err);

#endif
