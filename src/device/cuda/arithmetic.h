/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/arithmetic: the work of one thread of a launch, in a text that C11 and CUDA C++ both
 * compile. So the tests can run on the host, thread by thread, exactly the indices and vectors that
 * the device runs. Callers pass `kind` and dtypes as constants, so that each kernel keeps only its
 * own code.
 *
 * Words of several elements hold the first in the lowest bits: host and device are little-endian.
 */
#ifndef PSTK_CUDA_ARITHMETIC_H
#define PSTK_CUDA_ARITHMETIC_H

#include "device/cuda/argument.h"

#include <math.h>
#include <penstock/types.h>
#include <string.h>

#ifdef __CUDACC__
#define PSTK__BOTH static __host__ __device__ __forceinline__
#else
#include "base/cast.h"
#define PSTK__BOTH static inline __attribute__((always_inline))
#endif

#define PSTK__CUDA_STORE 16u /* bytes: the widest store of a thread */

/* Memory is read and written in words whatever the type of its elements. */
typedef uint16_t __attribute__((may_alias)) pstk__memory16;
typedef uint32_t __attribute__((may_alias)) pstk__memory32;
typedef uint64_t __attribute__((may_alias)) pstk__memory64;
#ifdef __CUDACC_RTC__ /* it takes may_alias for no struct; a kernel never reads what it stores so  \
                       */
#define PSTK__QUAD __attribute__((aligned(16)))
#else
#define PSTK__QUAD __attribute__((aligned(16), may_alias))
#endif
struct pstk__quad {
    uint32_t word[4];
} PSTK__QUAD;

/* ---- elements ------------------------------------------------------------------------------- */

PSTK__BOTH uint32_t pstk__size_of(uint32_t dtype)
{
    switch (dtype) {
    case PSTK_U8:
    case PSTK_I8:
        return 1;
    case PSTK_U16:
    case PSTK_I16:
    case PSTK_F16:
    case PSTK_BF16:
        return 2;
    case PSTK_U32:
    case PSTK_I32:
    case PSTK_F32:
        return 4;
    default:
        return 8;
    }
}

/* Read `size` bytes, 1, 2, 4 or 8, aligned to their size. */
PSTK__BOTH uint64_t pstk__memory_read(const void *in, uint32_t size)
{
    switch (size) {
    case 1:
        return *(const uint8_t *)in;
    case 2:
        return *(const pstk__memory16 *)in;
    case 4:
        return *(const pstk__memory32 *)in;
    default:
        return *(const pstk__memory64 *)in;
    }
}

PSTK__BOTH void pstk__memory_write(void *out, uint64_t bits, uint32_t size)
{
    switch (size) {
    case 1:
        *(uint8_t *)out = (uint8_t)bits;
        break;
    case 2:
        *(pstk__memory16 *)out = (uint16_t)bits;
        break;
    case 4:
        *(pstk__memory32 *)out = (uint32_t)bits;
        break;
    default:
        *(pstk__memory64 *)out = bits;
        break;
    }
}

PSTK__BOTH uint32_t pstk__bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

PSTK__BOTH float pstk__float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Round two finite floats to f16 or bf16, to nearest, ties to even; `low` goes into the lower half.
 */
PSTK__BOTH uint32_t pstk__rounded(float low, float high, uint32_t dtype)
{
#if !defined(__CUDA_ARCH__) && !defined(__CUDACC__)
    return dtype == PSTK_F16 ? pstk__f16_from_f32(low) | (uint32_t)pstk__f16_from_f32(high) << 16
                             : pstk__bf16_from_f32(low) | (uint32_t)pstk__bf16_from_f32(high) << 16;
#elif !defined(__CUDA_ARCH__)
    (void)low, (void)high, (void)dtype; /* nvcc's pass for the host calls no thread */
    return 0;
#elif __CUDA_ARCH__ >= 800
    uint32_t both;
    if (dtype == PSTK_F16)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
#else /* Turing: halves one by one, bf16 by adding half of its last place, less 1 for even */
    uint16_t a, bytes;
    if (dtype == PSTK_F16) {
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(a) : "f"(low));
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bytes) : "f"(high));
        return a | (uint32_t)bytes << 16;
    }
    const uint32_t x = pstk__bits_of(low), y = pstk__bits_of(high);
    return (x + 0x7fffu + (x >> 16 & 1)) >> 16 | ((y + 0x7fffu + (y >> 16 & 1)) & 0xffff0000u);
