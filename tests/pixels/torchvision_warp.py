#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bytes of affine, perspective and pad are those of torchvision's functional on PIL images.

torchvision computes matrices with the libm and the LAPACK of its machine, so that a matrix may differ
in its last place: see base/sine.h and pixels/warp_matrix.h. Those cases are counted.

Usage: torchvision_warp.py DUMP_WARP [CASES] [SEED]; writes TAP; skips where torchvision is missing.
"""
import sys

try:
    import numpy as np
    import torch
    import warp_tool
    from torchvision import __version__ as version
    from torchvision.transforms import functional as F
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms.functional import _get_inverse_affine_matrix, _get_perspective_coeffs
    from torchvision.transforms.transforms import RandomPerspective
    from warp_tool import image_of
except ImportError as e:
    print(f"1..0 # SKIP {e}")
    sys.exit(0)

MODES = [InterpolationMode.NEAREST, InterpolationMode.BILINEAR, InterpolationMode.BICUBIC]
PADS = ["constant", "edge", "reflect", "symmetric"]


def float32(value):
    return float(np.float32(value))


def compare_matrices(tool, count, pixels, fill, option, what, numbers, image, wanted):
    """Compare the image by torchvision's matrix, and the matrices; count bytes that the latter change."""
    by = warp_tool.PERSPECTIVE if what == warp_tool.CORNERS else warp_tool.AFFINE
    got, _ = tool.work(pixels, by, wanted, option, None, fill)
    count.compare(got, image, f"{what} {option} {numbers}")
    own, m = tool.work(pixels, what, numbers, option, None, fill)
    m = m[:len(wanted)]
    count.matrices += list(m) != wanted
    count.changed += int((own != got).sum())
    if not np.allclose(m, wanted, rtol=2e-7 if by == warp_tool.PERSPECTIVE else 1e-12, atol=1e-10):
        count.bad += 1
        print(f"# {what} {numbers}: {m}, not {wanted}")


def affine(rng, tool, count, pixels, fill):
    h, w, channels = pixels.shape
    angle = [float(rng.integers(-180, 181)), float32(rng.uniform(-180, 180))][rng.integers(0, 2)]
    translate = [int(v) for v in rng.integers(-20, 20, 2)]
    scale = 1.0 if rng.random() < 0.5 else float32(rng.uniform(0.3, 2))
    shear = [0.0, 0.0] if rng.random() < 0.5 else [float32(v) for v in rng.uniform(-60, 60, 2)]
    center = [w * 0.5, h * 0.5] if rng.random() < 0.5 else [0, 0]
    option = int(rng.integers(0, 3))
    image = F.affine(image_of(pixels), angle, translate, scale, shear, MODES[option], list(fill), center)
    compare_matrices(tool, count, pixels, fill, option, warp_tool.FORM, [angle, *translate, scale, *shear, *center],
                     image, _get_inverse_affine_matrix(center, angle, translate, scale, shear))


def perspective(rng, tool, count, pixels, fill):
    h, w, channels = pixels.shape
    if w < 8 or h < 8:
        return
    start, end = RandomPerspective.get_params(w, h, rng.uniform(0.1, 0.9))
    option = int(rng.integers(0, 3))
    image = F.perspective(image_of(pixels), start, end, MODES[option], list(fill))
    compare_matrices(tool, count, pixels, fill, option, warp_tool.CORNERS, [v for point in start + end for v in point],
                     image, _get_perspective_coeffs(start, end))


def pad(rng, tool, count, pixels, fill):
    h, w, _ = pixels.shape
    left, right = (int(v) for v in rng.integers(-(w - 1) // 2, 40, 2))
    top, bottom = (int(v) for v in rng.integers(-(h - 1) // 2, 40, 2))
    size = (w + left + right, h + top + bottom)
    for option, mode in enumerate(PADS):
        image = F.pad(image_of(pixels), [left, top, right, bottom], fill if len(fill) > 1 else fill[0], mode)
        got, _ = tool.work(pixels, warp_tool.PAD, (left, top), option, size, fill)
        count.compare(got, image, f"pad {mode} {left} {top} {right} {bottom}")


def main():
    torch.set_num_threads(1)
    tool = warp_tool.Tool(sys.argv[1])
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 150
    rng = np.random.default_rng(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    print("1..3")
    ok = True
    for i, work in enumerate([affine, perspective, pad]):
        count = warp_tool.Count()
        for case in range(n):
            channels = (1, 3, 4)[case % 3]
            pixels = warp_tool.draw_pixels(rng, warp_tool.draw_side(rng), warp_tool.draw_side(rng), channels)
            work(rng, tool, count, pixels, warp_tool.draw_fill(rng, channels))
        good = count.bad == 0 and (i < 2 or tool.close() == 0)
        ok = ok and good
        print(f"# torchvision {version}: {count.images} images, {count.bytes} bytes compared, {count.bad} differ; "
              f"{count.matrices} matrices differ in their last place, and so {count.changed} bytes")
        print(f"{'not ' * (not good)}ok {i + 1} - {work.__name__}: bytes equal those of torchvision")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
