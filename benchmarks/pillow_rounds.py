# SPDX-License-Identifier: Apache-2.0
"""Compares a benchmark program with Pillow in rounds: in each the program runs once, then every work of Pillow."""
import collections
import re
import statistics
import subprocess
import time

ROUNDS = 11
LINE = re.compile(r"(C|AVX2|AVX-512|NEON) +(.{36}) +([0-9.]+) +([0-9.]+)")


def microseconds(work, calls=15):
    """Return the lowest, in the thread's own time: other work on the machine only adds."""
    times = []
    for _ in range(calls):
        begin = time.thread_time_ns()
        work()
        times.append(time.thread_time_ns() - begin)
    return min(times) / 1e3


def spread(values, form):
    return f"{form % statistics.median(values)} ({form % min(values)} .. {form % max(values)})"


def compare(program, works, names, peer="Pillow"):
    """Print a table: for each of `names` the medians of the program's ISAs, and their ratios to the peer's, and to
    the program's memcpy where it has one: median, least and most of the rounds. A round counts the lowest of some
    calls of each. works: name -> callable."""
    ours, theirs = collections.defaultdict(list), collections.defaultdict(list)
    for _ in range(ROUNDS):
        for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines():
            match = LINE.match(line)
            if match:
                ours[match[1], match[2].strip()].append(float(match[4]))
        for name, work in works.items():
            theirs[name].append(microseconds(work))
    isas = [isa for isa in ("C", "AVX2", "AVX-512", "NEON") if any(key[0] == isa for key in ours)]
    print(f"| operation | {peer}, us | " + " | ".join(f"{v}, us | x {peer}" for v in isas) + " | of memcpy |")
    print("|---|---|" + "---|---|" * len(isas) + "---|")
    for name in names:
        cells = [name, f"{statistics.median(theirs[name]):.0f}" if name in works else ""]
        for isa in isas:
            times = ours[isa, name]
            ratios = [theirs[name][i] / times[i] for i in range(ROUNDS)] if name in works else []
            cells += [f"{statistics.median(times):.1f}", spread(ratios, "%.1f") if ratios else ""]
        copies, times = ours.get((isas[-1], "memcpy")), ours[isas[-1], name]
        cells.append(spread([copies[i] / times[i] for i in range(ROUNDS)], "%.2f") if copies else "")
        print("| " + " | ".join(cells) + " |")
