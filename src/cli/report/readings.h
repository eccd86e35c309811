/* SPDX-License-Identifier: Apache-2.0 */
/*
 * readings: the lines of JSON that a Monitor of the Python package leaves, as the document of a
 * page (report_page.h). A line is a reading (penstock.monitor.Reading.to_dict()), or a document
 * without series, which Monitor.report puts in front of them and which says more of the run.
 */
#ifndef PSTK_CLI_READINGS_H
#define PSTK_CLI_READINGS_H

#include <stdio.h>

struct json_t;

/* Read lines until the end of the file, which is called `name` in messages. Lines that are neither
 * are left out, and a message counts them. Memory has a bound, whatever the file's size. Returns
 * the document, owned; NULL with an exit status in *status after a message. */
struct json_t *readings_read(FILE *file, const char *name, int *status);

#endif
