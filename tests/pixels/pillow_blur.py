#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bytes of the two Gaussian blurs are those of Pillow and, but for rare ones, of torchvision.

Usage: pillow_blur.py DUMP_BLUR [CASES] [SEED]; writes TAP; skips where Pillow or torchvision is missing.
"""
import struct
import subprocess
import sys

try:
    import numpy as np
    from PIL import ImageFilter, __version__ as pillow_version
    import warp_tool
    from warp_tool import image_of, pixels_of
except ImportError as e:
    print(f"1..0 # SKIP {e}")
    sys.exit(0)
if int(pillow_version.split(".")[0]) < 12:
    print(f"1..0 # SKIP Pillow {pillow_version} is older than 12")
    sys.exit(0)
try:
    import torch
    from torchvision import __version__ as torchvision_version
    from torchvision.transforms.v2 import functional as F
except ImportError as e:
    F, torchvision_version = None, e


class Tool:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def blur(self, pixels, sigma, size=(0, 0)):
        height, width, channels = pixels.shape
        self.process.stdin.write(struct.pack("<5I2d", width, height, channels, *size, *sigma) + pixels.tobytes())
        self.process.stdin.flush()
        data = self.process.stdout.read(pixels.size)
        if len(data) != pixels.size:
            raise SystemExit("dump_blur ended early")
        return np.frombuffer(data, np.uint8).reshape(pixels.shape)

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


def boxes(rng, tool, count, pixels):
    """Radii from none to more than the picture."""
    kinds = [0.0, rng.uniform(0, 1), rng.uniform(0.1, 2), rng.uniform(1, 20), rng.uniform(20, 300)]
    radius = [float(kinds[rng.choice(5, p=[0.1, 0.2, 0.3, 0.3, 0.1])]) for _ in range(2)]
    if rng.random() < 0.6:
        radius[1] = radius[0]
    count.compare(tool.blur(pixels, radius), image_of(pixels).filter(ImageFilter.GaussianBlur(radius)), f"{radius}")


def weights(rng, tool, count, pixels):
    """Differences of 1 are counted, larger ones are failures."""
    height, width, _ = pixels.shape
    size = [int(2 * rng.integers(0, min(n, 13)) + 1) for n in (width, height)]
    sigma = [float(v) for v in rng.uniform(0.1, [0.3, 2, 5][rng.integers(0, 3)], 2)]
    wanted = pixels_of(F.gaussian_blur(image_of(pixels), size, sigma))
    distance = np.abs(tool.blur(pixels, sigma, size).astype(int) - wanted)
    count.images += 1
    count.bytes += wanted.size
    count.changed += int((distance == 1).sum())
    count.bad += int((distance > 1).sum())


def main():
    tool = Tool(sys.argv[1])
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 120
    rng = np.random.default_rng(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    works = [boxes, weights] if F else [boxes]
    print(f"1..{len(works)}")
    all_good = True
    if F:
        torch.set_num_threads(1)
    for i, work in enumerate(works):
        count = warp_tool.Count()
        for case in range(n):
            pixels = warp_tool.draw_pixels(rng, warp_tool.draw_side(rng), warp_tool.draw_side(rng), (1, 3, 4)[case % 3])
            work(rng, tool, count, pixels)
        good = count.bad == 0 and count.changed <= 1e-4 * count.bytes
        if i == len(works) - 1:
            good = tool.close() == 0 and good
        all_good = all_good and good
        print(f"# Pillow {pillow_version}, torchvision {torchvision_version}: {count.images} images, {count.bytes} "
              f"bytes compared, {count.bad} differ, {count.changed} by 1 where that may be")
        print(f"{'' if good else 'not '}ok {i + 1} - {work.__name__}: bytes equal those of the reference")
    return 0 if all_good else 1


if __name__ == "__main__":
    sys.exit(main())
