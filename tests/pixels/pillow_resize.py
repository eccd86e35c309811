#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every resized byte equals Pillow's Image.resize(size, filter), of every filter, and of modes L, RGB and RGBA.

Usage: pillow_resize.py DUMP_RESIZE [CASES] [SEED]; writes TAP; 77 where Pillow or numpy is missing.
"""
import struct
import subprocess
import os
import sys

try:
    import numpy as np
    from PIL import Image, __version__ as pillow_version
except ImportError as e:
    print(f"1..0 # SKIP {e}")
    sys.exit(77)


FILTERS = {1: Image.NEAREST, 2: Image.BOX, 3: Image.BILINEAR, 4: Image.HAMMING, 5: Image.BICUBIC,
           6: Image.LANCZOS}  # by enum pstk_filter


class Tool:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def resize(self, pixels, size, window, kind):
        height, width, channels = pixels.shape
        left, top, w, h = window
        self.process.stdin.write(struct.pack("<10I", width, height, *size, left, top, w, h, channels, kind))
        self.process.stdin.write(pixels.tobytes())
        self.process.stdin.flush()
        data = self.process.stdout.read(w * h * channels)
        if len(data) != w * h * channels:
            raise SystemExit("dump_resize ended early")
        return np.frombuffer(data, np.uint8).reshape(h, w, channels)

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


def image_of(pixels):
    """Mode L of one channel, RGB of three, RGBA of four."""
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


def pixels_of(rng, width, height, channels, kind):
    shape = (height, width, channels)
    if kind == 0:
        return rng.integers(0, 256, shape, np.uint8)
    if kind == 1:  # the extremes: where sums are greatest
        return (rng.integers(0, 2, shape) * 255).astype(np.uint8)
    if kind == 2:
        return np.full(shape, 255, np.uint8)
    y, x, c = np.indices(shape)
    return ((x * 3 + y * 5 + c * 85) % 256).astype(np.uint8)


def side(rng):
    """1, small, common, large: sides of an image or of a result."""
    return int([1, rng.integers(1, 8), rng.integers(8, 300), rng.integers(200, 700)][
        rng.choice(4, p=[0.07, 0.23, 0.5, 0.2])])


def cases_of(rng, n):
    fixed = [(1, 1, 1, 1), (1, 1, 64, 64), (2, 2, 100, 100), (7, 5, 350, 250), (5000, 4, 50, 4),
             (4, 5000, 4, 50), (2000, 1000, 20, 10), (1000, 1000, 1, 1), (3, 2, 3, 2),
             (224, 224, 224, 224), (500, 375, 500, 224), (500, 375, 224, 375), (256, 256, 224, 224),
             (448, 448, 224, 224), (672, 448, 224, 224), (223, 225, 224, 224), (1, 500, 300, 7)]
    yield from fixed
    for _ in range(n - len(fixed)):
        w, h, ow, oh = (side(rng) for _ in range(4))
        if rng.random() < 0.1:
            ow = w
        if rng.random() < 0.1:
            oh = h
        yield w, h, ow, oh


def main():
    tool = Tool(sys.argv[1])
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 150 // int(os.environ.get("PENSTOCK_TEST_EVERY", "1"))
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    rng = np.random.default_rng(seed)
    n_bytes = n_bad = n_images = 0
    for i, (w, h, ow, oh) in enumerate(cases_of(rng, n)):
        window = (0, 0, ow, oh)
        if i % 3 == 2:
            left, top = int(rng.integers(0, ow)), int(rng.integers(0, oh))
            window = (left, top, int(rng.integers(1, ow - left + 1)),
                      int(rng.integers(1, oh - top + 1)))
        left, top, ww, wh = window
        for channels in (1, 3, 4):
            pixels = pixels_of(rng, w, h, channels, i % 4)
            for kind, by in FILTERS.items():
                wanted = np.asarray(image_of(pixels).resize((ow, oh), by)).reshape(oh, ow, channels)
                found = tool.resize(pixels, (ow, oh), window, kind)
                bad = int((found != wanted[top:top + wh, left:left + ww]).sum())
                if bad:
                    print(f"# {w}x{h}x{channels} -> {ow}x{oh} window {window}, {by!r}: {bad} bytes differ")
                n_images += 1
                n_bytes += ww * wh * channels
                n_bad += bad
    ok = n_bad == 0 and tool.close() == 0
    print("1..1")
    print(f"# Pillow {pillow_version}: {n_images} resizes, {n_bytes} bytes compared, {n_bad} differ")
    print(f"{'ok' if ok else 'not ok'} 1 - resized_bytes_equal_those_of_pillow")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
