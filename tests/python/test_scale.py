# SPDX-License-Identifier: Apache-2.0
"""Floats of all 256 bytes are torchvision's: those of ToTensor, and those of v2.ToDtype, each with Normalize and
without."""
import unittest

import penstock
from penstock.ops import CenterCrop, Grayscale, Normalize, RandomErasing, ToFloat

from data_fixture import Case, np, optional

torch = optional("torch")
MEANS = {1: ((0.4,), (0.3,)), 3: (penstock.ops.IMAGENET_MEAN, penstock.ops.IMAGENET_STD),
         4: ((0.1, 0.2, 0.3, 0.4), (0.5, 0.6, 0.7, 0.8))}


class Scale(Case):
    def rows(self, ops, channels, dtype):
        with penstock.Loader(self.path(str(channels)), batch_size=1, form="dict", framework="torch",
                             device=penstock.Device(copy=True), outputs={
                "x": penstock.image("x", [CenterCrop(16), *ops], dtype=dtype, layout="nchw",
                                    channels=channels)}) as loader:
            return next(iter(loader))["x"][0]

    def setUp(self):
        super().setUp()
        for channels in MEANS:
            pixels = np.arange(256, dtype="u1").reshape(16, 16, 1).repeat(channels, 2)
            with penstock.Writer(self.path(str(channels)), {"x": "image"}) as writer:
                writer.add(x=pixels if channels > 1 else pixels[:, :, 0])

    def test_all_bytes_are_torchvisions(self):
        functional, v2 = (optional("torchvision.transforms.functional"),
                          optional("torchvision.transforms.v2.functional"))
        n_other = {}
        for channels, (mean, std) in MEANS.items():
            pixels = np.arange(256, dtype="u1").reshape(16, 16, 1).repeat(channels, 2)
            divided = functional.to_tensor(pixels)
            multiplied = v2.to_dtype(torch.from_numpy(pixels).permute(2, 0, 1), torch.float32, scale=True)
            self.assertEqual(int((divided != multiplied).sum()), 126 * channels)
            for dtype in ("float32", "float16", "bfloat16"):
                to = getattr(torch, dtype)
                for scale, wanted in (("divide", divided), ("multiply", multiplied)):
                    found = self.rows([ToFloat(scale)], channels, dtype)
                    self.assertTrue(torch.equal(found, wanted.to(to)), (channels, dtype, scale))
                    for normalize in (functional.normalize, v2.normalize):
                        found = self.rows([Normalize(mean, std, scale)], channels, dtype)
                        self.assertTrue(torch.equal(found, normalize(wanted, list(mean), list(std)).to(to)),
                                        (channels, dtype, scale))
                self.assertTrue(torch.equal(self.rows([], channels, dtype), divided.to(to)))
                n_other[dtype] = int((divided.to(to) != multiplied.to(to)).sum()) // channels
        self.assertEqual(n_other, {"float32": 126, "float16": 0, "bfloat16": 0})

    def test_it_ends_a_list_of_fractions(self):
        self.assertEqual(self.rows([ToFloat("multiply"), RandomErasing(1)], 3, "float32").dtype, torch.float32)
        self.assertEqual(self.rows([Grayscale(1), ToFloat()], 3, "float32").shape, (1, 16, 16))
        for ops, dtype, says in (([ToFloat(), Grayscale(3)], "float32", "it must be the last operation"),
                                 ([ToFloat(), Normalize()], "float32", "it must be the last operation"),
                                 ([ToFloat()], "uint8", "fractions, which dtype uint8 cannot hold")):
            with self.assertRaisesRegex(penstock.PenstockError, says):
                self.rows(ops, 3, dtype)
        for wrong in (lambda: ToFloat("add"), lambda: Normalize(scale="v2")):
            with self.assertRaisesRegex(ValueError, "scale: value is '(add|v2)'; must be 'divide' or 'multiply'"):
                wrong()


if __name__ == "__main__":
    unittest.main()
