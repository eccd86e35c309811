/* SPDX-License-Identifier: Apache-2.0 */
/* cuda/table: the device table's CUDA entry. In a build without CUDA it reports that when it is
 * asked. */
#ifndef PSTK_CUDA_TABLE_H
#define PSTK_CUDA_TABLE_H

struct pstk__device_ops;

extern const struct pstk__device_ops pstk__cuda_ops;

#endif
