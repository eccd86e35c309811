# SPDX-License-Identifier: Apache-2.0
"""Code that the process of each peer shares: its task, the clock, the line of JSON that it prints.

`run` starts  PYTHON peer_NAME.py prepare|measure TASK  with TASK a file of JSON. A peer gives
main() two functions: prepare(task) makes its files under task.folder and returns their bytes (or
None, where it reads the source itself), batches(task) yields batches for ever.
"""
import importlib.metadata
import json
import math
import os
import pathlib
import random
import shutil
import sys
import time

CROP_SCALE = (0.08, 1.0)  # shares of the image's area: as torchvision's RandomResizedCrop
CROP_RATIO = (3 / 4, 4 / 3)
SIDE = 224
WARM_BATCHES = 8  # at least; more than any peer here keeps ready


class Task:
    """One row to prepare or to measure: the keys that `run` gives, as attributes."""

    def __init__(self, path):
        given = json.loads(pathlib.Path(path).read_text())
        self.name = given["name"]
        self.options = given["options"]
        self.folder = pathlib.Path(given["folder"])  # this row's own files
        self.files = given["files"]                  # images, absolute paths; [] for records
        self.records = given["records"]              # a .npy of n x size bytes, or None
        self.n_cores = given["n_cores"]
        self.seconds = given["seconds"]
        self.warm_seconds = given["warm_seconds"]
        self.batch_size = given["batch_size"]
        self.binary = given["binary"]              # the penstock command

    def fresh_folder(self):
        """Return the row's folder, empty."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        return self.folder


def folder_size(folder):
    return sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*") if path.is_file())


def files_forever(task, seed=0):
    """Yield the images in a new random order each time round, without end."""
    order = random.Random(seed)
    files = list(task.files)
    while True:
        order.shuffle(files)
        yield from files


def crop_box(width, height, uniform=random.uniform):
    """Left, top, width, height of a random crop, as torchvision draws it."""
    for _ in range(10):
        area = width * height * uniform(*CROP_SCALE)
        ratio = math.exp(uniform(math.log(CROP_RATIO[0]), math.log(CROP_RATIO[1])))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return int(uniform(0, width - w + 1)), int(uniform(0, height - h + 1)), w, h
    w, h = min(width, round(height * CROP_RATIO[1])), min(height, round(width / CROP_RATIO[0]))
    return (width - w) // 2, (height - h) // 2, w, h


def check(batch, task):
    """Every peer must deliver the same thing: uint8, whole batches, the right shape, in a layout of its choice."""
    shape, dtype = tuple(batch.shape), str(batch.dtype)
    rows = [(SIDE, SIDE, 3), (3, SIDE, SIDE)] if task.files else [(task.options["record_size"],)]
    if shape not in [(task.batch_size, *row) for row in rows] or "uint8" not in dtype:
        raise SystemExit(f"{task.name}: a batch is {shape} of {dtype}")


def check_bytes(batch, task):
    """A record that was delivered must be one of those in the source."""
    import numpy

    source, row = numpy.load(task.records, mmap_mode="r"), numpy.asarray(batch[0])
    alike = numpy.flatnonzero((source[:, :8] == row[:8]).all(axis=1))
    if not any(numpy.array_equal(source[i], row) for i in alike):
        raise SystemExit(f"{task.name}: a record is not one of the source's")


def time_batches(stream, task):
    """Return samples and seconds of a stream in its steady state: the warm-up is not counted."""
    start, begin, n_warm, n_samples = None, None, 0, 0
    for batch in stream:
        check(batch, task)
        if task.records and not n_warm:
            check_bytes(batch, task)
        now = time.perf_counter()
        if start is not None:
            n_samples += len(batch)
            if now - start >= task.seconds:
                return {"samples": n_samples, "seconds": now - start}
            continue
        begin = begin or now
        n_warm += 1
        if now - begin >= task.warm_seconds and n_warm >= WARM_BATCHES:
            start = now
    raise SystemExit(f"{task.name}: the stream ended")


def versions(packages):
    return {package: importlib.metadata.version(package) for package in packages}


def say(result):
    print(json.dumps(result), flush=True)


def main(batches, prepare=None, packages=()):
    verb, task = sys.argv[1], Task(sys.argv[2])
    if verb == "prepare":
        size = prepare(task) if prepare else None
        say({"bytes": size, "versions": versions(packages)})
    else:
        say(time_batches(batches(task), task))
        sys.stderr.flush()
        # Threads and workers of some peers outlive their loader; `run` ends the process group.
        os._exit(0)
