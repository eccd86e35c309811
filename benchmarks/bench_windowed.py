#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure how fast the windowed order reads small records, next to the sequential and the full order.

Usage: bench_windowed.py [--records 400000] [--bytes 2048] [--rounds 5] [--epochs 3] [--ways C] [--block B] [--window W]
                         [--folder DIR]

It packs a data set of random arrays, and runs `penstock bench` on it for each order in turn: from the page cache
(buffered, 3 epochs), then from the disk (O_DIRECT, 1 epoch). It prints samples/s and microseconds of processor time for
one sample, the medians of the rounds, and the ratio of samples/s to those of the sequential order, the median of the
ratios within each round. PENSTOCK_COMMAND names the command (default: penstock).
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

import numpy

import penstock

COMMAND = os.environ.get("PENSTOCK_COMMAND", "penstock")


def pack(path, records, size):
    random = numpy.random.default_rng(0).integers(0, 256, (4096, size), dtype=numpy.uint8)
    with penstock.Writer(path, {"values": ("uint8", (size,)), "n": "int64"}) as writer:
        for i in range(records):
            writer.add(values=random[i % len(random)], n=i)


def measured(path, order, io, epochs):
    """Return samples/s and microseconds of processor time for one sample."""
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    before = used()
    run = subprocess.run([COMMAND, "bench", path, *order, "--io", io, "--epochs", str(epochs), "--batch-size", "256",
                          "--no-ceilings", "--json"], check=True, capture_output=True, text=True)
    said = json.loads(run.stdout)
    return said["samples_per_second"], (used() - before) / said["samples"] * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=400000)
    parser.add_argument("--bytes", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=3)
    for name in ("ways", "block", "window"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--folder", help="where the data set is made (default: the folder of temporary files)")
    asked = parser.parse_args()
    windowed = ["--order", "windowed"]
    for name in ("ways", "block", "window"):
        if getattr(asked, name):
            windowed += [f"--{name}", str(getattr(asked, name))]
    orders = {"sequential": ["--order", "sequential"], "windowed": windowed, "full": ["--order", "full"]}
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        path = os.path.join(folder, "data")
        pack(path, asked.records, asked.bytes)
        print(f"{asked.records} records of {asked.bytes} bytes, {' '.join(windowed[1:])}; load average "
              f"{os.getloadavg()[0]:.1f}\n")
        print("| from | order | samples/s | of sequential | CPU us a sample |\n|---|---|--:|--:|--:|")
        for io, epochs in (("buffered", asked.epochs), ("direct", 1)):
            rounds = [{name: measured(path, order, io, epochs) for name, order in orders.items()}
                      for _ in range(asked.rounds)]
            for name in orders:
                ratio = statistics.median(one[name][0] / one["sequential"][0] for one in rounds)
                rate, cpu = (statistics.median(one[name][i] for one in rounds) for i in (0, 1))
                print(f"| {io} | {name} | {rate:,.0f} | {ratio:.2f} | {cpu:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
