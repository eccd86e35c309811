/* SPDX-License-Identifier: Apache-2.0 */
/* cuda/info: which GPUs there are, and what their copies do alone. For reports, not for loading. */
#ifndef PSTK_CUDA_INFO_H
#define PSTK_CUDA_INFO_H

#include <penstock/penstock.h>

/* Number of devices, 0 with a driver that finds none; ENOTSUP: no driver that can be used. Touches
 * no device. */
int pstk__cuda_count(void);
/* Fill in all but size, kind and index. Touches no device. */
void pstk__cuda_describe(int32_t index, struct pstk_device *to);
/* On a thread of its own, as the caller's shall not get a context there. */
int pstk__cuda_measure(int32_t index, uint64_t block_size, double seconds,
                       struct pstk_copy_rates *rates, struct pstk_error *err);

#endif
