# SPDX-License-Identifier: Apache-2.0
"""AugMix: a loader mixes as torchvision and timm mix, byte for byte; weights and chains are drawn as often as theirs."""
import ctypes
import importlib.util
import math
import pathlib
import unittest

import sets
import penstock
from penstock import _c, functional as F
from penstock.ops import AugMix, Resize, TimmAugMix, rand_augment_timm

sets.need_numpy()
import numpy  # noqa: E402

from data_fixture import Case, optional  # noqa: E402

MIXES = {"torchvision": AugMix(), "deep": AugMix(10, 5, 4, 0.3, interpolation="bicubic", fill=(9, 8, 7)),
         "shapes": AugMix(all_ops=False), "one": AugMix(mixture_width=1, chain_depth=1),
         "timm": TimmAugMix(), "blended": TimmAugMix(5, 4, 2, 0.5, True, 0.5)}


def smooth(height=36, width=52, seed=3):
    y, x, c = numpy.mgrid[0:height, 0:width, 0:3]
    return ((3 + seed) * x + 2 * y * (c + 1) + 40 * c + x * y // 9).astype(numpy.uint8)


def drawn(op, sample_id, shape=(36, 52, 3)):
    return penstock.draw([Resize(shape[:2]), op], shape, sample_id=sample_id)[1:]


def distance(values, cdf, n_bins=10):
    """Chi-square statistic of values in n_bins equal parts of [0, 1]."""
    counts, _ = numpy.histogram(values, n_bins, (0, 1))
    shares = numpy.diff([cdf(i / n_bins) for i in range(n_bins + 1)])
    return float(((counts - len(values) * shares) ** 2 / (len(values) * shares)).sum())


class Mixes(Case):
    def test_arithmetic_is_torchvisions(self):
        torch = optional("torch")
        a, rng = smooth(), numpy.random.default_rng(1)
        for n in (1, 3, 7):
            made = [smooth(seed=i + 5) for i in range(n)]
            weights = rng.dirichlet([1] * (n + 1)).astype("float32")
            batch = torch.from_numpy(a)
            wanted = torch.tensor(weights[0]) * batch  # as AugMix.forward
            for weight, each in zip(weights[1:], made):
                wanted.add_(torch.tensor(weight) * torch.from_numpy(each))
            ours = F.mix(a, [[lambda _, kernels, each=each: each] for each in made], list(weights[1:]), weights[0])
            numpy.testing.assert_array_equal(ours, wanted.to(torch.uint8).numpy())

    def test_arithmetic_is_timms(self):
        Image, found = optional("PIL.Image"), importlib.util.find_spec("timm")
        if found is None:
            self.skipTest("timm is not installed")
        path = pathlib.Path(found.submodule_search_locations[0]) / "data" / "auto_augment.py"
        spec = importlib.util.spec_from_file_location("timms_auto_augment", path)
        timm = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(timm)
        a, made = smooth(), [smooth(seed=i + 5) for i in range(3)]
        rng = numpy.random.default_rng(2)

        class InTurn(timm.AugMixAugment):
            """The chains in their order, of one operation each."""
            def __init__(self):
                super().__init__([lambda image: Image.fromarray(next(self.left))], depth=1)
        chains = [[lambda _, kernels, each=each: each] for each in made]
        for _ in range(20):
            weights, m = numpy.float32(rng.dirichlet([1] * 3)), numpy.float32(rng.beta(1, 1))
            theirs = InTurn()
            theirs.left = iter(made)
            wanted = theirs._apply_basic(Image.fromarray(a), weights, m)
            numpy.testing.assert_array_equal(F.mix(a, chains, weights, m, "blended_sum"), numpy.asarray(wanted))
            theirs.left = iter(made)
            wanted = theirs._apply_blended(Image.fromarray(a), weights, m)
            alphas = theirs._calc_blended_weights(weights, m)
            numpy.testing.assert_array_equal(F.mix(a, chains, alphas, 0, "blends"), numpy.asarray(wanted))

    def test_a_loader_mixes_so(self):
        n, seed = 24, 5
        with penstock.Writer(self.path(), {"x": "image"}, overwrite=True) as writer:
            for i in range(n):
                writer.add(x=smooth(40 + i, 70 - i, i))
        for name, op in MIXES.items():
            ops, found = [Resize((30, 41)), op, penstock.ops.RandomFlip()], {}
            for kernels in ("c", "auto"):
                with penstock.Loader(self.path(), outputs={"x": penstock.image("x", ops)}, batch_size=n, shuffle=False,
                                     seed=seed, form="dict", framework="numpy", device=penstock.Device(copy=True),
                                     reading=penstock.Reading(kernels=kernels)) as loader:
                    found[kernels] = next(iter(loader))["x"]
            numpy.testing.assert_array_equal(found["c"], found["auto"])
            for i, row in enumerate(found["c"]):
                pixels = smooth(40 + i, 70 - i, i)
                for each in penstock.draw(ops, pixels.shape, seed=seed, sample_id=i):
                    pixels = each(pixels)
                numpy.testing.assert_array_equal(row, pixels, f"{name} {i}")

    def test_one_call_applies_a_mix(self):
        a = smooth()
        for name, op in MIXES.items():
            ops = (_c.Op * 2)(Resize(a.shape[:2]).to_c(), op.to_c())
            key, error = _c.Draw(size=ctypes.sizeof(_c.Draw), sample_id=4), _c.Error()
            _c.lib.pstk_error_init(error, ctypes.sizeof(error))
            shape, got, many = _c.Shape(36, 52, 3), (_c.Op * 200)(), _c.Shape()
            n = _c.lib.pstk_ops_draw(ops, 2, shape, key, got, 200, error)
            self.assertEqual(n, 2 + got[1].n_children)
            out = numpy.empty_like(a)
            _c.lib.pstk_op_apply(got[1], 0, a.ctypes.data, shape, out.ctypes.data, many, error)
            (fixed,) = drawn(op, 4)
            numpy.testing.assert_array_equal(out, fixed(a), name)

    def test_wrong_mixes_are_refused(self):
        a, chain, flip = smooth(), _c.lib.pstk_mix_chain, _c.Op(kind=_c.OP_FLIP_HORIZONTAL)
        crop = _c.lib.pstk_center_crop(5, 5)
        for mode, weight, children, says in (
                (0, 0.5, [flip], "begins with a MIX_CHAIN"), (3, 0.5, [chain(1)], "mode: value is 3"),
                (0, 1.5, [chain(1)], "weight: value is 1.5"), (0, 0.5, [chain(-1)], "children[0]: weight: value is -1"),
                (0, 0.5, [chain(1), crop], "children[1]: it changes the size"),
                (0, 0.5, [chain(1), _c.lib.pstk_random_flip(0.5)], "must be a fixed operation on pixels"),
                (0, 0.5, [chain(1), _c.lib.pstk_grayscale(1)], "it changes the channels")):
            error, given = _c.Error(), (_c.Op * len(children))(*children)
            _c.lib.pstk_error_init(error, ctypes.sizeof(error))
            op = _c.lib.pstk_mix_chains(mode, weight, given, len(children))
            rc = _c.lib.pstk_op_apply(op, 0, a.ctypes.data, _c.Shape(36, 52, 3), None, _c.Shape(), error)
            self.assertLess(rc, 0)
            self.assertIn(says, error.message.decode())
        for wrong, says in ((lambda: AugMix(0), "AugMix.severity: value is 0"),
                            (lambda: AugMix(chain_depth=0), "AugMix.chain_depth: value is 0"),
                            (lambda: AugMix(alpha=0), "AugMix.alpha: value is 0"),
                            (lambda: TimmAugMix(width=17), "TimmAugMix.width: value is 17"),
                            (lambda: F.mix(a, [[]], [1, 2]), "mix.weights: value is [1, 2]; must be numbers, as many as there are chains (1)"),
                            (lambda: F.mix(a, [], [], mode="add"), "mix.mode: value is 'add'"),
                            (lambda: rand_augment_timm("augmix-n2"), "must have sections m, w, d, a, b, mstd")):
            with self.assertRaises(ValueError) as caught:
                wrong()
            self.assertIn(says, str(caught.exception))
        self.assertEqual(rand_augment_timm("augmix-m5-w4-d2-a0.5-b1-mstd0.5"),
                         TimmAugMix(5, 4, 2, 0.5, True, 0.5))
        self.assertEqual(rand_augment_timm("augmix"), TimmAugMix())


class Draws(unittest.TestCase):
    """A chi-square statistic of k outcomes is above k + 5 sqrt(2 k) once in some 10^5 trials; seeds are fixed."""
    BOUND = 10 + 5 * math.sqrt(20)

    def test_weights_are_dirichlet_distributed(self):
        two = {1: lambda x: x, 0.5: lambda x: 2 / math.pi * math.asin(math.sqrt(x)), 2: lambda x: 3 * x**2 - 2 * x**3}
        for alpha, cdf in two.items():
            found = [drawn(AugMix(mixture_width=1, chain_depth=1, alpha=alpha), i)[0].arguments for i in range(4000)]
            self.assertLess(distance([weight for _, _, weight, _ in found], cdf), self.BOUND, alpha)
            for _, (chain,), weight, _ in found:
                self.assertAlmostEqual(chain + weight, 1, delta=1e-6)
        found = [drawn(TimmAugMix(depth=1), i)[0].arguments for i in range(4000)]
        for k in range(3):  # a marginal of three: Beta(1, 2)
            self.assertLess(distance([weights[k] for _, weights, _, _ in found], lambda x: 1 - (1 - x) ** 2), self.BOUND)
        self.assertLess(distance([weight for _, _, weight, _ in found], lambda x: x), self.BOUND)
        small = [drawn(AugMix(mixture_width=16, alpha=0.01), i)[0].arguments for i in range(200)]
        self.assertTrue(all(abs(sum(weights) + weight - 1) < 1e-5 for _, weights, weight, _ in small))

    def test_chains_have_one_to_three_operations(self):
        for op in (AugMix(), TimmAugMix()):
            chains = [chain for i in range(1000) for chain in drawn(op, i)[0].arguments[0]]
            counts = numpy.bincount([len(chain) for chain in chains], minlength=4)
            self.assertEqual(counts.sum(), 3000)
            self.assertEqual(counts[0], 0)
            self.assertLess(((counts[1:] - 1000) ** 2 / 1000).sum(), 3 + 5 * math.sqrt(6))

    def test_operations_are_torchvisions(self):
        Image = optional("PIL.Image")
        autoaugment = optional("torchvision.transforms.autoaugment")
        a, n = smooth(), 4000
        for all_ops in (True, False):
            space, shares = autoaugment.AugMix(all_ops=all_ops)._augmentation_space(10, a.shape[:2]), {}
            for name, (values, signed) in space.items():
                given = [float(v) for v in values[:3]] if values.ndim else [0.0]
                for value in given:
                    for sign in (1, -1) if signed else (1,):
                        image = autoaugment._apply_op(Image.fromarray(a), name, value * sign,
                                                      autoaugment.InterpolationMode.BILINEAR, None)
                        key = numpy.asarray(image).tobytes()
                        shares[key] = shares.get(key, 0) + 1 / len(space) / len(given) / (2 if signed else 1)
            counts, op = {}, AugMix(mixture_width=1, chain_depth=1, all_ops=all_ops)
            for i in range(n):
                (((fixed,),), _, _, _) = drawn(op, i)[0].arguments
                key = fixed(a).tobytes()
                counts[key] = counts.get(key, 0) + 1
            self.assertLessEqual(set(counts), set(shares))
            statistic = sum((counts.get(key, 0) - n * share) ** 2 / (n * share) for key, share in shares.items())
            self.assertLess(statistic, len(shares) + 5 * math.sqrt(2 * len(shares)))
