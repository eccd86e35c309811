#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every byte of an affine and of a perspective transform equals that of Pillow's Image.transform.

Usage: pillow_warp.py DUMP_WARP [CASES] [SEED]; writes TAP; 77 where Pillow or numpy is missing.
"""
import math
import struct
import subprocess
import sys

try:
    import numpy as np
    from PIL import Image, __version__ as pillow_version
except ImportError as e:
    print(f"1..0 # SKIP {e}")
    sys.exit(77)

FILTERS = [Image.NEAREST, Image.BILINEAR, Image.BICUBIC]
METHODS = [Image.AFFINE, Image.PERSPECTIVE]


class Tool:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def warp(self, pixels, method, size, m, filter, fill):
        height, width, channels = pixels.shape
        job = struct.pack("<7I4B8d", method, width, height, *size, channels, filter,
                          *(fill + (0,) * 4)[:4], *(tuple(m) + (0.0,) * 8)[:8])
        self.process.stdin.write(job + pixels.tobytes())
        self.process.stdin.flush()
        n = size[0] * size[1] * channels
        data = self.process.stdout.read(n)
        if len(data) != n:
            raise SystemExit("dump_warp ended early")
        return np.frombuffer(data, np.uint8).reshape(size[1], size[0], channels)

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


def image_of(pixels):
    """Mode L of one channel, RGB of three, RGBA of four."""
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


def pixels_of(rng, width, height, channels):
    shape = (height, width, channels)
    kind = rng.integers(0, 4)
    if kind == 0:
        return (rng.integers(0, 2, shape) * 255).astype(np.uint8)
    if kind == 1:
        y, x, c = np.indices(shape)
        return ((x * 3 + y * 5 + c * 85) % 256).astype(np.uint8)
    return rng.integers(0, 256, shape, np.uint8)


def side(rng):
    return int([1, rng.integers(1, 8), rng.integers(8, 90), rng.integers(90, 300)][
        rng.choice(4, p=[0.07, 0.23, 0.5, 0.2])])


def turn(rng, w, h, ow, oh):
    """A rotation with scale and shear about the centre."""
    angle, scale = rng.uniform(0, 2 * math.pi), rng.uniform(0.3, 3)
    a, b = math.cos(angle) * scale, math.sin(angle) * scale
    m = [a, b + rng.normal() * 0.2, 0, -b, a, 0]
    m[2] = w / 2 - m[0] * ow / 2 - m[1] * oh / 2 + rng.normal() * 3
    m[5] = h / 2 - m[3] * ow / 2 - m[4] * oh / 2 + rng.normal() * 3
    return m


def scaling(rng, w, h, ow, oh):
    """Pure scale and translation: a path of its own."""
    kind = rng.integers(0, 5)
    if kind == 0:
        return [1, 0, 0, 0, 1, 0]
    if kind == 1:
        return [1, 0, rng.uniform(-9, 9), 0, 1, rng.uniform(-9, 9)]
    if kind == 2:
        return [1, 0, int(rng.integers(-9, 9)) / 2, 0, 1, int(rng.integers(-9, 9)) / 2]
    if kind == 3:
        return [-1, 0, w, 0, -1, h]
    return [w / ow, 0, rng.normal(), 0, h / oh, rng.normal()]


def whole(rng, w, h, ow, oh):
    """Small fractions: places on the borders between pixels, values without rounding."""
    return [int(rng.integers(-8, 9)) / 4 for _ in range(6)]


def quarter(rng, w, h, ow, oh):
    return [0, 1, 0, -1, 0, h] if rng.integers(0, 2) else [0, -1, w, 1, 0, 0]


def singular(rng, w, h, ow, oh):
    a, b = rng.normal(), rng.normal()
    return [a, b, rng.uniform(0, w), a, b, rng.uniform(0, h)]


def huge(rng, w, h, ow, oh):
    """Beyond fixed point, beyond int, not numbers."""
    values = [1e3, 3e4, 32767.99999, 32768, 65536, 1e6, 1e10, 1e300, math.inf, math.nan]
    m = turn(rng, w, h, ow, oh)
    for i in rng.integers(0, 6, rng.integers(1, 3)):
        m[i] = values[rng.integers(0, len(values))] * (1 if rng.integers(0, 2) else -1)
    return m


def case_of(rng, i):
    w, h, ow, oh = (side(rng) for _ in range(4))
    if rng.random() < 0.4:
        ow, oh = w, h
    kinds = [turn, turn, turn, scaling, whole, quarter, singular, huge]
    m = kinds[rng.integers(0, len(kinds))](rng, w, h, ow, oh)
    method = int(rng.random() < 0.3)
    if method == 1:
        bend = 2.0 / (ow + oh)
        m = list(m) + [[0, 0], [rng.normal() * bend * 0.3, rng.normal() * bend * 0.3],
                       [-1 / 4, 1 / 8], [rng.normal(), rng.normal()]][rng.choice(4, p=[0.1, 0.6, 0.1, 0.2])]
    return w, h, ow, oh, method, [float(v) for v in m]


def main():
    tool = Tool(sys.argv[1])
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 600
    rng = np.random.default_rng(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    n_bytes = n_bad = n_images = 0
    for i in range(n):
        w, h, ow, oh, method, m = case_of(rng, i)
        for channels in (1, 3, 4):
            pixels = pixels_of(rng, w, h, channels)
            fill = tuple(int(v) for v in rng.integers(0, 256, channels))
            for filter in range(3):
                wanted = image_of(pixels).transform((ow, oh), METHODS[method], m, FILTERS[filter],
                                                    fillcolor=fill if channels > 1 else fill[0])
                wanted = np.asarray(wanted).reshape(oh, ow, channels)
                bad = int((tool.warp(pixels, method, (ow, oh), m, filter, fill) != wanted).sum())
                if bad:
                    print(f"# {w}x{h}x{channels} -> {ow}x{oh} method {method} filter {filter} {m}: {bad} bytes differ")
                n_images += 1
                n_bytes += ow * oh * channels
                n_bad += bad
    ok = n_bad == 0 and tool.close() == 0
    print("1..1")
    print(f"# Pillow {pillow_version}: {n_images} transforms, {n_bytes} bytes compared, {n_bad} differ")
    print(f"{'ok' if ok else 'not ok'} 1 - transformed_bytes_equal_those_of_pillow")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
