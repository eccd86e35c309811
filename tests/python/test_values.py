# SPDX-License-Identifier: Apache-2.0
"""The conversion of a value by a field, if something could be lost in silence: whole numbers in floats, images
whose pixels are no bytes, dtypes that mean two sizes."""

import array
import io
import subprocess
import sys

import penstock
from data_fixture import Case, np, optional, picture
from penstock.packing.schema import schema_of
from penstock.packing.values import FieldError, encoder

INEXACT = {"float16": 2**11 + 1, "bfloat16": 2**8 + 1, "float32": 2**24 + 1, "float64": 2**53 + 1}


def encode(field, value):
    ((name, checked),) = schema_of({"x": field}).items()
    return encoder(name, checked)(value)


class WholeNumbers(Case):
    def refused(self, field, value, *words):
        error = self.assert_says(["field x", "rounding is meant", *words], encode, field, value)
        self.assertIsInstance(error, FieldError)

    def test_one_that_a_float_would_change_is_refused(self):
        for kind, number in INEXACT.items():
            for value in (number, -number, np.int64(number), np.array(number), np.uint64(number)):
                self.refused(kind, value, kind, str(abs(number)), "'int64'")
            self.refused(kind, number, f"up to {number - 1}")
            # values that a float holds, or that were made one, go in
            for value in (number - 1, 1 - number, number + 1, 0, True, float(number), np.float64(number)):
                encode(kind, value)
        self.refused("float64", 2**64 - 1, "'uint64'")
        self.assertNotIn("declare", str(self.assert_says("float64", encode, "float64", 2**70 + 1)))
        self.assertEqual(encode("float64", 2**70), encode("float64", float(2**70)))
        self.assert_says("range", encode, "float16", 70001)
        self.assert_says("range", encode, "float64", 10**400)

    def test_arrays_and_lists_are_as_strict(self):
        for kind, number in INEXACT.items():
            field = (kind, (2,))
            for value in ([0, number], (0.5, number), [0.5, np.int64(number)], [0.5, np.array(-number)],
                          np.array([0, number]), np.array([-number, 0]), np.array([0, number], "u8")):
                self.refused(field, value, kind, str(number))
            self.refused((kind, (1, 2)), [[0.5, number]])
            self.refused((kind, (2, 1)), [np.array([0.5]), np.array([number])])
            for value in ([0, number - 1], [number + 1, -0.5], np.array([number + 1, 0]),
                          [0.5, float(number)], np.array([number, 0]).astype(float), np.array([True, False])):
                encode(field, value)
        low, high = -(2**63), 2**64 - 2**11
        self.assertEqual(np.asarray(encode(("float64", (1,)), np.array([low]))).tolist(), [low])
        self.assertEqual(np.asarray(encode(("float64", (1,)), np.array([high], "u8"))).tolist(), [high])
        self.refused(("float64", (1,)), np.array([high + 1], "u8"), str(high + 1))
        self.refused(("float16", (1,)), np.array([2049], "i2"))
        self.assert_says("range", encode, ("float16", (1,)), np.array([70001]))
        encode(("bfloat16", (2,)), np.array([-128, 127], "i1"))
        encode(("float32", (0,)), np.zeros(0, "i8"))

    def test_tensors_are_too(self):
        torch = optional("torch")
        self.refused("float32", torch.tensor(2**24 + 1))
        self.refused(("float32", (2,)), torch.tensor([0, 2**24 + 1]))

    def test_without_numpy_too(self):
        code = (
            "import array, sys; sys.modules['numpy'] = None\n"
            "from penstock.packing.schema import Field\nfrom penstock.packing.values import encoder\n"
            "take = encoder('x', Field('float32', (2,)))\n"
            "assert len(take([2**24, .5])) == 8\n"
            "for value in ([2**24 + 1, 0], [.5, 2**24 + 1]):\n"
            "    try: take(value)\n    except ValueError as e: print(e)\n"
            "for kind, code in zip(('int8', 'uint16', 'int64', 'uint64', 'uint64'), 'bHlLQ'):\n"
            "    take = encoder('x', Field(kind, (1,)))\n"
            "    assert take(array.array(code, [7])) == array.array(code, [7]).tobytes()\n"
            "    try: take(array.array(code.swapcase(), [7]))\n    except ValueError as e: print(kind, e)\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout.count("rounding is meant"), 2, done.stderr)
        self.assertEqual(done.stdout.count("must be a flat list"), 5, done.stdout)  # errors of the other sign

    def test_a_mixed_column_is_packed_by_its_schema(self):
        samples = [{"n": 0.5}] * 8 + [{"n": 2**53 + 1}]
        self.assert_says(["field n", "rounding is meant"], penstock.pack, samples, self.path(), num_workers=0,
                         progress=False)
        self.assertEqual(self.left(), [])

    def test_arrays_of_the_standard_library(self):
        self.refused(("float32", (1,)), array.array("q", [2**24 + 1]))


class Broken:
    """A number, it says."""

    def __init__(self, name, error):
        self.name, self.error = name, error

    def __float__(self):
        return self.do("__float__")

    def __index__(self):
        return self.do("__index__")

    def do(self, name):
        if name == self.name:
            raise self.error
        return 1


class SingleNumbers(Case):
    def refused(self, kind, value, *words):
        words = ["field x: value is", "must be one ", f"number for {kind}", *words]
        error = self.assert_says(words, encode, kind, value)
        self.assertIsInstance(error, FieldError)

    def test_arrays_are_not_taken_for_numbers(self):
        for kind in ("float32", "float64", "bfloat16", "int64", "uint8"):
            for value in (np.array([1]), np.array([0.5]), np.array([[1.0]]), np.zeros(2)):
                self.refused(kind, value, "float64" if value.dtype == float else "int64", ".item()",
                             f"({kind!r}, {value.shape})")
            for value in (np.array(1), np.uint8(1), np.int64(1), True):
                encode(kind, value)
        for kind in ("float32", "int64"):
            for value in (1j, np.array(1j), None, "1", [1], np.array("a"), {}):
                self.refused(kind, value)

    def test_tensors_are_not_either(self):
        torch = optional("torch")
        for kind in ("float32", "int64"):
            for value in (torch.tensor([0.5]), torch.tensor([1]), torch.ones(1, 1)):
                self.refused(kind, value, "Tensor", "shape", ".item()")
            encode(kind, torch.tensor(1))

    def test_numbers_that_fail_to_be_one_name_the_field(self):
        for error in (TypeError("odd"), ValueError("odd")):
            self.refused("int64", Broken("__index__", error), "Broken")
            for name in ("__index__", "__float__"):
                self.refused("float32", Broken(name, error), "Broken")


class PilImages(Case):
    def stored(self, *images):
        with penstock.Writer(self.path(), {"x": "image"}, overwrite=True) as w:
            for image in images:
                w.add(x=image)
        return [record["x"] for record in penstock.Dataset(self.path(), decode=True)]

    def made(self, mode):
        """Return a picture in this mode, its alpha from 0 to 255."""
        module = optional("PIL.Image")
        image = module.fromarray(picture())
        if mode == "P":
            return image.quantize(16)
        if "A" in mode:
            image = image.convert({"LA": "L", "PA": "P"}.get(mode, "RGB"))
            alpha = module.fromarray(np.arange(40 * 56).reshape(40, 56).astype("u1"))
            image.putalpha(alpha)
        return image.convert(mode)

    def test_modes_of_bytes_become_rgb(self):
        for mode in ("1", "L", "P", "CMYK", "YCbCr", "HSV", "RGBX", "PA"):
            image = self.made(mode)
            self.assertEqual(image.mode, mode)
            np.testing.assert_array_equal(self.stored(image)[0], np.asarray(image.convert("RGB")))

    def test_alpha_is_left_out_as_from_a_file(self):
        for mode in ("RGBA", "LA", "P"):
            image = self.made(mode)
            if mode == "P":
                image.info["transparency"] = 0
            file = io.BytesIO()
            image.save(file, "PNG")
            from_pixels, from_file = self.stored(image, file.getvalue())
            np.testing.assert_array_equal(from_pixels, from_file)
            if mode == "RGBA":
                np.testing.assert_array_equal(from_pixels, picture())

    def test_transparency_of_modes_without_alpha_is_kept(self):
        module = optional("PIL.Image")
        for mode, key in (("P", 0), ("P", bytes([0, 7, 255])), ("L", 40), ("RGB", tuple(map(int, picture()[3, 4]))), ("1", 255)):
            given = self.made(mode)
            given.info["transparency"] = key
            file = io.BytesIO()
            given.save(file, "PNG")
            given = module.open(file)
            self.assertEqual(given.mode, mode)
            found = self.stored(given, file.getvalue())
            raw = penstock.Dataset(self.path())[0]["x"]
            np.testing.assert_array_equal(raw, np.asarray(given.convert("RGBA")), mode)
            self.assertLess(raw[:, :, 3].min(), 255)
            np.testing.assert_array_equal(found[0], found[1])
            whole = {"x": penstock.image("x", [penstock.ops.CenterCrop((40, 56))], channels=4)}
            with penstock.Loader(self.path(), batch_size=2, outputs=whole, framework="numpy", shuffle=False) as loader:
                batch = next(iter(loader))
                np.testing.assert_array_equal(batch["x"][0], batch["x"][1])
        unused = self.made("P")
        unused.info["transparency"] = bytes([255] * 16)
        self.stored(unused)
        self.assertEqual(penstock.Dataset(self.path())[0]["x"].shape[2], 3)  # it is opaque everywhere
        palette = module.new("P", (2, 1))
        palette.putpalette([9, 8, 7, 0, 6, 5, 4, 128], "RGBA")
        palette.putdata([0, 1])
        self.stored(palette)
        self.assertEqual(penstock.Dataset(self.path())[0]["x"].tolist(), [[[9, 8, 7, 0], [6, 5, 4, 128]]])

    def test_images_converted_to_a_mode_without_alpha_have_none(self):
        """Pillow leaves the transparent colour of the file in `info`."""
        module = optional("PIL.Image")
        for mode, key in (("P", 0), ("L", 40), ("RGB", tuple(map(int, picture()[3, 4])))):
            given = self.made(mode)
            file = io.BytesIO()
            given.save(file, "PNG", transparency=key)
            opened = module.open(file)
            for image in (opened.convert("RGB"), opened.convert("L"), opened.convert("RGB").resize((20, 20))):
                self.assertIn("transparency", image.info)
                self.stored(image)
                stored = penstock.Dataset(self.path())[0]["x"]
                np.testing.assert_array_equal(stored.squeeze(), np.asarray(image), f"{mode} as {image.mode}")

    def test_modes_that_pillow_would_clip_are_refused(self):
        module = optional("PIL.Image")
        for mode in ("I", "I;16", "F"):
            words = [repr(mode), "clip", "array field"]
            error = self.assert_says(words, self.stored, module.new(mode, (8, 8)))
            self.assertIsInstance(error, FieldError)
        # do as the message says
        depth = module.fromarray(np.arange(64, dtype="u2").reshape(8, 8) * 1000)
        with penstock.Writer(self.path(), {"x": ("uint16", (None, None))}) as w:
            w.add(x=np.asarray(depth))
        self.assertEqual(penstock.Dataset(self.path())[0]["x"].max(), 63000)


class Dtypes(Case):
    def test_int_and_float_mean_the_same_to_fields_and_outputs(self):
        for dtype, name in ((int, "int64"), (float, "float64"), ("double", "float64"), ("half", "float16"),
                            ("f32", "float32"), (np.float32, "float32"), (np.dtype(">i2"), "int16")):
            self.assertEqual(penstock.Field(dtype).kind, name)
            self.assertEqual(penstock.scalar("x", dtype), penstock.scalar("x", name))
        # These have one size in NumPy and another in PyTorch.
        for name, other in (("float", "'float32' or 'float64'"), ("int", "'int32'"), ("long", "'int64'")):
            self.assert_says(["PyTorch differ", other], penstock.Field, name)
            self.assert_says(["scalar", "PyTorch differ", other], penstock.scalar, "x", name)
        self.assert_says("did you mean 'utf8'", penstock.Field, "utf-8")
        self.assert_says("did you mean 'float32'", penstock.scalar, "x", "flota32")

    def test_fields_that_do_not_fit_the_library_are_refused(self):
        for arguments, words in (
                ((bytes, None, "zstd", 2**40), "level: value is 1099511627776; must be"),
                ((bytes, None, ["zstd"]), "codec: value is ['zstd']; must be one of none, zstd, planes"),
                (("uint8", (2**64 + 1,)), "dimension"), ((3.5,), "kind: value is"), (([],), "kind: value is")):
            error = self.assert_says(words, penstock.Field, *arguments)
            self.assertIsInstance(error, penstock.SettingsError)
