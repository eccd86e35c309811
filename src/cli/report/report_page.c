/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report_page.h"

#include <stdio.h>
#include <time.h>

#include <penstock/types.h>

#include "report/report_body.h"
#include "report_template.h"
#include "ui/html.h"
#include "ui/json.h"
#include "ui/message.h"
#include "ui/output_file.h"

struct json_t *report_page_document(const char *producer)
{
    struct json_t *document = json_make_object();
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    json_put_text(document, "schema", REPORT_SCHEMA);
    json_put_count(document, "version", REPORT_VERSION);
    json_put_text(document, "penstock", pstk_version());
    json_put_text(document, "producer", producer);
    json_put_count(document, "made", (uint64_t)now.tv_sec);
    return document;
}

int report_page_check(const char *what)
{
    if (report_template_size(REPORT_TEMPLATE_HEAD) > 0)
        return 0;
    return message_usage("%s: this build has no Chart.js, which draws the page; install Debian's "
                         "libjs-chart.js, or set the build option chart_js, and build again",
                         what);
}

static void put_piece(FILE *file, enum report_template_piece piece)
{
    fwrite(report_template[piece], 1, report_template_size(piece), file);
}

int report_page_write(struct json_t *takes, const char *path)
{
    struct output_file file;
    const char *name = json_text(takes, "name");
    int status = output_file_open(&file, path);
    if (status == 0) {
        put_piece(file.stream, REPORT_TEMPLATE_HEAD);
        html_text(file.stream, name ? name : "penstock");
        put_piece(file.stream, REPORT_TEMPLATE_STYLE);
        report_body(file.stream, takes);
        put_piece(file.stream, REPORT_TEMPLATE_DATA);
        json_write_html(file.stream, takes);
        put_piece(file.stream, REPORT_TEMPLATE_SCRIPT);
        status = output_file_close(&file, 0);
    }
    json_drop(takes);
    return status;
}
