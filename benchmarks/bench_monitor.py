#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure what penstock.Monitor costs a loop over images: CPU time for a row, and rows in a second.

Usage: bench_monitor.py DATA [--pairs 30] [--seconds 4] [--look 0.5] [--every 2]

DATA: a data set that `penstock pack` made of a folder of JPEGs. A run opens a loader with one worker, takes batches for some
seconds as fast as they come, and closes it; with a Monitor it has lines, JSON lines and all default alerts, without a GPU.
The Monitor's defaults, a look in 5 s and a line in 60 s, cost a tenth and less of what it costs by the defaults of this program.
Runs with and without take turns. Printed are the medians, the median of the pairs' ratios, and the ratios between which it
lies with 95 % probability (order statistics). CPU time is that of the whole process: other programs change it less than
they change the rate.
"""
import argparse
import contextlib
import itertools
import os
import statistics
import time

import penstock
from penstock import monitor


def run(asked, with_monitor):
    """Return CPU seconds for each row, rows in a second, and the CPU seconds of the Monitor's thread for each
    second."""
    of_thread = [0.0]
    begin, cpu = time.monotonic(), time.process_time()
    with penstock.Loader(asked.data, batch_size=16, n_threads=1, framework="dlpack",
                         observe=penstock.Observe(monitor_path=False), outputs={
            "image": penstock.image("jpg", [penstock.ops.RandomResizedCrop(224), penstock.ops.RandomFlip()])}) as loader:
        watching = contextlib.nullcontext() if not with_monitor else penstock.Monitor(
            loader, every=asked.every, look=asked.look, gpu=None, alerts=True, line=lambda _: None,
            sinks=[monitor.JSONLines(os.devnull), lambda _: of_thread.append(time.thread_time())])
        with watching:
            for _ in itertools.chain.from_iterable(loader.epoch(i) for i in itertools.count()):
                if time.monotonic() - begin > asked.seconds:
                    break
        n_rows = loader.stats().stage_workers.n_items  # also those that are not delivered
    seconds = time.monotonic() - begin
    return (time.process_time() - cpu) / n_rows, n_rows / seconds, of_thread[-1] / seconds


def interval(ratios):
    """Return the median, and where it lies with 95 % probability."""
    ordered, n = sorted(ratios), len(ratios)
    off = int(n ** 0.5)  # this far from n / 2, two of n values enclose the median so often: sqrt(n)
    low, high = max(0, n // 2 - off - 1), min(n - 1, (n - 1) // 2 + off + 1)
    return f"{statistics.median(ordered):.4f} ({ordered[low]:.4f}..{ordered[high]:.4f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    for name, initial in ("seconds", 4.0), ("look", 0.5), ("every", 2.0):
        parser.add_argument("--" + name, type=float, default=initial)
    parser.add_argument("--pairs", type=int, default=30)
    asked = parser.parse_args()
    run(asked, True)  # into the page cache; modules are imported
    found = {True: [], False: []}
    for i in range(asked.pairs):
        for with_monitor in (i % 2 == 1, i % 2 == 0):
            found[with_monitor].append(run(asked, with_monitor))
    for name, which, unit, factor in ("CPU time of a row", 0, "us", 1e6), ("rows in a second", 1, "", 1):
        without, more = ([one[which] for one in found[key]] for key in (False, True))
        print(f"{name}: without {statistics.median(without) * factor:,.1f} {unit}, with {statistics.median(more) * factor:,.1f} "
              f"{unit}; ratio {interval([b / a for a, b in zip(without, more)])}")
    print(f"CPU time of the Monitor's thread: {statistics.median(one[2] for one in found[True]):.3%} of a core")
    load = " ".join(f"{one:.2f}" for one in os.getloadavg())
    print(f"{asked.pairs} pairs of {asked.seconds:g} s; load averages at the end {load}")


if __name__ == "__main__":
    main()
