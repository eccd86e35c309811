# SPDX-License-Identifier: Apache-2.0
"""Tables of the last operations, folded into the output's own table, give the floats that they give without: those of
the bytes that the same list makes for an output of bytes."""
import unittest

import penstock
from penstock.ops import (CenterCrop, Grayscale, Normalize, RandomAutocontrast, RandomErasing, RandomFlip, RandomInvert,
                          RandomPosterize, RandomSolarize, ToFloat)

from data_fixture import Case, np, optional

optional("torch")

N, SIDE = 6, 37
LISTS = {"one": [RandomPosterize(3, 1)], "several": [RandomInvert(1), RandomPosterize(5, 0.5), RandomSolarize(70, 0.7)],
         "by chance": [RandomSolarize(99, 0.5)], "after another": [RandomAutocontrast(1), RandomInvert(1)],
         "not the last": [RandomInvert(1), RandomAutocontrast(1)], "a flip after": [RandomInvert(1), RandomFlip(1)]}


class Fold(Case):
    def rows(self, ops, dtype, **options):
        output = {name: options.pop(name) for name in ("layout", "channels") if name in options}
        with penstock.Loader(self.path(), batch_size=N, shuffle=False, seed=3, form="dict", framework="torch",
                             device=penstock.Device(copy=True),
                             outputs={"x": penstock.image("x", ops, dtype=dtype, **output)}, **options) as loader:
            return next(iter(loader))["x"]

    def test_floats_are_those_of_the_bytes(self):
        torch, rng = optional("torch"), np.random.default_rng(1)
        with penstock.Writer(self.path(), {"x": "image"}) as writer:
            for _ in range(N):
                writer.add(x=rng.integers(0, 256, (SIDE, SIDE, 3), "u1"))
        for name, changes in LISTS.items():
            for gray in (0, 1):
                ops = [*([Grayscale(1)] if gray else []), CenterCrop(SIDE), *changes]
                normalize = Normalize((0.5,), (0.3,)) if gray else Normalize()
                plain = self.rows(ops, "uint8").reshape(N, SIDE, SIDE, -1).numpy()
                mean, std = np.float32(normalize.mean), np.float32(normalize.std)
                wanted = torch.from_numpy((plain / np.float32(255) - mean) / std)
                for dtype in ("float32", "float16", "bfloat16"):
                    for layout in ("nhwc", "nchw"):
                        for kernels in ("c", "auto"):
                            with self.subTest(name, gray=gray, dtype=dtype, layout=layout, kernels=kernels):
                                found = self.rows([*ops, normalize], dtype, layout=layout,
                                                  reading=penstock.Reading(kernels=kernels))
                                found = found.permute(0, 2, 3, 1) if layout == "nchw" else found
                                self.assertTrue(torch.equal(found, wanted.to(found.dtype)))

    def test_alpha_and_erasing(self):
        rng = np.random.default_rng(2)
        with penstock.Writer(self.path(), {"x": "image"}) as writer:
            for _ in range(N):
                writer.add(x=rng.integers(0, 256, (SIDE, SIDE, 4), "u1"))
        ops = [CenterCrop(SIDE), penstock.ops.ColorJitter(brightness=(0.3, 0.4))]  # keeps alpha
        plain = self.rows(ops, "uint8", channels=4).numpy()
        found = self.rows([*ops, ToFloat("multiply"), RandomErasing(1, value=2)], "float32", channels=4).numpy()
        wanted = plain * np.float32(1 / 255)
        kept = found != 2
        self.assertTrue(0.3 < kept.mean() < 1)
        np.testing.assert_array_equal(found[kept], wanted[kept])


if __name__ == "__main__":
    unittest.main()
