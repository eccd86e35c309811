# SPDX-License-Identifier: Apache-2.0
"""Functions and classes that test_processes.py gives to penstock.python, and that processes import by name."""
import ctypes
import functools
import os
import signal
import sys
import time

import numpy


def same(array, rng):
    return array


def noisy(array, rng):
    return array ^ rng.integers(0, 256, array.shape, dtype=array.dtype)


def doubled(array, rng):
    array *= 2  # in place
    return array


def stretched(array, rng, height=1):
    """Return the mean colour, on each of some rows."""
    mean = array.reshape(-1, 3).mean(axis=0)
    return numpy.tile(mean, (height, 1)).astype("float32")


def shape_of(array, rng):
    return numpy.array(array.shape, "int64")


def length(array, rng):
    return numpy.array(len(array), "int64")


def first_draws(array, rng):
    return rng.integers(0, 2**63, 4, dtype="uint64")


def pid(array, rng):
    return numpy.array(os.getpid())


class Adds:
    def __init__(self, n):
        self.n = n

    def __call__(self, array, rng):
        return array + numpy.uint8(self.n)


class Unpicklable:
    def __reduce__(self):
        raise RuntimeError("not me")

    def __call__(self, array, rng):
        return array


class FailsInChild:
    """Can be pickled, and not loaded."""

    def __reduce__(self):
        return int, ("no number",)

    def __call__(self, array, rng):
        return array


class EndsInChild:
    def __reduce__(self):
        return os._exit, (7,)

    def __call__(self, array, rng):
        return array


class Hangs:
    """Its import never ends. The first part of it is a module that catches what it can."""

    def __init__(self, in_c=False):
        self.in_c = in_c

    def __reduce__(self):
        return hang, (self.in_c,)

    def __call__(self, array, rng):
        return array


def hang(in_c):
    if in_c:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    while True:
        try:
            time.sleep(1000)
        except Exception:
            pass


class Holds:
    """An object with a method."""

    def __init__(self, n):
        self.n = n

    def add(self, array, rng):
        return array + numpy.uint8(self.n)

    @staticmethod
    def keep(array, rng):
        return array

    @classmethod
    def double(cls, array, rng):
        return array * 2


def decorated(function):
    def inner(array, rng):
        return function(array, rng)
    return functools.wraps(function)(inner)


@decorated
def wrapped(array, rng):
    return array + 1


def plain(array, rng):
    return array


hidden = decorated(plain)  # has the name of another function


def is_chosen(array):
    return int(array.reshape(-1)[0]) == 5


def raises(array, rng):
    if is_chosen(array):
        raise KeyError("number five")
    return array


def other_shape(array, rng):
    return array[:, :1] if is_chosen(array) else array


def other_dtype(array, rng):
    return array.astype("float64") if is_chosen(array) else array


def masks_one(array, rng):
    """Return a masked array: for one sample it masks one value, for the others none."""
    return numpy.ma.array(array, mask=numpy.arange(array.size).reshape(array.shape) == (7 if is_chosen(array) else -1))


def no_array(array, rng):
    return array.tolist() if is_chosen(array) else array


def dies(array, rng):
    if is_chosen(array):
        os.kill(os.getpid(), signal.SIGSEGV)
    return array


def ends(array, rng):
    if is_chosen(array):
        sys.exit(3)
    return array


def writes_past(array, rng):
    if is_chosen(array):
        ctypes.memset(array.ctypes.data, 1, array.nbytes + 64)
    return array


def writes_before_row(array, rng):
    if is_chosen(array):
        ctypes.memset(array.ctypes.data - 100_000, 1, 1)  # between the pages, of 64 KiB here, and the mapping's begin
    return array


def hangs(array, rng):
    if is_chosen(array):
        time.sleep(1000)
    return array


def always_hangs(array, rng):
    while True:
        pass


def prints(array, rng):
    print("made by a process")
    return array


# ---- of whole batches ------------------------------------------------------------------------------------------------


def mirrored(arrays, rng):
    return arrays[:, :, ::-1].copy()


def centred(arrays, rng):
    """Return each row less the mean of its batch: all rows of a batch are needed for it."""
    return (arrays - arrays.mean(axis=0)).astype("float32")


def sizes(arrays, rng):
    return numpy.tile(numpy.array(arrays.shape, "int64"), (len(arrays), 1))


def batch_draws(arrays, rng):
    return rng.integers(0, 2**63, (len(arrays), 4), dtype="uint64")


def shuffled(arrays, rng):
    return arrays[rng.permutation(len(arrays))]


def has_chosen(arrays):
    return bool((arrays[:, 0, 0, 0] == 5).any())


def batch_raises(arrays, rng):
    if has_chosen(arrays):
        raise KeyError("a batch with number five")
    return arrays


def batch_of_other_shape(arrays, rng):
    return arrays[:-1] if has_chosen(arrays) else arrays


def batch_of_other_dtype(arrays, rng):
    return arrays.astype("int32") if has_chosen(arrays) else arrays


def batch_dies(arrays, rng):
    if has_chosen(arrays):
        os.kill(os.getpid(), signal.SIGSEGV)
    return arrays


def batch_hangs(arrays, rng):
    if has_chosen(arrays):
        time.sleep(1000)
    return arrays


def batch_pid(arrays, rng):
    return numpy.full(len(arrays), os.getpid())


def slow(array, rng, seconds):
    time.sleep(seconds)
    return array
