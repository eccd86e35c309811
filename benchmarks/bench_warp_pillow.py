#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure Pillow and torchvision on the work of bench_warp, on one core.

usage: bench_warp_pillow.py BENCH_WARP

Prints a table of that program's times, and of the speed as a multiple of Pillow's in the same round, of
torchvision's for the blur by weights and for the pad.
"""
import sys

import numpy as np
from PIL import Image, ImageFilter, __version__ as version

from pillow_rounds import compare

SCALE = (0.8, 0, 20, 0, 0.8, 20)
PERSPECTIVE = (1.1, 0.1, -20, -0.05, 1.05, 5, 0.0004, -0.0002)
FILL = (1, 2, 3)


def works():
    image = Image.fromarray(np.random.default_rng(1).integers(0, 256, (224, 224, 3), np.uint8))
    small = image.crop((0, 0, 216, 216))
    size = image.size
    yield "affine nearest, scale 0.8", lambda: image.transform(size, Image.AFFINE, SCALE, Image.NEAREST, fillcolor=FILL)
    for name, filter in ("nearest", Image.NEAREST), ("bilinear", Image.BILINEAR), ("bicubic", Image.BICUBIC):
        yield f"affine {name}, 30 degrees", lambda filter=filter: image.rotate(30, filter, fillcolor=FILL)
        yield f"perspective {name}", lambda filter=filter: image.transform(
            size, Image.PERSPECTIVE, PERSPECTIVE, filter, fillcolor=FILL)
    yield "flip horizontal", lambda: image.transpose(Image.FLIP_LEFT_RIGHT)
    yield "flip vertical", lambda: image.transpose(Image.FLIP_TOP_BOTTOM)
    yield "turn 90", lambda: image.transpose(Image.ROTATE_90)
    yield "turn 180", lambda: image.transpose(Image.ROTATE_180)
    yield "crop at -4, -4", lambda: image.crop((-4, -4, 220, 220))
    yield "blur by boxes, radius 2", lambda: image.filter(ImageFilter.GaussianBlur(2))
    try:
        import torch
        from torchvision.transforms.v2 import functional as F
    except ImportError:
        return
    torch.set_num_threads(1)
    yield "pad reflect, 4 of 216", lambda: F.pad(small, [4, 4, 4, 4], padding_mode="reflect")
    yield "blur by weights, 23 x 23, sigma 2", lambda: F.gaussian_blur(image, [23, 23], [2.0, 2.0])


NAMES = [
    "affine nearest, scale 0.8", "affine nearest, 30 degrees", "affine bilinear, 30 degrees",
    "affine bicubic, 30 degrees", "perspective nearest", "perspective bilinear", "perspective bicubic",
    "flip horizontal", "flip vertical", "turn 90", "turn 180", "pad reflect, 4 of 216", "crop at -4, -4",
    "blur by boxes, radius 2", "blur by weights, 23 x 23, sigma 2"]


def main():
    print(f"Pillow {version}")
    compare(sys.argv[1], dict(works()), ["memcpy", *NAMES])


if __name__ == "__main__":
    main()
