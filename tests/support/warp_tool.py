# SPDX-License-Identifier: Apache-2.0
"""Drive tests/pixels/dump_warp, and make images for it."""
import struct
import subprocess

import numpy as np
from PIL import Image

AFFINE, PERSPECTIVE, ROTATE, FORM, CORNERS, FLIP, TURN, PAD = range(8)
FILTERS = [Image.NEAREST, Image.BILINEAR, Image.BICUBIC]


class Tool:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def read(self, n):
        data = self.process.stdout.read(n)
        if len(data) != n:
            raise SystemExit("dump_warp ended early")
        return data

    def work(self, pixels, what, numbers=(), option=0, size=None, fill=()):
        """Return the pixels and the matrix."""
        height, width, channels = pixels.shape
        size = size or (width, height)
        job = struct.pack("<7I4B16d", what, width, height, *size, channels, option,
                          *(tuple(fill) + (0,) * 4)[:4], *(tuple(map(float, numbers)) + (0.0,) * 16)[:16])
        self.process.stdin.write(job + pixels.tobytes())
        self.process.stdin.flush()
        width, height = struct.unpack("<2I", self.read(8))
        m = struct.unpack("<8d", self.read(64))
        data = self.read(width * height * channels)
        return np.frombuffer(data, np.uint8).reshape(height, width, channels), m

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


class Count:
    """Counts of what was compared, and of what differs: matrices that differ, and bytes that change by them."""

    def __init__(self):
        self.images = self.bytes = self.bad = self.matrices = self.changed = 0

    def compare(self, got, image, what):
        wanted = pixels_of(image)
        self.images += 1
        self.bytes += wanted.size
        bad = wanted.size if got.shape != wanted.shape else int((got != wanted).sum())
        self.bad += bad
        if bad:
            print(f"# {what}: {wanted.shape}: {bad} bytes differ")


def image_of(pixels):
    """Mode L of one channel, RGB of three, RGBA of four."""
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


def pixels_of(image):
    pixels = np.asarray(image)
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def draw_pixels(rng, width, height, channels):
    shape = (height, width, channels)
    kind = rng.integers(0, 4)
    if kind == 0:  # the extremes
        return (rng.integers(0, 2, shape) * 255).astype(np.uint8)
    if kind == 1:
        y, x, c = np.indices(shape)
        return ((x * 3 + y * 5 + c * 85) % 256).astype(np.uint8)
    return rng.integers(0, 256, shape, np.uint8)


def draw_fill(rng, channels):
    return tuple(int(v) for v in rng.integers(0, 256, channels))


def draw_side(rng):
    return int([1, rng.integers(1, 8), rng.integers(8, 90), rng.integers(90, 300)][
        rng.choice(4, p=[0.07, 0.23, 0.5, 0.2])])
