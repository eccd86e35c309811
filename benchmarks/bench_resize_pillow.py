#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pillow on the crops of bench_resize, one core.

Usage: bench_resize_pillow.py BENCH_RESIZE; prints that program's report, then Pillow's figure.
"""
import os
import subprocess
import sys
import time

import numpy as np
from PIL import Image, __version__ as version


def main():
    report = subprocess.run([sys.argv[1]], env={**os.environ, "PENSTOCK_BENCH_CROPS": "1"},
                            check=True, capture_output=True, text=True).stdout.splitlines()
    crops = [tuple(map(int, line.split()[1:])) for line in report if line.startswith("crop ")]
    print("\n".join(line for line in report if not line.startswith("crop ")))
    image = Image.fromarray(np.random.default_rng(1).integers(0, 256, (375, 500, 3), np.uint8))
    cut = [image.crop((left, top, left + w, top + h)) for left, top, w, h in crops]
    best = 1e9
    for _ in range(9):
        begin = time.perf_counter()
        for c in cut:
            c.resize((224, 224), Image.BILINEAR)
        best = min(best, (time.perf_counter() - begin) / len(cut) * 1e3)
    print(f"{'Pillow ' + version + ', u8':44s} {best:7.4f}")


if __name__ == "__main__":
    main()
