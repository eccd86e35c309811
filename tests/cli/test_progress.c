/* SPDX-License-Identifier: Apache-2.0 */
/* The line of a command's progress. */
#include "cli/ui/progress.h"

#include <pty.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "support/test.h"

static void wait_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* The time left is that of the rate since the first update that knew how much there is: in one
 * second a tenth was done, so the half that is left takes about five. */
static void update_late(void)
{
    struct progress progress;
    progress_begin(&progress, "reading", "images");
    progress_update(&progress, -1, 0);
    wait_ms(200);
    progress_update(&progress, 0.4, 400);
    wait_ms(1000);
    progress_update(&progress, 0.5, 500);
}

TEST(the_time_left_counts_from_where_the_whole_is_known)
{
    char text[1024] = "";
    int terminal, child;
    const int errors = dup(STDERR_FILENO);
    CHECK_EQ(openpty(&terminal, &child, NULL, NULL, NULL), 0);
    setenv("TERM", "xterm", 1);
    dup2(child, STDERR_FILENO);
    update_late();
    dup2(errors, STDERR_FILENO);
    close(errors);
    close(child);
    size_t n = 0;
    for (ssize_t got; (got = read(terminal, text + n, sizeof text - 1 - n)) > 0;) /* EIO: the end */
        n += (size_t)got;
    close(terminal);
    const char *last = strrchr(text, '\r'), *left = last ? strstr(last, "/s, ") : NULL;
    CHECK(left && strstr(left, " left"));
    CHECK(strncmp(left, "/s, 0:00", 8) != 0); /* 0:05, more on a busy machine */
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(the_time_left_counts_from_where_the_whole_is_known),
    };
    return RUN_CASES(cases);
}
