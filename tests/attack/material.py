# SPDX-License-Identifier: Apache-2.0
"""material: image folders and data sets to attack, and ways to see that nothing changed in them."""
import hashlib
import json
import os
import pathlib
import random
import shutil
import struct

import process

N_CLASSES = 3


class Broken(Exception):
    """The attack itself could not be prepared."""


def must(command, **kwargs):
    done = process.run(command, **kwargs)
    if done.status:
        raise Broken(done.shown())
    return done


def images(build, folder, n, seed, kind="mix"):
    """Make a folder of `n` images in class folders: of PENSTOCK_TEST_IMAGES where it is set."""
    real = os.environ.get("PENSTOCK_TEST_IMAGES")
    found = sorted(path for path in pathlib.Path(real).rglob("*") if path.is_file()) if real else []
    if len(found) < n or kind != "mix":
        must([build.make_images, n, folder, "--classes", N_CLASSES, "--seed", seed, "--kind", kind])
        for made in pathlib.Path(folder).iterdir():
            if not any(made.iterdir()):  # classes are drawn, and pack refuses one without images
                made.rmdir()
        return folder
    for i, path in enumerate(random.Random(seed).sample(found, n)):
        to = pathlib.Path(folder) / f"class{i % N_CLASSES:03}"
        to.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to / f"{i:04}{path.suffix}")
    return folder


def pack(build, source, out, *options):
    must([build.penstock, "pack", source, out, *options])
    return out


def entries(folder):
    """Return every path below a folder, sorted, relative to it."""
    top = pathlib.Path(folder)
    return sorted(str(path.relative_to(top)) for path in top.rglob("*"))


def content(folder):
    """Return a digest of every name and byte below a folder, or of one file; "" where there is none."""
    digest, top = hashlib.sha256(), pathlib.Path(folder)
    if top.is_file():
        return hashlib.sha256(top.read_bytes()).hexdigest()
    if not top.exists():
        return ""
    for path in sorted(top.rglob("*")):
        digest.update(f"{path.relative_to(top)}\0{path.is_file()}\0".encode())
        if path.is_file():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def listed(folder):
    """Return the file names that a data set's manifest lists, the manifest included."""
    manifest = json.loads((pathlib.Path(folder) / "manifest.json").read_text())
    files = [x["file"] for x in manifest["shards"] + manifest["dictionaries"]]
    return sorted(["manifest.json", *files, *sum(columns(folder).values(), [])])


def columns(folder):
    """Return the names of the files of each column that a data set's manifest lists, by the column's name."""
    manifest = json.loads((pathlib.Path(folder) / "manifest.json").read_text())
    stems = [x["file"].removesuffix(".pstk") for x in manifest["shards"]]
    return {x["name"]: [f"{stem}.{x['files']}.pcol" for stem in stems]
            for x in manifest.get("extra", {}).get("columns", [])}


def values(path, numbers):
    """Write a .npy file of these numbers, f64."""
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({len(numbers)},), }}".ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H118s", 118, head.encode()) +
                     struct.pack(f"<{len(numbers)}d", *numbers))
    return path


def identity(build, folder):
    """Return the identity of a whole data set; "" where there is none; raises ValueError where it is damaged."""
    if not (pathlib.Path(folder) / "manifest.json").exists():
        return ""
    done = process.run([build.penstock, "verify", folder])
    if done.status:
        raise ValueError(done.shown())
    return json.loads((pathlib.Path(folder) / "manifest.json").read_text())["identity"]


def size(folder):
    """Return bytes of a folder in whole pages, one for each entry and the folder included."""
    return sum(-(-path.stat().st_size // 4096) * 4096 + 4096 for path in [pathlib.Path(folder), *pathlib.Path(folder).rglob("*")])


def draws(seed, *parts):
    """Return a generator of random numbers for one attempt, the same in every run with this seed."""
    return random.Random("/".join(map(str, (seed, *parts))))
