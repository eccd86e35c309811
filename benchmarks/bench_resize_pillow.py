#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure Pillow on the crops of bench_resize, on one core.

usage: bench_resize_pillow.py BENCH_RESIZE

Prints that program's report. Lines about resizes of 3 channels from the cache also have the speed as a multiple
of Pillow's.
"""
import os
import statistics
import subprocess
import sys
import time

import numpy as np
from PIL import Image, __version__ as version


FILTERS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")


def pillow(crops, size, by):
    image = Image.fromarray(np.random.default_rng(1).integers(0, 256, size[::-1] + (3,), np.uint8))
    cut = [image.crop((left, top, left + w, top + h)) for left, top, w, h in crops]
    times = []
    for _ in range(15):
        begin = time.perf_counter()
        for c in cut:
            c.resize((224, 224), by)
        times.append((time.perf_counter() - begin) / len(cut) * 1e3)
    return statistics.median(times)


def main():
    report = subprocess.run([sys.argv[1]], env={**os.environ, "PENSTOCK_BENCH_CROPS": "1"},
                            check=True, capture_output=True, text=True).stdout.splitlines()
    crops = {}
    for line in report:
        if line.startswith("crop "):
            width, height, *crop = map(int, line.split()[1:])
            crops.setdefault((width, height), []).append(tuple(crop))
    times = {(f"{w} x {h}", name): pillow(c, (w, h), Image.Resampling[name.upper()])
             for (w, h), c in crops.items() for name in FILTERS}
    for line in report:
        if line.startswith("crop "):
            continue
        for (name, by), ms in times.items():
            if f": {name}, {by} " in line or by == "bilinear" and f": {name}, warm" in line:
                line += f"  {ms / float(line[52:].split()[0]):5.1f} x Pillow"
        print(line)
    for (name, by), ms in times.items():
        print(f"{f'Pillow {version}: {name}, {by}':52s} {ms:7.4f}")


if __name__ == "__main__":
    main()
