/* SPDX-License-Identifier: Apache-2.0 */
/* cuda/info: lists the GPUs, and measures plain copies. For reports, not for loading. */
#ifndef PSTK_CUDA_INFO_H
#define PSTK_CUDA_INFO_H

#include <penstock/penstock.h>

/* Return the number of devices, 0 when a driver finds none; ENOTSUP: there is no usable driver.
 * Touches no device. */
int pstk__cuda_count(void);
/* Fill in all but size, kind and index. Touches no device. */
void pstk__cuda_describe(int32_t index, struct pstk_device *to);
/* Measure copies on a thread of its own, so that the caller's thread gets no context there. */
int pstk__cuda_measure(int32_t index, uint64_t block_size, double seconds,
                       struct pstk_copy_rates *rates, struct pstk_error *err);

#endif
