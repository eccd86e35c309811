/* SPDX-License-Identifier: Apache-2.0 */
/* ignored: files of a data set's folder that it does not read: tables and images at the top of a
 * folder of images, and what pstk_dataset_info.left_out says. */
#ifndef PSTK_CLI_IGNORED_H
#define PSTK_CLI_IGNORED_H

#include <penstock/format.h>

#include <stdint.h>

#define IGNORED_SIZE 400

/* Write what lies there and is not read, as a sentence; "": nothing, or the format reads it.
 * Returns the number of such tables. */
uint32_t ignored_tables(const char *path, const char *format, char text[IGNORED_SIZE]);
/* Print a message if n > 0 images lie next to the class folders of `path`. */
void ignored_say_images(uint64_t n, const char *path);
/* Print a message if files of the data set are left out: such images, or others. */
void ignored_say_files(const struct pstk_dataset_info *info, const char *path);
/* Return the same as a sentence, of images without the path, which may lie in `text`; "": there are
 * none. */
const char *ignored_files(const struct pstk_dataset_info *info, char text[IGNORED_SIZE]);

#endif
