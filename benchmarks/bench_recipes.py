#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare whole recipes: images/s of a loader, and of torchvision's transforms of PIL images in PyTorch's DataLoader,
on the same JPEG files, with as many workers, in turns.

Usage: bench_recipes.py IMAGES [--rounds 3] [--seconds 3] [--workers 2] [--size 224] [--only NAME...]

IMAGES: a folder of JPEG files. Needs the package, PyTorch and torchvision. Every row decodes from memory: both read
all files once before. Images are float32, channels first, normalised.
"""
import argparse
import os
import statistics
import tempfile
import time

import torch
from PIL import Image
from torchvision import transforms as T

import penstock

BILINEAR = T.InterpolationMode.BILINEAR
BICUBIC = T.InterpolationMode.BICUBIC


def recipes(size):
    """By name: the operations of penstock, and torchvision's, between decoding and normalising."""
    p = penstock
    crop, flip = [p.RandomResizedCrop(size), p.RandomFlip()], [T.RandomResizedCrop(size), T.RandomHorizontalFlip()]
    bicubic = [p.RandomResizedCrop(size, interpolation="bicubic"), p.RandomFlip()]
    their_bicubic = [T.RandomResizedCrop(size, interpolation=BICUBIC), T.RandomHorizontalFlip()]
    jitter = (0.4, 0.4, 0.2, 0.1)
    return {
        "crop and flip": (crop, flip),
        "bicubic crop and flip": (bicubic, their_bicubic),
        "colour jitter": ([*crop, p.ColorJitter(0.4, 0.4, 0.4)], [*flip, T.ColorJitter(0.4, 0.4, 0.4)]),
        "TrivialAugmentWide": ([*crop, p.TrivialAugmentWide(interpolation="bilinear")],
                               [*flip, T.TrivialAugmentWide(interpolation=BILINEAR)]),
        "RandAugment": ([*crop, p.RandAugment(interpolation="bilinear")],
                        [*flip, T.RandAugment(interpolation=BILINEAR)]),
        "AutoAugment": ([*crop, p.AutoAugment(interpolation="bilinear")],
                        [*flip, T.AutoAugment(interpolation=BILINEAR)]),
        "DINO's first global view": (
            [*bicubic, p.RandomApply([p.ColorJitter(*jitter)], 0.8), p.RandomGrayscale(0.2), p.GaussianBlur(9)],
            [*their_bicubic, T.RandomApply([T.ColorJitter(*jitter)], 0.8), T.RandomGrayscale(0.2), T.GaussianBlur(9)]),
    }


class Files(torch.utils.data.Dataset):
    """The files, in memory, each decoded and transformed by PIL."""

    def __init__(self, files, transform):
        self.files, self.transform = files, transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        with Image.open(self.files[i]) as image:
            return self.transform(image.convert("RGB"))


def rate(epochs, seconds):
    """Return images/s of batches, after a first epoch."""
    for _ in epochs():
        pass
    n, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for batch in epochs():
            n += len(batch)
            if time.perf_counter() - begin >= seconds:
                break
    return n / (time.perf_counter() - begin)


def ours(path, ops, options):
    with penstock.Loader(path, outputs={"x": penstock.image("jpg", [*ops, penstock.Normalize()], layout="nchw")},
                         batch_size=50, n_threads=options.workers, framework="torch", form="tuple") as loader:
        return rate(lambda: (batch[0] for batch in loader), options.seconds)


def theirs(files, transforms, options):
    last = [T.ToTensor(), T.Normalize(penstock.IMAGENET_MEAN, penstock.IMAGENET_STD)]
    loader = torch.utils.data.DataLoader(Files(files, T.Compose([*transforms, *last])), batch_size=50, shuffle=True,
                                         num_workers=options.workers, persistent_workers=True)
    return rate(lambda: loader, options.seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("images")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    files = sorted(os.path.join(options.images, name) for name in os.listdir(options.images)
                   if name.lower().endswith((".jpg", ".jpeg")))
    print(f"{len(files)} files, {options.workers} workers, {options.rounds} rounds of {options.seconds:g} s; "
          f"load average at the start {os.getloadavg()[0]:.1f}")
    print(f"{'recipe':26} {'penstock':>9} {'torchvision':>11}   images/s, medians; ratio: median (least .. most)")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "set")
        penstock.pack(options.images, path)
        for name, (ops, transforms) in recipes(options.size).items():
            if options.only and name not in options.only:
                continue
            rounds = [(ours(path, ops, options), theirs(files, transforms, options)) for _ in range(options.rounds)]
            ratios = [a / b for a, b in rounds]
            print(f"{name:26} {statistics.median(a for a, _ in rounds):9.0f} "
                  f"{statistics.median(b for _, b in rounds):11.0f}   {statistics.median(ratios):.1f} "
                  f"({min(ratios):.1f} .. {max(ratios):.1f})", flush=True)


if __name__ == "__main__":
    main()