#endif
}

/* ---- pixels --------------------------------------------------------------------------------- */

/* The constants for which a kernel is compiled. */
struct pstk__pixels_kind {
    uint32_t channels;
    uint32_t dtype;  /* PSTK_F16, BF16, F32; a table of 16-bit elements counts as PSTK_F16 */
    uint32_t layout; /* enum pstk_layout; PSTK_NCHW for one channel */
    uint32_t exact;  /* 1: compute by scale and offset, 0: look up in the table */
    uint32_t run;    /* adjacent elements that a thread stores: 1, or as many as 16 bytes hold */
};

PSTK__BOTH struct pstk__pixels_kind pstk__pixels_kind(const struct pstk__cuda_pixels *pixels)
{
    const uint32_t full = PSTK__CUDA_STORE / pstk__size_of(pixels->dtype);
    struct pstk__pixels_kind kind;
    kind.exact = pixels->exact && pixels->dtype != PSTK_F32;
    kind.dtype = pixels->dtype == PSTK_BF16 && !kind.exact ? (uint32_t)PSTK_F16 : pixels->dtype;
    kind.channels = pixels->channels;
    kind.layout = pixels->channels == 1 ? (uint32_t)PSTK_NCHW : pixels->layout;
    /* When a row is whole runs, all runs begin at multiples of 16 bytes. */
    kind.run = pixels->width % full == 0 ? full : 1;
    return kind;
}

/* Return the threads of an image: each stores a run of its pixels in every plane, or a run of
 * elements. */
PSTK__BOTH uint64_t pstk__pixels_n_units(const struct pstk__cuda_pixels *pixels,
                                         struct pstk__pixels_kind kind)
{
    const uint64_t n_pixels = (uint64_t)pixels->height * pixels->width;
    return (kind.layout == PSTK_NCHW ? n_pixels : kind.channels * n_pixels) / kind.run;
}

/* The conversion of a channel's bytes to elements. */
struct pstk__channel {
    float scale, offset;
    const uint8_t *table; /* 256 elements */
};

/* Return all[cast], or all[0] when n is 1, by comparisons instead of an index: lanes of a warp that
 * index different constants wait for one another. */
PSTK__BOTH float pstk__chosen(const float all[4], uint32_t n, uint32_t cast)
{
    if (n == 1 || cast == 0)
        return all[0];
    return cast == 1 ? all[1] : n == 3 || cast == 2 ? all[2] : all[3];
}

PSTK__BOTH struct pstk__channel pstk__channel(const struct pstk__cuda_pixels *pixels,
                                              const void *table, struct pstk__pixels_kind kind,
                                              uint32_t cast)
{
    struct pstk__channel channel;
    channel.scale = kind.exact ? pstk__chosen(pixels->scale, kind.channels, cast) : 0;
    channel.offset = kind.exact ? pstk__chosen(pixels->offset, kind.channels, cast) : 0;
    channel.table = (const uint8_t *)table + 256 * pstk__size_of(kind.dtype) * cast;
    return channel;
}

/* Return a word of out: the 16-bit elements of bytes a and b, or the 32-bit one of a. */
PSTK__BOTH uint32_t pstk__word(struct pstk__pixels_kind kind, struct pstk__channel of_a, uint32_t a,
                               struct pstk__channel of_b, uint32_t bytes)
{
    if (kind.exact)
        return pstk__rounded(fmaf(of_a.scale, (float)a, of_a.offset),
                             fmaf(of_b.scale, (float)bytes, of_b.offset), kind.dtype);
    if (kind.dtype == PSTK_F32)
        return (uint32_t)pstk__memory_read(of_a.table + 4 * a, 4);
    return (uint32_t)(pstk__memory_read(of_a.table + 2 * a, 2) |
                      pstk__memory_read(of_b.table + 2 * bytes, 2) << 16);
}

