# SPDX-License-Identifier: Apache-2.0
"""Resizing by every filter gives Pillow's pixels; the arguments are torchvision's."""
import enum
import io
import os
import unittest

import sets
import penstock

sets.need_numpy()
import numpy  # noqa: E402

try:
    from PIL import Image
except ImportError:
    raise unittest.SkipTest("Pillow is not installed") from None
try:
    from torchvision import transforms
except ImportError:
    transforms = None

PATH = os.path.join(sets.ROOT, "resize")
SIZES = [(40, 77), (200, 31), (64, 64), (1, 90), (301, 222), (17, 16)]  # height, width
FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}  # by Pillow's values
MODES = {1: "L", 3: "RGB", 4: "RGBA"}
Resize, Crop, Random = penstock.ops.Resize, penstock.ops.CenterCrop, penstock.ops.RandomResizedCrop


def files():
    for i, size in enumerate(SIZES):
        out = io.BytesIO()
        pixels = numpy.random.default_rng(i).integers(0, 2 if i % 2 else 256, (*size, 4), dtype=numpy.uint8)
        Image.fromarray(pixels * numpy.uint8(255) if i % 2 else pixels).save(out, "PNG")
        yield out.getvalue()


FILES = list(files())


def setUpModule():
    with penstock.Writer(PATH, {"png": "image"}) as writer:
        for file in FILES:
            writer.add(png=file)


def rows(ops, **options):
    with penstock.Loader(PATH, outputs={"x": penstock.image("png", ops, **options)}, last_batch="short", seed=3,
                         batch_size=len(FILES), shuffle=False, form="dict", framework="numpy",
                         device=penstock.Device(copy=True),
                         observe=penstock.Observe(report_crops=True)) as loader:
        batch = next(iter(loader))
        return batch["x"], batch.crops["x"]


def images(mode):
    return [Image.open(io.BytesIO(file)).convert(mode) for file in FILES]


def middle(side, kept):
    """Return the begin of torchvision's centre crop, which pads a shorter side."""
    return round((side - kept) / 2) if side >= kept else -((kept - side) // 2)


class Pixels(unittest.TestCase):
    def equal(self, found, wanted, size):
        for row, image in zip(found, wanted, strict=True):
            numpy.testing.assert_array_equal(row, numpy.asarray(image).reshape(row.shape))
            self.assertEqual(row.shape[:2], size)

    def test_every_filter_is_pillows_in_all_channels(self):
        for name, code in FILTERS.items():
            for channels, mode in MODES.items():
                for size in ((30, 41), (120, 7), (64, 64)):
                    with self.subTest(name, channels=channels, size=size):
                        found, _ = rows([Resize(size, name)], channels=channels)
                        self.equal(found, [image.resize(size[::-1], code) for image in images(mode)], size)

    def test_a_crop_of_the_shorter_side_is_pillows(self):
        for name, code in FILTERS.items():
            for most in (None, 60):
                with self.subTest(name, most=most):
                    wanted = []
                    for image in images("RGB"):
                        short, long = sorted(image.size)
                        new = [50, int(50 * long / short)]
                        if most and new[1] > most:
                            new = [max(1, int(most * new[0] / new[1])), most]
                        w, h = new if image.width <= image.height else new[::-1]
                        left, top = middle(w, 20), middle(h, 20)
                        wanted.append(image.resize((w, h), code).crop((left, top, left + 20, top + 20)))
                    found, _ = rows([Resize(50, name, most), Crop(20)])
                    self.equal(found, wanted, (20, 20))

    def test_a_random_crop_is_pillows(self):
        for name, code in FILTERS.items():
            found, crops = rows([Random((24, 33), interpolation=name)])
            wanted = [image.crop((c.left, c.top, c.left + c.width, c.top + c.height)).resize((33, 24), code)
                      for image, c in zip(images("RGB"), crops)]
            self.equal(found, wanted, (24, 33))

    def test_a_random_filter_is_bilinear_or_bicubic_of_the_same_crop(self):
        linear, cubic, either = (rows([Random(24, interpolation=name)])[0] for name in ("bilinear", "bicubic", "random"))
        kinds = [(numpy.array_equal(e, a), numpy.array_equal(e, b)) for a, b, e in zip(linear, cubic, either)]
        self.assertTrue(all(a or b for a, b in kinds))
        self.assertIn((True, False), kinds)
        self.assertIn((False, True), kinds)


class Arguments(unittest.TestCase):
    def test_names_and_values_of_others_mean_the_same(self):
        for name, code in FILTERS.items():
            for value in (name, code, Image.Resampling(code), enum.Enum("Mode", {"X": name}).X):
                self.assertEqual(Resize(8, value), Resize(8, interpolation=name))
                self.assertEqual(Random(8, interpolation=value).interpolation, name)
        self.assertEqual(Resize(8, "nearest-exact").interpolation, "nearest")
        self.assertEqual(Resize(8), Resize(8, "bilinear", None, True))
        self.assertEqual(Random(8, antialias=None), Random(8))

    @unittest.skipIf(transforms is None, "torchvision is not installed")
    def test_the_order_of_arguments_is_torchvisions(self):
        modes = transforms.InterpolationMode
        self.assertEqual(Resize(8, modes.BICUBIC, 20, True).interpolation, "bicubic")
        self.assertEqual(Resize(8, modes.BICUBIC, 20, True).max_size, 20)
        self.assertEqual(Random(8, (0.1, 1), (1, 1), modes.LANCZOS, True).interpolation, "lanczos")
        self.assertEqual({mode.value for mode in modes} - {"nearest-exact"}, set(FILTERS))

    def refused(self, error, part, op, *arguments, **keywords):
        self.assertRaisesRegex(error, part, op, *arguments, **keywords)

    def test_wrong_ones_are_refused(self):
        self.refused(ValueError, "Resize.interpolation: value is 'bicubi'.*did you mean 'bicubic'", Resize, 8, "bicubi")
        for value in (6, -1, True, None, 2.0):
            self.refused(ValueError, "RandomResizedCrop.interpolation: value is", Random, 8, interpolation=value)
        self.refused(ValueError, "Resize.antialias: value is False; must be True or None", Resize, 8, antialias=False)
        self.refused(ValueError, "RandomResizedCrop.antialias", Random, 8, antialias=False)
        self.refused(ValueError, "Resize.max_size: value is 8; must be above size, 8", Resize, 8, max_size=8)
        self.refused(ValueError, "Resize.max_size: value is 9; must be None", Resize, (8, 8), max_size=9)
        self.refused(TypeError, "Resize.max_size: value is 'x'", Resize, 8, max_size="x")


if __name__ == "__main__":
    unittest.main()
