# SPDX-License-Identifier: Apache-2.0
"""reference="tensor": the pixels that torchvision.transforms.v2.functional gives for uint8 tensors, with all kernels,
of single functions and through a loader; and what has no such reference is refused by name."""
import inspect
import itertools
import os
import unittest

import penstock
import sets

sets.need_numpy()
import numpy as np  # noqa: E402
from penstock import functional  # noqa: E402

try:
    import torch
    from torchvision.transforms.v2 import functional as v2
except ImportError as missing:
    raise unittest.SkipTest(f"{missing.name} is not installed") from None

# Floats: torch multiplies bytes by whole numbers modulo 256.
FACTORS = (0.0, 0.3, 0.77, 0.999, 1.0, 1.3, 1.7, 50.0, 1e6)
COLOURS = [("rgb_to_grayscale", 1), ("rgb_to_grayscale", 3), ("to_grayscale", 3),
           *((f"adjust_{name}", factor) for name in ("brightness", "contrast", "saturation", "sharpness")
             for factor in FACTORS if name != "contrast" or factor < 100),
           *(("adjust_hue", hue) for hue in (-0.5, -0.3, -0.0019, 0, 0.01, 0.2, 0.5)),
           ("adjust_gamma", 0), ("adjust_gamma", 0.3), ("adjust_gamma", 2, 1.4), ("adjust_gamma", 1, 0),
           ("invert",), ("autocontrast",), ("equalize",), *(("posterize", bits) for bits in range(9)),
           *(("solarize", threshold) for threshold in (0, 0.5, 100, 100.5, 255))]
BLURS = [("gaussian_blur", size, *sigma) for size in (1, 3, (5, 3), 9, (3, 23))
         for sigma in ((), (0.1,), (0.5,), ((1.3, 2.7),), (1e4,))]
SIZES = ((1, 1), (1, 5), (3, 1), (2, 2), (3, 3), (31, 47), (20, 259))


def kernels():
    """Return the kernels that this machine and this build have."""
    found = []
    for name in ("c", "avx2", "avx512", "neon"):
        try:
            functional.invert(np.zeros((1, 1), np.uint8), kernels=name)
            found.append(name)
        except penstock.UnsupportedError:
            pass
    return found


KERNELS = kernels()


def pictures(seed, channels=(1, 3), is_narrow=False):
    """Arrays of every size and number of channels: noise, and narrow noise and one colour."""
    random = np.random.default_rng(seed)
    for size, n in itertools.product(SIZES, channels):
        yield random.integers(0, 256, (*size, n), np.uint8)
        if is_narrow:
            yield random.integers(90, 140, (*size, n), np.uint8)
            yield np.broadcast_to(random.integers(0, 256, n, np.uint8), (*size, n)).copy()


def tensor_of(array):
    return torch.from_numpy(array).permute(2, 0, 1).contiguous()


def by_torchvision(name, array, *arguments, **named):
    found = getattr(v2, name)(tensor_of(array), *arguments, **named)
    return found.permute(1, 2, 0).numpy()


def has_reference_weights():
    """Return whether torch's blur has the weights of its code for AVX-512; with AVX2 their last place differs:
    docs/limits.md."""
    return torch.backends.cpu.get_cpu_capability() == "AVX512"