/* Up to 32 bytes of the input, in registers, because the indices are constants once loops are
 * unrolled. */
#define PSTK__BYTES_WORDS 8u
struct pstk__bytes {
    uint32_t word[PSTK__BYTES_WORDS];
};

PSTK__BOTH uint32_t pstk__byte(const struct pstk__bytes *bytes, uint32_t i)
{
    return bytes->word[i / 4] >> 8 * (i % 4) & 255;
}

/* Load `size` bytes: 8, 4 or 1, or, for a run in planes, that number times the channels. `in` is
 * aligned to the largest power of two that divides size, or to 8. */
PSTK__BOTH struct pstk__bytes pstk__bytes(const uint8_t *in, uint32_t size)
{
    struct pstk__bytes bytes = {{0, 0, 0, 0, 0, 0, 0, 0}};
    if (size % 8 == 0) {
        for (uint32_t i = 0; i < size / 8; i++) {
            const uint64_t v = pstk__memory_read(in + 8 * i, 8);
            bytes.word[2 * i] = (uint32_t)v;
            bytes.word[2 * i + 1] = (uint32_t)(v >> 32);
        }
    } else if (size % 4 == 0) {
        for (uint32_t i = 0; i < size / 4; i++)
            bytes.word[i] = (uint32_t)pstk__memory_read(in + 4 * i, 4);
    } else {
        for (uint32_t i = 0; i < size; i++)
            bytes.word[0] |= (uint32_t)in[i] << 8 * i;
    }
    return bytes;
}

/* Return the elements of a quad in reverse order. */
PSTK__BOTH struct pstk__quad pstk__reversed(struct pstk__quad quad, uint32_t dtype)
{
    struct pstk__quad r;
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t w = quad.word[3 - i];
        r.word[i] = pstk__size_of(dtype) == 2 ? w >> 16 | w << 16 : w;
    }
    return r;
}

PSTK__BOTH void pstk__store_run(void *out, struct pstk__quad quad, struct pstk__pixels_kind kind)
{
    if (kind.run == 1)
        pstk__memory_write(out, quad.word[0], pstk__size_of(kind.dtype));
    else
        *(struct pstk__quad *)out = quad;
}

/* NCHW: store a run of pixels of one image in each of its planes. When mirrored, the run comes from
 * the mirrored position of its row, also a run, and is reversed in registers. */
PSTK__BOTH void pstk__pixels_planes(const struct pstk__cuda_pixels *pixels, const void *table,
                                    struct pstk__pixels_kind kind, uint32_t image, uint64_t unit)
{
    const uint64_t plane = (uint64_t)pixels->height * pixels->width;
    const uint32_t size = pstk__size_of(kind.dtype), n = kind.channels;
    const uint32_t flip = pixels->flips && pixels->flips[image] != 0;
    const uint32_t per_word = size == 2 && kind.run > 1 ? 2 : 1, n_words = kind.run / per_word;
    const uint32_t row_units = pixels->width / kind.run;
    const uint64_t from = flip ? unit + row_units - 1 - 2 * (unit % row_units) : unit;
    const uint8_t *in = pixels->in + n * (plane * image + kind.run * from);
    uint8_t *out = (uint8_t *)pixels->out + (n * plane * image + kind.run * unit) * size;
    const struct pstk__bytes bytes = pstk__bytes(in, n * kind.run);
    for (uint32_t cast = 0; cast < n; cast++) {
        const struct pstk__channel channel = pstk__channel(pixels, table, kind, cast);
        struct pstk__quad quad = {{0, 0, 0, 0}};
        for (uint32_t i = 0; i < n_words; i++) {
            const uint32_t first = per_word * i, last = first + per_word - 1;
            quad.word[i] = pstk__word(kind, channel, pstk__byte(&bytes, n * first + cast), channel,
                                      pstk__byte(&bytes, n * last + cast));
        }
        if (flip && kind.run > 1)
            quad = pstk__reversed(quad, kind.dtype);
        pstk__store_run(out + plane * cast * size, quad, kind);
    }
}

