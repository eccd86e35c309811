/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree: the image files of a folder, in the order of torchvision.datasets.ImageFolder
 * (torchvision/datasets/folder.py: find_classes, make_dataset): classes sorted by name; in a class
 * its folders sorted by path, in a folder the files by name. All comparisons bytewise, which is
 * Python's order of UTF-8 text. A folder with images at its top and none below has no classes.
 */
#ifndef PSTK_CLI_TREE_H
#define PSTK_CLI_TREE_H

#include <stdint.h>

#include "formats.h"

struct tree_file {
    char *path;           /* relative to the root, '/' between parts; owned */
    uint32_t folder_size; /* bytes of path that are its folder, 0 at the root */
    uint32_t cls;         /* number of its class, 0 where there are none */
};

/* Zeroed before scan; close takes it in any state. */
struct tree {
    struct tree_file *files; /* owned, sorted */
    uint64_t n_files, n_room;
    char **classes; /* owned, sorted; n_classes is 0 for a flat folder */
    uint64_t n_classes;
    struct formats foreign;      /* images that torchvision would not open, by their first bytes */
    uint64_t n_others;           /* other files whose extension is not an image's */
    uint64_t n_left_out;         /* images at the top of a folder that has classes */
    uint64_t skip_dev, skip_ino; /* this directory is not looked into (the output) */
};

/* Find the files below `root`; `out` (may not exist) is not looked into. Returns 0, or an exit
 * status after having said what is wrong. */
int tree_scan(struct tree *tree, const char *root, const char *out);
void tree_close(struct tree *tree);

#endif
