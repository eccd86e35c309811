# SPDX-License-Identifier: Apache-2.0
"""A loader with operations on colours, and with operations that have others, gives what a loop gives that decodes
with Pillow, asks penstock.draw what to do to each sample, and does that with torchvision."""
import collections
import gc
import io
import itertools
import os
import unittest

import sets
import penstock
from penstock.ops import (CenterCrop, ColorJitter, Grayscale, Normalize, RandomAdjustSharpness, RandomApply, RandomAutocontrast,
                          RandomChoice, RandomEqualize, RandomFlip, RandomGrayscale, RandomInvert, RandomOrder, RandomPosterize,
                          RandomResizedCrop, RandomSolarize, Resize)

sets.need_numpy()
import numpy  # noqa: E402

try:
    from PIL import Image
except ImportError:
    raise unittest.SkipTest("Pillow is not installed") from None
try:
    from torchvision.transforms import InterpolationMode, functional as torchvisions
    from torchvision.transforms.v2 import functional as v2
except ImportError:
    torchvisions = None

PATH = os.path.join(sets.ROOT, "colours")
N = 12
MODES = {1: "L", 3: "RGB", 4: "RGBA"}
SEED, EPOCHS = 7, (0, 3)


def files():
    """PNG and JPEG files, among them gray ones and ones with alpha; smooth, with all levels, so that no operation
    does nothing."""
    for i in range(N):
        height, width, channels = 40 + 9 * i, 150 - 8 * i, (3, 3, 1, 4)[i % 4]
        y, x, c = numpy.mgrid[0:height, 0:width, 0:channels]
        pixels = ((3 + i % 5) * x + 2 * y * (c + 1) + 40 * c + x * y // 9).astype(numpy.uint8)
        out = io.BytesIO()
        Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels).save(out, "JPEG" if i % 4 == 1 else "PNG")
        yield out.getvalue()


FILES = list(files())
jitter, rest = ColorJitter(0.4, 0.4, 0.4, 0.1), [RandomEqualize(), RandomPosterize(3), RandomSolarize(99)]
# Lists for images of 1 and 3 channels, in orders that a training loop has and in others.
LISTS = {
    "as usual": [RandomResizedCrop(24), RandomFlip(), jitter,
                 RandomApply([RandomInvert(), RandomSolarize(100.5)], 0.6)],
    "colours before the crop": [jitter, RandomAutocontrast(), RandomResizedCrop((24, 30)), RandomFlip()],
    "a flip after colours": [Resize((30, 20)), RandomEqualize(), RandomFlip(), RandomAdjustSharpness(2.5, 0.7)],
    "a resize after a crop": [CenterCrop((50, 44)), RandomPosterize(4), Resize((20, 30))],
    "two crops": [RandomResizedCrop(40), CenterCrop((30, 33)), RandomResizedCrop((16, 18)), RandomFlip()],
    "padding after colours": [Resize(40), RandomInvert(1), CenterCrop((48, 30)), jitter],
    "two resizes": [Resize(60, "random", 99), Resize((33, 28), "lanczos"), RandomSolarize(128), Resize((40, 41))],
    "other filters": [jitter, RandomResizedCrop(24, interpolation="random"), Resize((30, 31), "nearest")],
    "in any order": [RandomOrder([jitter, *rest]), RandomResizedCrop(20), RandomOrder([RandomFlip(), *rest])],
    "one of some": [RandomChoice(rest), CenterCrop(32), RandomChoice([jitter, RandomInvert(1)], [1, 3])],
    "one in another": [CenterCrop(32), RandomApply([RandomChoice([RandomOrder(rest), jitter]), RandomFlip(1)], 0.8)],
    "gray in the end": [RandomResizedCrop(24), jitter, Grayscale(1), RandomAutocontrast()],
}
OF_COLOUR = {
    "gray by chance": [RandomResizedCrop(24), RandomFlip(), jitter, RandomGrayscale(0.4), RandomApply(rest, 0.5)],
    "gray before the crop": [RandomGrayscale(0.5), CenterCrop((40, 50)), jitter, RandomResizedCrop(20)],
}


