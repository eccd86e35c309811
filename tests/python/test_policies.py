# SPDX-License-Identifier: Apache-2.0
"""Policies, warps and blurs: for what is drawn, the pixels are torchvision's of PIL images, and the policies draw what
torchvision's draw, as often."""
import math
import unittest

import sets
import penstock
from penstock import functional as F

sets.need_numpy()
import numpy  # noqa: E402

try:
    from PIL import Image, ImageFilter
    from torchvision.transforms import autoaugment, functional as T, InterpolationMode
except ImportError as missing:
    raise unittest.SkipTest(f"{missing.name} is not installed") from None

FILTERS = {"nearest": InterpolationMode.NEAREST, "bilinear": InterpolationMode.BILINEAR,
           "bicubic": InterpolationMode.BICUBIC}
RNG = numpy.random.default_rng(5)


def smooth(height, width, channels=3):
    """Return an image in which neighbouring pixels are alike."""
    small = RNG.integers(0, 256, (height // 4 + 1, width // 4 + 1, 3), dtype=numpy.uint8)
    image = numpy.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))
    return numpy.ascontiguousarray(image if channels == 3 else image[:, :, 0])


def same(ours, theirs):
    return numpy.array_equal(ours, numpy.asarray(theirs))


class Functional(unittest.TestCase):
    def test_rotations_are_pillows(self):
        for _ in range(60):
            a = smooth(int(RNG.integers(1, 60)), int(RNG.integers(1, 60)), int(RNG.choice([1, 3])))
            angle = float(RNG.choice([0, 90, 180, 270, 45, RNG.uniform(-400, 400)]))
            name, expand = str(RNG.choice(list(FILTERS))), bool(RNG.integers(2))
            fill = int(RNG.integers(256)) if a.ndim == 2 else [int(v) for v in RNG.integers(0, 256, 3)]
            center = None if RNG.integers(2) else (float(RNG.uniform(0, 60)), float(RNG.uniform(0, 60)))
            theirs = T.rotate(Image.fromarray(a), angle, FILTERS[name], expand, center, fill)
            self.assertTrue(same(F.rotate(a, angle, name, expand, center, fill), theirs), (a.shape, angle, name))

    def test_affine_is_torchvisions(self):
        for _ in range(60):
            a = smooth(int(RNG.integers(1, 60)), int(RNG.integers(1, 60)))
            given = (float(RNG.uniform(-180, 180)), [int(v) for v in RNG.integers(-9, 9, 2)],
                     float(RNG.uniform(0.3, 3)), [float(v) for v in RNG.uniform(-40, 40, 2)])
            name, fill = str(RNG.choice(list(FILTERS))), [int(v) for v in RNG.integers(0, 256, 3)]
            theirs = T.affine(Image.fromarray(a), *given, interpolation=FILTERS[name], fill=fill)
            self.assertTrue(same(F.affine(a, *given, interpolation=name, fill=fill), theirs), (a.shape, given, name))

    def test_transforms_are_pillows(self):
        for n, method in ((6, Image.Transform.AFFINE), (8, Image.Transform.PERSPECTIVE)):
            for _ in range(40):
                a = smooth(int(RNG.integers(1, 60)), int(RNG.integers(1, 60)))
                matrix = [float(v) for v in RNG.uniform(-1.5, 1.5, n)]
                matrix[6:] = [v / 100 for v in matrix[6:]]
                name = str(RNG.choice(list(FILTERS)))
                theirs = Image.fromarray(a).transform(a.shape[1::-1], method, matrix,
                                                      getattr(Image.Resampling, name.upper()), fillcolor=(9, 8, 7))
                self.assertTrue(same(F.transform(a, matrix, name, [9, 8, 7]), theirs), (a.shape, matrix, name))

    def test_perspective_equals_torchvisions_except_in_the_last_places(self):
        # torchvision solves for the matrix by a method whose last places depend on the machine.
        start = [[0, 0], [59, 0], [59, 39], [0, 39]]
        n_other = 0
        for _ in range(30):
            a = smooth(40, 60)
            end = [[int(x + v), int(y + w)] for (x, y), (v, w) in
                   zip(start, zip(RNG.integers(-9, 9, 4), RNG.integers(-9, 9, 4)))]
            theirs = numpy.asarray(T.perspective(Image.fromarray(a), start, end, InterpolationMode.BILINEAR))
            ours = F.perspective(a, start, end)
            n_other += int((ours != theirs).sum())
        self.assertLess(n_other, 30 * 40 * 60 * 3 // 1000)

    def test_blurs(self):
        n_other = n_bytes = 0
        for _ in range(40):
            a = smooth(int(RNG.integers(12, 60)), int(RNG.integers(12, 60)))
            radius = float(RNG.uniform(0, 6))
            self.assertTrue(same(F.box_blur(a, radius), Image.fromarray(a).filter(ImageFilter.GaussianBlur(radius))))
            size, sigma = [int(v) * 2 + 1 for v in RNG.integers(0, 6, 2)], [float(v) for v in RNG.uniform(0.1, 5, 2)]
            theirs = numpy.asarray(T.gaussian_blur(Image.fromarray(a), size, sigma)).astype(int)
            ours = F.gaussian_blur(a, size, sigma)
            self.assertLessEqual(abs(ours - theirs).max(), 1)
            n_other, n_bytes = n_other + int((ours != theirs).sum()), n_bytes + a.size
        self.assertLess(n_other, n_bytes / 2000)
        self.assertTrue(same(F.gaussian_blur(a, 5), F.gaussian_blur(a, 5, 0.3 * ((5 - 1) * 0.5 - 1) + 0.8)))

    def test_wrong_arguments_are_named(self):
        a = smooth(9, 9)
        for wrong, says in ((lambda: F.rotate(a, 10, "lanczos"), "rotate.interpolation: value is 'lanczos'"),
                            (lambda: F.rotate(a, 10, fill=300), "rotate.fill: value is 300"),
                            (lambda: F.rotate(a, math.nan), "rotate: value is nan"),
                            (lambda: F.gaussian_blur(a, 4), "gaussian_blur.kernel_size: value is 4; must be an odd"),
                            (lambda: F.gaussian_blur(a, 19), "or half of a blur's kernel"),
                            (lambda: F.transform(a, [1, 2]), "transform.matrix: value is [1, 2]; must be six"),
                            (lambda: F.affine(a, 0, (0, 0), 0, 0), "the scale above 0"),
                            (lambda: F.perspective(a, [[0, 0]] * 4, [[0, 0]] * 4), "no three corners"),
                            (lambda: penstock.ops.AutoAugment("imagnet"), "AutoAugment.policy: value is 'imagnet'"),
                            (lambda: penstock.ops.RandAugment(magnitude=31), "RandAugment.magnitude: value is 31"),
                            (lambda: penstock.ops.RandomRotation((5, 2)), "RandomRotation.degrees: value is (5, 2)"),
                            (lambda: penstock.ops.GaussianBlur(5, (2, 1)), "GaussianBlur.sigma: value is (2, 1)")):
            with self.assertRaises((ValueError, penstock.SettingsError)) as caught:
                wrong()
            self.assertIn(says, str(caught.exception))


def applied(op, a, sample_id):
    for fixed in penstock.draw([penstock.ops.Resize(a.shape[:2]), op], a.shape, sample_id=sample_id)[1:]:
        a = fixed(a)
    return a.tobytes()


class Policies(unittest.TestCase):
    """Each outcome is one that torchvision can have, all occur, and as often. A chi-square statistic of k outcomes is
    above k + 5 sqrt(2 k) once in some 10^5 trials; seeds are fixed."""

    def check(self, op, a, shares, n):
        counts = {}
        for sample_id in range(n):
            pixels = applied(op, a, sample_id)
            self.assertIn(pixels, shares)
            counts[pixels] = counts.get(pixels, 0) + 1
        distance = sum((counts.get(key, 0) - n * share) ** 2 / (n * share) for key, share in shares.items())
        self.assertLess(distance, len(shares) + 5 * math.sqrt(2 * len(shares)))

    def shares_of(self, a, space, magnitudes):
        """Return the probability of each outcome of one operation of a space."""
        image, shares = Image.fromarray(a), {}
        for name, (values, signed) in space.items():
            given = [float(v) for v in magnitudes(values)] if values.ndim else [0.0]
            for value in given:
                for sign in (1, -1) if signed else (1,):
                    changed = autoaugment._apply_op(image, name, value * sign, InterpolationMode.BILINEAR, None)
                    key = numpy.asarray(changed).tobytes()
                    shares[key] = shares.get(key, 0) + 1 / len(space) / len(given) / (2 if signed else 1)
        return shares

    def test_trivial_augment_wide(self):
        a = smooth(60, 80)
        space = autoaugment.TrivialAugmentWide()._augmentation_space(31)
        self.check(penstock.ops.TrivialAugmentWide(interpolation="bilinear"), a,
                   self.shares_of(a, space, lambda values: values), 8000)

    def test_rand_augment(self):
        a = smooth(60, 80)
        for magnitude in (0, 9, 30):
            space = autoaugment.RandAugment()._augmentation_space(31, a.shape[:2])
            self.check(penstock.ops.RandAugment(1, magnitude, interpolation="bilinear"), a,
                       self.shares_of(a, space, lambda values: values[magnitude:magnitude + 1]), 1000)

    def test_rand_augment_applies_as_many_operations_as_asked(self):
        a = smooth(20, 20)
        most = max(len(penstock.draw([penstock.ops.Resize(20), penstock.ops.CenterCrop(20), penstock.ops.RandAugment(5)], a.shape,
                                     sample_id=i)) for i in range(200))
        self.assertEqual(most, 7)

    def test_auto_augment(self):
        a = smooth(48, 64)
        for name in ("imagenet", "cifar10", "svhn"):
            policy = autoaugment.AutoAugmentPolicy(name)
            theirs = autoaugment.AutoAugment(policy, InterpolationMode.BILINEAR)
            space, shares = theirs._augmentation_space(10, a.shape[:2]), {}
            for pair in theirs.policies:
                for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                    for both in ((0, 0), (0, 1), (1, 0), (1, 1)):
                        share, image = 1 / len(theirs.policies) / 4, Image.fromarray(a)
                        for (op, p, number), sign, on in zip(pair, signs, both):
                            share *= p if on else 1 - p
                            values, signed = space[op]
                            value = float(values[number]) if number is not None else 0.0
                            if on:
                                image = autoaugment._apply_op(image, op, value * (sign if signed else 1),
                                                              InterpolationMode.BILINEAR, None)
                        if share > 0:
                            key = numpy.asarray(image).tobytes()
                            shares[key] = shares.get(key, 0) + share
            self.check(penstock.ops.AutoAugment(policy, "bilinear"), a, shares, 4000)


class Warps(unittest.TestCase):
    def test_ranges_are_those_given(self):
        shape, n = (50, 80, 3), 4000
        whole = [penstock.ops.Resize(shape[:2])]
        angles = [penstock.draw([*whole, penstock.ops.RandomRotation((-20, 40))], shape, sample_id=i)[1].arguments[0]
                  for i in range(n)]
        counts, _ = numpy.histogram(angles, 20, (-20, 40))
        self.assertEqual(counts.sum(), n)
        self.assertLess(((counts - n / 20) ** 2 / (n / 20)).sum(), 20 + 5 * math.sqrt(40))
        moves = [penstock.draw([*whole, penstock.ops.RandomAffine(0, (0.1, 0.2))], shape, sample_id=i)[1].arguments[0]
                 for i in range(n)]
        x, y = {-m[2] for m in moves}, {-m[5] for m in moves}
        self.assertEqual((x, y), (set(range(-8, 9)), set(range(-10, 11))))

    def test_affine_without_a_range_changes_nothing(self):
        op = penstock.ops.RandomAffine(0)
        a = smooth(30, 20)
        self.assertEqual(applied(op, a, 3), a.tobytes())

    def test_perspective_comes_with_its_probability(self):
        drawn = [len(penstock.draw([penstock.ops.Resize((30, 40)), penstock.ops.RandomPerspective(0.5, 0.3)], (30, 40, 3),
                                   sample_id=i)) - 1 for i in range(2000)]
        self.assertLess(abs(sum(drawn) - 600), 5 * math.sqrt(2000 * 0.3 * 0.7))
