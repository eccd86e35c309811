/* SPDX-License-Identifier: Apache-2.0 */
/* ignored: tables and images at the top of a folder of images, which a data set of the format
 * folder does not read. */
#ifndef PSTK_CLI_IGNORED_H
#define PSTK_CLI_IGNORED_H

#include <stdint.h>

#define IGNORED_SIZE 400

/* Write what lies there and is not read, as a sentence; "": nothing, or the format reads it.
 * Returns the number of such tables. */
uint32_t ignored_tables(const char *path, const char *format, char text[IGNORED_SIZE]);
/* Print a message if n > 0 images lie next to the class folders of `path`. */
void ignored_say_images(uint64_t n, const char *path);
/* Write the same as a sentence, without the path. Returns `text`; "": there are none. */
const char *ignored_images(uint64_t n, char text[IGNORED_SIZE]);

#endif
