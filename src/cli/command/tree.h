/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree: the image files that pack reads: the files of a folder, which the library finds
 * (penstock/image_folder.h), or those that annotations list. Records have no tree of files.
 */
#ifndef PSTK_CLI_TREE_H
#define PSTK_CLI_TREE_H

#include <stdint.h>

#include <penstock/image_folder.h>

#include "command/formats.h"

struct pstk_annotations;

/* All zero at the start, except by_content. tree_close accepts any state. */
struct tree {
    int by_content; /* 1: JPEG and PNG files are recognised by their first bytes, under any name */
    struct pstk_image_folder *folder;           /* owned; or NULL */
    const struct pstk_annotations *annotations; /* borrowed; or NULL */
    uint64_t n_files;
    struct pstk_image_folder_info info; /* info of the folder */
    const char **classes;               /* owned; info.n_classes */
    struct formats foreign;             /* images that the library passes over */
};

/* Find the files below `root`, skipping `out` (which need not exist). Returns 0, or an exit status
 * after a message. */
int tree_scan(struct tree *tree, const char *root, const char *out);
/* Take the files that annotations list. */
void tree_list(struct tree *tree, const struct pstk_annotations *annotations, uint64_t n_files);
/* Return 1 when there are files; 0: records replace them. */
int tree_has_files(const struct tree *tree);
/* Return the path of file i below the root. *number (may be NULL): number of its class, or 0. */
const char *tree_path(const struct tree *tree, uint64_t i, uint32_t *number);
void tree_close(struct tree *tree);

#endif
