/* SPDX-License-Identifier: Apache-2.0 */
/* cpu: finds the ISAs of the kernels that this CPU runs. */
#ifndef PSTK_CPU_H
#define PSTK_CPU_H

#include <stdint.h>

/* Return the best enum pstk_kernels that this CPU and operating system run. AVX512 means F, BW, DQ,
 * VL, VBMI, VBMI2 and VNNI together; AVX2 means AVX2, BMI2, FMA and F16C. Every aarch64 CPU has
 * NEON; a build with -Dneon=disabled has no kernels for it. */
uint32_t pstk__cpu_kernels(void);
/* Return 1 when the CPU has the instructions of crc32c.c: CRC32 of SSE4.2 and PCLMULQDQ, or CRC32C
 * and PMULL of ARMv8. */
int pstk__cpu_has_crc32(void);
/* Write the model name, as cpuid gives it; for an ARM CPU the numbers of its maker and model. */
void pstk__cpu_name(char *name, uint32_t size);

#endif
