/* SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include <penstock/penstock.h>

#include <stddef.h>
#include <unistd.h>

uint32_t machine_n_cores(uint32_t most)
{
    /* A shorter struct ends before n_cuda_devices, so the library does not start the CUDA
     * driver. */
    struct pstk_machine machine = {.size = offsetof(struct pstk_machine, n_cuda_devices)};
    if (pstk_get_machine(NULL, &machine, NULL) == 0 && machine.n_usable > 0)
        return machine.n_usable < most ? machine.n_usable : most;
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > (long)most ? most : (uint32_t)n;
}
