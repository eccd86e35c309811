/* SPDX-License-Identifier: Apache-2.0 */
/* machine: the number of threads of a command whose options give none. */
#ifndef CLI_MACHINE_H
#define CLI_MACHINE_H

#include <stdint.h>

/* Return the number of cores that this process may use, within its CPU quota, from 1 to `most`. */
uint32_t machine_n_cores(uint32_t most);

#endif