def nearly(found, wanted):
    """Return `found`, if at most one byte of 10,000, or a single one, differs from `wanted`, and that by 1; else
    `wanted`."""
    if found.shape != wanted.shape:
        return wanted
    differ = np.abs(found.astype(int) - wanted)
    return found if differ.max(initial=0) <= 1 and np.count_nonzero(differ) <= max(1, differ.size // 10000) else wanted


class Pixels(unittest.TestCase):
    def compare(self, array, name, *arguments, **named):
        wanted = by_torchvision(name, array, *arguments, **named)
        for kernels in KERNELS:
            found = getattr(functional, name)(array, *arguments, kernels=kernels, reference="tensor", **named)
            if name == "gaussian_blur" and not has_reference_weights():
                wanted = nearly(found, wanted)
            if found.shape != wanted.shape or (found != wanted).any():
                differ = found.shape == wanted.shape and int((found != wanted).sum())
                self.fail(f"{name}{(*arguments,)}, {named} of {array.shape}, kernels {kernels}: {differ} bytes")

    def test_colours(self):
        for array in pictures(1, is_narrow=True):
            for call in COLOURS:
                self.compare(array, *call)

    def test_every_gray_and_hue_of_all_colours(self):
        """A part of the 2^24 colours: each red and green, and the blues that differ from run to run of the loop."""
        red, green = np.meshgrid(np.arange(256), np.arange(256))
        for k, blue in enumerate((0, 1, 77, 128, 200, 254, 255)):
            every = np.stack([red, green, (red * k + green * 3 + blue) % 256], 2).astype(np.uint8)
            for call in (("rgb_to_grayscale", 1), ("adjust_hue", 0.1), ("adjust_hue", -0.37),
                         ("adjust_saturation", 0.3), ("adjust_saturation", 1.9)):
                self.compare(every, *call)

    def test_blurs(self):
        for array in pictures(2, (3, 4)):
            for name, size, *sigma in BLURS:
                across, down = size if isinstance(size, tuple) else (size, size)
                if across // 2 < array.shape[1] and down // 2 < array.shape[0]:
                    sigmas = [list(one) if isinstance(one, tuple) else one for one in sigma]
                    self.compare(array, name, [across, down], *sigmas)

    def test_blurs_of_one_channel(self):
        """torch multiplies matrices if the kernel has 3 pixels on a side, and the padded image 20480 or fewer."""
        random = np.random.default_rng(6)
        for size in ((31, 47), (20, 259)):
            for kernel in ([5, 5], [9, 7]):
                self.compare(random.integers(0, 256, (*size, 1), np.uint8), "gaussian_blur", kernel, [1.3, 0.7])
        self.compare(random.integers(0, 256, (224, 224, 1), np.uint8), "gaussian_blur", [3, 3], [0.8, 0.8])
        array = random.integers(0, 256, (100, 180, 1), np.uint8)
        wanted = by_torchvision("gaussian_blur", array, [3, 3], [1.3, 2.7]).astype(int)
        found = functional.gaussian_blur(array, 3, (1.3, 2.7), reference="tensor")
        self.assertLessEqual(np.abs(found - wanted).max(), 1)
        self.assertLess((found != wanted).mean(), 1e-3)

    def test_a_large_blur(self):
        array = np.random.default_rng(3).integers(0, 256, (224, 224, 3), np.uint8)
        for sigma in (0.1, 0.6, 1.1, 2.0):
            self.compare(array, "gaussian_blur", [23, 23], sigma)

    def test_warps(self):
        random = np.random.default_rng(4)
        for array in pictures(4, (1, 3, 4)):
            height, width, channels = array.shape
            for filter, fill in itertools.product(("nearest", "bilinear"), (None, [7, 130, 255, 3][:channels])):
                given = {"interpolation": filter, "fill": fill}
                center = [float(random.uniform(-5, width + 5)), float(random.uniform(-5, height + 5))]
                angle = float(random.uniform(-360, 360))
                for about in (None, center):
                    self.compare(array, "affine", angle, [int(random.integers(-9, 9)), 2],
                                 float(random.uniform(0.5, 2)), [float(random.uniform(-30, 30)), 5.0],
                                 center=about, **given)
                    self.compare(array, "rotate", angle, center=about, **given)
                    self.compare(array, "rotate", angle, expand=True, center=about, **given)
                self.compare(array, "affine", 0.0, [3, -2], 1.0, [0.0, 0.0], **given)
                self.compare(array, "affine", 0.0, [0, 0], 1e-3, [0.0, 0.0], **given)
                for turn in (0, 90, 180, 270, -90, 45, 719.5):
                    self.compare(array, "rotate", turn, expand=turn > 100, **given)


class Perspective(unittest.TestCase):
    def test_for_the_same_coefficients_the_pixels_are_torchvisions(self):
        """torchvision solves for them with LAPACK, whose last place depends on the machine."""
        random = np.random.default_rng(5)
        for array in pictures(5, (1, 3, 4)):
            height, width, channels = array.shape
            for filter, fill in itertools.product(("nearest", "bilinear"), (None, [7, 130, 255, 3][:channels])):
                matrix = [1 + random.uniform(-.2, .2), random.uniform(-.2, .2), random.uniform(-5, 5),
                          random.uniform(-.2, .2), 1 + random.uniform(-.2, .2), random.uniform(-5, 5),
                          random.uniform(-1e-3, 1e-3), random.uniform(-1e-3, 1e-3)]
                wanted = by_torchvision("perspective", array, None, None, interpolation=filter, fill=fill,
                                        coefficients=matrix)
                for kernels in KERNELS:
                    found = functional.transform(array, matrix, filter, fill, kernels=kernels, reference="tensor")
                    self.assertTrue(np.array_equal(found, wanted), (array.shape, filter, fill, kernels))


PLAIN = penstock.ops.Resize((40, 56))
LISTS = {
    "jitter": [PLAIN, penstock.ops.ColorJitter(0.4, 0.4, 0.4, 0.1), penstock.ops.RandomGrayscale(0.3)],
    "gray first": [penstock.ops.Grayscale(3), PLAIN, penstock.ops.RandomPosterize(4)],
    "gray last": [PLAIN, penstock.ops.RandomAutocontrast(), penstock.ops.Grayscale(1), penstock.ops.RandomAdjustSharpness(2, 1)],
    "warps": [PLAIN, penstock.ops.RandomAffine(30, (0.1, 0.1), (0.8, 1.2), 9, "bilinear", fill=7),
              penstock.ops.RandomRotation(50), penstock.ops.RandomPerspective(0.4, 0.8)],
    "policies": [PLAIN, penstock.ops.TrivialAugmentWide(), penstock.ops.RandAugment(3, 12),
                 penstock.ops.AutoAugment("imagenet"), penstock.ops.RandomPhotometricDistort()],
    "children": [PLAIN, penstock.ops.RandomApply([penstock.ops.GaussianBlur(9, (0.1, 2))], 0.7),
                 penstock.ops.RandomChoice([penstock.ops.ColorJitter(0.5), penstock.ops.RandomRotation(20)])],
    "expanded": [PLAIN, penstock.ops.RandomRotation(90, "bilinear", expand=True), penstock.ops.CenterCrop((50, 40))],
}
N = 6
EPOCHS = (0, 1)


def of_tensor(image, op):
    """Apply what penstock.draw names to a tensor."""
    if op.name == "resize":  # stays Pillow's
        return tensor_of(op(image.permute(1, 2, 0).numpy()))
    if op.name == "transform":  # a matrix of pixels, as a random affine operation or a perspective has it
        return tensor_of(op(image.permute(1, 2, 0).contiguous().numpy(), reference="tensor"))
    if op.name == "center_crop":
        return v2.center_crop(image, *op.arguments)
    arguments = [list(one) if isinstance(one, tuple) else one for one in op.arguments]
    if op.name == "rotate":
        *arguments, center, fill = arguments
        return v2.rotate(image, *arguments, center, fill if any(fill) else None)
    return getattr(v2, op.name)(image, *arguments)


class Loading(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        random = np.random.default_rng(9)
        cls.images = [random.integers(0, 256, (50 + 7 * i, 90 - 5 * i, 3), np.uint8) for i in range(N)]
        cls.path = os.path.join(sets.ROOT, "tensor-reference")
        with penstock.Writer(cls.path, {"image": "image"}) as writer:
            for image in cls.images:
                writer.add(image=image)

    def rows(self, ops, loader={}, **options):
        """By (epoch, sample): the pixels that a loader makes."""
        found = {}
        output = penstock.image("image", ops, **options)
        with penstock.Loader(self.path, outputs={"x": output}, last_batch="short", batch_size=4, framework="numpy",
                             device=penstock.Device(copy=True), seed=5, **loader) as opened:
            for epoch in EPOCHS:
                for batch in opened.epoch(epoch):
                    found.update(((epoch, i), row) for i, row in zip(batch.sample_ids, batch["x"]))
        return found

    def naive(self, ops):
        found = {}
        for epoch, i in itertools.product(EPOCHS, range(N)):
            image = tensor_of(self.images[i])
            for op in penstock.draw(ops, self.images[i].shape, seed=5, epoch=epoch, sample_id=i):
                image = of_tensor(image, op)
            found[epoch, i] = image.permute(1, 2, 0).numpy()
        return found

    def same(self, found, wanted):
        self.assertEqual(found.keys(), wanted.keys())
        for key, row in found.items():
            reference = wanted[key] if has_reference_weights() else nearly(row, wanted[key])
            self.assertTrue(np.array_equal(row, reference), key)

    def test_it_equals_a_loop_with_tensors(self):
        for name, ops in LISTS.items():
            with self.subTest(name):
                self.same(self.rows(ops, reference="tensor"), self.naive(ops))

    def test_it_differs_from_the_pil_reference(self):
        for name in ("jitter", "gray first", "warps"):
            tensor, pil = self.rows(LISTS[name], reference="tensor"), self.rows(LISTS[name])
            self.assertTrue(any((row != pil[key]).any() for key, row in tensor.items()), name)

    def test_threads_and_kernels_change_no_byte(self):
        for name in ("jitter", "gray first", "warps", "children"):
            wanted = self.rows(LISTS[name], reference="tensor")
            for options in ({"n_threads": 1}, *({"reading": penstock.Reading(kernels=kernels)} for kernels in KERNELS)):
                self.same(self.rows(LISTS[name], options, reference="tensor"), wanted)

    def test_outputs_of_one_field_have_their_own_reference(self):
        ops = LISTS["jitter"]
        outputs = {name: penstock.image("image", ops, reference=name) for name in ("pil", "tensor")}
        with penstock.Loader(self.path, outputs=outputs, last_batch="short", batch_size=N, framework="numpy",
                             device=penstock.Device(copy=True), seed=5) as opened:
            (batch,) = opened.epoch(0)
            for name in outputs:
                wanted = self.rows(ops, reference=name)
                self.same(dict(enumerate(batch[name])),
                          {k: wanted[0, i] for k, i in enumerate(batch.sample_ids)})


class Refusals(unittest.TestCase):
    def refused(self, words, ops, **options):
        with self.assertRaisesRegex(penstock.PenstockError, words):
            penstock.Loader(sets.small(), outputs={"x": penstock.image("image", [PLAIN, *ops], reference="tensor",
                                                                       **options)}, batch_size=4)

    def test_operations_without_a_tensor_form_are_named(self):
        for op in (penstock.ops.RandomBoxBlur((0.1, 2)), penstock.ops.AugMix(),
                   penstock.ops.RandomApply([penstock.ops.RandomBoxBlur((0.1, 2))])):
            self.refused("has no tensor reference", [op])

    def test_bicubic_warps_and_alpha(self):
        self.refused("interpolation: value is 'bicubic'; by the tensor reference it must be 'nearest' or",
                     [penstock.ops.RandomRotation(9, "bicubic")])
        self.refused("interpolation: value is 'bicubic'; by the tensor reference it must be 'nearest' or",
                     [penstock.ops.TrivialAugmentWide(interpolation="bicubic")])
        self.refused("takes 1 or 3 channels", [penstock.ops.ColorJitter(0.4)], channels=4)

    def test_unknown_names(self):
        with self.assertRaisesRegex(penstock.SettingsError, "image.reference: value is 'tensr'.*'tensor'"):
            penstock.image("image", [PLAIN], reference="tensr")
        with self.assertRaisesRegex(ValueError, "invert.reference: value is 'pill'"):
            functional.invert(np.zeros((2, 2), np.uint8), reference="pill")

    def test_functions(self):
        array = np.zeros((9, 9, 4), np.uint8)
        for call in (lambda: functional.adjust_hue(array, 0.1, reference="tensor"),
                     lambda: functional.box_blur(array, 1, reference="tensor"),
                     lambda: functional.rotate(array, 9, "bicubic", reference="tensor")):
            with self.assertRaises(penstock.PenstockError):
                call()

    def test_every_function_has_the_keyword(self):
        for name in functional.__all__:
            if name not in ("mix", "call"):
                self.assertIn("reference", inspect.signature(getattr(functional, name)).parameters, name)


if __name__ == "__main__":
    unittest.main()
