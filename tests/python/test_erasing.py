# SPDX-License-Identifier: Apache-2.0
"""RandomErasing: a loader's tensors are torchvision's, erased in the box that the library draws."""
import ctypes
import unittest

import penstock
from penstock import CenterCrop, Normalize, RandomErasing
from penstock import _c

from data_fixture import Case, np, optional

SEED = 11


def box_of(ops, sample_id):
    """Top, left, height and width of what a list erases of a sample; None: nothing."""
    by = _c.Draw(size=ctypes.sizeof(_c.Draw), seed=SEED, sample_id=sample_id)
    given = (_c.Op * len(ops))(*[op.to_c() for op in ops])
    drawn, error = (_c.Op * 3)(), _c.Error()
    _c.lib.pstk_error_init(error, ctypes.sizeof(error))
    n = _c.lib.pstk_ops_draw(given, len(ops), _c.Shape(30, 40, 3), by, drawn, 3, error)
    if n < 0:
        raise ValueError(error.message.decode())
    return tuple(int(v) for v in drawn[1].params[:4]) if n == 2 else None


class Erasing(Case):
    def rows(self, ops, n=32, **keywords):
        pixels = np.random.default_rng(1).integers(0, 256, (n, 30, 40, 3), "u1")
        with penstock.Writer(self.path(), {"x": "image"}, overwrite=True) as writer:
            for one in pixels:
                writer.add(x=one)
        with penstock.Loader(self.path(), outputs={"x": penstock.image("x", ops, layout="nchw", **keywords)},
                             batch_size=n, shuffle=False, seed=SEED, form="dict", framework="numpy",
                             copy=True) as loader:
            return next(iter(loader))["x"]

    def test_boxes_are_erased_as_torchvision_erases_them(self):
        torch, functional = optional("torch"), optional("torchvision.transforms.functional")
        plain = [CenterCrop((30, 40)), Normalize()]
        for dtype in ("float16", "float32"):
            for value in (0, 0.7, (1, -2.25, 3)):
                op = RandomErasing(0.6, value=value)
                ops = [*plain, op]
                values = torch.tensor(op.value)[:, None, None]
                wanted, n = self.rows(plain, dtype=dtype), 0
                for i, row in enumerate(wanted):
                    box = box_of(ops, i)
                    if box:
                        row[:] = functional.erase(torch.from_numpy(row), *box, values).numpy()
                        n += 1
                self.assertTrue(8 < n < 30)
                np.testing.assert_array_equal(self.rows(ops, dtype=dtype), wanted)

    def test_random_values_are_normal_and_repeatable(self):
        ops = [CenterCrop((30, 40)), Normalize(), RandomErasing(1, scale=(0.3, 0.5), value="random")]
        found, parts = self.rows(ops), []
        self.assertEqual(found.dtype, "float32")
        for i, row in enumerate(found):
            box = box_of(ops, i)
            if box:
                top, left, height, width = box
                parts.append(row[:, top:top + height, left:left + width].ravel())
        values = np.concatenate(parts)
        self.assertGreater(len(values), 20000)
        self.assertLess(abs(values.mean()), 5 / len(values)**0.5)
        self.assertLess(abs(values.std() - 1), 5 / len(values)**0.5)
        np.testing.assert_array_equal(self.rows(ops), found)

    def test_bytes_are_erased_with_whole_values(self):
        ops = [CenterCrop((30, 40)), RandomErasing(1, value=7)]
        wanted = self.rows(ops[:1])
        for i, row in enumerate(wanted):
            top, left, height, width = box_of(ops, i)
            row[:, top:top + height, left:left + width] = 7
        np.testing.assert_array_equal(self.rows(ops), wanted)

    def test_wrong_arguments_are_refused(self):
        for says, arguments in (("value: value is 'normal'", {"value": "normal"}),
                                ("value: value is", {"value": (1, 2)}),
                                ("scale: value is", {"scale": (1,)}), ("p: value is", {"p": float("nan")})):
            with self.assertRaisesRegex(ValueError, "RandomErasing." + says):
                RandomErasing(**arguments)
        self.assert_says(["RandomErasing", "it must be the last operation"], self.rows,
                         [CenterCrop(8), RandomErasing(), Normalize()])
        self.assert_says(["RandomErasing", "dtype uint8"], self.rows, [CenterCrop(8), RandomErasing(value="random")])


if __name__ == "__main__":
    unittest.main()