/*
 * NHWC: store a run of elements of one image, which may begin with any channel. When mirrored,
 * element e of a row, channel c, comes from byte channels * (width - 1) - e + 2 * c of the row;
 * these bytes are loaded one by one.
 */
PSTK__BOTH void pstk__pixels_interleaved(const struct pstk__cuda_pixels *pixels, const void *table,
                                         struct pstk__pixels_kind kind, uint32_t image,
                                         uint64_t unit)
{
    const uint32_t n = kind.channels;
    const uint64_t first = kind.run * unit,
                   before = n * (uint64_t)pixels->height * pixels->width * image;
    const uint32_t size = pstk__size_of(kind.dtype);
    const uint32_t per_word = size == 2 && kind.run > 1 ? 2 : 1, n_words = kind.run / per_word;
    const uint8_t *in = pixels->in + before;
    const uint32_t phase = (uint32_t)(first % n);
    uint32_t cast[4];
    struct pstk__channel channel[4];
    for (uint32_t k = 0; k < n; k++) {
        cast[k] = phase + k < n ? phase + k : phase + k - n;
        channel[k] = pstk__channel(pixels, table, kind, cast[k]);
    }
    struct pstk__bytes bytes;
    if (!pixels->flips || pixels->flips[image] == 0) {
        bytes = pstk__bytes(in + first, kind.run);
    } else {
        const uint64_t mirror =
            first - 2 * (first % (n * (uint64_t)pixels->width)) +
            n * ((uint64_t)pixels->width - 1); /* modulo 2^64 until c is added */
        for (uint32_t i = 0; i < PSTK__BYTES_WORDS; i++)
            bytes.word[i] = 0;
        for (uint32_t i = 0; i < kind.run; i++)
            bytes.word[i / 4] |= (uint32_t)in[mirror - i + 2 * cast[i % n]] << 8 * (i % 4);
    }
    struct pstk__quad quad = {{0, 0, 0, 0}};
    for (uint32_t i = 0; i < n_words; i++) {
        const uint32_t a = per_word * i, z = a + per_word - 1;
        quad.word[i] = pstk__word(kind, channel[a % n], pstk__byte(&bytes, a), channel[z % n],
                                  pstk__byte(&bytes, z));
    }
    pstk__store_run((uint8_t *)pixels->out + (before + first) * size, quad, kind);
}

PSTK__BOTH void pstk__pixels_zero(const struct pstk__cuda_pixels *pixels,
                                  struct pstk__pixels_kind kind, uint32_t image, uint64_t unit)
{
    const struct pstk__quad zero = {{0, 0, 0, 0}};
    const uint64_t plane = (uint64_t)pixels->height * pixels->width;
    const uint32_t size = pstk__size_of(kind.dtype), n = kind.channels;
    uint8_t *out = (uint8_t *)pixels->out + (n * plane * image + kind.run * unit) * size;
    for (uint32_t cast = 0; cast < (kind.layout == PSTK_NCHW ? n : 1); cast++)
        pstk__store_run(out + plane * cast * size, zero, kind);
}

/* Do the work of the thread of one unit of an image; `table` is p->table or a copy of it, aligned
 * to its elements. */
PSTK__BOTH void pstk__pixels_thread(const struct pstk__cuda_pixels *pixels, const void *table,
                                    struct pstk__pixels_kind kind, uint32_t image, uint64_t unit)
{
    if (image >= pixels->n_valid)
        pstk__pixels_zero(pixels, kind, image, unit);
    else if (kind.layout == PSTK_NCHW)
        pstk__pixels_planes(pixels, table, kind, image, unit);
    else
        pstk__pixels_interleaved(pixels, table, kind, image, unit);
}

/* ---- casts ---------------------------------------------------------------------------------- */

/* Convert by integers alone, because a GPU's conversions and a CPU's differ for a NaN. Every NaN
 * becomes quiet here. */
