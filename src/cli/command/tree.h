/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree: the image files of a folder, in the order of torchvision.datasets.ImageFolder
 * (torchvision/datasets/folder.py: find_classes, make_dataset): classes are sorted by name, the
 * folders of a class by path, the files of a folder by name. All comparisons are bytewise, which is
 * Python's order of UTF-8 text. A folder with images at its top and none below has no classes.
 * Files and folders whose names begin with a dot are left out, which torchvision takes.
 */
#ifndef PSTK_CLI_TREE_H
#define PSTK_CLI_TREE_H

#include <stdint.h>

#include "command/formats.h"

struct tree_file {
    char *path;           /* owned; relative to the root, with '/' between parts */
    uint32_t folder_size; /* bytes of the folder in path; 0 at the root */
    uint32_t cls;         /* class number; 0 when there are no classes */
};

/* Zeroed before tree_scan, except by_content. tree_close takes it in any state. */
struct tree {
    int by_content; /* 1: JPEG and PNG files count by their first bytes, whatever their names */
    struct tree_file *files; /* owned, sorted */
    uint64_t n_files, n_room;
    char **classes; /* owned, sorted; n_classes is 0 for a flat folder */
    uint64_t n_classes;
    struct formats foreign;      /* images that torchvision would not open, by their first bytes */
    uint64_t n_others;           /* other files whose extension is not an image's */
    uint64_t n_hidden;           /* files and folders whose names begin with a dot */
    uint64_t n_left_out;         /* images at the top of a folder that has classes */
    uint64_t skip_dev, skip_ino; /* the directory that is skipped (the output) */
};

/* Find the files below `root`, skipping `out` (which need not exist). Returns 0, or an exit status
 * after a message. */
int tree_scan(struct tree *tree, const char *root, const char *out);
void tree_close(struct tree *tree);

#endif
