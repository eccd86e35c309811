# SPDX-License-Identifier: Apache-2.0
"""Random crops with padding, and vertical flips: what the library draws, torchvision makes of PIL images, byte for
byte."""
import ctypes
import unittest

import penstock
from penstock import functional
from penstock.ops import RandomCrop, RandomVerticalFlip
from penstock import _c

from data_fixture import Case, np, optional

MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def drawn_by(ops, pixels, sample_id):
    """Return the fixed operations that a list of operations draws for a sample."""
    shape = _c.Shape(*pixels.shape)
    by = _c.Draw(size=ctypes.sizeof(_c.Draw), seed=3, sample_id=sample_id)
    drawn, error = (_c.Op * 8)(), _c.Error()
    _c.lib.pstk_error_init(error, ctypes.sizeof(error))
    given = (_c.Op * len(ops))(*[op.to_c() for op in ops])
    n = _c.lib.pstk_ops_draw(given, len(ops), shape, by, drawn, len(drawn), error)
    if n < 0:
        raise ValueError(error.message.decode())
    return list(drawn)[:n]


def applied(op, pixels):
    shape, error = _c.Shape(), _c.Error()
    _c.lib.pstk_error_init(error, ctypes.sizeof(error))
    before = _c.Shape(*pixels.shape)
    for out in (None, 1):
        if out:
            out = np.zeros((shape.height, shape.width, shape.channels), "u1")
        code = _c.lib.pstk_op_apply(op, 0, pixels.ctypes.data, before, out.ctypes.data if out is not None else None,
                                    shape, error)
        if code < 0:
            raise ValueError(error.message.decode())
    return out


def changed(ops, pixels, sample_id):
    for one in drawn_by(ops, pixels, sample_id):
        pixels = applied(one, pixels)
    return pixels


class Crops(Case):
    def images(self, n):
        rng = np.random.default_rng(7)
        for i in range(n):
            channels = int(rng.choice([1, 3, 4]))
            shape = (int(rng.integers(1, 40)), int(rng.integers(1, 40)), channels)
            yield i, rng, rng.integers(0, 256, shape, "u1")

    def test_random_crops_are_torchvisions(self):
        image, transforms = optional("PIL.Image"), optional("torchvision.transforms")
        for i, rng, pixels in self.images(400):
            channels = pixels.shape[2]
            arguments = {"size": tuple(int(v) for v in rng.integers(1, 40, 2)),
                         "padding": [None, 3, [4], (1, 2), (0, 1, 2, 3)][rng.integers(5)],
                         "pad_if_needed": bool(rng.integers(2)),
                         "fill": [0, 200, tuple(range(10, 10 + channels))][rng.integers(3)],
                         "padding_mode": str(rng.choice(["constant", "edge", "reflect", "symmetric"]))}
            op, theirs = RandomCrop(**arguments), transforms.RandomCrop(**arguments)
            picture = image.fromarray(pixels if channels > 1 else pixels[:, :, 0], MODES[channels])
            with self.subTest(arguments, shape=pixels.shape):
                try:
                    drawn = drawn_by([op], pixels, i)
                except ValueError as e:
                    self.assertIn("does not fit into the image", str(e))
                    with self.assertRaisesRegex(ValueError, "larger than input image size"):
                        theirs(picture)
                    continue
                padded = self.offset(op, drawn[-1], pixels)
                theirs.get_params = lambda *_: (*padded, drawn[-1].height, drawn[-1].width)
                wanted = np.asarray(theirs(picture)).reshape(drawn[-1].height, drawn[-1].width, channels)
                np.testing.assert_array_equal(changed([op], pixels, i), wanted)

    @staticmethod
    def offset(op, crop, pixels):
        """Top and left of a drawn crop in what torchvision has padded."""
        top, left = int(crop.params.crop.top), int(crop.params.crop.left)
        if op.padding_mode != "constant":
            return top, left
        x, y, right, bottom = op.padding
        missing = [op.size[0] - pixels.shape[0] - y - bottom, op.size[1] - pixels.shape[1] - x - right]
        if op.pad_if_needed:
            y, x = y + max(missing[0], 0), x + max(missing[1], 0)
        return top + y, left + x

    def test_vertical_flips_are_torchvisions(self):
        image, functional = optional("PIL.Image"), optional("torchvision.transforms.functional")
        for i, _, pixels in self.images(20):
            picture = image.fromarray(pixels if pixels.shape[2] > 1 else pixels[:, :, 0], MODES[pixels.shape[2]])
            wanted = np.asarray(functional.vflip(picture)).reshape(pixels.shape)
            same = penstock.ops.CenterCrop(pixels.shape[:2])  # a list fixes the size
            np.testing.assert_array_equal(changed([RandomVerticalFlip(1), same], pixels, i), wanted)
            np.testing.assert_array_equal(changed([RandomVerticalFlip(0), same], pixels, i), pixels)

    def test_a_loader_reports_where_its_rows_were_cut_from(self):
        pixels = np.random.default_rng(1).integers(0, 256, (30, 40, 3), "u1")
        with penstock.Writer(self.path(), {"x": "image"}, overwrite=True) as writer:
            for _ in range(16):
                writer.add(x=pixels)
        ops = [RandomCrop(24, padding=6), RandomVerticalFlip()]
        with penstock.Loader(self.path(), outputs={"x": penstock.image("x", ops)}, batch_size=16, form="dict",
                             framework="numpy", observe=penstock.Observe(report_crops=True)) as loader:
            batch = next(iter(loader))
            padded = np.pad(pixels, ((6, 6), (6, 6), (0, 0)))
            for row, crop in zip(batch["x"], batch.crops["x"]):
                part = padded[crop.top + 6:crop.top + 30, crop.left + 6:crop.left + 30]
                np.testing.assert_array_equal(row, part[::-1] if crop.flip_vertical else part)
            self.assertEqual({crop.flip_vertical for crop in batch.crops["x"]}, {False, True})

    def test_wrong_arguments_are_refused(self):
        for says, arguments in (("padding: value is", {"padding": (1, 2, 3)}),
                                ("padding: value is -1", {"padding": -1}),
                                ("fill: value is 256", {"fill": 256}), ("fill: value is", {"fill": (1, 2)}),
                                ("padding_mode: value is 'mirror'", {"padding_mode": "mirror"})):
            with self.assertRaisesRegex(ValueError, "RandomCrop." + says):
                RandomCrop(8, **arguments)
        with self.assertRaisesRegex(ValueError, "RandomVerticalFlip.p"):
            RandomVerticalFlip(2)
        self.assertEqual(RandomCrop(8, 1), RandomCrop((8, 8), [1, 1]))


