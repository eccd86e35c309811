# SPDX-License-Identifier: Apache-2.0
"""penstock.functional gives the pixels that torchvision.transforms.functional gives for PIL images, with all kernels,
and refuses what is no image."""
import inspect
import itertools
import unittest

import penstock
from data_fixture import Case, np, optional

from penstock import functional

try:
    from torchvision.transforms import InterpolationMode, functional as torchvisions
    from torchvision.transforms.v2 import functional as v2
except ImportError:
    torchvisions = None

# Calls, as they are written with torchvision; those of which Pillow has no RGBA.
FACTORS = (0, 0.3, 0.999, 1, 1.7, 50, 1e6)
COLOURS = [("rgb_to_grayscale", 1), ("rgb_to_grayscale", 3), ("to_grayscale", 1), ("to_grayscale", 3),
           *((f"adjust_{name}", factor) for name in ("brightness", "contrast", "saturation", "sharpness")
             for factor in FACTORS),
           *(("adjust_hue", hue) for hue in (-0.5, -0.3, -0.0019, 0, 0.01, 0.2, 0.5)),
           ("adjust_gamma", 0), ("adjust_gamma", 0.3), ("adjust_gamma", 2, 1.4), ("adjust_gamma", 1, 0)]
NO_ALPHA = [("invert",), ("autocontrast",), ("equalize",), *(("posterize", bits) for bits in range(9)),
            *(("solarize", threshold) for threshold in (0, 0.5, 100, 100.5, 255, 256))]
FILTERS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
GEOMETRY = [("hflip",), ("center_crop", (7, 9)), ("center_crop", 40), ("center_crop", (60, 20)),
            ("resize", (13, 29)), ("resize", 20), ("resize", [55, 3]),
            *(("resize", (13, 29), name) for name in FILTERS), ("resize", 20, "bicubic", 33)]
CORNERS = [[[0, 0], [46, 0], [46, 30], [0, 30]], [[3, 2], [40, 1], [44, 28], [1, 25]]]
NOT_OF_TORCHVISION = ("mix", "solarize_add", "box_blur", "transform", "call")
ORDERS = [("permute_channels", order) for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))]
SIZES = ((1, 1), (1, 5), (3, 1), (2, 2), (31, 47), (20, 259))
MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def kernels():
    """Return the kernels that this machine and this build have."""
    found, pixels = [], np.zeros((1, 1), np.uint8)
    for name in ("c", "avx2", "avx512", "neon"):
        try:
            functional.invert(pixels, kernels=name)
            found.append(name)
        except penstock.UnsupportedError:
            pass
    return found


KERNELS = kernels()


def pictures(seed):
    """Arrays of every size and number of channels: noise, narrow noise, and one colour."""
    random = np.random.default_rng(seed)
    for size in SIZES:
        for channels in MODES:
            shape = (*size, channels) if channels > 1 else size
            yield random.integers(0, 256, shape, np.uint8)
            yield random.integers(90, 140, shape, np.uint8)
            yield np.full(shape, random.integers(0, 256, (channels if channels > 1 else ())), np.uint8)


def by_torchvision(name, array, *arguments):
    function = getattr(torchvisions, name, None) or getattr(v2, name)
    arguments = [InterpolationMode(one) if isinstance(one, str) else one for one in arguments]
    return np.asarray(function(optional("PIL.Image").fromarray(array), *arguments))


