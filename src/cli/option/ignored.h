/* SPDX-License-Identifier: Apache-2.0 */
/* ignored: files in a data set's folder that are not read: tables and images at the top of a folder
 * of images, and the files that pstk_dataset_info.left_out counts. */
#ifndef PSTK_CLI_IGNORED_H
#define PSTK_CLI_IGNORED_H

#include <penstock/format.h>

#include <stdint.h>

#define IGNORED_SIZE 400

/* Write a sentence about tables in the folder that are not read; "": there are none, or the format
 * reads them. Returns the number of such tables. */
uint32_t ignored_tables(const char *path, const char *format, char text[IGNORED_SIZE]);
/* Print a message if n > 0 images lie next to the class folders of `path`. */
void ignored_say_images(uint64_t n, const char *path);
/* Print a message if files of the data set are left out: such images, or others. */
void ignored_say_files(const struct pstk_dataset_info *info, const char *path);
/* Return that message as a sentence; for images it lacks the path. It may lie in `text`; "": no
 * file is left out. */
const char *ignored_files(const struct pstk_dataset_info *info, char text[IGNORED_SIZE]);

#endif
