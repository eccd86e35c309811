#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure Pillow on pictures like those of bench_colour, as torchvision and timm use it, on one core.

usage: bench_colour_pillow.py BENCH_COLOUR

Prints that program's report. Each line also has the speed as a multiple of Pillow's.
"""
import statistics
import subprocess
import sys
import time

import numpy as np
from PIL import Image, ImageEnhance, ImageOps, __version__ as version

SIDE = 224


def pictures():
    rng = np.random.default_rng(1)
    random = rng.integers(0, 256, (SIDE, SIDE, 3), np.uint8)
    y, x, c = np.indices(random.shape)
    smooth = ((x + 2 * y + 60 * c) // 4 + rng.integers(0, 16, random.shape) + 20).astype(np.uint8)
    return {"random": Image.fromarray(random), "smooth": Image.fromarray(smooth)}


def hue(image):
    h, s, v = image.convert("HSV").split()
    shifted = np.array(h) + np.uint8(25)
    return Image.merge("HSV", (Image.fromarray(shifted), s, v)).convert("RGB")


def grays(image):
    gray = np.array(image.convert("L"))
    return Image.fromarray(np.dstack([gray, gray, gray]))


OPERATIONS = {
    "brightness": lambda image: ImageEnhance.Brightness(image).enhance(1.3),
    "contrast": lambda image: ImageEnhance.Contrast(image).enhance(0.7),
    "saturation": lambda image: ImageEnhance.Color(image).enhance(1.3),
    "hue": hue,
    "sharpness": lambda image: ImageEnhance.Sharpness(image).enhance(1.5),
    "gamma": lambda image: image.point([int((255 + 1 - 1e-3) * pow(v / 255.0, 2.2)) for v in range(256)] * 3),
    "posterize": lambda image: ImageOps.posterize(image, 4),
    "autocontrast": ImageOps.autocontrast,
    "equalize": ImageOps.equalize,
    "grayscale 1": lambda image: image.convert("L"),
    "grayscale 3": grays,
    "permute": lambda image: Image.merge("RGB", image.split()[::-1]),
}


def measure(run, image):
    """Microseconds an image."""
    times = []
    for _ in range(60):
        begin = time.perf_counter()
        run(image)
        times.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(times)


def main():
    images = pictures()
    times = {(name, kind): measure(run, image) for name, run in OPERATIONS.items() for kind, image in images.items()}
    report = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout.splitlines()
    for line in report:
        name, kind, us = line[:14].strip(), line[15:23].strip(), float(line.split()[-2])
        print(f"{line} {times[name, kind] / us:7.1f} x Pillow {version}")
    print("\n".join(f"{name:14s} {kind:8s} Pillow   {us:9.1f} us" for (name, kind), us in times.items()))


if __name__ == "__main__":
    main()