@unittest.skipIf(torchvisions is None, "torchvision is not installed")
class Pixels(unittest.TestCase):
    def compare(self, calls, pictures):
        for array in pictures:
            for name, *arguments in calls:
                wanted = by_torchvision(name, array, *arguments)
                for kernels in KERNELS:
                    found = getattr(functional, name)(array, *arguments, kernels=kernels)
                    if found.size != wanted.size or (found != wanted.reshape(found.shape)).any():
                        self.fail(f"{name}{(*arguments,)} of {array.shape}, kernels {kernels}")
                    self.assertEqual(found.dtype, np.uint8)

    def test_colours_are_torchvisions(self):
        self.compare(COLOURS, pictures(1))

    def test_colours_that_pillow_has_without_alpha_are_torchvisions(self):
        self.compare(NO_ALPHA, (array for array in pictures(2) if array.shape[2:] != (4,)))

    def test_geometry_is_torchvisions(self):
        self.compare(GEOMETRY, pictures(3))

    def test_channels_come_in_the_order_of_torchvision(self):
        self.compare(ORDERS, (array for array in pictures(4) if array.shape[2:] == (3,)))

    def test_resized_crops_are_torchvisions(self):
        array = np.random.default_rng(5).integers(0, 256, (31, 47, 3), np.uint8)
        self.compare([("resized_crop", *box, *size) for size in ([(8, 9)], [(40, 50)], [(11, 60), "lanczos"])
                      for box in ((0, 0, 31, 47), (30, 46, 1, 1), (3, 5, 20, 11), (0, 40, 31, 7))],
                     [array, array[:, :, 0].copy()])

    def test_warps_are_torchvisions(self):
        random = np.random.default_rng(9)
        for shape in ((31, 47), (31, 47, 3), (26, 80, 4)):
            some = [int(value) for value in random.integers(0, 256, shape[2] if len(shape) == 3 else 1)]
            for interpolation, fill in itertools.product(("nearest", "bilinear", "bicubic"), (None, 7, some)):
                self.compare([("rotate", 33.3, interpolation, False, None, fill),
                              ("rotate", 90, interpolation, True, None, fill),
                              ("rotate", -20.5, interpolation, True, None, fill),
                              ("rotate", 12, interpolation, False, [3, 4], fill),
                              ("affine", 30, [3, -2], 1.2, [10, 5], interpolation, fill),
                              ("affine", -12.5, [0, 0], 0.8, 7.0, interpolation, fill, [1, 2]),
                              ("perspective", *CORNERS, interpolation, fill)],
                             [random.integers(0, 256, shape, np.uint8)])

    def test_kernels_blur_alike(self):
        random = np.random.default_rng(11)
        for shape in ((31, 47), (9, 8, 3), (26, 80, 4)):
            array = random.integers(0, 256, shape, np.uint8)
            for blur in (lambda **more: functional.gaussian_blur(array, (3, 7), (0.5, 2.0), **more),
                         lambda **more: functional.box_blur(array, 2.5, **more)):
                for kernels in KERNELS:
                    np.testing.assert_array_equal(blur(kernels=kernels), blur())

    def test_random_parameters_give_torchvisions_pixels(self):
        random = np.random.default_rng(6)
        names = ["adjust_brightness", "adjust_contrast", "adjust_saturation", "adjust_sharpness", "adjust_gamma"]
        calls = [(name, float(random.uniform(0, 3))) for name in names for _ in range(8)]
        calls += [("adjust_hue", float(random.uniform(-0.5, 0.5))) for _ in range(16)]
        self.compare(calls, [random.integers(0, 256, (19, 33, 3), np.uint8)])

    def test_names_and_arguments_are_torchvisions(self):
        for name in functional.__all__:
            found = list(inspect.signature(getattr(functional, name)).parameters)
            if name not in ("mix", "call"):
                self.assertEqual(found.pop(), "reference")
            self.assertEqual(found[-1], "kernels")
            if name not in NOT_OF_TORCHVISION:
                theirs = list(inspect.signature(getattr(torchvisions, name, None) or getattr(v2, name)).parameters)[1:]
                ours = found[1:-1]  # either may have more, after those of both
                self.assertEqual(ours[:len(theirs)], theirs[:len(ours)], name)