def setUpModule():
    with penstock.Writer(PATH, {"jpg": "image"}) as writer:
        for file in FILES:
            writer.add(jpg=file)


def rows(ops, loader={}, **options):
    """By (epoch, sample): the pixels that a loader makes."""
    found = {}
    with penstock.Loader(PATH, outputs={"x": penstock.image("jpg", ops, **options)}, last_batch="short", batch_size=5,
                         framework="numpy", device=penstock.Device(copy=True), seed=SEED, **loader) as opened:
        for epoch in EPOCHS:
            for batch in opened.epoch(epoch):
                found.update(((epoch, i), row) for i, row in zip(batch.sample_ids, batch["x"]))
    return found


def decoded(i, channels):
    return Image.open(io.BytesIO(FILES[i])).convert(MODES[channels])


def of_pil(image, op):
    function = getattr(torchvisions, op.name, None) or getattr(v2, op.name)
    filters = [mode.value for mode in InterpolationMode]
    return function(image, *(InterpolationMode(one) if one in filters else one for one in op.arguments))


def naive(ops, channels, by_pil, **key):
    """By (epoch, sample): the same by a loop. by_pil: of PIL images by torchvision, not of arrays by penstock."""
    found = {}
    for epoch, i in itertools.product(EPOCHS, range(N)):
        image = decoded(i, channels)
        shape = (image.height, image.width, channels)
        image = image if by_pil else numpy.asarray(image).reshape(shape)
        for op in penstock.draw(ops, shape, seed=SEED, epoch=epoch, sample_id=i, **key):
            image = of_pil(image, op) if by_pil else op(image)
        found[epoch, i] = numpy.atleast_3d(numpy.asarray(image))
    return found


def normalised(pixels, mean, std):
    """Return the result of Normalize for bytes, with each step in float32."""
    return (pixels.astype("f4") / numpy.float32(255) - numpy.float32(mean)) / numpy.float32(std)


def cases():
    """Lists, with the channels of the images that they take."""
    yield "alpha", [RandomResizedCrop(24), jitter, RandomFlip(), RandomAdjustSharpness(0, 0.5)], 4
    for channels in (1, 3):
        for name, ops in {**LISTS, **(OF_COLOUR if channels == 3 else {})}.items():
            yield name, ops, channels


class Loading(unittest.TestCase):
    def compare(self, found, wanted):
        self.assertEqual(found.keys(), wanted.keys())
        for key, row in found.items():
            self.assertEqual((row.shape, row.dtype), (wanted[key].shape, wanted[key].dtype))
            self.assertEqual(row.tobytes(), wanted[key].tobytes(), f"epoch and sample {key}")

    @unittest.skipIf(torchvisions is None, "torchvision is not installed")
    def test_it_equals_a_loop_with_torchvision(self):
        for name, ops, channels in cases():
            with self.subTest(name, channels=channels):
                self.compare(rows(ops, channels=channels), naive(ops, channels, by_pil=True))

    def test_it_equals_a_loop_with_functional(self):
        for name, ops, channels in cases():
            with self.subTest(name, channels=channels):
                self.compare(rows(ops, channels=channels), naive(ops, channels, by_pil=False))

    def test_all_dtypes_and_layouts_have_those_pixels(self):
        for channels, ops in ((1, LISTS["as usual"]), (3, OF_COLOUR["gray by chance"])):
            mean, std = (0.4, 0.5, 0.6)[:channels], (0.2, 0.3, 0.25)[:channels]
            bare = naive(ops, channels, by_pil=False)
            lists = {"bytes": (ops, bare, "uint8"),
                     "fractions": (ops, {key: row.astype("f4") / numpy.float32(255) for key, row in bare.items()},
                                   "float32"),
                     "normalised": ([*ops, Normalize(mean, std)],
                                    {key: normalised(row, mean, std) for key, row in bare.items()}, "float32")}
            for name, (ops_of, wanted, dtype) in lists.items():
                for dtype in (dtype, "float16") if dtype == "float32" else (dtype,):
                    for layout in ("nhwc", "nchw"):
                        with self.subTest(name, channels=channels, dtype=dtype, layout=layout):
                            turned = (0, 1, 2) if layout == "nhwc" else (2, 0, 1)
                            self.compare(rows(ops_of, channels=channels, dtype=dtype, layout=layout),
                                         {key: row.astype(dtype).transpose(turned) for key, row in wanted.items()})

    def test_threads_and_kernels_change_no_byte(self):
        for name in ("as usual", "two resizes", "one in another"):
            wanted = rows(LISTS[name])
            for options in ({"n_threads": 1}, {"n_threads": 2}, {"reading": penstock.Reading(kernels="c")},
                            {"reading": penstock.Reading(kernels="avx2")},
                            {"reading": penstock.Reading(kernels="avx512")},
                            {"reading": penstock.Reading(kernels="neon")}):
                with self.subTest(name, **options):
                    try:
                        found = rows(LISTS[name], options)
                    except penstock.UnsupportedError as error:
                        self.assertIn("kernels", str(error))  # neither this build nor this machine has them
                        continue
                    self.compare(found, wanted)

    def test_outputs_of_a_group_draw_the_same(self):
        ops = LISTS["as usual"]
        self.compare(rows(ops, random_group=5), naive(ops, 3, by_pil=False, random_group=5))
        first, other = rows(ops), rows(ops, random_group=5)
        self.assertTrue(any(row.tobytes() != other[key].tobytes() for key, row in first.items()))

    def test_operations_that_do_not_fit_the_channels_or_size_are_refused(self):
        for channels, op in ((4, RandomInvert()), (4, RandomGrayscale())):
            with self.assertRaisesRegex(penstock.PenstockError, rf"operation 2 \({type(op).__name__}\)"):
                rows([RandomResizedCrop(8), op], channels=channels)
        with self.assertRaisesRegex(penstock.PenstockError, "changes the size or the channels"):
            rows([RandomApply([RandomResizedCrop(8)]), CenterCrop(8)])


