#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure how far the predictions of `penstock bench` are from runs with the change that they predict.

Usage: bench_forecast.py DATA SLOW_READS [--rounds 5] [--seconds 3]

SLOW_READS is tests/slow_reads.so of a build, which limits the bytes per second of reads. In each round it runs, of the
images of DATA: one worker, then two; a storage of 100 MB/s, then of 200; a consumer that takes 50 ms for a batch, then
one that takes none; one worker with the best kernels of this CPU, then with those in plain C, and the other way round. With
--kernels only these two are run, and the best kernels twice: how far two equal runs are apart. It prints the samples/s of
the second run as predicted from the first, as measured, and the error of the prediction, the medians of the rounds, and the
worst error. PENSTOCK_COMMAND names the command (default: penstock).
"""
import argparse
import json
import os
import statistics
import subprocess

COMMAND = os.environ.get("PENSTOCK_COMMAND", "penstock")


def bench(options, seconds, rate=None, library=None, ceilings=False):
    env = {**os.environ, "LD_PRELOAD": library, "PENSTOCK_BYTES_PER_SECOND": str(rate)} if rate else None
    options = [*options, "--seconds", str(seconds), "--json", *([] if ceilings else ["--no-ceilings"])]
    run = subprocess.run([COMMAND, "bench", *options], env=env, check=True, capture_output=True, text=True)
    said = json.loads(run.stdout)
    if said["forecast"] is None:
        raise SystemExit(f"too few batches in {seconds:g} s: give more --seconds")
    return said["forecast"]["measured"], {(case["what"], case["change"]): case["samples_per_second"]
                                          for case in said["forecast"]["cases"]}


def best_kernels():
    """Return the best kernels of this CPU."""
    run = subprocess.run([COMMAND, "doctor", "--json"], capture_output=True, text=True)  # 1: the machine lacks something
    return json.loads(run.stdout)["kernels"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("slow_reads")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--kernels", action="store_true")
    asked = parser.parse_args()
    threads = [asked.data, "--reader", "threads", "--threads", "2"]
    one = [asked.data, "--threads", "1"]
    fast, best = [*one, "--batch-size", "16"], best_kernels()
    plain = [*fast, "--kernels", "c"]
    changes = {
        "workers 1 -> 2": (("workers", "+1"), (one, None), ([asked.data, "--threads", "2"], None)),
        "storage 100 -> 200 MB/s": (("storage", "x2"), (threads, 100e6), (threads, 200e6)),
        "consumer 50 ms -> none": (("consumer", "none"), ([*one, "--step-ms", "50"], None), (one, None)),
        f"kernels {best} -> c": (("kernels", "c"), (fast, None), (plain, None)),
        f"kernels c -> {best}": (("kernels", best), (plain, None), (fast, None)),
    }
    if asked.kernels:
        changes = {name: change for name, change in changes.items() if change[0][0] == "kernels"}
        changes[f"kernels {best}, twice"] = (None, (fast, None), (fast, None))
    found = {name: [] for name in changes}
    for _ in range(asked.rounds):
        for name, (case, (before, slow), (after, faster)) in changes.items():
            measured, cases = bench(before, asked.seconds, slow, asked.slow_reads, case is not None and case[0] == "kernels")
            predicted = measured if case is None else cases[case]
            found[name].append((predicted, bench(after, asked.seconds, faster, asked.slow_reads)[0]))
    print(f"{'change':<26}{'predicted':>12}{'measured':>12}{'error':>9}{'worst':>9}")
    for name, pairs in found.items():
        errors = [predicted / measured - 1 for predicted, measured in pairs]
        print(f"{name:<26}{statistics.median(p for p, _ in pairs):>12,.0f}{statistics.median(m for _, m in pairs):>12,.0f}"
              f"{statistics.median(errors):>+9.1%}{max(errors, key=abs):>+9.1%}")


if __name__ == "__main__":
    main()
