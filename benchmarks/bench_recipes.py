#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare whole recipes: images/s of a loader, and of torchvision's transforms of PIL images in PyTorch's DataLoader,
on the same JPEG files, with as many workers, in turns.

Usage: bench_recipes.py IMAGES [--rounds 3] [--seconds 3] [--workers 2] [--size 224] [--only NAME...] [--peers]
                        [--save FILE]

--peers: the recipes of penstock.recipes, as recipe_peers.py has them for torchvision on PIL images, torchvision's v2 on
tensors, albumentations, timm and DALI, each in a process of its own. Libraries that are missing are said. --save writes the rates of all rounds as
JSON: as build/peers/recipes.json, `benchmarks/peers/run report` makes a section of RESULTS.md of them.

IMAGES: a folder of JPEG files. Needs the package, PyTorch and torchvision. Every row decodes from memory: both read
all files once before. Images are float32, channels first, normalised.
"""
import argparse
import importlib.metadata
import json
import multiprocessing
import os
import pathlib
import statistics
import sys
import tempfile
import time

import numpy
import torch
from PIL import Image
from torchvision import transforms as T

import penstock
import recipe_peers

sys.path.append(str(pathlib.Path(__file__).parent / "peers"))
import machine  # noqa: E402

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
    with penstock.Loader(path, outputs={"x": penstock.image("jpg", [*ops, penstock.ops.Normalize()], layout="nchw")},
                         batch_size=50, n_threads=options.workers, framework="torch", form="tuple") as loader:
        return rate(lambda: (batch[0] for batch in loader), options.seconds)


def theirs(files, transforms, options):
    last = [T.ToTensor(), T.Normalize(penstock.ops.IMAGENET_MEAN, penstock.ops.IMAGENET_STD)]
    loader = torch.utils.data.DataLoader(Files(files, T.Compose([*transforms, *last])), batch_size=50, shuffle=True,
                                         num_workers=options.workers, persistent_workers=True)
    return rate(lambda: loader, options.seconds)


# ---- whole recipes, by every library that has them ----------------------------------------------------------


def our_outputs(name):
    """Return the outputs of a recipe of penstock.recipes, and the loader's other settings for it."""
    outputs, settings = penstock.recipes.views("jpg", penstock.recipes.find(name), layout="nchw", dtype="float32"), {}
    if name == "ssd":
        outputs["boxes"] = penstock.boxes("boxes")
    if name == "resnet50-v2":
        outputs["label"] = penstock.scalar("cls")
        settings["mix"] = penstock.MixUpCutMix(0.2, 1.0, num_classes=1000)
    return outputs, settings


def our_recipe(path, name, options):
    outputs, settings = our_outputs(name)
    with penstock.Loader(path, outputs=outputs, batch_size=recipe_peers.BATCH, n_threads=options.workers,
                         framework="torch", **settings) as loader:
        first = next(iter(outputs))
        return rate(lambda: (batch[first] for batch in loader), options.seconds)


def measured(files, boxes, name, library, options, say):
    """One measurement in a process of its own. say: a connection."""
    try:
        say.send(rate(recipe_peers.PEERS[library][name](files, boxes, options.workers), options.seconds))
    except Exception as error:  # it is a row of the table
        say.send(f"{type(error).__name__}: {error}"[:200])


def their_recipe(files, boxes, name, library, options):
    """images/s, or why there are none."""
    processes = multiprocessing.get_context("spawn")
    ours, theirs = processes.Pipe()
    process = processes.Process(target=measured, args=(files, boxes, name, library, options, theirs))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        return "it ended"
    finally:
        process.join()


def boxes_of(files):
    """Three boxes in each image, the same in every run."""
    chance, found = numpy.random.default_rng(1), []
    for name in files:
        with Image.open(name) as image:
            corners = numpy.sort(chance.random((3, 2, 2)), axis=1) * image.size
        found.append(corners.reshape(3, 4).astype("float32"))
    return found


def versions():
    """Return the versions of the libraries that are installed."""
    there = {}
    for name in ("torch", "torchvision", "timm", "albumentations", "nvidia-dali-cuda130", "pillow", "numpy"):
        try:
            there[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return there


def save(options, described, n_files, found):
    """Write what was measured so far, if the user asks for it."""
    if not options.save:
        return
    settings = {"images": n_files, "batch": recipe_peers.BATCH, "rounds": options.rounds, "seconds": options.seconds,
                "workers": options.workers, "load_after": round(os.getloadavg()[0], 2)}
    options.save.write_text(json.dumps(
        {"machine": described, "settings": settings, "versions": versions(), "rows": found}, indent=1))


def compare_recipes(files, folder, options):
    boxes, path = boxes_of(files), os.path.join(folder, "boxes")
    with penstock.Writer(path, {"jpg": "image", "boxes": penstock.Boxes(of="jpg"), "cls": "int64"}) as writer:
        for i, name in enumerate(files):
            with open(name, "rb") as file:
                writer.add(jpg=file.read(), boxes=boxes[i], cls=i)
    found, described = [], machine.describe(len(os.sched_getaffinity(0)))
    print(f"{'recipe':16} {'library':16} {'images/s':>9}   penstock / library: median (least .. most)")
    for name in ("resnet50-v2", "dino", "timm-rand-m9", "ssd"):
        if options.only and name not in options.only:
            continue
        libraries = [library for library, its in recipe_peers.PEERS.items() if name in its]
        rounds = [[our_recipe(path, name, options)]
                  + [their_recipe(files, boxes, name, library, options) for library in libraries]
                  for _ in range(options.rounds)]
        for k, library in enumerate(["penstock", *libraries]):
            rates = [row[k] for row in rounds]
            failed = [rate for rate in rates if isinstance(rate, str)]
            found.append({"recipe": name, "library": library, **({"why_not": failed[0]} if failed else {"rates": rates})})
        save(options, described, len(files), found)
        print(f"{name:16} {'penstock':16} {statistics.median(row[0] for row in rounds):9.0f}", flush=True)
        for k, library in enumerate(libraries, 1):
            failed = [row[k] for row in rounds if isinstance(row[k], str)]
            if failed:
                print(f"{name:16} {library:16} {'-':>9}   {failed[0]}", flush=True)
                continue
            ratios = [row[0] / row[k] for row in rounds]
            print(f"{name:16} {library:16} {statistics.median(row[k] for row in rounds):9.1f}   "
                  f"{statistics.median(ratios):.1f} ({min(ratios):.1f} .. {max(ratios):.1f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("images")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--peers", action="store_true", help="whole recipes, also by every other library that is installed")
    parser.add_argument("--save", type=pathlib.Path, help="with --peers: a JSON file for the rates")
    options = parser.parse_args()
    files = sorted(os.path.join(options.images, name) for name in os.listdir(options.images)
                   if name.lower().endswith((".jpg", ".jpeg")))
    print(f"{len(files)} files, {options.workers} workers, {options.rounds} rounds of {options.seconds:g} s; "
          f"load average at the start {os.getloadavg()[0]:.1f}")
    if not options.peers:
        print(f"{'recipe':26} {'penstock':>9} {'torchvision':>11}   images/s, medians; ratio: median (least .. most)")
    with tempfile.TemporaryDirectory() as folder:
        if options.peers:
            compare_recipes(files, folder, options)
            return
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
