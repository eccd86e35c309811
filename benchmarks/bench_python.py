#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure penstock.python: functions that do nothing or brighten, on small arrays, one by one and in whole batches; and
ColorJitter and TrivialAugmentWide by PIL after penstock's decode, crop and flip, compared with PyTorch's DataLoader,
which does all of it by PIL.

Usage: bench_python.py IMAGES [--rounds 3] [--seconds 3] [--workers 2] [--size 224]

IMAGES: a folder of JPEG files. Needs the package, PyTorch and torchvision. Samples/s, the median of rounds that take
turns; in brackets the processor time of the thread that takes batches, for one sample. A bound is that of the function
alone: its processor time, on as many cores as there are workers, with nothing else to do.
"""
import argparse
import os
import statistics
import sys
import tempfile
import time

import numpy
import torch
from PIL import Image
from torchvision import transforms as T

import penstock
from functions_of_bench import brighten, brighten_all, nothing

JITTER = T.Compose([T.ColorJitter(0.4, 0.4, 0.4), T.TrivialAugmentWide(interpolation=T.InterpolationMode.BILINEAR)])


def jitter(array, rng):
    torch.manual_seed(int(rng.integers(2**63)))
    return numpy.asarray(JITTER(Image.fromarray(array)))


class Files(torch.utils.data.Dataset):
    """The files, decoded, cropped, flipped and jittered by PIL."""

    def __init__(self, files, size):
        self.files = files
        self.crop = T.Compose([T.RandomResizedCrop(size), T.RandomHorizontalFlip()])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        with Image.open(self.files[i]) as image:
            return torch.from_numpy(numpy.array(JITTER(self.crop(image.convert("RGB")))))


def rate(epochs, seconds):
    """Return samples/s of batches without end, after the first, and CPU microseconds of this thread for one."""
    begin, n, own = None, 0, 0.0
    for size in epochs:
        if begin is None:
            begin, own = time.perf_counter(), time.thread_time()
            continue
        n += size
        if time.perf_counter() - begin > seconds:
            break
    return n / (time.perf_counter() - begin), (time.thread_time() - own) / n * 1e6


def of_loader(path, output, batch_size, seconds):
    def epochs(loader):
        while True:
            yield from (len(batch["x"]) for batch in loader)
    with penstock.Loader(path, outputs={"x": output}, framework="torch", batch_size=batch_size) as loader:
        return rate(epochs(loader), seconds)


def of_torch(files, size, workers, seconds):
    loader = torch.utils.data.DataLoader(Files(files, size), batch_size=64, shuffle=True, num_workers=workers,
                                         persistent_workers=True, drop_last=True)

    def epochs():
        while True:
            yield from (len(batch) for batch in loader)
    return rate(epochs(), seconds)


def bound(call, size, workers):
    """Return samples/s of a call for `size` samples on as many cores: by the processor time of one thread."""
    torch.set_num_threads(1)
    begin, n = time.thread_time(), 0
    while time.thread_time() - begin < 1:
        call(n)
        n += size
    return workers * n / (time.thread_time() - begin)


def bounds_of(files, size, workers):
    crop = T.Compose([T.RandomResizedCrop(size), T.RandomHorizontalFlip()])
    images = [crop(Image.open(file).convert("RGB")) for file in files[:64]]
    rng = numpy.random.default_rng(1)
    arrays = rng.integers(0, 256, (256, 3, 32, 32), dtype=numpy.uint8)
    return {"brighten": bound(lambda n: brighten(arrays[n % 256], rng), 1, workers),
            "brighten, batched": bound(lambda n: brighten_all(arrays, rng), 256, workers),
            "PIL": bound(lambda n: JITTER(images[n % len(images)]), 1, workers)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--size", type=int, default=224)
    given = parser.parse_args()
    files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(given.images) for name in names
                   if name.lower().endswith((".jpg", ".jpeg")))
    if len(files) < 64:
        sys.exit(f"{given.images}: has {len(files)} JPEG files; must have at least 64")
    with tempfile.TemporaryDirectory() as folder:
        draw = numpy.random.default_rng(0)
        small = folder + "/small"
        penstock.pack(({"x": draw.integers(0, 256, (3, 32, 32), dtype=numpy.uint8)} for _ in range(20000)), small)
        packed = folder + "/images"
        penstock.pack(({"jpg": open(file, "rb").read()} for file in files), packed)
        crop = penstock.image("jpg", [penstock.ops.RandomResizedCrop(given.size), penstock.ops.RandomFlip()])

        def on_small(function, batched=False):
            return lambda: of_loader(small, penstock.python(
                function, "x", shape=(3, 32, 32), dtype="uint8", processes=given.workers, batched=batched), 256,
                given.seconds)
        tests = {
            "nothing": on_small(nothing),
            "nothing, batched": on_small(nothing, True),
            "brighten": on_small(brighten),
            "brighten, batched": on_small(brighten_all, True),
            "penstock.python, PIL": lambda: of_loader(packed, penstock.python(
                jitter, crop, shape=(given.size, given.size, 3), dtype="uint8", processes=given.workers), 64,
                given.seconds),
            "DataLoader, PIL": lambda: of_torch(files, given.size, given.workers, given.seconds),
        }
        found, bounds = {name: [] for name in tests}, {}
        for _ in range(given.rounds):
            for name, test in tests.items():
                found[name].append(test())
            for name, one in bounds_of(files, given.size, given.workers).items():
                bounds.setdefault(name, []).append(one)
        for name, rates in found.items():
            print(f"{name:24s} {statistics.median(r for r, _ in rates):9.0f} samples/s "
                  f"({statistics.median(own for _, own in rates):.0f} us of the consumer's thread for each)")
        bounds = {name: statistics.median(rates) for name, rates in bounds.items()}
        for name, limit in bounds.items():
            print(f"{'bound: ' + name:24s} {limit:9.0f} samples/s")
        rates = {name: statistics.median(rate for rate, _ in of) for name, of in found.items()}
        ours = rates["penstock.python, PIL"]
        print(f"penstock.python is {ours / rates['DataLoader, PIL']:.2f} times the DataLoader, and "
              f"{ours / bounds['PIL']:.2f} of the bound; batched, brighten is "
              f"{rates['brighten, batched'] / rates['brighten']:.1f} times as fast")


if __name__ == "__main__":
    main()