PSTK__BOTH uint32_t pstk__f32_bits(uint32_t raw, uint32_t from)
{
    uint32_t bits = from == PSTK_BF16 ? raw << 16 : raw;
    if (from == PSTK_F16) {
        const uint32_t exponent = raw >> 10 & 31, mantissa = raw & 1023;
        const uint32_t subnormal =
            pstk__bits_of((float)mantissa * 5.9604644775390625e-8f); /* 2^-24 */
        const uint32_t rest = mantissa << 13;
        bits = exponent == 31 ? 0x7f800000u | rest
               : exponent     ? (exponent + 112) << 23 | rest
                              : subnormal;
        bits |= (raw & 0x8000u) << 16;
    }
    return (bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u : bits;
}

PSTK__BOTH uint64_t pstk__f64_bits(uint32_t single)
{
    if ((single & 0x7fffffffu) > 0x7f800000u)
        return (uint64_t)(single & 0x80000000u) << 32 | 0x7ff0000000000000u |
               (uint64_t)(single & 0x7fffffu) << 29;
    const double value = pstk__float_of(single);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Convert an integer that the float dtype `to` holds exactly. */
PSTK__BOTH uint64_t pstk__bits_of_integer(int64_t v, uint32_t to)
{
    const double value = (double)v;
    uint64_t bits;
    if (to == PSTK_F32)
        return pstk__bits_of((float)(int32_t)v);
    if (to != PSTK_F64)
        return pstk__rounded((float)(int32_t)v, 0, to);
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Convert one element, in the lowest bits of `raw` and of the result; pstk__cast_fits(from, to). */
PSTK__BOTH uint64_t pstk__cast_bits(uint64_t raw, uint32_t to, uint32_t from)
{
    int64_t v = (int64_t)raw;
    switch (from) {
    case PSTK_F16:
    case PSTK_BF16:
    case PSTK_F32: {
        const uint32_t single = pstk__f32_bits((uint32_t)raw, from);
        return to == PSTK_F64 ? pstk__f64_bits(single) : single;
    }
    case PSTK_I8:
        v = (int8_t)raw;
        break;
    case PSTK_I16:
        v = (int16_t)raw;
        break;
    case PSTK_I32:
        v = (int32_t)raw;
        break;
    default:
        break;
    }
    return to >= PSTK_F16 ? pstk__bits_of_integer(v, to) : (uint64_t)v;
}

/* Return the elements that a thread converts: as many as 16 bytes of out hold for casts of tokens
 * and labels, which have kernels of their own, else 1. */
PSTK__BOTH uint32_t pstk__cast_run(uint32_t to, uint32_t from)
{
    const uint32_t wide =
        to == PSTK_I64 && (from == PSTK_U8 || from == PSTK_U16 || from == PSTK_I32);
    return wide ? 2 : to == PSTK_I32 && from == PSTK_U16 ? 4 : 1;
}

/* Do the work of one thread: convert elements [unit * run, unit * run + run) that exist. */
PSTK__BOTH void pstk__cast_thread(const struct pstk__cuda_cast *cast, uint32_t to, uint32_t from,
                                  uint32_t run, uint64_t unit)
{
    const uint32_t to_size = pstk__size_of(to), from_size = pstk__size_of(from);
    const uint64_t first = unit * run;
    const uint8_t *in = (const uint8_t *)cast->in + first * from_size;
    uint8_t *out = (uint8_t *)cast->out + first * to_size;
    if (run == 1 || cast->n - first < run) {
        for (uint64_t i = 0; i < run && first + i < cast->n; i++)
            pstk__memory_write(
                out + i * to_size,
                pstk__cast_bits(pstk__memory_read(in + i * from_size, from_size), to, from),
                to_size);
        return;
    }
    const uint64_t raw = pstk__memory_read(in, run * from_size),
                   mask = ((uint64_t)1 << 8 * from_size) - 1;
    struct pstk__quad quad;
    for (uint32_t i = 0; i < run; i++) {
        const uint64_t v = pstk__cast_bits(raw >> 8 * from_size * i & mask, to, from);
        if (run == 4) {
            quad.word[i] = (uint32_t)v;
        } else {
            quad.word[2 * i] = (uint32_t)v;
            quad.word[2 * i + 1] = (uint32_t)(v >> 32);
        }
    }
    *(struct pstk__quad *)out = quad;
}

#endif
