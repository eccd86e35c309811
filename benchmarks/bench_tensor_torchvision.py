#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure torchvision.transforms.v2.functional on uint8 tensors like the picture of bench_tensor, on one core.

usage: bench_tensor_torchvision.py BENCH_TENSOR

Prints a table of that program's times, and of the speed as a multiple of torchvision's in the same round.
"""
import sys

import torch
import torchvision
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional

from pillow_rounds import compare

SIDE = 224
CORNERS = [[0, 0], [SIDE - 1, 0], [SIDE - 1, SIDE - 1], [0, SIDE - 1]]
MOVED = [[9, 4], [200, 10], [210, 220], [3, 200]]
OPERATIONS = {
    "brightness": lambda image: functional.adjust_brightness(image, 1.3),
    "contrast": lambda image: functional.adjust_contrast(image, 1.3),
    "gamma": lambda image: functional.adjust_gamma(image, 2.2),
    "autocontrast": functional.autocontrast,
    "saturation": lambda image: functional.adjust_saturation(image, 1.3),
    "hue": lambda image: functional.adjust_hue(image, 0.1),
    "sharpness": lambda image: functional.adjust_sharpness(image, 1.5),
    "grayscale 3": lambda image: functional.rgb_to_grayscale(image, 3),
    "gaussian blur 9": lambda image: functional.gaussian_blur(image, [9, 9], [1.2, 1.2]),
    "gaussian blur 23": lambda image: functional.gaussian_blur(image, [23, 23], [1.2, 1.2]),
    "rotate nearest": lambda image: functional.rotate(image, 17.0),
    "rotate bilinear": lambda image: functional.rotate(image, 17.0, InterpolationMode.BILINEAR),
    "perspective bilinear": lambda image: functional.perspective(image, CORNERS, MOVED),
}


def main():
    torch.set_num_threads(1)
    image = torch.randint(0, 256, (3, SIDE, SIDE), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    works = {name: lambda run=run: run(image) for name, run in OPERATIONS.items()}
    print(f"torchvision {torchvision.__version__}, torch {torch.__version__}")
    compare(sys.argv[1], works, works, "torchvision")


if __name__ == "__main__":
    main()
