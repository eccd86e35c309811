/* SPDX-License-Identifier: Apache-2.0 */
/* output: checks the path at which a command makes a data set, and refuses existing files. */
#ifndef PSTK_CLI_OUTPUT_H
#define PSTK_CLI_OUTPUT_H

#include <penstock/types.h>

/* Return 1 when there is a data set at `path`. */
int output_stands(const char *path);
/* Print why the library refused to make `path`, and name --overwrite when it would help. Returns
 * the exit status. */
int output_refuse(const struct pstk_error *err, const char *path);

#endif
