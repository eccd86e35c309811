/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder: an unpacked folder of images, an entry of format.c: class folders (CLASS/NAME.jpg, at any
 * depth below the class), or images directly in the folder. A sample is a file. Samples have the
 * order of torchvision.datasets.ImageFolder, and so its numbers.
 *
 *
 * table: a table of images (table.h), another entry. Its rows are samples, in their order, and the
 * images may lie anywhere below a root folder.
 *
 *
 * A shard is a directory of the tree, perhaps without images, or a part of the table. A file has
 * the number of its sample; the index is the last file. Names are only in the index, so memory is
 * O(directories), or O(parts of the table).
 */
#ifndef PSTK_FORMAT_FOLDER_H
#define PSTK_FORMAT_FOLDER_H

#include "format/format.h"

extern const struct pstk__format pstk__format_folder, pstk__format_table;

/* 1: `path` is a folder with a .jpg, .jpeg or .png file among its first 512 names, or at least half
 * of the first 8 folders in it have one, down to CLASS/FOLDER/NAME; 0: it is not; <0: it cannot be
 * read, or also has a metadata.parquet, which only Python reads. */
int pstk__folder_probe(const struct pstk__store *store, const char *path, struct pstk_error *err);
/* 1: more than half of a folder's first 512 names are such images, or at least half of the first 8
 * folders in it have one; 0: neither; <0: it cannot be read. */
int pstk__folder_is_most(const struct pstk__store *store, const char *path, struct pstk_error *err);
/* 1: `path` is a table of images, or a folder with one (table/paths.h); 0: it is not; <0: the
 * folder has two tables, or a metadata.parquet, too, or a file cannot be read. */
int pstk__table_probe(const struct pstk__store *store, const char *path, struct pstk_error *err);

#endif
