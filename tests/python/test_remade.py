# SPDX-License-Identifier: Apache-2.0
"""PNG files whose rows are whole and whose fault comes after them, or lies in a checksum of their data: what
damaged="accept" takes is what Pillow loads, pixel by pixel, and what Pillow refuses stays refused."""
import io
import os
import pickle
import random
import struct
import subprocess
import tarfile
import unittest
import warnings
import zlib

import penstock
import sets

sets.need_numpy()
import numpy  # noqa: E402

try:
    from PIL import Image
except ImportError:
    raise unittest.SkipTest("Pillow is not installed") from None

ROWS = b"".join(b"\0" + bytes((x * y + 40 * c) % 256 for x in range(9) for c in range(3)) for y in range(7))
HEAD = b"\x89PNG\r\n\x1a\n" + sets.png_chunk(b"IHDR", struct.pack(">IIBBBBB", 9, 7, 8, 2, 0, 0, 0))
END = sets.png_chunk(b"IEND", b"")
DATA = zlib.compress(ROWS)


def idat(data):
    return sets.png_chunk(b"IDAT", data)


def wrong(chunk, at=-1):
    """Return the chunk with one other byte."""
    made = bytearray(chunk)
    made[at] ^= 0x20
    return bytes(made)


def faults():
    """Yield {name: file}: each fault by itself, in the middle and at the end."""
    whole = HEAD + idat(DATA) + END
    split = HEAD + b"".join(idat(DATA[i:i + 20]) for i in range(0, len(DATA), 20)) + END
    later = HEAD + idat(DATA) + sets.png_chunk(b"tEXt", b"a\0text") + sets.png_chunk(b"prVt", b"12345") + END
    for base_name, base in (("whole", whole), ("split", split), ("later", later)):
        for n in range(len(base)):
            yield f"{base_name} cut {n}", base[:n]
            yield f"{base_name} flip {n}", wrong(base, n)
    yield "no IEND", HEAD + idat(DATA)
    yield "junk after the rows", HEAD + idat(DATA) + b"junk that is no chunk"
    for extra in (b"\0" * 28, b"\0" * 5, b"\7" * 3000):
        yield "more rows", HEAD + idat(zlib.compress(ROWS + extra)) + END
        yield "more rows, cut", HEAD + idat(zlib.compress(ROWS + extra)[:-6]) + END
    yield "data after the stream", HEAD + idat(DATA + b"more") + END
    yield "a chunk after the stream", HEAD + idat(DATA) + idat(b"more") + END
    yield "wrong Adler-32", HEAD + idat(wrong(DATA)) + END
    yield "wrong Adler-32 in a chunk of its own", HEAD + idat(DATA[:-4]) + idat(wrong(DATA[-4:])) + END
    yield "no Adler-32", HEAD + idat(DATA[:-4]) + END
    yield "fewer rows", HEAD + idat(zlib.compress(ROWS[:-28])) + END
    yield "less than a row", HEAD + idat(zlib.compress(ROWS[:-3])) + END
    yield "an unknown filter", HEAD + idat(wrong(zlib.compress(ROWS[:-28] + b"\7" + ROWS[-27:]))) + END
    yield "other data later", HEAD + idat(DATA[:30]) + sets.png_chunk(b"tEXt", b"a\0b") + idat(DATA[30:]) + END
    yield "wrong CRC before", HEAD + wrong(sets.png_chunk(b"gAMA", struct.pack(">I", 45455))) + idat(DATA[:-4]) + END
    for chunk in (sets.png_chunk(b"gAMA", b"1"), sets.png_chunk(b"pHYs", b"12345678"), sets.png_chunk(b"sRGB", b""),
                  sets.png_chunk(b"zTXt", b"a\0\1b"), sets.png_chunk(b"zTXt", b"a\0\0b"), sets.png_chunk(b"tRNS", b"12"),
                  sets.png_chunk(b"cHRM", b"123"), sets.png_chunk(b"iCCP", b"a\0\1"), sets.png_chunk(b"eXIf", b"junk")):
        for file in (HEAD + chunk + idat(DATA[:-4]) + END, HEAD + idat(DATA[:-4]) + chunk + END, HEAD + idat(DATA) + chunk):
            yield f"chunk {chunk[4:8]}", file
    for chunk in (sets.png_chunk(b"ab1d", b"x"), sets.png_chunk(b"a_bd", b""), sets.png_chunk(b"prVt", bytes(8000001))):
        yield f"chunk {chunk[4:8]} that libpng refuses", HEAD + idat(DATA) + chunk
    r = random.Random(26)
    for mode, options in (("L", {}), ("1", {}), ("P", {}), ("RGBA", {}), ("LA", {}), ("RGB", {}), ("P", {"bits": 2})):
        image = Image.frombytes("RGB", (40, 30), bytes(r.randrange(256) for _ in range(3600))).convert(mode)
        out = io.BytesIO()
        image.save(out, "PNG", **options)
        file = out.getvalue()
        for n in (4, 8, 12, 13, 16, 17, 20, 30):
            yield f"{mode} cut {n}", file[:-n]
    interlaced = sets.png_chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 2, 8, 0, 0, 0, 1))
    passes = zlib.compress(b"\0\1" + b"\0\2" + b"\0\3" + b"\0\4\5\6")
    for data in (passes, passes[:-4], passes + b"more", passes[:-6]):
        yield "interlaced", b"\x89PNG\r\n\x1a\n" + interlaced + idat(data)
    for colour_type, n in ((2, 3), (4, 2), (6, 4)):
        wide = sets.png_chunk(b"IHDR", struct.pack(">IIBBBBB", 5, 3, 16, colour_type, 0, 0, 0))
        rows = zlib.compress(b"".join(b"\0" + bytes((7 * x + y) % 256 for x in range(10 * n)) for y in range(3)))
        yield f"16 bits, colour type {colour_type}", b"\x89PNG\r\n\x1a\n" + wide + idat(rows)
        yield f"16 bits, colour type {colour_type}, cut", b"\x89PNG\r\n\x1a\n" + wide + idat(rows[:-5])
    large = bytes(r.randrange(256) for _ in range(3 * 300 * 200))
    rows = zlib.compress(b"".join(b"\0" + large[900 * y:900 * y + 900] for y in range(200)))
    file = b"\x89PNG\r\n\x1a\n" + sets.png_chunk(b"IHDR", struct.pack(">IIBBBBB", 300, 200, 8, 2, 0, 0, 0))
    yield "large, no IEND", file + b"".join(idat(rows[i:i + 70000]) for i in range(0, len(rows), 70000))
    yield "large, data after the stream", file + idat(rows + b"more") + END
    yield "large, cut", file + idat(rows[:-9])


