/* SPDX-License-Identifier: Apache-2.0 */
/* cpu: which ISAs of the kernels this CPU runs. */
#ifndef PSTK_CPU_H
#define PSTK_CPU_H

#include <stdint.h>

/* The best enum pstk_kernels this CPU and operating system run. AVX512 means F, BW, DQ, VL, VBMI,
 * VBMI2 and VNNI together; AVX2 means AVX2, BMI2, FMA and F16C. */
uint32_t pstk__cpu_kernels(void);
/* 1 when the CRC32 instruction (SSE4.2) and PCLMULQDQ are there. */
int pstk__cpu_has_crc32(void);
/* Model name, as /proc/cpuinfo or cpuid gives it. */
void pstk__cpu_name(char *name, uint32_t size);

#endif
