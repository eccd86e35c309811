/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "unit.h"

#define REDRAW_SECONDS 0.1
#define QUIET_SECONDS 10.0
#define MAX_BAR 30

static int is_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

static int width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

void progress_begin(struct progress *progress, const char *doing, const char *what)
{
    progress->doing = doing;
    progress->what = what;
    progress->terminal = is_terminal();
    progress->drawn = 0;
    progress->start = unit_now();
    progress->last = progress->start;
}

/* Write the line without its bar. Returns its length. */
static int facts(const struct progress *progress, double part, uint64_t n_items, char *text,
                 size_t size)
{
    char count[UNIT_SIZE], rate[UNIT_SIZE], left[UNIT_SIZE];
    double elapsed = progress->last - progress->start;
    double per_second = elapsed > 0 ? (double)n_items / elapsed : 0;
    const char *what = progress->what, *space = " ";
    if (strcmp(what, "bytes") == 0) { /* their texts have the unit */
        unit_bytes(count, (double)n_items);
        unit_bytes(rate, per_second);
        what = space = "";
    } else {
        unit_count(count, n_items);
        unit_count(rate, (uint64_t)(per_second + 0.5));
    }
    if (part > 0.001 && part <= 1 && elapsed > 0.5) {
        unit_clock(left, elapsed * (1 - part) / part);
        return snprintf(text, size, "%s%s%s, %s/s, %s left", count, space, what, rate, left);
    }
    return snprintf(text, size, "%s%s%s, %s/s", count, space, what, rate);
}

static void draw(struct progress *progress, double part, const char *text, int length)
{
    char bar[MAX_BAR + 1];
    int room = width() - 1 - (int)strlen(progress->doing) - length - 12;
    int cells = room < MAX_BAR ? room : MAX_BAR;
    if (cells < 8 || part < 0) {
        fprintf(stderr, "\r\033[K%.*s", width() - 1, text);
    } else {
        int full = (int)((part > 1 ? 1 : part) * cells);
        memset(bar, '#', (size_t)full);
        memset(bar + full, '.', (size_t)(cells - full));
        bar[cells] = 0;
        fprintf(stderr, "\r\033[K%s [%s] %3.0f%%  %s", progress->doing, bar,
                100 * (part > 1 ? 1 : part), text);
    }
    progress->drawn = 1;
}

void progress_update(struct progress *progress, double part, uint64_t n_items)
{
    double now = unit_now();
    char text[160];
    if (now - progress->last < (progress->terminal ? REDRAW_SECONDS : QUIET_SECONDS))
        return;
    progress->last = now;
    int length = facts(progress, part, n_items, text, sizeof text);
    if (progress->terminal)
        draw(progress, part, text, length);
    else
        fprintf(stderr, "penstock: %s: %s\n", progress->doing, text);
}

void progress_end(struct progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = 0;
}
