/* SPDX-License-Identifier: Apache-2.0 */
/*
 * readings: converts the lines of JSON from a Monitor of the Python package into the document of a
 * page (report_page.h). A line is a reading (penstock.monitor.Reading.to_dict()), or a document
 * without series, which Monitor.report puts in front of the readings and which has more facts about
 * the run.
 */
#ifndef PSTK_CLI_READINGS_H
#define PSTK_CLI_READINGS_H

#include <stdio.h>

struct json_t;

/* Read lines until the end of the file, which is called `name` in messages. Other lines are left
 * out, and a message counts them. Memory is bounded for any size of the file. Returns the document,
 * owned; NULL with an exit status in *status after a message. */
struct json_t *readings_read(FILE *file, const char *name, int *status);

#endif
