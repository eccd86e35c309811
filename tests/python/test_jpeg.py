# SPDX-License-Identifier: Apache-2.0
"""penstock.ops.JPEG and functional.jpeg give the pixels that Pillow reads from a JPEG file that it saved, and those of
torchvision, with all kernels; qualities are drawn as often as in torchvision."""
import io
import itertools
import os
import unittest

import sets
import penstock
from penstock import functional
from penstock.ops import JPEG, CenterCrop, RandomApply, RandomChoice, RandomFlip, RandomResizedCrop, Resize

sets.need_numpy()
import numpy  # noqa: E402

try:
    from PIL import Image
except ImportError:
    raise unittest.SkipTest("Pillow is not installed") from None
try:
    import torch
    from torchvision.transforms.v2 import functional as v2
except ImportError:
    v2 = None

KERNELS = []
for each in ("c", "avx2", "avx512", "neon"):
    try:
        functional.jpeg(numpy.zeros((1, 1), "uint8"), 50, kernels=each)
        KERNELS.append(each)
    except penstock.UnsupportedError:
        pass
QUALITIES = (1, 2, 5, 10, 24, 49, 50, 51, 75, 90, 95, 98, 99, 100)


def by_pillow(array, quality):
    out = io.BytesIO()
    Image.fromarray(array).save(out, "JPEG", quality=quality)
    return numpy.asarray(Image.open(out))


def noise(random, shape):
    return random.integers(0, 256, shape, numpy.uint8)


def extremes(random, shape):
    return random.integers(0, 2, shape, numpy.uint8) * numpy.uint8(255)


def one_colour(random, shape):
    return numpy.broadcast_to(random.integers(0, 256, shape[2:], numpy.uint8), shape).copy()


