#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure Pillow on pictures like those of bench_colour, as torchvision and timm use it, on one core.

usage: bench_colour_pillow.py BENCH_COLOUR

Prints a table of that program's times, and of the speed as a multiple of Pillow's in the same round.
"""
import sys

import numpy as np
from PIL import Image, ImageEnhance, ImageOps, __version__ as version

from pillow_rounds import compare

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
    "invert": ImageOps.invert,
    "solarize": lambda image: ImageOps.solarize(image, 128),
    "autocontrast": ImageOps.autocontrast,
    "equalize": ImageOps.equalize,
    "grayscale 1": lambda image: image.convert("L"),
    "grayscale 3": grays,
    "permute": lambda image: Image.merge("RGB", image.split()[::-1]),
}


def main():
    works = {f"{name}, {kind}": lambda run=run, image=image: run(image)
             for name, run in OPERATIONS.items() for kind, image in pictures().items()}
    print(f"Pillow {version}")
    compare(sys.argv[1], works, works)


if __name__ == "__main__":
    main()
