/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/sheet.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "ui/message.h"
#include "ui/output_file.h"

#define GAP 4                          /* pixels */
#define MAX_CANVAS (UINT64_C(1) << 30) /* bytes */

int sheet_open(struct sheet *sheet, uint32_t side, uint32_t line, uint64_t n)
{
    memset(sheet, 0, sizeof *sheet);
    uint64_t n_columns = 1;
    while (n_columns * n_columns < n)
        n_columns++;
    uint64_t n_rows = (n + n_columns - 1) / n_columns;
    uint64_t width = n_columns * (side + GAP) - GAP, height = n_rows * (side + line + GAP) - GAP;
    if (width * height * 3 > MAX_CANVAS)
        return message_usage("%llu pictures of %u pixels make too large a sheet; take fewer, or a "
                             "smaller --size",
                             (unsigned long long)n, side);
    sheet->side = side;
    sheet->line = line;
    sheet->n_columns = (uint32_t)n_columns;
    sheet->n_rows = (uint32_t)n_rows;
    sheet->width = (uint32_t)width;
    sheet->height = (uint32_t)height;
    sheet->pixels = malloc(width * height * 3);
    if (!sheet->pixels)
        message_no_memory();
    memset(sheet->pixels, 255, width * height * 3);
    return 0;
}

void sheet_put(struct sheet *sheet, uint64_t i, const void *pixels)
{
    const struct area area = sheet_picture(sheet, i);
    const size_t row = (size_t)sheet->side * 3;
    for (size_t y = 0; y < sheet->side; y++)
        memcpy(area.pixels + y * area.stride, (const unsigned char *)pixels + y * row, row);
}

/* Return the area of picture number i, from pixel y on. */
static struct area place(const struct sheet *sheet, uint64_t i, uint32_t y, uint32_t height)
{
    const size_t top = (size_t)(i / sheet->n_columns) * (sheet->side + sheet->line + GAP) + y;
    const size_t left = (size_t)(i % sheet->n_columns) * (sheet->side + GAP);
    return (struct area){.pixels = sheet->pixels + (top * sheet->width + left) * 3,
                         .stride = sheet->width * 3,
                         .width = (int)sheet->side,
                         .height = (int)height};
}

struct area sheet_picture(const struct sheet *sheet, uint64_t i)
{
    return place(sheet, i, 0, sheet->side);
}

struct area sheet_line(const struct sheet *sheet, uint64_t i)
{
    return place(sheet, i, sheet->side, sheet->line);
}

/* Write the PNG file. Returns 0, or an exit status. It prints a message only when libpng itself
 * fails, because output_file_close reports failed writes. */
static int write_png(const struct sheet *sheet, const struct output_file *file)
{
    png_image image;
    memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
    image.width = sheet->width;
    image.height = sheet->height;
    image.format = PNG_FORMAT_RGB;
    if (png_image_write_to_stdio(&image, file->stream, 0, sheet->pixels, 0, NULL))
        return 0;
    if (!file->native)
        message_say("cannot make a PNG file of the pictures: %s", image.message);
    return STATUS_DAMAGED;
}

int sheet_write(const struct sheet *sheet, const char *path)
{
    struct output_file file;
    int status = output_file_open(&file, path);
    return status ? status : output_file_close(&file, write_png(sheet, &file));
}

void sheet_close(struct sheet *sheet)
{
    free(sheet->pixels);
    sheet->pixels = NULL;
}
