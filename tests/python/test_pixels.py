# SPDX-License-Identifier: Apache-2.0
"""Decoded pixels of 1, 3 and 4 channels, of 8 and 16 bits, load as Pillow loads a PNG file of the same samples."""
import io
import os
import pathlib
import struct
import subprocess
import sys
import unittest
import zlib

import penstock

from data_fixture import Case, image_file, np, optional

SECOND_READER = pathlib.Path(__file__).resolve().parents[1] / "support/second_reader.py"
COLOUR_TYPES = {1: 0, 3: 2, 4: 6}
MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def png_of(array, colour=None, palette=b""):
    """Return a PNG file of samples of 8 or 16 bits; Pillow writes no colours of 16 bits."""
    array = array if array.ndim == 3 else array[:, :, None]
    height, width, channels = array.shape
    rows = b"".join(b"\0" + row.astype(array.dtype.newbyteorder(">")).tobytes() for row in array)
    head = struct.pack(">2I5B", width, height, 8 * array.dtype.itemsize,
                       COLOUR_TYPES[channels] if colour is None else colour, 0, 0, 0)
    made = b"\x89PNG\r\n\x1a\n"
    for kind, content in ((b"IHDR", head), (b"PLTE", palette), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
        if content or kind == b"IEND":
            made += struct.pack(">I", len(content)) + kind + content
            made += struct.pack(">I", zlib.crc32(kind + content))
    return made


def samples(channels, bits, height=37, width=52, seed=0):
    shape = (height, width, channels) if channels > 1 else (height, width)
    return np.random.default_rng(seed + channels + bits).integers(0, 2**bits, shape, f"u{bits // 8}")


KINDS = [(1, 8), (3, 8), (3, 16), (4, 8), (4, 16)]  # 16-bit gray is refused, as of files


class Loading(Case):
    def rows(self, arrays, ops, channels, **options):
        with penstock.Writer(self.path(), {"x": penstock.Field("image", codec="zstd")}, overwrite=True) as w:
            for array in arrays:
                w.add(x=array)
        with penstock.Loader(self.path(), outputs={"x": penstock.image("x", ops, channels=channels)},
                             batch_size=len(arrays), shuffle=False, form="dict", framework="numpy",
                             device=penstock.Device(copy=True), **options) as loader:
            return next(iter(loader))["x"]

    def test_all_kinds_are_pillows_in_all_channels(self):
        image = optional("PIL.Image")
        arrays = [samples(channels, bits) for channels, bits in KINDS]
        for channels, mode in MODES.items():
            for size in ((37, 52), (24, 31), (60, 70)):
                found = self.rows(arrays, [penstock.ops.Resize(size)], channels)
                for row, array, kind in zip(found, arrays, KINDS):
                    wanted = image.open(io.BytesIO(png_of(array))).convert(mode)
                    wanted = np.asarray(wanted.resize(size[::-1], image.Resampling.BILINEAR))
                    with self.subTest(kind=kind, channels=channels, size=size):
                        np.testing.assert_array_equal(row, wanted.reshape(row.shape))

    def test_a_crop_of_them_is_pillows(self):
        image = optional("PIL.Image")
        arrays = [samples(channels, bits) for channels, bits in KINDS]
        for channels, mode in MODES.items():
            found = self.rows(arrays, [penstock.ops.CenterCrop((9, 11))], channels)
            for row, array in zip(found, arrays):
                wanted = image.open(io.BytesIO(png_of(array))).convert(mode).crop((20, 14, 31, 23))
                np.testing.assert_array_equal(row, np.asarray(wanted).reshape(row.shape))

    def test_gray_of_16_bits_is_refused_as_of_a_file(self):
        array = samples(1, 16)
        error = self.assert_says(["field x", "16-bit gray", "convert it to 8 bits"], self.rows, [array],
                                 [penstock.ops.Resize((8, 8))], 3)
        self.assertIsInstance(error, penstock.UnsupportedError)
        with penstock.Writer(self.path("file"), {"x": "image"}) as w:
            self.assert_says("16-bit gray", w.add, x=png_of(array))
            w.add(x=samples(1, 8))

    def test_gray_of_16_bits_is_read_by_a_data_set_and_as_bytes(self):
        array = samples(1, 16, 3, 4)
        with penstock.Writer(self.path(), {"x": "image"}) as w:
            w.add(x=array)
        np.testing.assert_array_equal(penstock.Dataset(self.path())[0]["x"], array)
        with penstock.Loader(self.path(), outputs={"x": penstock.ragged("x")}, batch_size=1,
                             shuffle=False, form="dict", framework="numpy") as loader:
            self.assertEqual(bytes(next(iter(loader))["x"][0]), array.tobytes())

    def test_two_readers_verify_them(self):
        for codec in ("none", "zstd", "planes"):
            with penstock.Writer(self.path(codec), {"x": penstock.Field("image", codec=codec)}) as w:
                for channels, bits in [*KINDS, (1, 16)]:
                    w.add(x=samples(channels, bits))
            subprocess.run([os.environ["PENSTOCK_COMMAND"], "verify", "--decode", self.path(codec)],
                           check=True, stdout=subprocess.DEVNULL)
            subprocess.run([sys.executable, SECOND_READER, self.path(codec)], check=True, stdout=subprocess.DEVNULL)


class Masks(Case):
    def stored(self, masks, image=None, field="mask", **more):
        with penstock.Writer(self.path(), {"image": "image", "mask": field}, overwrite=True, **more) as w:
            for mask in masks:
                w.add(image=samples(3, 8) if image is None else image, mask=mask)
        return [record["mask"] for record in penstock.Dataset(self.path())]

    def given(self):
        """Masks as PIL images of every mode that a mask has."""
        image = optional("PIL.Image")
        palette = image.fromarray(samples(3, 8)).quantize(19)
        return [palette, image.fromarray(samples(1, 8)), image.fromarray(samples(1, 16)),
                image.fromarray(samples(1, 8)).convert("1")]

    def test_files_give_the_numbers_that_pillow_gives(self):
        image = optional("PIL.Image")
        files = []
        for mask in self.given():
            out = io.BytesIO()
            mask.save(out, "PNG")
            files.append(out.getvalue())
        for field in ("mask", penstock.Mask(of="image", codec="none")):
            for found, file in zip(self.stored(files, field=field, check_images=True), files):
                wanted = np.asarray(image.open(io.BytesIO(file)))
                np.testing.assert_array_equal(found, wanted)
                # Older versions of Pillow open 16-bit gray as mode I, of int32.
                small = {np.dtype(bool): np.dtype("u1"), np.dtype("i4"): np.dtype("u2")}
                self.assertEqual(found.dtype, small.get(wanted.dtype, wanted.dtype))

    def test_pil_images_and_arrays_keep_their_numbers(self):
        given = [*self.given(), samples(1, 8), samples(1, 16), samples(1, 8) > 99]
        for found, mask in zip(self.stored(given), given):
            np.testing.assert_array_equal(found, np.asarray(mask))
        with penstock.Loader(self.path(), outputs=["mask"], batch_size=1, shuffle=False, form="dict",
                             framework="numpy") as loader:  # its bytes, of pixels here
            self.assertEqual(bytes(next(iter(loader))["mask"][0]), np.asarray(given[0]).tobytes())
        subprocess.run([os.environ["PENSTOCK_COMMAND"], "verify", "--decode", self.path()], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run([sys.executable, SECOND_READER, self.path()], check=True, stdout=subprocess.DEVNULL)

    def test_a_value_that_is_no_mask_of_the_image_is_refused(self):
        for mask, words in ((image_file(), "JPEG"), (image_file(kind="PNG"), "3 channels; a mask must have 1"),
                            (samples(3, 8), "must be a mask"), (samples(1, 8).astype("i4"), "must be a mask"),
                            (samples(1, 8, 36), "the mask has 52 x 36 pixels; must have 52 x 37")):
            self.assert_says(["field mask", words], self.stored, [mask])
        with self.assertRaisesRegex(penstock.SettingsError, "of: value is None; must be the name of an image field"):
            penstock.Writer(self.path(), {"mask": "mask"})


if __name__ == "__main__":
    unittest.main()
