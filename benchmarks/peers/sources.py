# SPDX-License-Identifier: Apache-2.0
"""The data that all peers read: one list of images, one file of records."""
import hashlib
import os
import pathlib
import random
import subprocess

import rows

SUFFIXES = {".jpg", ".jpeg"}
HEADER_SIZE = 128  # bytes before the first record
CHUNK = 1 << 24


def find_images(folder):
    files = sorted(str(path.resolve()) for path in pathlib.Path(folder).rglob("*")
                   if path.suffix.lower() in SUFFIXES)
    if not files:
        raise SystemExit(f"{folder}: no JPEG files")
    return files


def make_images(build, folder, n):
    """n photo-like images by the project's own program, unless they are there."""
    folder = pathlib.Path(folder)
    if not folder.exists():
        part = folder.with_name(folder.name + ".part")
        program = pathlib.Path(build) / "tests/make_images"
        subprocess.run([str(program), str(n), str(part), "--kind", "420"], check=True,
                       stdout=subprocess.DEVNULL)
        part.rename(folder)
    return folder


def npy_header(n, size):
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({n}, {size}), }}"
    start = b"\x93NUMPY\x01\x00" + (HEADER_SIZE - 10).to_bytes(2, "little")
    return start + text.ljust(HEADER_SIZE - 11).encode() + b"\n"


def make_records(path, n):
    """n records of random bytes, the same for the same n, as NumPy stores an array."""
    path = pathlib.Path(path)
    size = HEADER_SIZE + n * rows.RECORD_SIZE
    if path.exists() and path.stat().st_size == size:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    part, generator = path.with_name(path.name + ".part"), random.Random(n)
    with open(part, "wb") as file:
        file.write(npy_header(n, rows.RECORD_SIZE))
        while file.tell() < size:
            file.write(generator.randbytes(min(CHUNK, size - file.tell())))
    part.rename(path)
    return path


def identity(files):
    """Changes with the files, so that nothing packed from others is taken for theirs."""
    digest = hashlib.sha256()
    for file in files:
        stat = os.stat(file)
        digest.update(f"{file}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:12]
