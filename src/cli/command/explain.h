/* SPDX-License-Identifier: Apache-2.0 */
/* explain: prints the effect of an order on one rank: its reads, their repeats, and memory. */
#ifndef PSTK_CLI_EXPLAIN_H
#define PSTK_CLI_EXPLAIN_H

#include "option/pipeline.h"

/* Print the explanation of a pipeline's order, after pipeline_look. Returns an exit status. */
int explain_print(const struct pipeline *pipeline, int json);

#endif
