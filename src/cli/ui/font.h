/* SPDX-License-Identifier: Apache-2.0 */
/* font: text of one size in pictures. Glyphs are 6 x 13 pixels: ASCII and Latin-1; other characters
 * become a question mark. */
#ifndef PSTK_CLI_FONT_H
#define PSTK_CLI_FONT_H

#include <stdint.h>

#define FONT_WIDTH 6
#define FONT_HEIGHT 13

/* Return the rows of the glyph of the first character of a text of UTF-8, from the top: the highest
 * bit is the leftmost pixel. Move *text past the character; at its end return NULL. */
const uint8_t *font_next(const char **text);

#endif
