/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/canvas.h"

#include <stdlib.h>
#include <string.h>

#include "ui/font.h"

static unsigned char *pixel(const struct area *area, int x, int y)
{
    return area->pixels + (size_t)y * area->stride + (size_t)x * 3;
}

static void put(const struct area *area, int x, int y, const colour c)
{
    if (x >= 0 && y >= 0 && x < area->width && y < area->height)
        memcpy(pixel(area, x, y), c, 3);
}

static int clamp(int value, int most)
{
    return value < 0 ? 0 : value < most ? value : most;
}

void canvas_fill(const struct area *area, struct rectangle r, const colour c)
{
    const int right = clamp(r.right, area->width), bottom = clamp(r.bottom, area->height);
    for (int y = clamp(r.top, area->height); y < bottom; y++)
        for (int x = clamp(r.left, area->width); x < right; x++)
            memcpy(pixel(area, x, y), c, 3);
}

void canvas_frame(const struct area *area, struct rectangle r, int thick, const colour c)
{
    struct rectangle top = r, bottom = r, left = r, right = r;
    top.bottom = r.top + thick;
    bottom.top = r.bottom - thick;
    left.right = r.left + thick;
    right.left = r.right - thick;
    canvas_fill(area, top, c);
    canvas_fill(area, bottom, c);
    canvas_fill(area, left, c);
    canvas_fill(area, right, c);
}

void canvas_tint(const struct area *area, int x, int y, const colour c)
{
    if (x < 0 || y < 0 || x >= area->width || y >= area->height)
        return;
    unsigned char *p = pixel(area, x, y);
    for (int i = 0; i < 3; i++)
        p[i] = (unsigned char)((p[i] + c[i]) / 2);
}

/* Draw by Bresenham's algorithm. */
void canvas_line(const struct area *area, int x0, int y0, int x1, int y1, const colour c)
{
    const int across = abs(x1 - x0), down = abs(y1 - y0);
    const int step_x = x0 < x1 ? 1 : -1, step_y = y0 < y1 ? 1 : -1;
    int error = across - down;
    for (;;) {
        put(area, x0, y0, c);
        if (x0 == x1 && y0 == y1)
            return;
        const int twice = 2 * error;
        if (twice > -down) {
            error -= down;
            x0 += step_x;
        }
        if (twice < across) {
            error += across;
            y0 += step_y;
        }
    }
}

int canvas_text(const struct area *area, int x, int y, int width, const char *text, const colour c)
{
    int used = 0;
    for (const uint8_t *rows; used + FONT_WIDTH <= width && (rows = font_next(&text));
         used += FONT_WIDTH)
        for (int k = 0; k < FONT_HEIGHT * FONT_WIDTH; k++)
            if (rows[k / FONT_WIDTH] & 0x80 >> k % FONT_WIDTH)
                put(area, x + used + k % FONT_WIDTH, y + k / FONT_WIDTH, c);
    return used;
}

int canvas_text_width(const char *text, int width)
{
    int used = 0;
    while (used + FONT_WIDTH <= width && font_next(&text))
        used += FONT_WIDTH;
    return used;
}
