/* SPDX-License-Identifier: Apache-2.0 */
/* report_body: the text and tables of a report's page, complete without its charts. */
#ifndef PSTK_CLI_REPORT_BODY_H
#define PSTK_CLI_REPORT_BODY_H

#include <stdio.h>

struct json_t;

/* Write the body for a document (report_page.h). An unknown value is a dash, and a section without
 * any value says so. */
void report_body(FILE *file, const struct json_t *document);

#endif
