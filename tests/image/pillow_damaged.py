#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare the decoder of damaged JPEGs with Pillow, byte for byte, over files damaged by chance.

usage: pillow_damaged.py DUMP_IMAGE [N [SEED]]

DUMP_IMAGE is the program built from tests/image/dump_image.c. N files (default: 3000) are made of JPEGs that
Pillow writes, and of those of the folder that PENSTOCK_TEST_JPEGS names: bits are flipped, bytes removed,
inserted and repeated, markers planted, files cut. Of each, pstk_image_check_damaged must find what Pillow
makes of it: Image.open(f).load() raises, or its pixels are those of the decoder. Three licences, each counted:
files that the library refuses by their header, or for their scans, with a message of REFUSED; files that end in
a frame's marker after the last row, where Pillow has a later libjpeg-turbo (see is_other_release); and files with
a bad code of which libjpeg-turbo does not warn, because its fast path reads it: Pillow takes the slow path near
the end of each 64 KiB. The last two are rare: at most one file in 500. Pillow's libjpeg-turbo must be 3.0.1 or
later: earlier ones smooth other blocks of progressive files that lack bits.
Exit status: 0 equal, 1 not, 77 no Pillow.
"""
import collections
import io
import os
import random
import subprocess
import sys
import tempfile
import warnings

try:
    from PIL import Image, features
except ImportError:
    print("no Pillow")
    sys.exit(77)

warnings.simplefilter("ignore")

EVERY = int(os.environ.get("PENSTOCK_TEST_EVERY", "1"))  # one of so many files: tests/meson.build
# Messages of files that Pillow loads and the library does not take, however damaged: see docs/limits.md.
REFUSED = ("scans", "Unsupported marker type")
MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # Pillow's, by channels


class Dump:
    """One dump_image process, asked file by file."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, what, path):
        self.process.stdin.write(what + b" " + os.fsencode(path) + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().decode(errors="replace")
        if not line:
            raise RuntimeError(f"dump_image died on {path}")
        return line.rstrip("\n")

    def check(self, path):
        """Return (result, damaged, message) of pstk_image_check_damaged."""
        result, damaged, message = self.ask(b"check", path).split(" ", 2)
        return result, int(damaged), message

    def pixels(self, path, channels, damaged):
        line = self.ask(b"d%d" % channels if damaged else b"%d" % channels, path)
        if line.startswith("error"):
            return line
        width, height, _ = map(int, line.split()[1:])
        return self.process.stdout.read(width * height * channels)


def pillow(path, mode):
    """Return the pixels, or the exception."""
    try:
        with Image.open(path, formats=("JPEG", "MPO")) as image:
            image.load()
            return image.convert(mode).tobytes()
    except Exception as e:  # Pillow's refusals have no common class
        return e


def photograph(mode, size, seed):
    """Return an image with smooth parts, edges and noise."""
    r = random.Random(seed)
    bands = [bytes((x * (3 + band) + y * 2 + (r.randrange(64) if (x // 16 + y // 16) & 1 else 0)) & 255
                   for y in range(size[1]) for x in range(size[0])) for band in range(len(mode))]
    images = [Image.frombytes("L", size, band) for band in bands]
    return images[0] if len(images) == 1 else Image.merge(mode, images)


def sources():
    """Whole JPEGs of every kind that Pillow writes: some are longer than the 64 KiB that Pillow reads at once."""
    for mode in ("L", "RGB", "CMYK"):
        for size in ((40, 37), (200, 150), (400, 333)):
            image = photograph(mode, size, size[0])
            for options in ({}, {"progressive": True}, {"subsampling": 0, "quality": 95}, {"restart_marker_blocks": 7},
                            {"restart_marker_rows": 1, "progressive": True}, {"optimize": True, "quality": 30}):
                out = io.BytesIO()
                image.save(out, "JPEG", **options)
                yield out.getvalue()
    folder = os.environ.get("PENSTOCK_TEST_JPEGS")
    for name in sorted(os.listdir(folder)) if folder else ():
        if name.lower().endswith((".jpg", ".jpeg")):
            with open(os.path.join(folder, name), "rb") as f:
                data = f.read()
            if len(data) < 150000:
                yield data


def place(r, data):
    """Choose the place of the damage: mostly in a scan, often near the pieces of 64 KiB that Pillow reads, or near the end."""
    scan = data.find(b"\xff\xda")
    kind = r.randrange(10)
    if kind == 0:
        return r.randrange(len(data))
    if kind == 1:
        return max(2, len(data) - 1 - r.randrange(min(len(data) - 2, 40)))
    if kind == 2 and len(data) > 65536:
        return min(len(data) - 1, 65536 * r.randrange(1, 1 + len(data) // 65536) + r.randrange(-600, 300))
    return r.randrange(max(scan, 2), len(data))


PLANTED = (b"\xff", b"\xff\xff\x00", b"\xff\xff\xff", b"\xff\x00", b"\xff\xd9", b"\xff\xd0", b"\xff\xd3", b"\xff\xd7",
           b"\xff\xda", b"\xff\xc4", b"\xff\xe1\x00\x08abcdef", b"\xff\xfe\xff\xf0", b"\xff\x01", b"\0" * 9,
           b"\xff\xdd\x00\x04\x00\x05", b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00")


def damage(r, data):
    data = bytearray(data)
    for _ in range(r.choice((1, 1, 1, 2, 5, 20))):
        at, kind = place(r, data), r.randrange(8)
        if kind <= 1:
            data[at] ^= 1 << r.randrange(8)
        elif kind == 2:
            data[at] = r.randrange(256)
        elif kind == 3:
            del data[at:at + r.choice((1, 2, 3, 50, 3000))]
        elif kind == 4:
            data[at:at] = data[at:at + r.choice((1, 2, 100, 5000))]
        elif kind == 5:
            planted = r.choice(PLANTED)
            data[at:at + len(planted) * r.randrange(2)] = planted
        elif kind == 6:
            data[at:at + 1 + r.randrange(30)] = bytes(r.randrange(256) for _ in range(1 + r.randrange(30)))
        elif r.randrange(3) == 0:
            del data[at:]
            data += r.choice((b"", b"\xff\xd9", b"\xff"))
        if len(data) < 64:
            break
    return bytes(data)


def is_other_release(dump):
    """1: of the library and Pillow, one has a libjpeg-turbo before 3.0.1, the other a later one. Later ones refuse a
    second frame header before they ask for its length."""
    texts = (dump.ask(b"library", "x").split()[-1], features.version("libjpeg_turbo"))
    versions = [tuple(map(int, text.split("."))) for text in texts]
    return min(versions) < (3, 0, 1) <= max(versions)


class Tally:
    def __init__(self):
        self.n, self.n_wrong, self.is_other_release = collections.Counter(), 0, 0

    def fail(self, number, text, data):
        self.n_wrong += 1
        print(f"file {number} of {len(data)} bytes: {text}")
        folder = os.environ.get("PENSTOCK_KEEP_DAMAGED")
        if folder:
            with open(os.path.join(folder, f"{number}.jpg"), "wb") as f:
                f.write(data)


def compare(dump, tally, number, path, data):
    channels = (3, 1, 4)[number % 3]
    theirs = pillow(path, MODES[channels])
    result, damaged, message = dump.check(path)
    if result != "0" and not damaged:
        tally.n["refused"] += 1
        if isinstance(theirs, bytes):
            if any(text in message for text in REFUSED):
                tally.n["refused by us alone"] += 1
            else:
                tally.fail(number, f"Pillow loads it, the check says: {message}", data)
        return
    tally.n["damaged" if damaged else "whole"] += 1
    ends_in_frame = data[-2] == 0xff and 0xc0 <= data[-1] <= 0xcf
    if not isinstance(theirs, bytes) and tally.is_other_release and not damaged and ends_in_frame:
        tally.n["refused by another release"] += 1
        return
    if not isinstance(theirs, bytes):
        tally.fail(number, f"damaged {damaged}, but Pillow raises: {theirs!r}", data)
        return
    for as_damaged in range(damaged, 2):  # whole files have the same pixels both ways
        ours = dump.pixels(path, channels, as_damaged)
        if isinstance(ours, str):
            tally.fail(number, f"the check takes it, the decoder says: {ours}", data)
        elif ours != theirs and not as_damaged and dump.pixels(path, channels, 1) == theirs:
            tally.n["a bad code without a warning"] += 1
        elif ours != theirs:
            tally.fail(number, f"{sum(a != b for a, b in zip(ours, theirs))} of {len(theirs)} bytes differ "
                       f"(damaged {damaged}, {as_damaged}; {message})", data)


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    files = range(0, int(sys.argv[2]) if len(sys.argv) > 2 else 3000, EVERY)
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    if tuple(map(int, (features.version("libjpeg_turbo") or "0").split("."))) < (3, 0, 1):
        print("Pillow's libjpeg-turbo is older than 3.0.1")
        return 77
    dump, tally, whole = Dump(sys.argv[1]), Tally(), list(sources())
    tally.is_other_release = is_other_release(dump)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "damaged.jpg")
        for number in files:
            r = random.Random(f"{seed}/{number}")
            data = damage(r, r.choice(whole))
            with open(path, "wb") as f:
                f.write(data)
            compare(dump, tally, number, path, data)
    n = len(files)
    print(f"{n} files: {dict(tally.n)}; {tally.n_wrong} wrong")
    rare = tally.n["refused by another release"] + tally.n["a bad code without a warning"]
    return 1 if tally.n_wrong or rare > max(1, n // 500) or tally.n["damaged"] < n // 10 else 0


if __name__ == "__main__":
    sys.exit(main())