if __name__ == "__main__":
    unittest.main()


class Functions(Case):
    def test_crops_pads_and_flips_of_arrays_are_torchvisions(self):
        image, torchvision = optional("PIL.Image"), optional("torchvision.transforms.functional")
        rng = np.random.default_rng(3)
        for _ in range(60):
            pixels = rng.integers(0, 256, (*rng.integers(1, 30, 2), 3), dtype=np.uint8)
            theirs, box = image.fromarray(pixels), [*map(int, rng.integers(-20, 20, 2)), *map(int, rng.integers(1, 40, 2))]
            self.assertTrue((functional.crop(pixels, *box) == np.asarray(torchvision.crop(theirs, *box))).all())
            self.assertTrue((functional.vflip(pixels) == np.asarray(torchvision.vflip(theirs))).all())
            for mode, most in (("constant", 9), ("edge", 9), ("reflect", min(pixels.shape[:2]) - 1),
                               ("symmetric", min(pixels.shape[:2]))):
                sides = [int(v) for v in rng.integers(0, most + 1, 4)]
                fill = (1, 2, 3) if mode == "constant" else 0
                self.assertTrue((functional.pad(pixels, sides, fill, mode)
                                 == np.asarray(torchvision.pad(theirs, sides, fill, mode))).all(), (mode, sides))

    def test_wrong_arguments_are_named(self):
        pixels = np.zeros((4, 5, 3), np.uint8)
        for wrong, says in ((lambda: functional.pad(pixels, (1, 2, 3)), "pad.padding: value is (1, 2, 3); must be one"),
                            (lambda: functional.pad(pixels, 1, 0, "mirror"), "pad.padding_mode: value is 'mirror'"),
                            (lambda: functional.crop(pixels, 0, 0, 0, 4), "crop.height: value is 0; must be")):
            with self.assertRaises(ValueError) as caught:
                wrong()
            self.assertIn(says, str(caught.exception))
