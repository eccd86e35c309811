/* SPDX-License-Identifier: Apache-2.0 */
/* canvas: RGB pixels, and lines, areas and text drawn on them. */
#ifndef PSTK_CLI_CANVAS_H
#define PSTK_CLI_CANVAS_H

#include <stdint.h>

/* A part of a canvas. Drawing is clipped to it; coordinates count from its corner. */
struct area {
    unsigned char *pixels; /* borrowed: the canvas's, height x width x 3, from the area's corner */
    uint32_t stride;       /* bytes of a row of the canvas */
    int width, height;     /* pixels of the area */
};

/* A rectangle: pixels from left and top to before right and bottom. */
struct rectangle {
    int left, top, right, bottom;
};

typedef uint8_t colour[3]; /* red, green, blue */

void canvas_fill(const struct area *area, struct rectangle r, const colour c);
/* Draw the outline of a rectangle, `thick` pixels wide, inside of it. */
void canvas_frame(const struct area *area, struct rectangle r, int thick, const colour c);
/* Mix one pixel with a colour, half and half. */
void canvas_tint(const struct area *area, int x, int y, const colour c);
void canvas_line(const struct area *area, int x0, int y0, int x1, int y1, const colour c);
/* Write one line of text (font.h) whose top left corner is at x, y: as many characters as fit into
 * `width` pixels. Returns the pixels that they take. */
int canvas_text(const struct area *area, int x, int y, int width, const char *text, const colour c);
/* Return the pixels that canvas_text takes for the text. */
int canvas_text_width(const char *text, int width);

#endif
