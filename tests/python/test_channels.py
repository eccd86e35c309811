# SPDX-License-Identifier: Apache-2.0
"""Images of 1, 3 and 4 channels are Pillow's: convert, resize, crop, flip, normalise, in every layout. Each image is compared with what Pillow and NumPy make of its file."""
import io
import os
import struct
import unittest
import warnings
import zlib

import sets
import penstock

sets.need_numpy()
import numpy  # noqa: E402

try:
    from PIL import Image, ImageOps
except ImportError:
    raise unittest.SkipTest("Pillow is not installed") from None

MODES = {1: "L", 3: "RGB", 4: "RGBA"}
PATH = os.path.join(sets.ROOT, "channels")
OPTIONS = {"batch_size": 16, "shuffle": False, "form": "dict", "framework": "numpy", "device": penstock.Device(copy=True)}


def encoded(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def noise(seed, *shape):
    return numpy.random.default_rng(seed).integers(0, 256, shape, dtype=numpy.uint8)


def smooth(width, height, n):
    y, x = numpy.mgrid[0:height, 0:width]
    planes = [(x * (3 + k) + y * (5 - k) + 40 * k) % 256 for k in range(n)]
    return numpy.stack(planes, 2).astype("uint8")


def files():
    """JPEG and PNG files of every kind, in an order that mixes them."""
    rgb, gray = Image.fromarray(smooth(61, 47, 3)), Image.fromarray(smooth(37, 52, 1)[..., 0])
    rgba = Image.fromarray(noise(1, 40, 33, 4), "RGBA")
    palette = rgb.quantize(17)
    exif = Image.Exif()
    exif[0x112] = 6
    return [
        encoded(rgb, "JPEG"), encoded(gray, "JPEG"), encoded(rgb, "JPEG", exif=exif), encoded(rgba, "PNG"),
        encoded(gray, "PNG"), encoded(rgb, "PNG"), encoded(palette, "PNG"),
        encoded(palette, "PNG", transparency=3), encoded(rgba.convert("LA"), "PNG"),
        encoded(rgb, "PNG", transparency=(9, 49, 89)), encoded(rgb, "JPEG", progressive=True),
        encoded(rgba.resize((80, 20)), "PNG"),
    ]


FILES = files()


def oriented_files():
    """Return {name: file} of pictures that lie, whose orientation is not in the usual place, and of one that must
    stay."""
    picture = Image.fromarray(smooth(61, 47, 3))
    exif, none, xmp = Image.Exif(), Image.Exif(), b'<x tiff:Orientation="8"/>'
    exif[0x112] = 6
    none[0x10F] = "Penstock"
    jpeg, png = encoded(picture, "JPEG"), encoded(picture, "PNG")
    late, text = sets.png_chunk(b"eXIf", exif.tobytes()), sets.png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp)
    raw = b"\nexif\n%8d\n" % len(exif.tobytes()) + exif.tobytes().hex().encode()
    profile = sets.png_chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(raw))
    two = b"".join(b"\xff\xe1" + struct.pack(">H", len(part) + 8) + b"Exif\0\0" + part
                   for part in (exif.tobytes()[6:20], exif.tobytes()[20:]))
    malformed = b"Exif\0\0II*\0\x08\0\0\0\2\0" + struct.pack("<HHII", 0x10F, 2, 8, 10**6) + struct.pack("<HHIHH", 0x112, 3, 1, 6, 0)
    return {"xmp.jpg": encoded(picture, "JPEG", xmp=xmp), "both.jpg": encoded(picture, "JPEG", exif=none, xmp=xmp),
            "two.jpg": jpeg[:2] + two + jpeg[2:], "malformed.jpg": encoded(picture, "JPEG", exif=malformed),
            "late.png": png[:-12] + late + png[-12:], "xmp.png": png[:-12] + text + png[-12:],
            "profile.png": png[:33] + profile + png[33:]}


def setUpModule():
    warnings.filterwarnings("ignore", "some images of .* palette")
    with penstock.Writer(PATH, {"jpg": "image"}) as writer:
        for file in FILES:
            writer.add(jpg=file)


