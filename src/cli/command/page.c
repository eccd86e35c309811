/* SPDX-License-Identifier: Apache-2.0 */
/* page: draws the recording of a Monitor of the Python package as one HTML page. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "option/options.h"
#include "report/readings.h"
#include "report/report_page.h"
#include "ui/interrupt.h"
#include "ui/message.h"
#include "ui/status.h"

#define DEFAULT_OUTPUT "penstock-page.html" /* our own name: replacing the file loses nothing */

static const struct option_row table[] = {
    {.name = "output",
     .code = 'o',
     .value = "FILE",
     .initial = DEFAULT_OUTPUT,
     .text = "HTML file to write, - for standard output; an existing file is replaced when the new "
             "one is complete"},
    OPTION_END};

static int draw(FILE *file, const char *name, const char *output)
{
    int status;
    struct json_t *document = readings_read(file, name, &status);
    return document ? report_page_write(document, output) : status;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options = {.command = self, .argc = argc, .argv = argv};
    const char *output = DEFAULT_OUTPUT;
    int c;
    while ((c = options_next(&options)) > 0)
        output = optarg;
    if (c < 0 || options_operands(&options, 1, 1, "READINGS") < 0)
        return options.status;
    int status = report_page_check("page");
    if (status)
        return status;
    const char *path = options_operand(&options, 0);
    interrupt_install();
    if (strcmp(path, "-") == 0)
        return message_finish(draw(stdin, "standard input", output));
    FILE *file = fopen(path, "re");
    if (!file) {
        const int native = errno;
        message_say("cannot read %s: %s", path, strerror(native));
        return status_of_path(native);
    }
    status = draw(file, path, output);
    fclose(file);
    return message_finish(status);
}

const struct command command_page = {
    .name = "page",
    .summary = "draw what a Monitor recorded, as an HTML page",
    .operands = "READINGS",
    .text =
        "Draw a run that penstock.Monitor of the Python package watched, as one HTML page that "
        "needs no other file and no network. READINGS is a file of penstock.monitor.JSONLines, "
        "or - for standard input. The page shows throughput and the share of time that the loop "
        "waited for data, for each rank. Monitor.report writes a page that shows more: where "
        "threads spent their time, how long waits took, and what a change would bring. `penstock "
        "bench --report` draws a benchmark in the same way.\n",
    .options = table,
    .examples = "penstock page run.jsonl\n"
                "penstock page run.jsonl -o run.html\n",
    .exit_status = "0; 1 the page could not be written; 2 wrong usage or path, no readings",
    .run = run,
};
