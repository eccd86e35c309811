/* SPDX-License-Identifier: Apache-2.0 */
/* explain: what an order means for one rank: what it reads, how often, and what it holds. */
#ifndef PSTK_CLI_EXPLAIN_H
#define PSTK_CLI_EXPLAIN_H

#include "option/pipeline.h"

/* Print the explanation of a pipeline's order, after pipeline_look. Returns an exit status. */
int explain_print(const struct pipeline *pipeline, int json);

#endif
