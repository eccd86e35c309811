# SPDX-License-Identifier: Apache-2.0
"""PNG files whose rows are whole and whose fault comes after them, or lies in a checksum of their data: what
damaged="accept" takes is what Pillow loads, pixel by pixel, and what Pillow refuses stays refused."""
import io
import os
import random
import struct
import subprocess
import unittest
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
    """The chunk with one other byte."""
    made = bytearray(chunk)
    made[at] ^= 0x20
    return bytes(made)


def faults():
    """{name: file}: each fault by itself, in the middle and at the end."""
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


def pillow(data):
    """RGB pixels, or None where Pillow refuses the file."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            return numpy.asarray(image.convert("RGB"))
    except Exception:  # Pillow's refusals have no common class
        return None


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
    def test_what_pillow_loads_is_taken_pixel_by_pixel(self):
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


if __name__ == "__main__":
    unittest.main()
