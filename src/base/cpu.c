/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu.h"

#include <penstock/penstock.h>

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__) && defined(__CHAR_UNSIGNED__) && !defined(__clang__)
#error "gcc (12 at least) folds _mm256_blendv_epi8 wrongly with -funsigned-char: build without it"
#endif

#if defined(__x86_64__)

#include <cpuid.h>

/* Return whether the CPU has F16C, which not every compiler's __builtin_cpu_supports knows. It
 * needs AVX state; the callers have checked with avx2 that the operating system supports it. Where
 * the compiler's table has F16C, the table is 100 times as fast as cpuid, which a virtual machine
 * emulates. */
static int has_f16c(void)
{
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
    return __builtin_cpu_supports("f16c") != 0;
#else
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
#endif
}

static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("fma") && has_f16c();
}

static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
           __builtin_cpu_supports("avx512vnni");
}

uint32_t pstk__cpu_kernels(void)
{
    if (!has_avx2())
        return PSTK_KERNELS_C;
    return has_avx512() ? PSTK_KERNELS_AVX512 : PSTK_KERNELS_AVX2;
}

int pstk__cpu_has_crc32(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

/* Read the brand string: 48 bytes in three leaves. */
static int brand(char text[49])
{
    unsigned words[12];
    for (unsigned i = 0; i < 3; i++) {
        unsigned *w = words + 4 * i;
        if (!__get_cpuid(0x80000002u + i, &w[0], &w[1], &w[2], &w[3]))
            return 0;
    }
    memcpy(text, words, 48);
    text[48] = 0;
    return 1;
}

#elif defined(__aarch64__)

#include <sys/auxv.h>

uint32_t pstk__cpu_kernels(void)
{
#if defined(PSTK_NEON)
    return PSTK_KERNELS_NEON;
#else
    return PSTK_KERNELS_C;
#endif
}

int pstk__cpu_has_crc32(void)
{
    const unsigned long wanted = HWCAP_CRC32 | HWCAP_PMULL;
    return (getauxval(AT_HWCAP) & wanted) == wanted;
}

/* Write the numbers that /proc/cpuinfo prints: Linux knows these CPUs by numbers only. They come
 * from a register that Linux emulates. */
static int brand(char text[49])
{
    uint64_t midr;
    if (!(getauxval(AT_HWCAP) & HWCAP_CPUID))
        return 0;
    __asm__("mrs %0, midr_el1" : "=r"(midr));
    snprintf(text, 49, "ARM implementer 0x%02x part 0x%03x revision %u",
             (unsigned)(midr >> 24 & 0xFF), (unsigned)(midr >> 4 & 0xFFF), (unsigned)(midr & 15));
    return 1;
}

#else

uint32_t pstk__cpu_kernels(void)
{
    return PSTK_KERNELS_C;
}

int pstk__cpu_has_crc32(void)
{
    return 0;
}

static int brand(char text[49])
{
    (void)text;
    return 0;
}

#endif

void pstk__cpu_name(char *name, uint32_t size)
{
    char text[49];
    if (!brand(text))
        memcpy(text, "unknown", sizeof "unknown");
    const char *start = text + strspn(text, " ");
    size_t n = strlen(start);
    while (n && start[n - 1] == ' ')
        n--;
    if (size)
        snprintf(name, size, "%.*s", (int)n, start);
}
