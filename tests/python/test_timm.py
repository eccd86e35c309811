# SPDX-License-Identifier: Apache-2.0
"""timm's policies: of its strings the package makes what timm makes; each outcome is one that timm can have, byte for
byte, all occur, and as often."""
import importlib.util
import itertools
import math
import pathlib
import unittest
from unittest import mock

import sets
import penstock
from penstock.ops import Resize, TimmAutoAugment, TimmRandAugment, rand_augment_timm

sets.need_numpy()
import numpy  # noqa: E402

try:
    from PIL import Image
except ImportError:
    raise unittest.SkipTest("Pillow is not installed") from None


def _timms():
    """timm's module alone: the package imports all of PyTorch."""
    found = importlib.util.find_spec("timm")
    if found is None:
        raise unittest.SkipTest("timm is not installed")
    path = pathlib.Path(found.submodule_search_locations[0]) / "data" / "auto_augment.py"
    spec = importlib.util.spec_from_file_location("timms_auto_augment", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


timm = _timms()
FILL = (1, 100, 200)
HPARAMS = {"img_mean": FILL, "interpolation": Image.Resampling.BILINEAR}
OPTIONS = {"fill": FILL, "interpolation": "bilinear"}
SETS = {"default": timm._RAND_TRANSFORMS, "increasing": timm._RAND_INCREASING_TRANSFORMS,
        "weights": timm._RAND_WEIGHTED_0, "3a": timm._RAND_3A, "3aw": timm._RAND_WEIGHTED_3A}


def smooth(height, width):
    small = numpy.random.default_rng(3).integers(0, 256, (height // 4, width // 4, 3), numpy.uint8)
    return numpy.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))


A = smooth(36, 52)


def drawn(op, sample_id, a=A):
    return penstock.draw([Resize(a.shape[:2]), op], a.shape, sample_id=sample_id)[1:]


def applied(op, sample_id):
    a = A
    for fixed in drawn(op, sample_id):
        a = fixed(a)
    return a.tobytes()


def outcomes(name, magnitude, hparams=HPARAMS):
    """Return the images that timm's AugmentOp makes of A, each with its share."""
    found = {}
    for coin in (0.2, 0.8):  # the coin of the sign
        with mock.patch.object(timm.random, "random", lambda: coin):
            op = timm.AugmentOp(name, 1.0, magnitude, {**hparams})
            key = numpy.asarray(op(Image.fromarray(A))).tobytes()
        found[key] = found.get(key, 0) + 0.5
    return found


class Case(unittest.TestCase):
    def check(self, shares, counts):
        """A chi-square statistic of k outcomes is above k + 5 sqrt(2 k) once in some 10^5 trials; seeds are fixed."""
        n = sum(counts.values())
        self.assertLessEqual(set(counts), set(shares))
        distance = sum((counts.get(key, 0) - n * share) ** 2 / (n * share) for key, share in shares.items() if share)
        self.assertLess(distance, len(shares) + 5 * math.sqrt(2 * len(shares)))

    def counts(self, n, outcome):
        found = {}
        for i in range(n):
            key = outcome(i)
            found[key] = found.get(key, 0) + 1
        return found


class Rand(Case):
    def test_outcomes_are_timms(self):
        for name, members in SETS.items():
            weights = members if isinstance(members, dict) else dict.fromkeys(members, 1)
            for magnitude in (0, 3, 9, 10, 17):
                shares, hparams = {}, {**HPARAMS, "magnitude_max": 20}
                for member, weight in weights.items():
                    for key, share in outcomes(member, magnitude, hparams).items():
                        shares[key] = shares.get(key, 0) + share * weight / sum(weights.values())
                op = TimmRandAugment(magnitude, 1, 1, 0, 20, name, **OPTIONS)
                with self.subTest(name, magnitude=magnitude):
                    self.check(shares, self.counts(1500, lambda i: applied(op, i)))

    def test_filters_are_equally_likely(self):
        shares = {}
        for member in timm._RAND_TRANSFORMS:
            for interpolation in (Image.Resampling.BILINEAR, Image.Resampling.BICUBIC):
                for key, share in outcomes(member, 9, {**HPARAMS, "interpolation": interpolation}).items():
                    shares[key] = shares.get(key, 0) + share / 30
        op = TimmRandAugment(9, 1, 1, fill=FILL)
        self.check(shares, self.counts(3000, lambda i: applied(op, i)))

    def test_layers_come_as_often_as_their_probability_says(self):
        op = TimmRandAugment(9, 3, 0.3)
        shares = {k: math.comb(3, k) * 0.3**k * 0.7 ** (3 - k) for k in range(4)}
        self.check(shares, self.counts(3000, lambda i: len(drawn(op, i))))

    def test_with_weights_no_operation_comes_twice(self):
        def kind(fixed):
            if fixed.name != "transform":
                return fixed.name
            matrix = fixed.arguments[0]
            return [i for i in (1, 2, 3, 5) if matrix[i]][0]
        kinds = {"Rotate": "rotate", "ShearX": 1, "ShearY": 3, "TranslateXRel": 2, "TranslateYRel": 5,
                 "ColorIncreasing": "adjust_saturation", "SharpnessIncreasing": "adjust_sharpness",
                 "AutoContrast": "autocontrast", "SolarizeIncreasing": "solarize", "SolarizeAdd": "solarize_add",
                 "ContrastIncreasing": "adjust_contrast", "BrightnessIncreasing": "adjust_brightness",
                 "Equalize": "equalize", "PosterizeIncreasing": "posterize", "Invert": "invert"}
        total = sum(timm._RAND_WEIGHTED_0.values())
        p = {kinds[name]: weight / total for name, weight in timm._RAND_WEIGHTED_0.items()}
        op = TimmRandAugment(9, 15, 1, transforms="weights")
        for i in range(50):
            self.assertEqual(sorted(map(str, map(kind, drawn(op, i)))), sorted(map(str, p)))
        pairs = {(a, b): p[a] * p[b] / (1 - p[a]) for a in p for b in p if a != b}
        counts = self.counts(20000, lambda i: tuple(map(kind, drawn(TimmRandAugment(9, 2, 1, transforms="weights"), i))))
        self.assertLessEqual(set(counts), set(pairs))
        often = {pair: share for pair, share in pairs.items() if share > 0.001}  # the rest together
        often["rest"] = 1 - sum(often.values())
        grouped = {}
        for pair, n in counts.items():
            key = pair if pair in often else "rest"
            grouped[key] = grouped.get(key, 0) + n
        self.check(often, grouped)

    def angles(self, op, n=4000):
        """Return the magnitudes of rotations."""
        found = [abs(fixed.arguments[0]) / 3 for i in range(n) for fixed in drawn(op, i) if fixed.name == "rotate"]
        self.assertGreater(len(found), n // 20)
        return numpy.array(found)

    def test_magnitudes_are_normally_distributed_and_cut(self):
        found = self.angles(TimmRandAugment(9, 1, 1, 0.8), 12000)
        self.assertLessEqual(found.max(), 10)
        edges = [-math.inf, 7.5, 8, 8.5, 9, 9.5, 10 - 1e-9, math.inf]
        cdf = [0.5 * (1 + math.erf((edge - 9) / 0.8 / math.sqrt(2))) for edge in edges]
        counts = numpy.histogram(found, [-1, *edges[1:-1], 99])[0]
        self.check({i: b - a for i, (a, b) in enumerate(zip(cdf, cdf[1:]))}, dict(enumerate(counts.tolist())))
        self.assertGreater(self.angles(TimmRandAugment(9, 1, 1, 5, 12), 2000).max(), 11)
        self.assertEqual(self.angles(TimmRandAugment(1, 1, 1, 5), 2000).min(), 0)

    def test_infinite_deviation_is_uniform(self):
        found = self.angles(TimmRandAugment(8, 1, 1, math.inf), 12000)
        counts = numpy.histogram(found, 10, (0, 8))[0]
        self.assertEqual(counts.sum(), len(found))
        self.check(dict.fromkeys(range(10), 0.1), dict(enumerate(counts.tolist())))


class Auto(Case):
    def test_outcomes_are_timms(self):
        for policy in ("v0", "v0r", "original", "originalr"):
            theirs, shares = timm.auto_augment_policy(policy, {**HPARAMS}), {}
            for pair in theirs:
                for coins in itertools.product((0.2, 0.8), repeat=2):
                    for on in itertools.product((0, 1), repeat=2):
                        image, share = Image.fromarray(A), 1 / len(theirs) / 4
                        for op, coin, is_on in zip(pair, coins, on):
                            share *= op.prob if is_on else 1 - op.prob
                            with mock.patch.object(timm.random, "random", lambda: coin):
                                always = timm.AugmentOp(op.name, 1.0, op.magnitude, {**HPARAMS})
                                image = always(image) if is_on else image
                        key = numpy.asarray(image).tobytes()
                        shares[key] = shares.get(key, 0) + share
            with self.subTest(policy):
                op = TimmAutoAugment(policy, **OPTIONS)
                self.check({key: share for key, share in shares.items() if share},
                           self.counts(4000, lambda i: applied(op, i)))

    def test_3a_is_solarize_gray_or_blur(self):
        found = [drawn(TimmAutoAugment("3a"), i) for i in range(3000)]
        self.check(dict.fromkeys(("solarize", "adjust_saturation", "box_blur"), 1 / 3),
                   self.counts(3000, lambda i: found[i][0].name))
        radii = [ops[0].arguments[0] for ops in found if ops[0].name == "box_blur"]
        counts = numpy.histogram(radii, 10, (0.1, 2))[0]
        self.assertEqual(counts.sum(), len(radii))
        self.check(dict.fromkeys(range(10), 0.1), dict(enumerate(counts.tolist())))
        self.assertEqual({ops[0] for ops in found if ops[0].name != "box_blur"},
                         {penstock.FixedOp("solarize", (128.0,)), penstock.FixedOp("adjust_saturation", (0.0,))})

    def test_deviation_changes_magnitudes(self):
        angles = {abs(fixed.arguments[0]) for i in range(300) for fixed in drawn(TimmAutoAugment("v0", 0.5), i)
                  if fixed.name == "rotate"}
        self.assertGreater(len(angles), 30)


class Strings(unittest.TestCase):
    def test_rand_is_timms(self):
        for config in ("rand", "rand-m9", "rand-m9-mstd0.5-inc1", "rand-n3-m7-p0.25", "rand-mstd101-inc1-m5",
                       "rand-m15-mmax20", "rand-mmax0", "rand-tweights-mstd1", "rand-t3a-m6", "rand-inc0-t3aw-n4",
                       "rand-m9-mstd100-inc2"):
            theirs, ours = timm.rand_augment_transform(config, {"img_mean": FILL}), rand_augment_timm(config)
            op = theirs.ops[0]
            self.assertEqual([each.name for each in theirs.ops], list(SETS[ours.transforms]), config)
            self.assertEqual((theirs.num_layers, op.prob, op.magnitude, op.magnitude_std, op.magnitude_max or 10),
                             (ours.num_layers, ours.prob, ours.magnitude, ours.magnitude_std, ours.magnitude_max))
            self.assertEqual(theirs.choice_weights is not None, isinstance(SETS[ours.transforms], dict))
        self.assertEqual(rand_augment_timm("rand-m9").fill[:3], timm._FILL)
        self.assertEqual(rand_augment_timm("v0", img_mean=FILL, interpolation="bicubic"),
                         TimmAutoAugment("v0", 0, "bicubic", FILL))

    def test_others_are_policies(self):
        for name in ("v0", "v0r", "original", "originalr", "3a"):
            self.assertEqual(rand_augment_timm(name), TimmAutoAugment(name))
            self.assertEqual(rand_augment_timm(name + "-mstd0.5"), TimmAutoAugment(name, 0.5))

    def test_wrong_ones_are_named(self):
        for config, says in (("ran-m9", "did you mean 'rand'"), ("rand-w0", "write tweights"),
                             ("rand-m9-m9", "each once"), ("rand-m9.5", "a section 'm9.5'"), ("rand-m", "section 'm'"),
                             ("rand-tweight", "did you mean 'weights'"), ("v0-m9", "must have sections mstd"),
                             ("rand-n0", "TimmRandAugment.num_layers: value is 0"), ("rand-", "a section ''"),
                             ("rand-m1001", "TimmRandAugment.magnitude: value is 1001")):
            with self.assertRaises(ValueError) as caught:
                rand_augment_timm(config)
            self.assertIn(says, str(caught.exception))
        with self.assertRaisesRegex(TypeError, "must be a string"):
            rand_augment_timm(9)
        with self.assertRaisesRegex(ValueError, "at most 15"):
            drawn(rand_augment_timm("rand-n16-tweights"), 0)
        with self.assertRaisesRegex(ValueError, "TimmAutoAugment.interpolation: value is 'lanczos'"):
            TimmAutoAugment(interpolation="lanczos")