class Drawing(unittest.TestCase):
    """Each test of chance fails for one seed in 10,000; the seeds are fixed."""

    N = 4000

    def drawn(self, ops):
        return [penstock.draw(ops, (8, 8, 3), seed=SEED, sample_id=i) for i in range(self.N)]

    def assert_equally_likely(self, counts, n):
        """Chi-square with n - 1 degrees of freedom, by the normal approximation of Wilson and Hilferty."""
        chi = sum((counts[i] - self.N / n) ** 2 for i in range(n)) * n / self.N
        self.assertEqual(sum(counts[i] for i in range(n)), self.N)
        spread = 2 / (9 * (n - 1))
        self.assertLess(((chi / (n - 1)) ** (1 / 3) - (1 - spread)) / spread ** 0.5, 3.719)  # 1 - 1e-4

    def assert_uniform(self, values, least, most):
        n = 20
        counts = collections.Counter(int((value - least) / (most - least) * n) for value in values)
        self.assert_equally_likely(counts, n)

    def test_factors_are_uniform_and_orders_equally_likely(self):
        ranges = {"adjust_brightness": (0.6, 1.4), "adjust_contrast": (0.0, 2.5), "adjust_saturation": (0.9, 0.95),
                  "adjust_hue": (-0.1, 0.1)}
        drawn = self.drawn([ColorJitter(0.4, 1.5, (0.9, 0.95), 0.1), CenterCrop(8)])
        permutations = list(itertools.permutations(ranges))
        orders = collections.Counter(permutations.index(tuple(op.name for op in ops[:4])) for ops in drawn)
        self.assert_equally_likely(orders, 24)
        for name, (least, most) in ranges.items():
            self.assert_uniform([op.arguments[0] for ops in drawn for op in ops if op.name == name], least, most)

    def test_choices_follow_their_weights(self):
        three = [RandomInvert(1), RandomEqualize(1), RandomAutocontrast(1)]
        for weights, shares in ((None, (1, 1, 1)), ((1, 0, 3), (1, 0, 3)), ((0.2, 0.2, 0.1), (2, 2, 1))):
            drawn = self.drawn([RandomChoice(three, weights), CenterCrop(8)])
            counts = collections.Counter(ops[0].name for ops in drawn)
            for name, share in zip(("invert", "equalize", "autocontrast"), shares):
                p = share / sum(shares)
                self.assertLessEqual(abs(counts[name] - self.N * p), 3.891 * (self.N * p * (1 - p)) ** 0.5)

    def test_probabilities_are_those_given(self):
        for op, p in ((RandomGrayscale(), 0.1), (RandomInvert(), 0.5), (RandomSolarize(9, 0.25), 0.25),
                      (RandomApply([RandomInvert(1)], 0), 0), (RandomApply([RandomInvert(1)], 1), 1)):
            n = sum(len(ops) == 2 for ops in self.drawn([op, CenterCrop(8)]))
            self.assertLessEqual(abs(n - self.N * p), 3.891 * (self.N * p * (1 - p)) ** 0.5)

    def test_drawn_operations_are_values(self):
        ops = [ColorJitter(0.4), CenterCrop((8, 9))]
        first, again = (penstock.draw(ops, (20, 30), seed=2, sample_id=3) for _ in range(2))
        self.assertEqual((first, hash(first[0])), (again, hash(again[0])))
        self.assertNotEqual(first, penstock.draw(ops, (20, 30), seed=2, sample_id=4))
        self.assertRegex(str(first), r"^\[adjust_brightness\((0|1)\.\d+\), center_crop\(\(8, 9\)\)\]$")
        self.assertEqual(first[1], penstock.FixedOp("center_crop", ((8, 9),)))
        self.assertEqual(penstock.draw([CenterCrop(8), Normalize()], (20, 30, 3))[1:], [])

    def test_every_fixed_kind_is_a_function_of_functional(self):
        from penstock import drawing
        kinds = {**penstock._c.NAMES["op_kind"], **penstock._c.NAMES["drawn_kind"]}
        drawing_others = ("random_", "timm_", "erase", "normalize", "color_jitter", "trivial_augment", "rand_augment", "auto_augment",
                          "scale_jitter", "resize_longest", "pad_to_size", "letterbox", "corner_crop", "aug_mix", "to_float", "mix")
        fixed = {code for name, code in kinds.items() if not name.startswith(drawing_others)}
        self.assertEqual(set(drawing._FIXED), fixed)
        self.assertLessEqual({name for name, _ in drawing._FIXED.values()}, set(penstock.functional.__all__))

    def test_wrong_arguments_are_named(self):
        for words, *arguments in (("must have 1, 3 or 4 channels", [CenterCrop(8)], (9, 9, 2)),
                                  ("ops do not fix the size", [RandomInvert()], (9, 9, 3)),
                                  (r"draw.ops: value is 'ColorJitter'.*penstock.ops.ColorJitter\(", "ColorJitter", (9, 9))):
            with self.assertRaisesRegex((ValueError, TypeError), words):
                penstock.draw(*arguments)
        with self.assertRaisesRegex(ValueError, "draw.seed: value is -1"):
            penstock.draw([CenterCrop(8)], (9, 9), seed=-1)


