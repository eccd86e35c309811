/* SPDX-License-Identifier: Apache-2.0 */
/* aside: tables at the top of a folder of images, which a data set of the format folder does not
 * read. */
#ifndef PSTK_CLI_ASIDE_H
#define PSTK_CLI_ASIDE_H

#include <stdint.h>

#define ASIDE_SIZE 400

/* Write what lies there and is not read, as a sentence; "": nothing, or the format reads it.
 * Returns the number of such tables. */
uint32_t aside_find(const char *path, const char *format, char text[ASIDE_SIZE]);

#endif
