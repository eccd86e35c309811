/* SPDX-License-Identifier: Apache-2.0 */
/* sheet: pictures in a grid on one canvas, perhaps each with a line of text below it, written as a
 * PNG file. */
#ifndef PSTK_CLI_SHEET_H
#define PSTK_CLI_SHEET_H

#include "ui/canvas.h"

#define SHEET_LINE 15 /* pixels of a line of text */

/* A contact sheet. A single picture and its line fill the canvas exactly; several are in a grid
 * with gaps between them. */
struct sheet {
    uint32_t side; /* pixels of a picture's sides */
    uint32_t line; /* pixels of the text below a picture; 0: none */
    uint32_t n_columns, n_rows;
    uint32_t width, height; /* pixels of the canvas */
    unsigned char *pixels;  /* owned, height x width x 3, RGB */
};

/* Allocate a white canvas for n pictures with lines of `line` pixels. Returns 0, or an exit status
 * after a message. */
int sheet_open(struct sheet *sheet, uint32_t side, uint32_t line, uint64_t n);
/* Copy picture number i, side x side x 3 bytes, onto the canvas. */
void sheet_put(struct sheet *sheet, uint64_t i, const void *pixels);
/* Return the area of picture number i, or of the line below it, to draw on. */
struct area sheet_picture(const struct sheet *sheet, uint64_t i);
struct area sheet_line(const struct sheet *sheet, uint64_t i);
/* Write the sheet to a file, "-" for standard output (output_file.h). Returns 0, or an exit status
 * after a message. */
int sheet_write(const struct sheet *sheet, const char *path);
void sheet_close(struct sheet *sheet);

#endif
