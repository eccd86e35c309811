# SPDX-License-Identifier: Apache-2.0
"""Functions of bench_python.py that need NumPy alone: processes that run them need not import PyTorch."""
import numpy


def nothing(array, rng):
    return array


def brighten(array, rng):
    return numpy.minimum(array * numpy.float32(rng.uniform(0.6, 1.4)), 255).astype("uint8")


def brighten_all(arrays, rng):
    """Scale each row by its own factor."""
    factors = rng.uniform(0.6, 1.4, (len(arrays), 1, 1, 1)).astype("float32")
    return numpy.minimum(arrays * factors, 255).astype("uint8")
