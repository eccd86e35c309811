/* SPDX-License-Identifier: Apache-2.0 */
/* machine: the number of threads of a command whose options give none, and a page's facts about the
 * machine. */
#ifndef CLI_MACHINE_H
#define CLI_MACHINE_H

#include <stdint.h>

struct json_t;

/* Return the number of cores that this process may use, within its CPU quota, from 1 to `most`. */
uint32_t machine_n_cores(uint32_t most);
/* Return how many times `each` bytes fit into the memory that this process may use: 1 to n. */
uint32_t machine_n_within(uint32_t n, uint64_t each);
/* Return an object about this machine, owned: the keys of report_page.h. `path`: of the data; NULL:
 * none. NULL when no fact is available. */
struct json_t *machine_json(const char *path);
#define MACHINE_NODE 256 /* bytes: HOST_NAME_MAX is 64 */
/* Write the host's name, cut to the buffer; return `text`, or NULL when it is unknown. */
const char *machine_node(char text[MACHINE_NODE]);

#endif
