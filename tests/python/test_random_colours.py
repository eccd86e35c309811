# SPDX-License-Identifier: Apache-2.0
"""RandomPhotometricDistort, RandomChannelPermutation and RandomGrayscale: for what is drawn, the pixels are those of
torchvision's own transform, and it is drawn as often."""
import itertools
import math
import unittest

import sets
import penstock
from penstock.ops import RandomChannelPermutation, RandomGrayscale, RandomPhotometricDistort, Resize

sets.need_numpy()
import numpy  # noqa: E402

try:
    from PIL import Image
    from torchvision.transforms import v2
except ImportError as missing:
    raise unittest.SkipTest(f"{missing.name} is not installed") from None

KEYS = {"adjust_brightness": "brightness_factor", "adjust_contrast": "contrast_factor",
        "adjust_saturation": "saturation_factor", "adjust_hue": "hue_factor",
        "permute_channels": "channel_permutation"}


def drawn(op, sample_id, shape=(20, 30, 3)):
    return penstock.draw([Resize(shape[:2]), op], shape, sample_id=sample_id)[1:]


def params_of(fixed):
    """Return the result of torchvision's make_params when it draws these operations."""
    params = dict.fromkeys(KEYS.values())
    names = [op.name for op in fixed]
    params["contrast_before"] = "adjust_contrast" in [each for each in names if each != "adjust_brightness"][:1]
    for op in fixed:
        value = op.arguments[0]
        params[KEYS[op.name]] = list(value) if op.name == "permute_channels" else value
    return params


def pixels_of(shape, seed=1):
    return numpy.random.default_rng(seed).integers(0, 256, shape, numpy.uint8)


def distance(counts, n, shares):
    """Chi-square statistic. One of k outcomes is above k + 5 sqrt(2 k) once in some 10^5 trials; seeds are fixed."""
    return sum((counts.get(key, 0) - n * share) ** 2 / (n * share) for key, share in shares.items())


class Distort(unittest.TestCase):
    def test_pixels_are_torchvisions(self):
        theirs = v2.RandomPhotometricDistort()
        for i in range(60):
            a, op = pixels_of((20, 30, 3), i), RandomPhotometricDistort(p=0.7)
            fixed = drawn(op, i)
            ours = a
            for each in fixed:
                ours = each(ours)
            wanted = theirs.transform(Image.fromarray(a), params_of(fixed))
            self.assertTrue(numpy.array_equal(ours, numpy.asarray(wanted)), fixed)

    def test_each_part_comes_as_often(self):
        p, n, counts = 0.3, 6000, {}
        op = RandomPhotometricDistort(p=p)
        shares = {}
        for on in itertools.product((0, 1), repeat=5):
            share = math.prod(p if each else 1 - p for each in on)
            brightness, contrast, saturation, hue, order = on
            for first in (0, 1):
                names = ["adjust_brightness"] * brightness + ["adjust_contrast"] * (contrast and first)
                names += ["adjust_saturation"] * saturation + ["adjust_hue"] * hue
                names += ["adjust_contrast"] * (contrast and not first) + ["permute_channels"] * order
                shares[tuple(names)] = shares.get(tuple(names), 0) + share / 2
        for i in range(n):
            key = tuple(each.name for each in drawn(op, i))
            self.assertIn(key, shares)
            counts[key] = counts.get(key, 0) + 1
        self.assertLess(distance(counts, n, shares), len(shares) + 5 * math.sqrt(2 * len(shares)))

    def test_factors_are_uniform(self):
        op = RandomPhotometricDistort((0.5, 0.7), (0, 2), (1, 3), (-0.1, 0.3), 1)
        ranges = {"adjust_brightness": (0.5, 0.7), "adjust_contrast": (0, 2), "adjust_saturation": (1, 3),
                  "adjust_hue": (-0.1, 0.3)}
        found = {name: [] for name in ranges}
        for i in range(3000):
            for each in drawn(op, i):
                if each.name in found:
                    found[each.name].append(each.arguments[0])
        for name, values in found.items():
            counts, _ = numpy.histogram(values, 20, ranges[name])
            self.assertEqual(counts.sum(), 3000)
            self.assertLess(((counts - 150) ** 2 / 150).sum(), 20 + 5 * math.sqrt(40), name)

    def test_gray_images_keep_their_channel(self):
        names = {each.name for i in range(50) for each in drawn(RandomPhotometricDistort(p=1), i, (9, 9, 1))}
        self.assertEqual(names, set(KEYS) - {"permute_channels"})


class Channels(unittest.TestCase):
    def test_orders_are_equally_frequent(self):
        counts, n = {}, 3000
        for i in range(n):
            (op,) = drawn(RandomChannelPermutation(), i)
            counts[op.arguments] = counts.get(op.arguments, 0) + 1
        shares = {(order,): 1 / 6 for order in itertools.permutations(range(3))}
        self.assertEqual(set(counts), set(shares))
        self.assertLess(distance(counts, n, shares), 6 + 5 * math.sqrt(12))

    def test_pixels_are_torchvisions(self):
        a = pixels_of((8, 9, 3))
        for i in range(20):
            (op,) = drawn(RandomChannelPermutation(), i)
            wanted = v2.RandomChannelPermutation().transform(Image.fromarray(a),
                                                             {"permutation": list(op.arguments[0])})
            self.assertTrue(numpy.array_equal(op(a), numpy.asarray(wanted)))

    def test_one_channel_stays(self):
        for op in (RandomChannelPermutation(), RandomGrayscale(1)):
            self.assertEqual(drawn(op, 0, (9, 9, 1)), [])

    def test_gray_becomes_three_equal_channels(self):
        a = pixels_of((8, 9, 3))
        (op,) = drawn(RandomGrayscale(1), 0)
        wanted = v2.RandomGrayscale(1)(Image.fromarray(a))
        self.assertTrue(numpy.array_equal(op(a), numpy.asarray(wanted)))


class Arguments(unittest.TestCase):
    def test_wrong_ones_are_named(self):
        for wrong, says in (
                (lambda: RandomPhotometricDistort(hue=(-0.6, 0)), "RandomPhotometricDistort.hue: value is -0.6"),
                (lambda: RandomPhotometricDistort(brightness=0.5), "RandomPhotometricDistort.brightness: value is 0.5"),
                (lambda: RandomPhotometricDistort(contrast=(2, 1)), "must be two numbers in rising order"),
                (lambda: RandomPhotometricDistort(p=2), "RandomPhotometricDistort.p: value is 2"),
                (lambda: drawn(RandomChannelPermutation(), 0, (9, 9, 4)), "it takes 1 or 3 channels"),
                (lambda: drawn(RandomGrayscale(), 0, (9, 9, 4)), "it takes 1 or 3 channels")):
            with self.assertRaises((TypeError, ValueError, penstock.PenstockError)) as caught:
                wrong()
            self.assertIn(says, str(caught.exception))
