/* SPDX-License-Identifier: Apache-2.0 */
/* machine: how many threads a command uses where no option says. */
#ifndef CLI_MACHINE_H
#define CLI_MACHINE_H

#include <stdint.h>

/* Cores that this process may use, quota included; 1 to most. */
uint32_t machine_n_cores(uint32_t most);

#endif
