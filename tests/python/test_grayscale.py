# SPDX-License-Identifier: Apache-2.0
"""Grayscale, wherever it stands in the list, gives what torchvision's gives in a Compose of PIL images."""
import io
import os
import unittest

import sets
import penstock

sets.need_numpy()
import numpy  # noqa: E402

try:
    from PIL import Image
except ImportError:
    raise unittest.SkipTest("Pillow is not installed") from None
try:
    from torchvision import transforms
except ImportError:
    transforms = None

PATH = os.path.join(sets.ROOT, "grayscale")
N = 8
MODES = {1: "L", 3: "RGB", 4: "RGBA"}
Gray, Resize, Crop, Flip = penstock.ops.Grayscale, penstock.ops.Resize, penstock.ops.CenterCrop, penstock.ops.RandomFlip


def noise(i, channels):
    return numpy.random.default_rng(i).integers(0, 256, (40 + 9 * i, 77 - 6 * i, channels), dtype=numpy.uint8)


def files():
    for i in range(N):
        out = io.BytesIO()
        Image.fromarray(noise(i, 4 if i in (0, 2, 4) else 3)).save(out, "PNG" if i < 6 else "JPEG")
        yield out.getvalue()


FILES = list(files())


def setUpModule():
    with penstock.Writer(PATH, {"jpg": "image"}) as writer:
        for file in FILES:
            writer.add(jpg=file)


def rows(ops, **options):
    with penstock.Loader(PATH, outputs={"x": penstock.image("jpg", ops, **options)}, last_batch="short", batch_size=N,
                         shuffle=False, form="dict", framework="numpy", device=penstock.Device(copy=True)) as loader:
        return next(iter(loader))["x"]


def by_pillow(image, ops):
    """Return the operations one after the other, each by Pillow alone."""
    for op in ops:
        if isinstance(op, Gray):
            image = image.convert("L")
            if op.num_output_channels == 3:
                image = Image.merge("RGB", (image,) * 3)
        elif isinstance(op, Resize):
            image = image.resize(op.size[::-1], Image.Resampling.BILINEAR)
        elif isinstance(op, Flip):
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return image


def by_torchvision(image, ops):
    of = {Gray: lambda op: transforms.Grayscale(op.num_output_channels),
          Resize: lambda op: transforms.Resize(op.size),
          Crop: lambda op: transforms.CenterCrop(op.size),
          Flip: lambda op: transforms.RandomHorizontalFlip(op.p)}
    return transforms.Compose([of[type(op)](op) for op in ops])(image)


class Grayscale(unittest.TestCase):
    def compare(self, lists, oracle):
        for ops in lists:
            for channels in MODES:
                with self.subTest(ops=ops, channels=channels):
                    found = rows(ops, channels=channels)
                    self.assertEqual(len(found), N)
                    for i, row in enumerate(found):
                        image = Image.open(io.BytesIO(FILES[i])).convert(MODES[channels])
                        wanted = numpy.asarray(oracle(image, ops))
                        wanted = wanted[..., None] if wanted.ndim == 2 else wanted
                        self.assertEqual(row.shape, wanted.shape)
                        self.assertEqual(int((row != wanted).sum()), 0, f"image {i}")

    def test_before_and_after_a_resize_it_is_pillows(self):
        resize = Resize((33, 25))
        self.compare([[Gray(), resize], [resize, Gray()], [Gray(3), resize], [resize, Gray(3)],
                      [Gray(1), resize, Gray(3)], [Gray(3), Gray(1), resize, Flip(1)],
                      [resize, Flip(1), Gray(3), Gray(1)]], by_pillow)
        before, after = rows([Gray(), resize]), rows([resize, Gray()])
        self.assertTrue((before != after).any())  # so the order is seen

    @unittest.skipIf(transforms is None, "torchvision is not installed")
    def test_in_a_compose_it_is_torchvisions(self):
        crop = Crop((50, 60))  # it pads some of the images
        self.compare([[Gray(), Resize((20, 30)), Flip(1)], [Resize(32), Gray(3), Crop((24, 40))],
                      [Resize(32), Crop((24, 40)), Gray(1)], [crop, Gray()], [Gray(3), crop, Flip(1)],
                      [crop, Flip(1), Gray(3)]], by_torchvision)

    def test_normalize_takes_as_many_numbers_as_it_leaves_channels(self):
        for n in (1, 3):
            mean, std = (0.1, 0.2, 0.3)[:n], (0.4, 0.5, 0.6)[:n]
            for ops in ([Gray(n), Resize((20, 30))], [Resize((20, 30)), Gray(n)]):
                found = rows([*ops, penstock.ops.Normalize(mean, std)], layout="nchw")
                self.assertEqual(found.shape, (N, n, 20, 30))
                plain = rows(ops, layout="nchw").astype("float32") / numpy.float32(255)
                wanted = (plain - numpy.float32(mean).reshape(n, 1, 1)) / numpy.float32(std).reshape(n, 1, 1)
                self.assertEqual(int((found != wanted).sum()), 0)
            with self.assertRaisesRegex(ValueError, f"must be {n}, one for each channel"):
                rows([Gray(n), Resize(8), Crop(8), penstock.ops.Normalize((0.5,) * 4, (0.5,) * 4)])

    def test_wrong_channels_and_positions_are_refused(self):
        for n in (0, 2, 4, True, None, "1"):
            with self.assertRaisesRegex(ValueError, "num_output_channels: value is .*; must be 1 or 3"):
                Gray(n)
        with self.assertRaisesRegex(ValueError, "last operation"):
            rows([Crop(8), penstock.ops.Normalize(), Gray()])


if __name__ == "__main__":
    unittest.main()
