# SPDX-License-Identifier: Apache-2.0
"""The advice for operations that the package lacks is true: the code in each advice is
run on batches of equal images, as the loader gives them."""
import functools
import os
import re
import tempfile
import unittest

import sets
import penstock
from penstock.elsewhere import ADVICE, DATASET_ATTRIBUTES

sets.need_numpy()
torch = sets.torch_or_skip()
try:
    from torchvision.transforms import v2
except ImportError:
    raise unittest.SkipTest("torchvision is not installed") from None

N, SIDE = 64, 32
# The arguments of each operation here; an operation that is not listed needs none.
ARGUMENTS = {
    "Lambda": lambda: [lambda x: x + torch.randint(0, 9, (1,), dtype=x.dtype)],
}
# One call for a batch makes more than one choice.
DRAW_FOR_EACH = ("GaussianNoise",)


def n_distinct(rows):
    return len(torch.unique(rows.reshape(len(rows), -1), dim=0))


@functools.lru_cache(maxsize=None)
def equal_images():
    """Return a data set of equal images, neither dark nor bright anywhere, of ten classes."""
    path = os.path.join(sets.ROOT, "equal")
    with penstock.Writer(path, {"image": "image", "cls": "int64"}) as writer:
        y, x = sets.numpy.mgrid[0:SIDE, 0:SIDE]
        pixels = sets.numpy.stack([60 + 3 * x, 70 + 2 * y, 80 + x * y % 50], 2).astype("uint8")
        for i in range(N):
            writer.add(image=pixels, cls=i % 10)
    return path


@functools.lru_cache(maxsize=None)
def batch(dtype="uint8"):
    image = penstock.image("image", [penstock.ops.Resize((SIDE, SIDE))], dtype=dtype, layout="nchw")
    with penstock.Loader(equal_images(), batch_size=N, shuffle=False, form="tuple", framework="torch",
                         device=penstock.Device(copy=True), outputs=[image, "cls"]) as loader:
        return next(iter(loader))


def code_of(name):
    """Return the code that the advice writes for an operation."""
    return [code for code in re.findall("`([^`]*)`", ADVICE[name]) if "t(" in code]


class Operations(unittest.TestCase):
    def run_code(self, code, name, dtype="uint8"):
        images, labels = (part.clone() for part in batch(dtype))
        self.assertEqual((images.shape, n_distinct(images)), ((N, 3, SIDE, SIDE), 1))
        t = getattr(v2, name)(*ARGUMENTS.get(name, list)())
        torch.manual_seed(1)
        return eval(code, {"torch": torch, "t": t, "images": images, "labels": labels})

    def test_code_for_random_operations_changes_each_image_in_its_own_way(self):
        random = [name for name in ADVICE if code_of(name) and name not in ("FiveCrop", "TenCrop")]
        self.assertIn("ElasticTransform", random)
        for name in random:
            with self.subTest(name):
                code = code_of(name)[-1]
                self.assertGreater(n_distinct(self.run_code(code, name)), 1)
                if name not in DRAW_FOR_EACH:  # so that it is worth a call for each image
                    self.assertIn("for image in images", code)
                    self.assertEqual(n_distinct(self.run_code("t(images)", name)), 1)

    def test_operations_of_colours_clamp_normalised_images_and_say_so(self):
        normalised = (batch("float32")[0][0] - 0.5) / 0.2
        self.assertLess(float(normalised.min()), -0.5)
        self.assertGreaterEqual(float(v2.ColorJitter(0.4, 0.4)(normalised).min()), 0)
        self.assertIn("leave Normalize out", ADVICE["ElasticTransform"])

    def test_parts_of_images_are_outputs_of_their_own(self):
        for name in ("FiveCrop", "TenCrop"):
            five, ten = (eval(code, {"penstock": penstock}) for code in re.findall("`([^`]*)`", ADVICE[name]))
            with penstock.Loader(equal_images(), batch_size=N, form="dict", framework="torch",
                                 outputs={**five, **ten, "label": penstock.scalar("cls")}) as loader:
                self.assertEqual(len(next(iter(loader)).keys()), 11)

    def test_names_of_operations_are_torchvisions(self):
        for name in ADVICE:
            if code_of(name):
                self.assertTrue(hasattr(v2, name), name)


class Data(unittest.TestCase):
    def test_other_sources_are_refused_with_advice_to_pack_them(self):
        class Mapped:
            def __len__(self):
                return 1

            def __getitem__(self, i):
                return {"x": i}
        for use in (lambda: penstock.Dataset(Mapped()), lambda: penstock.Loader(Mapped(), batch_size=1, outputs=["x"])):
            with self.assertRaisesRegex(TypeError, r"value is a Mapped; .*penstock.pack\(value, OUT\)"):
                use()
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out")
            penstock.pack(Mapped(), out)
            self.assertEqual(len(penstock.Dataset(out)), 1)
            for name in ("x.h5", "x.PT"):
                path = os.path.join(folder, name)
                with open(path, "wb") as file:
                    file.write(b"x")
                with self.assertRaisesRegex(penstock.UnsupportedError, rf"pack it with Python: penstock.pack\('{path}', OUT\)"):
                    penstock.Dataset(path)
            arrow = os.path.join(folder, "arrow")
            os.mkdir(arrow)
            with open(os.path.join(arrow, "dataset_info.json"), "w") as file:
                file.write("{}")
            with self.assertRaisesRegex(penstock.DataSetNotFoundError, "save_to_disk .* penstock.pack"):
                penstock.Dataset(arrow)

    def test_attributes_of_others_data_sets_have_advice_that_runs(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        with penstock.Writer(os.path.join(folder.name, "d"), {"cls": "int64"}, names=["a", "b"]) as writer:
            writer.add(cls=1)
        with penstock.Dataset(writer.path) as dataset:
            for name, advice in DATASET_ATTRIBUTES.items():
                with self.assertRaises(AttributeError) as caught:
                    getattr(dataset, name)
                self.assertIn(advice, str(caught.exception))
                self.assertEqual(caught.exception.name, "")  # or Python adds a suggestion of its own
                for code in re.findall("`([^`]*)`", advice):
                    eval(code, {"dataset": dataset})
            with self.assertRaisesRegex(AttributeError, "did you mean 'fields'"):
                dataset.filds
        with self.assertRaisesRegex(TypeError, "no argument 'stratify': .*StratifiedKFold"):
            penstock.Fold(0, 5, stratify="cls")


if __name__ == "__main__":
    unittest.main()