class Arrays(Case):
    def test_solarize_add_is_timms(self):
        array = np.random.default_rng(7).integers(0, 256, (19, 33, 3), np.uint8)
        for add, threshold in ((0, 128), (110, 128), (255, 256), (-90, 200), (50, 0)):
            wanted = np.where(array < threshold, np.clip(array.astype(int) + add, 0, 255), array)
            np.testing.assert_array_equal(functional.solarize_add(array, add, threshold), wanted)

    def test_two_dimensions_stay_two_where_one_channel_stays_one(self):
        gray, colour = np.zeros((5, 7), np.uint8), np.zeros((5, 7, 3), np.uint8)
        for array, n, shape in ((gray, 1, (5, 7)), (gray[:, :, None], 1, (5, 7, 1)), (gray, 3, (5, 7, 3)),
                                (colour, 1, (5, 7, 1)), (colour, 3, (5, 7, 3))):
            self.assertEqual(functional.rgb_to_grayscale(array, n).shape, shape)

    def test_any_strides_are_taken_and_nothing_is_written(self):
        whole = np.random.default_rng(8).integers(0, 256, (20, 30, 6), np.uint8)
        whole.flags.writeable = False
        for view in (whole[::2, ::-1, 1:4], whole[:, :, ::2], whole.transpose(1, 0, 2)[:, :, :3],
                     np.asfortranarray(whole[..., :3])):
            before = view.copy()
            found = functional.adjust_contrast(view, 1.5)
            np.testing.assert_array_equal(found, functional.adjust_contrast(before, 1.5))
            np.testing.assert_array_equal(view, before)
            self.assertFalse(np.shares_memory(found, view))
            self.assertTrue(found.flags.writeable)

    def test_values_that_are_no_images_are_refused(self):
        good = np.zeros((5, 7, 3), np.uint8)
        for value, words in ((b"abc", "value is of bytes; must be a NumPy array"), ([[1]], "must be a NumPy array"),
                             (good.astype("f4"), "dtype is float32; must be uint8"),
                             (good[0, 0], "must be (height, width)"), (good[None], "must be (height, width)"),
                             (good[:, :, :2], "must have 1, 3 or 4 channels"),
                             (good[:0], "must have a height and a width from 1 to 65535")):
            self.assert_says(["invert", words], functional.invert, value)
        self.assert_says("no such operation on RGBA", functional.invert, np.zeros((2, 2, 4), np.uint8))
        self.assert_says(["permute_channels", "three channels"], functional.permute_channels, good[:, :, 0], [0, 1, 2])
        self.assert_says(["permute_channels", "three numbers"], functional.permute_channels, good, [0, 1])
        for order in (np.array([2, 0, 1]), range(2, -1, -1), (np.int64(2), 0, 1)):
            self.assertTrue(np.array_equal(functional.permute_channels(good, order), good[:, :, list(order)]))

    def test_wrong_arguments_are_named(self):
        good = np.zeros((5, 7, 3), np.uint8)
        for words, function, *arguments in (
                ("adjust_hue: hue: value is 0.6; must be from -0.5 to 0.5", functional.adjust_hue, 0.6),
                ("adjust_brightness: factor: value is -1", functional.adjust_brightness, -1),
                ("adjust_gamma: gain: value is nan", functional.adjust_gamma, 1, float("nan")),
                ("adjust_contrast: value is 'x'; must be 1 number", functional.adjust_contrast, "x"),
                ("posterize: bits: value is 9", functional.posterize, 9),
                ("resized_crop: the image has ", functional.resized_crop,
                 0, 0, 6, 7, 4),
                ("resized_crop.top: value is -1", functional.resized_crop, -1, 0, 5, 7, 4),
                ("Resize.size: value is 0", functional.resize, 0)):
            self.assertIsInstance(self.assert_says(words, function, good, *arguments), (ValueError, TypeError))
        self.assert_says("did you mean 'avx2'?", functional.invert, good, kernels="avx")
        with self.assertRaisesRegex(penstock.PenstockError, "more than 16 times as long as wide"):
            functional.resize(np.zeros((1, 200), np.uint8), 40)


if __name__ == "__main__":
    unittest.main()
