# SPDX-License-Identifier: Apache-2.0
"""NumPy: fancy indexing of a memory map in full random order, one thread, nothing checked."""
import measure
import numpy


def batches(task):
    records = numpy.load(task.records, mmap_mode="r")
    random = numpy.random.default_rng(0)
    n, size = len(records), task.batch_size
    while True:
        order = random.permutation(n)
        for at in range(0, n - size + 1, size):
            yield records[order[at:at + size]]


if __name__ == "__main__":
    measure.main(batches, packages=["numpy"])
