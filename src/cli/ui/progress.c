/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ui/unit.h"

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
    progress->counting = 0;
    progress->start = unit_now();
    progress->last = progress->start;
}

/* Store the progress. Rates cover only the time since this process first checked and knew the whole
 * amount. */
static void count(struct progress *progress, double now, double part, uint64_t n_items)
{
    if (!progress->counting || (progress->first_part < 0 && part >= 0)) {
        progress->start = now;
        progress->first_part = part;
        progress->first_items = n_items;
    }
    if (!progress->counting || n_items != progress->last_items)
        progress->moved = now;
    progress->counting = 1;
    progress->last_items = n_items;
}

/* Write the line without its bar. Returns its length. */
static int facts(const struct progress *progress, double part, uint64_t n_items, char *text,
                 size_t size)
{
    char done[UNIT_SIZE], rate[UNIT_SIZE], left[UNIT_SIZE];
    const double elapsed = progress->last - progress->start;
    const double still = progress->last - progress->moved;
    const uint64_t n = n_items > progress->first_items ? n_items - progress->first_items : 0;
    const double per_second = elapsed > 0 ? (double)n / elapsed : 0;
    const double gain = part - progress->first_part;
    const char *what = progress->what, *space = " ";
    if (strcmp(what, "bytes") == 0) { /* bytes have their unit in the text */
        unit_bytes(done, (double)n_items);
        unit_bytes(rate, per_second);
        what = space = "";
    } else {
        unit_count(done, n_items);
        unit_count(rate, (uint64_t)(per_second + 0.5));
    }
    if (still >= QUIET_SECONDS) { /* the time left would only grow */
        unit_clock(left, still);
        return snprintf(text, size, "%s%s%s, no more for %s", done, space, what, left);
    }
    if (gain > 0.001 && part <= 1 && elapsed > 0.5) {
        unit_clock(left, elapsed * (1 - part) / gain);
        return snprintf(text, size, "%s%s%s, %s/s, %s left", done, space, what, rate, left);
    }
    return snprintf(text, size, "%s%s%s, %s/s", done, space, what, rate);
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
    count(progress, now, part, n_items);
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
