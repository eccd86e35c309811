#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every byte of the colour operations equals Pillow's, as torchvision and timm use it, of modes L, RGB and RGBA.

Usage: pillow_colour.py DUMP_COLOUR [CASES] [SEED] [torchvision]; writes TAP; 77 where Pillow or numpy is missing. With
the last word, torchvision's functional calls are compared as well.
"""
import importlib
import struct
import subprocess
import os
import sys

try:
    import numpy as np
    from PIL import Image, ImageEnhance, ImageOps, __version__ as pillow_version
except ImportError as e:
    print(f"1..0 # SKIP {e}")
    sys.exit(77)

AUTO, C = 0, 1
ORDERS = [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1), (0, 2, 1), (1, 0, 2)]


class Tool:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def change(self, kernels, name, pixels, settings, out_channels):
        height, width, channels = pixels.shape
        settings = (*settings, 0.0, 0.0)[:2]
        self.process.stdin.write(struct.pack("<6I2d", kernels, list(OPERATIONS).index(name), width, height, channels,
                                             out_channels, *settings))
        self.process.stdin.write(pixels.tobytes())
        self.process.stdin.flush()
        data = self.process.stdout.read(width * height * out_channels)
        if len(data) != width * height * out_channels:
            raise SystemExit("dump_colour ended early")
        return np.frombuffer(data, np.uint8).reshape(height, width, out_channels)

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


# ---- the references: what torchvision's _functional_pil and timm do with Pillow ----

def hue(image, factor):
    if image.mode == "L":
        return image
    h, s, v = image.convert("HSV").split()
    shifted = np.array(h) + np.array([int(factor * 255) % 256], np.uint8)
    return Image.merge("HSV", (Image.fromarray(shifted), s, v)).convert(image.mode)


def gamma(image, power, gain):
    table = [int((255 + 1 - 1e-3) * gain * pow(v / 255.0, power)) for v in range(256)] * 3
    return image.convert("RGB").point(table).convert(image.mode)


def solarize_add(image, add, threshold):
    table = [min(255, v + int(add)) if v < threshold else v for v in range(256)]
    return image.point(table * len(image.getbands()))


def grayscale(image, channels):
    gray = image.convert("L")
    return gray if channels == 1 else Image.merge("RGB", (gray, gray, gray))


def permute(image, code):
    code = int(code)
    bands = image.split()
    if len(bands) == 1:
        return image
    order = [code % 3, code // 3 % 3, code // 9 % 3]
    return Image.merge(image.mode, [bands[c] for c in order] + list(bands[3:]))


def factors(rng):
    return (float(rng.choice([0, 1, 2, 0.5, 1e-3, 10, 0.9, 1.1, 255.5, 3e7, -0.5, rng.random(), 3 * rng.random()])),)


def gammas(rng):
    return (float(rng.choice([0, 0.5, 1, 2, 2.2, 1 / 2.2, 3 * rng.random(), 20 * rng.random()])),
            float(rng.choice([0, 1, 1, 0.5, 2 * rng.random(), 1000])))


# Name: reference, settings, name in torchvision. In the order of enum operation in dump_colour.c.
OPERATIONS = {
    "brightness": (lambda i, f: ImageEnhance.Brightness(i).enhance(f), factors, "adjust_brightness"),
    "contrast": (lambda i, f: ImageEnhance.Contrast(i).enhance(f), factors, "adjust_contrast"),
    "saturation": (lambda i, f: ImageEnhance.Color(i).enhance(f), factors, "adjust_saturation"),
    "hue": (hue, lambda rng: (float(rng.choice([0, 0.5, -0.5, rng.random() - 0.5])),), "adjust_hue"),
    "sharpness": (lambda i, f: ImageEnhance.Sharpness(i).enhance(f), factors, "adjust_sharpness"),
    "gamma": (gamma, gammas, "adjust_gamma"),
    "invert": (ImageOps.invert, lambda rng: (), "invert"),
    "posterize": (lambda i, bits: ImageOps.posterize(i, int(bits)), lambda rng: (float(rng.integers(0, 9)),), None),
    "solarize": (ImageOps.solarize,
                 lambda rng: (float(rng.choice([0, 128, 256, 255 * rng.random(), rng.integers(0, 256)])),), "solarize"),
    "solarize_add": (solarize_add,
                     lambda rng: (float(rng.integers(-300, 300)), float(rng.choice([128, rng.integers(0, 257)]))), None),
    "autocontrast": (ImageOps.autocontrast, lambda rng: (), "autocontrast"),
    "equalize": (ImageOps.equalize, lambda rng: (), "equalize"),
    "grayscale": (grayscale, lambda rng: (int(rng.choice([1, 3])),), "to_grayscale"),
    "permute": (permute, lambda rng: (float(sum(3 ** i * c for i, c in enumerate(ORDERS[rng.integers(6)]))),), None),
}
NOT_OF_RGBA = {"invert", "posterize", "solarize", "solarize_add", "autocontrast", "equalize"}


def pixels_of(rng, width, height, channels, kind):
    shape = (height, width, channels)
    if kind == 0:
        return rng.integers(0, 256, shape, np.uint8)
    if kind == 1:  # extremes
        return (rng.integers(0, 2, shape) * 255).astype(np.uint8)
    if kind == 2:  # one byte in each channel
        return np.broadcast_to(rng.integers(0, 256, (1, 1, channels), np.uint8), shape).copy()
    if kind == 3:  # few bytes, and grays
        return np.broadcast_to(rng.integers(90, 120, (height, width, 1), np.uint8), shape).copy()
    y, x, c = np.indices(shape)
    return ((x * 3 + y * 5 + c * 85) // 4 % 200 + 20).astype(np.uint8)


def shapes_of(rng, n):
    yield from [(1, 1), (1, 9), (9, 1), (2, 2), (2, 40), (40, 2), (3, 3), (3, 50), (4, 8), (31, 1), (32, 1), (33, 1),
                (64, 3), (97, 5), (300, 200)]
    for _ in range(n):
        yield int(rng.integers(1, 130)), int(rng.integers(1, 90))


class Count:
    n_images = n_bytes = n_bad = 0

    def compare(self, got, image, what):
        wanted = np.asarray(image).reshape(got.shape)
        bad = int((got != wanted).sum())
        self.n_images += 1
        self.n_bytes += wanted.size
        self.n_bad += bad
        if bad:
            print(f"# {what}: {bad} bytes differ")


def compare_all(tool, count, rng, pixels, torchvision):
    channels = pixels.shape[2]
    image = Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels)
    for name, (reference, draw, other) in OPERATIONS.items():
        if channels == 4 and name in NOT_OF_RGBA:
            continue
        settings = draw(rng)
        out_channels = settings[0] if name == "grayscale" else channels
        what = f"{name}{settings} of {pixels.shape}"
        wanted = reference(image, *settings)
        got = tool.change(AUTO, name, pixels, settings, out_channels)
        count.compare(got, wanted, what)
        count.compare(tool.change(C, name, pixels, settings, out_channels), wanted, what + " in C")
        if torchvision and other:
            count.compare(got, getattr(torchvision, other)(image, *settings), what + " of torchvision")


def every_colour(tool, count):
    """All 2^24 colours, where Pillow's float and double could round otherwise than integers."""
    for blue in range(0, 256, 16):
        pixels = np.indices((256, 256, 16)).transpose(1, 2, 3, 0).reshape(1024, 1024, 3).astype(np.uint8)
        pixels[:, :, 2] += blue
        image = Image.fromarray(pixels)
        factor = blue / 512
        count.compare(tool.change(AUTO, "hue", pixels, (factor,), 3), hue(image, factor), "hue of all colours")
        count.compare(tool.change(AUTO, "grayscale", pixels, (), 1), image.convert("L"), "luma of all colours")


def main():
    tool = Tool(sys.argv[1])
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 60 // int(os.environ.get("PENSTOCK_TEST_EVERY", "1"))
    rng = np.random.default_rng(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    torchvision = sys.argv[4:] and importlib.import_module(f"{sys.argv[4]}.transforms._functional_pil")
    count = Count()
    for width, height in shapes_of(rng, n):
        for channels in (1, 3, 4):
            compare_all(tool, count, rng, pixels_of(rng, width, height, channels, int(rng.integers(5))), torchvision)
    every_colour(tool, count)
    ok = count.n_bad == 0 and tool.close() == 0
    print("1..1")
    print(f"# Pillow {pillow_version}: {count.n_images} pictures, {count.n_bytes} bytes compared, {count.n_bad} differ")
    print(f"{'ok' if ok else 'not ok'} 1 - colours_equal_those_of_pillow")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
