/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter: the filters of a resize, as in Pillow's Resample.c. weights_c.c and weights_avx2.c
 * compute their values in the same steps. No step calls the C library's sin, whose last bit differs
 * between machines. Pure.
 */
#ifndef PSTK_PIXELS_FILTER_H
#define PSTK_PIXELS_FILTER_H

#include "base/random.h"

#include <penstock/penstock.h>

#define PSTK__WEIGHT_BITS 22 /* bits of the fraction of a weight: Pillow's PRECISION_BITS */

/* A filter over one axis; names as in Pillow's precompute_coeffs. */
struct pstk__filter {
    uint32_t kind;      /* enum pstk_filter; neither DEFAULT nor NEAREST */
    double scale;       /* inputs per output */
    double support;     /* reach of the filter on each side, in inputs; >= 1/2 */
    double filterscale; /* 1 / max(1, scale): Pillow multiplies by it */
    uint32_t in;        /* inputs */
    uint32_t n_rows;    /* rows of weights to fill; no output has more taps */
};

/* Return the filter to use: BILINEAR for DEFAULT. Not for RANDOM. */
uint32_t pstk__filter_kind(uint32_t filter);
/* Return the filters that may be used, bits 1 << enum pstk_filter: two for RANDOM. */
uint32_t pstk__filter_set(uint32_t filter);
/* Return the filter for one sample: for RANDOM, one of its set, drawn from r. */
uint32_t pstk__filter_draw(uint32_t filter, struct pstk__random *r);
/* Return the length of a filter, twice its reach, at scale 1, in inputs. 1 for NEAREST. */
uint32_t pstk__filter_length(uint32_t kind);
/* Return 1 when a filter has negative weights. */
uint32_t pstk__filter_is_signed(uint32_t kind);

#define PSTK__PI 0x1.921fb54442d18p+1

/* The terms of sin(pi x) = sum of term[k] * x^(2k + 1). For |x| <= 1/2 the sum of the missing terms
 * is below 2^-59. */
#define PSTK__N_SIN_TERMS 11u
extern const double pstk__sin_terms[PSTK__N_SIN_TERMS];

/* Adding this to a double of at most 2^50 rounds it to an integer, whose lowest bit becomes the
 * lowest bit of the result. */
#define PSTK__ROUNDER 0x1.8p52

#endif