def pillow(data):
    """RGB pixels, or None where Pillow refuses the file."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            return numpy.asarray(image.convert("RGB"))
    except Exception:  # Pillow's refusals have no common class
        return None


def in_folder(name, files):
    """Return a folder of images, with these files."""
    path = os.path.join(sets.ROOT, name)
    os.makedirs(path)
    for i, data in enumerate(files):
        with open(os.path.join(path, f"{i:05}.png"), "wb") as file:
            file.write(data)
    return path


def in_tar(name, files):
    path = os.path.join(sets.ROOT, name)
    with tarfile.open(path, "w") as archive:
        for i, data in enumerate(files):
            member = tarfile.TarInfo(f"{i:05}.png")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def has_all_rows(data):
    """1: the image data inflate to as many bytes as the rows of HEAD have. Pillow fills missing rows with 0."""
    at, found = 33, b""
    while data[at + 4:at + 8] != b"IDAT" and at + 8 < len(data):
        at += 12 + struct.unpack(">I", data[at:at + 4])[0]
    while data[at + 4:at + 8] == b"IDAT":
        n = struct.unpack(">I", data[at:at + 4])[0]
        found, at = found + data[at + 8:at + 8 + n], at + 12 + n
    try:
        return len(zlib.decompressobj().decompress(found, len(ROWS))) == len(ROWS)
    except zlib.error:
        return False


class Remade(unittest.TestCase):
    @sets.need_pillow_12()
    def test_images_that_pillow_loads_are_accepted_with_equal_pixels(self):
        path = os.path.join(sets.ROOT, "remade")
        wanted, refused = [], 0
        with penstock.Writer(path, {"im": "image"}, damaged="accept") as writer:
            for name, data in faults():
                expected = pillow(data)
                with self.subTest(name):
                    try:
                        writer.add(im=data)
                    except penstock.CorruptRecordError:
                        refused += 1
                        self.assertTrue(expected is None or (data[:33] == HEAD and not has_all_rows(data)), "Pillow loads it")
                    else:
                        wanted.append(expected)
                        self.assertIsNotNone(expected, "Pillow refuses it")
            n_remade = writer.n_remade_images
        self.assertGreater(min(n_remade, refused), 100)
        with penstock.Dataset(path, decode=True) as data:
            self.assertEqual(len(data), len(wanted))
            for i, expected in enumerate(wanted):
                if expected is not None:
                    numpy.testing.assert_array_equal(data[i]["im"], expected)
        exported = penstock.export(path, to="folder", out=path + "-export")
        self.assertEqual(exported.n_remade, n_remade)

    def test_the_command_counts_them_and_its_message_names_the_option(self):
        command = os.environ.get("PENSTOCK_COMMAND")
        if not command:
            self.skipTest("PENSTOCK_COMMAND names no program")
        folder = os.path.join(sets.ROOT, "remade-files")
        os.makedirs(folder)
        for name, data in (("1.png", HEAD + idat(DATA)), ("2.png", HEAD + idat(DATA) + END)):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        run = lambda *a: subprocess.run([command, *a], capture_output=True, text=True)  # noqa: E731
        done = run("pack", folder, folder + "-no")
        self.assertEqual(done.returncode, 1)
        self.assertIn("1.png: PNG: the file ends after its rows, without IEND", done.stderr)
        self.assertIn("--damaged accept packs them as a new PNG file", done.stderr)
        done = run("pack", folder, folder + "-out", "--damaged", "accept")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 PNG file was damaged after its rows", done.stdout)
        done = run("export", folder + "-out", folder + "-back", "--to", "folder")
        self.assertIn("1 PNG file made anew from the rows of a damaged one", done.stdout)
        done = run("pack", folder, folder + "-small", "--damaged", "accept", "--pixels", "5")
        self.assertEqual(done.returncode, 0, done.stderr)

    @sets.need_pillow_12()
    def test_data_sets_in_place_decode_the_same_files(self):
        files = [data for _, data in faults()]
        for path, field in ((in_folder("in-place", files), "image"), (in_tar("in-place.tar", files), "png")):
            n_accepted = n_refused = 0
            with penstock.Dataset(path, [field], decode=True, foreign=penstock.Foreign(damaged="accept")) as data:
                self.assertEqual(len(data), len(files))
                for i, file in enumerate(files):
                    expected = pillow(file)
                    with self.subTest(path, i=i):
                        try:
                            found = data.get(i, field)
                        except penstock.PenstockError:
                            n_refused += 1
                            self.assertTrue(expected is None or (file[:33] == HEAD and not has_all_rows(file)))
                        else:
                            n_accepted += 1
                            numpy.testing.assert_array_equal(found, expected)
            self.assertGreater(min(n_accepted, n_refused), 100)

    @sets.need_pillow_12()
    def test_loaders_make_the_batches_of_the_remade_files_and_count_them(self):
        taken = []
        path = os.path.join(sets.ROOT, "in-place-packed")
        with penstock.Writer(path, {"png": "image"}, damaged="accept") as writer:
            for _, data in faults():
                try:
                    writer.add(png=data)
                except penstock.PenstockError:
                    continue
                taken.append(data)
            n_remade = writer.n_remade_images
        self.assertGreater(n_remade, 100)
        place = in_tar("loaders.tar", taken)
        for channels in (1, 3, 4):
            for ops in ([penstock.ops.Resize((7, 9))], [penstock.ops.CenterCrop(30)],
                        [penstock.ops.RandomResizedCrop(16), penstock.ops.RandomFlip()],
                        [penstock.ops.Resize(12), penstock.ops.RandomRotation(30), penstock.ops.CenterCrop(8)]):
                outputs = {"x": penstock.image("png", channels=channels, ops=ops)}
                made = []
                for source in (path, place):
                    with warnings.catch_warnings(), penstock.Loader(source, batch_size=len(taken), framework="numpy",
                                                                    outputs=outputs, foreign=penstock.Foreign(damaged="accept"),
                                                                    seed=3) as loader:
                        warnings.simplefilter("ignore")  # warnings that some have palettes
                        made.append(numpy.array(next(iter(loader))["x"]))
                        n_damaged = loader.stats().n_damaged_images
                numpy.testing.assert_array_equal(*made)
                # A crop that does not reach the last row does not come to the fault.
                self.assertGreater(n_damaged, n_remade - 1 if isinstance(ops[0], penstock.ops.Resize) else 100)
                self.assertLessEqual(n_damaged, n_remade)

    def test_a_loader_in_place_refuses_them_by_default_and_says_what_is_wrong(self):
        path = in_folder("refused", [HEAD + idat(DATA), HEAD + idat(DATA) + END])
        outputs = {"x": penstock.image("image", ops=[penstock.ops.Resize((7, 9))])}
        wanted = dict(batch_size=2, framework="numpy", outputs=outputs, shuffle=False)
        with penstock.Loader(path, **wanted) as loader, \
                self.assertRaisesRegex(penstock.CorruptRecordError, "the file ends after its rows, without IEND"):
            next(iter(loader))
        with penstock.Dataset(path, decode=True) as data, \
                self.assertRaisesRegex(penstock.CorruptRecordError, "the file ends after its rows, without IEND"):
            data[0]
        with penstock.Loader(path, foreign=penstock.Foreign(damaged="accept"), **wanted) as loader:
            next(iter(loader))
            self.assertEqual(loader.stats().n_damaged_images, 1)
            self.assertIn("1 sample has an image from a damaged file", str(loader.stats()))
            self.assertEqual(loader.dataset.get(0, "image"), HEAD + idat(DATA))
        with self.assertRaisesRegex(penstock.SettingsError, "damaged: value is 'yes'; must be 'refuse' or 'accept'"):
            penstock.Dataset(path, foreign=penstock.Foreign(damaged="yes"))

    def test_a_damaged_jpeg_in_place_is_decoded_by_guessing(self):
        whole = io.BytesIO()
        Image.frombytes("RGB", (64, 48), bytes((x * 7) % 251 for x in range(64 * 48 * 3))).save(whole, "JPEG")
        damaged = sets.damaged_jpeg(whole.getvalue())
        path = os.path.join(sets.ROOT, "guessed")
        os.makedirs(path)
        with open(os.path.join(path, "a.jpg"), "wb") as file:
            file.write(damaged)
        with penstock.Dataset(path, decode=True) as data, self.assertRaises(penstock.CorruptRecordError):
            data[0]
        with penstock.Dataset(path, decode=True, foreign=penstock.Foreign(damaged="accept")) as data:
            numpy.testing.assert_array_equal(pickle.loads(pickle.dumps(data))[0]["image"], pillow(damaged))
        outputs = {"x": penstock.image("image", ops=[penstock.ops.Resize((48, 64))])}
        with penstock.Loader(path, batch_size=1, framework="numpy", outputs=outputs,
                             foreign=penstock.Foreign(damaged="accept")) as loader:
            numpy.testing.assert_array_equal(next(iter(loader))["x"][0], pillow(damaged))
            self.assertEqual(loader.stats().n_damaged_images, 1)

    def test_the_command_decodes_them_in_place(self):
        command = os.environ.get("PENSTOCK_COMMAND")
        if not command:
            self.skipTest("PENSTOCK_COMMAND names no program")
        path = in_folder("command", [HEAD + idat(DATA), HEAD + idat(DATA) + END])
        picture = os.path.join(sets.ROOT, "command.png")
        for words in (["verify", "--decode", path], ["show", path, "--crop", "none", "-o", picture],
                      ["bench", path, "--batch-size", "2", "--crop", "none", "--seconds", "0.1"]):
            for accepts in (False, True):
                done = subprocess.run([command, *words, *(["--damaged", "accept"] if accepts else [])], capture_output=True,
                                      text=True)
                self.assertEqual(done.returncode, 0 if accepts else 1, done.stderr)
                self.assertEqual("without IEND" in done.stderr, not accepts, done.stderr)


if __name__ == "__main__":
    unittest.main()
