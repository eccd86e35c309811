# SPDX-License-Identifier: Apache-2.0
"""RandomErasing: a loader's tensors are torchvision's, erased in the box that the library draws."""
import ctypes
import unittest

import penstock
from penstock.ops import CenterCrop, Normalize, RandomErasing
from penstock import _c

from data_fixture import Case, np, optional

SEED = 11


def boxes_of(ops, sample_id, shape=(30, 40, 3)):
    """Top, left, height and width of each box that a list erases of a sample."""
    by = _c.Draw(size=ctypes.sizeof(_c.Draw), seed=SEED, sample_id=sample_id)
    given = (_c.Op * len(ops))(*[op.to_c() for op in ops])
    drawn, error = (_c.Op * 9)(), _c.Error()
    _c.lib.pstk_error_init(error, ctypes.sizeof(error))
    n = _c.lib.pstk_ops_draw(given, len(ops), _c.Shape(*shape), by, drawn, 9, error)
    if n < 0:
        raise ValueError(error.message.decode())
    boxes = [op.params.erase for op in drawn[1:n]]
    return [(int(b.top), int(b.left), int(b.height), int(b.width)) for b in boxes]


def box_of(ops, sample_id):
    """Return the only box; None: nothing."""
    boxes = boxes_of(ops, sample_id)
    return boxes[0] if boxes else None


class Erasing(Case):
    def rows(self, ops, n=32, **keywords):
        pixels = np.random.default_rng(1).integers(0, 256, (n, 30, 40, 3), "u1")
        with penstock.Writer(self.path(), {"x": "image"}, overwrite=True) as writer:
            for one in pixels:
                writer.add(x=one)
        with penstock.Loader(self.path(), outputs={"x": penstock.image("x", ops, layout="nchw", **keywords)},
                             batch_size=n, shuffle=False, seed=SEED, form="dict", framework="numpy",
                             device=penstock.Device(copy=True)) as loader:
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

    def test_boxes_are_as_many_as_asked_and_share_the_area(self):
        n, shape = 3000, (200, 300)
        op = RandomErasing(1, (0.3, 0.3), (1, 1), 0, (2, 5))
        counts, sides = {}, {}
        for i in range(n):
            boxes = boxes_of([CenterCrop(shape), op], i, (*shape, 3))
            counts[len(boxes)] = counts.get(len(boxes), 0) + 1
            sides.setdefault(len(boxes), set()).update(box[2:] for box in boxes)
        self.assertEqual(set(counts), {2, 3, 4, 5})
        self.assertLess(sum((c - n / 4) ** 2 / (n / 4) for c in counts.values()), 4 + 5 * 8**0.5)
        self.assertEqual(sides, {k: {(round((60000 * 0.3 / k) ** 0.5),) * 2} for k in counts})

    def test_all_boxes_are_erased(self):
        plain = [CenterCrop((30, 40)), Normalize()]
        op = RandomErasing(1, value=(1, 2, 3), count=(1, 4))
        wanted = self.rows(plain)
        for i, row in enumerate(wanted):
            for top, left, height, width in boxes_of([*plain, op], i):
                row[:, top:top + height, left:left + width] = np.array([1, 2, 3], "f4")[:, None, None]
        np.testing.assert_array_equal(self.rows([*plain, op]), wanted)

    def test_a_box_has_one_normal_value_for_each_channel(self):
        ops, values = [CenterCrop((30, 40)), Normalize(), RandomErasing(1, value="channel", count=2)], []
        found, plain = self.rows(ops), self.rows(ops[:2])
        for i, row in enumerate(found):
            changed = (row != plain[i]).any(0)
            boxes = boxes_of(ops, i)
            top, left, height, width = boxes[-1]  # the first may lie below it
            part = row[:, top:top + height, left:left + width].reshape(3, -1)
            self.assertTrue((part == part[:, :1]).all())
            self.assertEqual(len(set(part[:, 0])), 3)
            values += part[:, 0].tolist()
            self.assertLessEqual(changed.sum(), sum(box[2] * box[3] for box in boxes))
        self.assertLess(abs(np.mean(values)), 5 / len(values)**0.5)
        self.assertLess(abs(np.std(values) - 1), 5 / len(values)**0.5)

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