def rows(ops, **options):
    """Return the batch of all files, NumPy."""
    with penstock.Loader(PATH, outputs={"x": penstock.image("jpg", ops, **options)}, last_batch="short",
                         **OPTIONS) as loader:
        batch = next(iter(loader))
        return batch["x"][:len(FILES)]


def opened(file, channels, exif=False):
    image = Image.open(io.BytesIO(file))
    image = image.convert(MODES[channels])
    if exif and image.getexif().get(0x112) == 6:
        image = image.transpose(Image.Transpose.ROTATE_270)
    return image


def array_of(image):
    array = numpy.asarray(image)
    return array[..., None] if array.ndim == 2 else array


def center_crop(image, height, width):
    """torchvision's CenterCrop: it pads with 0 in every channel, alpha too."""
    left, top = (width - image.width) // 2, (height - image.height) // 2
    if left > 0 or top > 0:
        padded = Image.new(image.mode, (max(width, image.width), max(height, image.height)))
        padded.paste(image, (max(left, 0), max(top, 0)))
        image = padded
    x, y = round((image.width - width) / 2.0), round((image.height - height) / 2.0)
    return image.crop((x, y, x + width, y + height))


class Channels(unittest.TestCase):
    def compare(self, found, wanted):
        self.assertEqual(len(found), len(wanted))
        for i, (row, want) in enumerate(zip(found, wanted)):
            self.assertEqual(row.shape, want.shape)
            self.assertEqual(int((row != want).sum()), 0, f"image {i}")

    def test_resized_images_are_pillows(self):
        for channels in MODES:
            for size in ((24, 31), (90, 70), (47, 61), (40, 33)):  # the last two: of some the size they have
                with self.subTest(channels=channels, size=size):
                    wanted = [array_of(opened(f, channels).resize(size[::-1], Image.Resampling.BILINEAR))
                              for f in FILES]
                    self.compare(rows([penstock.ops.Resize(size)], channels=channels), wanted)

    def test_padded_and_mirrored_images_are_pillows(self):
        for channels in MODES:
            with self.subTest(channels=channels):
                wanted = [array_of(center_crop(opened(f, channels), 50, 44).transpose(
                    Image.Transpose.FLIP_LEFT_RIGHT)) for f in FILES]
                self.compare(rows([penstock.ops.CenterCrop((50, 44)), penstock.ops.RandomFlip(1)], channels=channels),
                             wanted)

    def test_images_are_upright_where_asked_for(self):
        for channels in MODES:
            with self.subTest(channels=channels):
                wanted = [array_of(opened(f, channels, True).resize((20, 30), Image.Resampling.BILINEAR))
                          for f in FILES]
                plain = [array_of(opened(f, channels).resize((20, 30), Image.Resampling.BILINEAR))
                         for f in FILES]
                self.assertFalse((wanted[2] == plain[2]).all())
                wanted = [w if FILES[i][:2] == b"\xff\xd8" else plain[i] for i, w in enumerate(wanted)]
                self.compare(rows([penstock.ops.Resize((30, 20))], channels=channels, exif_orientation=True), wanted)

    def normalised(self, channels, mean, std):
        for file in FILES:
            image = array_of(opened(file, channels).resize((16, 24), Image.Resampling.BILINEAR))
            scaled = image.astype("float32") / numpy.float32(255)
            yield (scaled - numpy.float32(mean)) / numpy.float32(std)

    @sets.need_pillow_12()
    def test_the_orientation_is_found_wherever_exif_transpose_finds_it(self):
        files = oriented_files()
        folder = os.path.join(sets.ROOT, "oriented")
        os.makedirs(folder)
        for name, data in files.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        penstock.pack(folder, folder + "-packed", progress=False)
        for path, field in ((folder, "image"), (folder + "-packed", "jpg")):
            outputs = {"x": penstock.image(field, [penstock.ops.CenterCrop((61, 61))], exif_orientation=True)}
            with penstock.Loader(path, outputs=outputs, last_batch="short", **OPTIONS) as loader:
                batch = next(iter(loader))
            for key, row in zip(sorted(files), batch["x"]):
                with self.subTest(path=path, key=key), Image.open(io.BytesIO(files[key])) as image:
                    upright = ImageOps.exif_transpose(image).convert("RGB")
                    self.assertEqual(upright.width < upright.height, key != "malformed.jpg")
                    numpy.testing.assert_array_equal(row, array_of(center_crop(upright, 61, 61)))

    def test_every_channel_is_normalised_by_its_own_numbers_in_every_layout(self):
        mean, std = (0.1, 0.2, 0.3, 0.4), (0.5, 0.6, 0.7, 0.8)
        for channels in MODES:
            wanted = list(self.normalised(channels, mean[:channels], std[:channels]))
            ops = [penstock.ops.Resize((24, 16)), penstock.ops.Normalize(mean[:channels], std[:channels])]
            for layout in ("nhwc", "nchw"):
                for dtype in ("float32", "float16"):
                    with self.subTest(channels=channels, layout=layout, dtype=dtype):
                        expected = [w.transpose(2, 0, 1) if layout == "nchw" else w for w in wanted]
                        found = rows(ops, channels=channels, layout=layout, dtype=dtype)
                        self.compare(found, [w.astype(dtype) for w in expected])

    def test_outputs_of_one_field_may_have_different_channels(self):
        resize = [penstock.ops.Resize((24, 31))]
        outputs = {str(c): penstock.image("jpg", resize, channels=c) for c in (3, 1, 4)}
        with penstock.Loader(PATH, outputs=outputs, last_batch="short", **OPTIONS) as loader:
            batch = next(iter(loader))
            for channels in MODES:
                wanted = [array_of(opened(f, channels).resize((31, 24), Image.Resampling.BILINEAR))
                          for f in FILES]
                self.compare(batch[str(channels)][:len(FILES)], wanted)

    def test_gray_images_of_a_jpeg_in_planes_are_those_of_its_file(self):
        path = os.path.join(sets.ROOT, "channels-planes")
        with penstock.Writer(path, {"jpg": penstock.Field("image", codec="planes")}) as writer:
            for file in FILES[:3]:
                writer.add(jpg=file)
        for channels in MODES:
            with self.subTest(channels=channels):
                output = penstock.image("jpg", [penstock.ops.Resize((24, 31))], channels=channels)
                with penstock.Loader(path, outputs={"x": output}, last_batch="short", **OPTIONS) as loader:
                    found = next(iter(loader))["x"][:3]
                wanted = [array_of(opened(f, channels).resize((31, 24), Image.Resampling.BILINEAR))
                          for f in FILES[:3]]
                self.compare(found, wanted)

    def test_wrong_numbers_of_channels_are_refused(self):
        resize = penstock.ops.Resize(8)
        for channels in (0, 2, 5, True, "3", None):
            with self.assertRaisesRegex(penstock.SettingsError, "channels: value is .*must be 1 .gray., 3"):
                penstock.image("jpg", [resize], channels=channels)
        for numbers in ((0.5,), (0.5,) * 4):
            with self.assertRaisesRegex(ValueError, "mean and deviation: they have . number.*must be 3"):
                rows([penstock.ops.Resize((8, 8)), penstock.ops.Normalize(numbers, numbers)])
        with self.assertRaisesRegex(ValueError, "must be 4 finite numbers"):
            penstock.ops.Normalize((0.5,) * 4, (0.5,) * 3)
        with self.assertRaisesRegex(ValueError, "must be 1, 3 or 4 finite numbers"):
            penstock.ops.Normalize((0.5,) * 2, (0.5,) * 2)

    def test_an_output_shows_its_channels(self):
        output = penstock.image("jpg", [], channels=4)
        self.assertIn("channels=4", repr(output))
        self.assertNotIn("channels", repr(penstock.image("jpg", [])))


if __name__ == "__main__":
    unittest.main()