def smooth(random, shape):
    small = noise(random, (1 + shape[0] // 9, 1 + shape[1] // 9, *shape[2:]))
    return numpy.array(Image.fromarray(small).resize((shape[1], shape[0]), Image.Resampling.BICUBIC))


class Pixels(unittest.TestCase):
    def check(self, array, quality):
        wanted = by_pillow(array, quality)
        for kernels in KERNELS:
            found = functional.jpeg(array, quality, kernels=kernels)
            if found.shape != wanted.shape or (found != wanted).any():
                self.fail(f"{array.shape}, quality {quality}, kernels {kernels}")

    def test_every_small_size_gives_pillows_pixels(self):
        random = numpy.random.default_rng(1)
        for height, width in itertools.product(range(1, 36), repeat=2):
            shape = (height, width, 3) if (height + width) % 3 else (height, width)
            self.check((noise, smooth)[height % 2](random, shape), QUALITIES[(height + 5 * width) % len(QUALITIES)])

    def test_every_quality_gives_pillows_pixels(self):
        random = numpy.random.default_rng(2)
        for quality in range(1, 101):
            for make in (noise, extremes, one_colour, smooth):
                self.check(make(random, (37, 61, 3)), quality)
            self.check(smooth(random, (61, 37)), quality)

    def test_wide_and_high_pictures_give_pillows_pixels(self):
        random = numpy.random.default_rng(3)
        for shape in ((3, 8191, 3), (8193, 2, 3), (40, 4099), (1, 65500, 3), (65500, 1), (700, 901, 3)):
            self.check(smooth(random, shape), 60)
        self.check(noise(random, (600, 801, 3)), 100)

    def test_a_picture_of_eight_thousand_pixels_gives_pillows_pixels(self):
        random = numpy.random.default_rng(4)
        self.check(smooth(random, (4320, 7680, 3)), 75)

    def test_the_picture_before_stays_as_it_is(self):
        array = smooth(numpy.random.default_rng(5), (40, 50, 3))
        before = array.copy()
        functional.jpeg(array, 10)
        self.assertTrue((array == before).all())

    @unittest.skipIf(v2 is None, "torchvision is not installed")
    def test_pixels_are_torchvisions_of_tensors_too(self):
        random = numpy.random.default_rng(6)
        for i in range(60):
            shape = tuple(int(side) for side in random.integers(1, 90, 2)) + (3,) * (i % 3 > 0)
            array, quality = (noise, smooth)[i % 2](random, shape), int(random.integers(1, 101))
            tensor = torch.from_numpy(array)
            wanted = v2.jpeg(tensor.permute(2, 0, 1) if array.ndim == 3 else tensor[None], quality)
            wanted = wanted.permute(1, 2, 0) if array.ndim == 3 else wanted[0]
            self.assertTrue((functional.jpeg(array, quality) == wanted.numpy()).all(), (shape, quality))


class Draws(unittest.TestCase):
    def test_a_range_is_drawn_with_both_ends_equally_often(self):
        n, counts = 6000, dict.fromkeys(range(30, 36), 0)
        for i in range(n):
            (op,) = penstock.draw([Resize((8, 8)), JPEG((30, 35))], (8, 8, 3), sample_id=i)[1:]
            self.assertEqual(op.name, "jpeg")
            counts[op.arguments[0]] += 1
        share = n / len(counts)  # chi-square of 5 degrees is above 30 once in 60 000 trials; the seed is fixed
        self.assertLess(sum((count - share) ** 2 / share for count in counts.values()), 30)

    def test_one_quality_is_drawn_always(self):
        for quality in (40, (40, 40), [40, 40]):
            (op,) = penstock.draw([Resize((8, 8)), JPEG(quality)], (8, 8, 1))[1:]
            self.assertEqual((op.name, op.arguments), ("jpeg", (40,)))


class Loaders(unittest.TestCase):
    LISTS = {
        "a range": [RandomResizedCrop(33), RandomFlip(), JPEG((5, 90))],
        "by chance": [Resize((40, 51)), RandomApply([JPEG(20)], 0.5), RandomFlip()],
        "a choice": [RandomChoice([JPEG(10), JPEG((20, 95))]), CenterCrop((30, 30))],
        "before a resize": [JPEG(30), RandomResizedCrop(31)],
    }

    @classmethod
    def setUpClass(cls):
        cls.path = os.path.join(sets.ROOT, "recompressed")
        random = numpy.random.default_rng(7)
        cls.pictures = [smooth(random, (30 + 7 * i, 90 - 5 * i, 3)) for i in range(9)]
        with penstock.Writer(cls.path, {"image": "image"}) as writer:
            for pixels in cls.pictures:
                writer.add(image=pixels)

    def rows(self, ops, channels=3, **keywords):
        image = penstock.image("image", ops, channels=channels)
        with penstock.Loader(self.path, batch_size=3, seed=3, framework="numpy", outputs={"image": image},
                             **keywords) as loader:
            return {int(i): row.copy() for batch in loader for i, row in zip(batch.sample_ids, batch["image"])}

    def test_rows_are_those_of_what_draw_says(self):
        for name, ops in self.LISTS.items():
            for kernels in KERNELS:
                for threads in (1, 3):
                    for i, row in self.rows(ops, reading=penstock.Reading(kernels=kernels), n_threads=threads).items():
                        pixels = self.pictures[i]
                        for op in penstock.draw(ops, pixels.shape, seed=3, sample_id=i):
                            pixels = op(pixels)
                        self.assertTrue((row == pixels).all(), (name, kernels, threads, i))

    def test_gray_rows(self):
        for i, row in self.rows([Resize((20, 21)), JPEG(35)], 1).items():
            gray = Image.fromarray(self.pictures[i]).convert("L").resize((21, 20), Image.Resampling.BILINEAR)
            self.assertTrue((row[:, :, 0] == by_pillow(numpy.asarray(gray), 35)).all())

    def test_alpha_is_refused(self):
        with self.assertRaisesRegex(penstock.PenstockError, r"\(JPEG\): .*the image has 4: a JPEG file has no alpha"):
            self.rows([Resize((20, 20)), JPEG(50)], 4)


class Wrong(unittest.TestCase):
    def test_wrong_qualities_are_named(self):
        whole = "must be a whole number from 1 to 100"
        for value, kind, words in ((0, ValueError, "value is 0; " + whole), (101, ValueError, "value is 101; " + whole),
                                   (7.5, TypeError, "value is 7.5; " + whole), ("75", TypeError, "value is '75'"),
                                   (None, TypeError, "value is None"), ((1, 2, 3), ValueError, "two in rising order"),
                                   ((9, 3), ValueError, "two in rising order"), ((0, 3), ValueError, "value is 0"),
                                   ((3, 101), ValueError, "value is 101")):
            with self.assertRaises(kind) as caught:
                JPEG(value)
            self.assertIn("JPEG.quality: ", str(caught.exception))
            self.assertIn(words, str(caught.exception))

    def test_the_function_names_them_too(self):
        array = numpy.zeros((4, 4, 3), "uint8")
        for value in (0, 101, 50.5, float("nan"), (20, 60)):
            with self.assertRaisesRegex((TypeError, ValueError), "jpeg.quality: value is .*; must be a whole number"):
                functional.jpeg(array, value)
        with self.assertRaisesRegex(penstock.PenstockError, "a JPEG file has no alpha"):
            functional.jpeg(numpy.zeros((4, 4, 4), "uint8"), 50)

    def test_keywords_and_names_of_others_have_advice(self):
        with self.assertRaisesRegex(AttributeError, r"it is penstock.ops.JPEG\(\(least, most\)\)"):
            penstock.ImageCompression
        with self.assertRaisesRegex(AttributeError, "it is penstock.ops.JPEG$"):
            penstock.Jpeg
        with self.assertRaisesRegex(TypeError, r"write penstock.ops.RandomApply\(\[penstock.ops.JPEG\(50\)\], 0.5\)"):
            penstock.ops.JPEG(50, p=0.5)


if __name__ == "__main__":
    unittest.main()
