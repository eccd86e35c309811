/* SPDX-License-Identifier: Apache-2.0 */
/* sheet: pictures in a grid on one canvas, written as a PNG file. */
#ifndef PSTK_CLI_SHEET_H
#define PSTK_CLI_SHEET_H

#include <stdint.h>

/* One picture fills the canvas exactly; several are in a grid with gaps between them. */
struct sheet {
    uint32_t side; /* pixels of a picture's sides */
    uint32_t n_columns, n_rows;
    uint32_t width, height; /* pixels of the canvas */
    unsigned char *pixels;  /* owned, height x width x 3, RGB */
};

/* Allocate a canvas for n pictures. Returns 0, or an exit status after a message. */
int sheet_open(struct sheet *sheet, uint32_t side, uint64_t n);
/* Copy picture number i, side x side x 3 bytes, onto the canvas. */
void sheet_put(struct sheet *sheet, uint64_t i, const void *pixels);
/* Write to a file, "-" for standard output (output_file.h). Returns 0, or an exit status after a
 * message. */
int sheet_write(const struct sheet *sheet, const char *path);
void sheet_close(struct sheet *sheet);

#endif
