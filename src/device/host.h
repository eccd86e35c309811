/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host: the device table's entry for the host. Batches are leased in the slots that workers filled.
 * Streams are ignored: the caller acts as the stream, and has already done its work.
 */
#ifndef PSTK_HOST_H
#define PSTK_HOST_H

struct pstk__device_ops;

extern const struct pstk__device_ops pstk__host_ops;

#endif
