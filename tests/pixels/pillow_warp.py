#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every byte of a transform, a rotation, a mirror, a turn and a crop equals that of Pillow.

Usage: pillow_warp.py DUMP_WARP [CASES] [SEED]; writes TAP; 77 where Pillow or numpy is missing.
"""
import math
import os
import sys

try:
    import numpy as np
    from PIL import Image, __version__ as pillow_version
    import warp_tool
    from warp_tool import image_of
except ImportError as e:
    print(f"1..0 # SKIP {e}")
    sys.exit(77)

METHODS = [Image.AFFINE, Image.PERSPECTIVE]


def turn(rng, w, h, ow, oh):
    """Return a rotation with scale and shear about the centre."""
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


def matrix_of(rng, *sides):
    kinds = [turn, turn, turn, scaling, whole, quarter, singular, huge]
    return [float(v) for v in kinds[rng.integers(0, len(kinds))](rng, *sides)]


def transform(rng, tool, count, pixels, fill):
    h, w, channels = pixels.shape
    size = (w, h) if rng.random() < 0.4 else (warp_tool.draw_side(rng), warp_tool.draw_side(rng))
    m = matrix_of(rng, w, h, *size)
    method = int(rng.random() < 0.3)
    if method == 1:
        bend = 0.6 / sum(size)
        m += [[0, 0], [rng.normal() * bend, rng.normal() * bend], [-1 / 4, 1 / 8], [rng.normal(), rng.normal()]][
            rng.choice(4, p=[0.1, 0.6, 0.1, 0.2])]
    for option, filter in enumerate(warp_tool.FILTERS):
        image = image_of(pixels).transform(size, METHODS[method], m, filter,
                                           fillcolor=fill if channels > 1 else fill[0])
        count.compare(tool.work(pixels, method, m, option, size, fill)[0], image, f"method {method} {option} {m}")


def rotate(rng, tool, count, pixels, fill):
    h, w, channels = pixels.shape
    angle = [rng.uniform(-400, 400), float(rng.integers(-360, 361)), float(np.float32(rng.uniform(-180, 180))),
             float(rng.integers(-8, 9) * 45), 90.0 * float(rng.integers(-8, 9))][rng.integers(0, 5)]
    expand = int(rng.integers(0, 2))
    center = None if rng.random() < 0.7 else [rng.uniform(0, w), float(rng.integers(0, h))]
    translate = None if rng.random() < 0.7 else [float(v) for v in rng.integers(-9, 9, 2)]
    numbers = [angle, expand, center is not None, *(center or (0, 0)), translate is not None, *(translate or (0, 0))]
    option = int(rng.integers(0, 3))
    image = image_of(pixels).rotate(angle, warp_tool.FILTERS[option], bool(expand), center, translate,
                                    fill if channels > 1 else fill[0])
    got, _ = tool.work(pixels, warp_tool.ROTATE, numbers, option, None, fill)
    count.compare(got, image, f"rotate {option} {numbers}")


def copy(rng, tool, count, pixels, fill):
    image = image_of(pixels)
    count.compare(tool.work(pixels, warp_tool.FLIP)[0], image.transpose(Image.FLIP_LEFT_RIGHT), "flip")
    count.compare(tool.work(pixels, warp_tool.FLIP, (), 1)[0], image.transpose(Image.FLIP_TOP_BOTTOM), "flip")
    for quarters, name in enumerate([None, Image.ROTATE_90, Image.ROTATE_180, Image.ROTATE_270]):
        turned = image.transpose(name) if name is not None else image
        count.compare(tool.work(pixels, warp_tool.TURN, (), quarters, turned.size)[0], turned, f"turn {quarters}")
    left, top = (int(v) for v in rng.integers(-20, 40, 2))
    size = warp_tool.draw_side(rng), warp_tool.draw_side(rng)
    cropped = image.crop((left, top, left + size[0], top + size[1]))
    count.compare(tool.work(pixels, warp_tool.PAD, (-left, -top), 0, size)[0], cropped, f"crop {left} {top}")


def main():
    tool = warp_tool.Tool(sys.argv[1])
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 600 // int(os.environ.get("PENSTOCK_TEST_EVERY", "1"))
    rng = np.random.default_rng(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    print("1..3")
    ok = True
    for i, (work, repeat) in enumerate([(transform, 1), (rotate, 2), (copy, 1)]):
        count = warp_tool.Count()
        for case in range(n * repeat):
            channels = (1, 3, 4)[case % 3]
            pixels = warp_tool.draw_pixels(rng, warp_tool.draw_side(rng), warp_tool.draw_side(rng), channels)
            work(rng, tool, count, pixels, warp_tool.draw_fill(rng, channels))
        last = i < 2 or tool.close() == 0
        ok = ok and count.bad == 0 and last
        print(f"# Pillow {pillow_version}: {count.images} images, {count.bytes} bytes compared, {count.bad} differ")
        print(f"{'not ' * (count.bad != 0 or not last)}ok {i + 1} - {work.__name__}: bytes equal those of pillow")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