class Arguments(unittest.TestCase):
    def test_forms_of_ranges_are_torchvisions(self):
        self.assertEqual(ColorJitter(), ColorJitter((1, 1), (1.0, 1), [1, 1], (0, 0)))
        self.assertEqual(ColorJitter(brightness=0.25).brightness, (0.75, 1.25))
        self.assertEqual(ColorJitter(brightness=3).brightness, (0, 4))
        self.assertEqual(ColorJitter(hue=0.5).hue, (-0.5, 0.5))
        self.assertEqual(eval(repr(ColorJitter(0.4, hue=(0.1, 0.2)))), ColorJitter(0.4, hue=(0.1, 0.2)))

    @unittest.skipIf(torchvisions is None, "torchvision is not installed")
    def test_ranges_and_defaults_are_torchvisions(self):
        from torchvision import transforms
        for given in (0.1, 0.5, 0.9999, 1, 1.5, (0.2, 0.7), [1, 1], (1, 2), 0):
            theirs = transforms.ColorJitter(brightness=given, saturation=given)
            ours = ColorJitter(brightness=given, saturation=given)
            for name in ("brightness", "saturation", "contrast"):
                self.assertEqual(getattr(ours, name), tuple(getattr(theirs, name) or (1, 1)))
        for op in (RandomGrayscale(), RandomInvert(), RandomPosterize(3), RandomSolarize(3), RandomAdjustSharpness(2),
                   RandomAutocontrast(), RandomEqualize(), RandomApply([RandomInvert()])):
            arguments = {"RandomPosterize": [3], "RandomSolarize": [3], "RandomAdjustSharpness": [2],
                         "RandomApply": [[transforms.RandomInvert()]]}.get(type(op).__name__, [])
            self.assertEqual(op.p, getattr(transforms, type(op).__name__)(*arguments).p)

    def test_wrong_ones_are_named(self):
        inverts = [RandomInvert()]
        for make, said in (
                (lambda: ColorJitter(-0.1), r"ColorJitter.brightness: value is -0.1; must be a number from 0"),
                (lambda: ColorJitter(contrast=(0.5, 0.4)), r"ColorJitter.contrast: value is .*; must be two numbers"),
                (lambda: ColorJitter(hue=0.6), "ColorJitter.hue: value is 0.6; must be a number from 0 to 0.5"),
                (lambda: ColorJitter(hue=(-0.6, 0)), "ColorJitter.hue: value is -0.6; must be a number from -0.5"),
                (lambda: ColorJitter(saturation="1"), "ColorJitter.saturation: value is '1'"),
                (lambda: ColorJitter(saturation=(1, 2, 3)), "must be two numbers"),
                (lambda: RandomGrayscale(1.5), "RandomGrayscale.p: value is 1.5; must be a number from 0 to 1"),
                (lambda: RandomPosterize(9), "RandomPosterize.bits: value is 9; must be a whole number from 0 to 8"),
                (lambda: RandomPosterize(2.5), "RandomPosterize.bits: value is 2.5"),
                (lambda: RandomSolarize(257), "RandomSolarize.threshold: value is 257"),
                (lambda: RandomAdjustSharpness(float("nan")), "RandomAdjustSharpness.sharpness_factor: value is nan"),
                (lambda: RandomApply([]), "RandomApply.transforms: value has 0 operations"),
                (lambda: RandomApply([RandomInvert]), r"value is the class RandomInvert.*write RandomInvert\(...\)"),
                (lambda: RandomOrder({1: 2}), "RandomOrder.transforms: value is a dict of 1; must be a list"),
                (lambda: RandomOrder(inverts * 65), "must have from 1 to 64"),
                (lambda: RandomChoice(inverts, [1, 2]), "must have a weight for each of 1 operations"),
                (lambda: RandomChoice(inverts, [0]), "one above 0"),
                (lambda: RandomChoice(inverts * 13, [1] * 13), "must have at most 12"),
                (lambda: RandomChoice(inverts, 0.5), "must be None or a list of 1 weights"),
                (lambda: RandomChoice(inverts, [-1]), "RandomChoice.p: value is -1")):
            with self.assertRaisesRegex((TypeError, ValueError), said):
                make()

    def test_children_live_as_long_as_the_struct_that_points_to_them(self):
        def made():
            ops = [RandomApply([RandomOrder([ColorJitter(0.4, hue=0.1), RandomSolarize(99)])], 0.7), CenterCrop(8)]
            return penstock.image("jpg", ops).to_c("x")
        outputs = (penstock._c.Output * 3)(*(made() for _ in range(3)))
        taken = []
        for _ in range(50):  # memory that was free is in use again
            gc.collect()
            taken.append((penstock._c.Op * 2)())
            taken.append(bytearray(b"\xff" * len(taken[-1]) * 144))
        for output in outputs:
            apply = output.image.ops[0]
            order = apply.children[0]
            self.assertEqual((apply.kind, apply.n_children, apply.params.random_apply.probability), (penstock._c.OP_RANDOM_APPLY, 1, 0.7))
            self.assertEqual((order.kind, order.n_children), (penstock._c.OP_RANDOM_ORDER, 2))
            self.assertEqual((order.children[0].kind, order.children[0].params.color_jitter.max_hue), (penstock._c.OP_COLOR_JITTER, 0.1))
            self.assertEqual(order.children[1].children[0].params.solarize.threshold, 99)


if __name__ == "__main__":
    unittest.main()
