#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare the decoders with Pillow, byte for byte.

usage: pillow_decode.py DUMP_IMAGE [FOLDER...]

DUMP_IMAGE is the program built from tests/image/dump_image.c. Every image of the folders, and a set that
Pillow itself generates, and those of the folders that PENSTOCK_TEST_IMAGES and PENSTOCK_TEST_JPEGS
name, must give the pixels of Image.open(f).convert("L"), "RGB" and "RGBA" in 1, 3 and 4 channels; what
Pillow refuses must be refused. The only licences, each counted: 16-bit gray PNG (refused), and files which
libjpeg or libpng call damaged where Pillow looks away. Where releases of Pillow differ, the key of a 1-bit
PNG is read as after 9.4, and indices past the end of a palette are compared only where they are black.
Exit status: 0 equal, 1 not, 77 no Pillow.
"""
import io
import itertools
import os
import random
import struct
import subprocess
import sys
import tempfile
import warnings
import zlib

try:
    from PIL import Image, features
except ImportError:
    print("no Pillow")
    sys.exit(77)

warnings.simplefilter("ignore")

# Messages of libjpeg and libpng for files that Pillow reads, but that are damaged by our rule.
STRICTER = ("Corrupt JPEG data: premature end", "Corrupt JPEG data: bad", "Corrupt JPEG data: found",
            "Inconsistent progression", "CRC error", "16-bit gray")

EVERY = int(os.environ.get("PENSTOCK_TEST_EVERY", "1"))  # one of so many files: tests/meson.build
MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # Pillow's, by channels


class Dump:
    """One dump_image process, asked file by file."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def decode(self, path, channels):
        """Return (size, orientation, pixels) or the error line."""
        self.process.stdin.write(b"%d " % channels + os.fsencode(path) + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().decode()
        if not line:
            raise RuntimeError(f"dump_image died on {path}")
        if line.startswith("error"):
            return line.strip()
        width, height, orientation = map(int, line.split()[1:])
        return (width, height), orientation, self.process.stdout.read(width * height * channels)


def pillow(path, mode):
    """Return (size, orientation, pixels), or None where Pillow refuses."""
    try:
        with Image.open(path) as image:
            if image.format not in ("JPEG", "MPO", "PNG"):
                return None
            if image.mode == "1" and image.info.get("transparency"):
                image.info["transparency"] = 255  # as Pillow after 9.4 has it
            pixels = image.convert(mode).tobytes()
            orientation = image.getexif().get(0x112, 1)
            return image.size, orientation if orientation in range(1, 9) else 1, pixels
    except Exception:  # Pillow's refusals have no common class
        return None


def noise(mode, size, seed):
    """Return an image with smooth parts, edges and noise."""
    r = random.Random(seed)
    width, height = size
    bands = []
    for band in range(len(mode)):
        step = r.randrange(1, 9)
        bands.append(bytes(((x * step + y * (9 - step)) * (band + 1) // 2
                            + (r.randrange(96) if (x // 8 + y // 8) & 1 else 0)) & 255
                           for y in range(height) for x in range(width)))
    images = [Image.frombytes("L", size, b) for b in bands]
    return images[0] if len(images) == 1 else Image.merge(mode, images)


def jpegs():
    """Yield (name, bytes) of JPEGs as Pillow writes them."""
    for size in ((1, 1), (8, 8), (17, 16), (33, 1), (1, 33), (40, 37), (129, 67)):
        for mode in ("L", "RGB", "CMYK"):
            image = noise(mode, size, size[0])
            for subsampling in (0, 1, 2):
                for progressive in (False, True):
                    for quality in (5, 75, 100):
                        out = io.BytesIO()
                        image.save(out, "JPEG", quality=quality, subsampling=subsampling,
                                   progressive=progressive)
                        yield (f"{mode}-{size[0]}x{size[1]}-{subsampling}-{progressive}-{quality}.jpg",
                               out.getvalue())
    # every pair of colour and black of a CMYK pixel, through quality 100 and no subsampling
    out = io.BytesIO()
    ramp = Image.frombytes("L", (256, 256), bytes(x for _ in range(256) for x in range(256)))
    other = ramp.transpose(Image.Transpose.TRANSPOSE) if hasattr(Image, "Transpose") else ramp
    Image.merge("CMYK", (ramp, ramp, ramp, other)).save(out, "JPEG", quality=100, subsampling=0)
    yield "cmyk-ramp.jpg", out.getvalue()
    exif = Image.Exif()
    for orientation in range(0, 10):
        exif[0x112] = orientation
        out = io.BytesIO()
        noise("RGB", (20, 10), 3).save(out, "JPEG", exif=exif)
        yield f"orientation-{orientation}.jpg", out.getvalue()
        out = io.BytesIO()
        noise("RGB", (20, 10), 3).save(out, "PNG", exif=exif)
        yield f"orientation-{orientation}.png", out.getvalue()


def scan_ends(file):
    """Return the offsets at which the data of each scan of a JPEG ends."""
    at = 2
    while file[at + 1] != 0xd9:
        is_scan = file[at + 1] == 0xda
        at += 2 + int.from_bytes(file[at + 2:at + 4], "big")
        while is_scan and (file[at] != 0xff or file[at + 1] == 0 or 0xd0 <= file[at + 1] <= 0xd7):
            at += 1
        if is_scan:
            yield at


def incomplete_jpegs():
    """Yield (name, bytes) of undamaged progressive JPEGs whose last scans are missing: their blocks are smoothed, as
    libjpeg-turbo 3.0.1 and later do that, whatever the library is linked with."""
    if tuple(map(int, (features.version("libjpeg_turbo") or "0").split("."))) < (3, 0, 1):
        return
    for size in ((1, 1), (9, 9), (16, 17), (24, 8), (33, 40), (129, 67)):
        for mode in ("L", "RGB", "CMYK"):
            for subsampling in (0, 1, 2) if mode == "RGB" else (0,):
                for quality in (5, 75, 100):
                    out = io.BytesIO()
                    noise(mode, size, size[0]).save(out, "JPEG", quality=quality, subsampling=subsampling,
                                                    progressive=True, restart_marker_rows=quality // 75)
                    file = out.getvalue()
                    for n, end in enumerate(list(scan_ends(file))[:-1]):
                        yield (f"{mode}-{size[0]}x{size[1]}-{subsampling}-{quality}-scan-{n}.jpg",
                               file[:end] + b"\xff\xd9")


def pngs():
    """Yield (name, bytes) of PNGs as Pillow writes them."""
    for size in ((1, 1), (7, 5), (40, 37), (300, 2)):
        rgb = noise("RGB", size, 5)
        kinds = {"1": rgb.convert("1"), "L": rgb.convert("L"), "LA": noise("LA", size, 6),
                 "RGB": rgb, "RGBA": noise("RGBA", size, 7),
                 "I;16": Image.frombytes("I;16", size, noise("LA", size, 8).tobytes())}
        for n_colors in (2, 4, 16, 200):
            kinds[f"P{n_colors}"] = rgb.quantize(n_colors)
        for name, image in kinds.items():
            for transparent in (False, True):
                out = io.BytesIO()
                options = {}
                if transparent and name[0] == "P":
                    options["transparency"] = 1
                if transparent and name == "RGB":
                    options["transparency"] = rgb.getpixel((0, 0))
                if transparent and name in ("L", "1"):
                    options["transparency"] = 0
                image.save(out, "PNG", **options)
                yield f"{name}-{size[0]}x{size[1]}-{transparent}.png", out.getvalue()


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def samples_as_png(size, colour, depth, interlaced, chunks, pixel):
    """Return a PNG file of pixel(x, y), a list of samples, with these chunks before the image data."""
    data = b""
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
    for left, top, across, down in passes if interlaced else ((0, 0, 1, 1),):
        for y in range(top, size[1], down):
            row = [v for x in range(left, size[0], across) for v in pixel(x, y)]
            bits = "".join(f"{v:0{depth}b}" for v in row)
            bits += "0" * (-len(bits) % 8)
            data += b"\0" + int(bits, 2).to_bytes(len(bits) // 8, "big") if row else b""
    header = struct.pack(">IIBBBBB", *size, depth, colour, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunks + chunk(b"IDAT", zlib.compress(data))
            + chunk(b"IEND", b""))


def pngs_of_every_kind():
    """Yield (name, bytes) of PNGs of each colour type, depth and interlacing, with and without a tRNS chunk."""
    n_samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
    r = random.Random(12)
    for colour, depths in ((0, (1, 2, 4, 8, 16)), (2, (8, 16)), (3, (1, 2, 4, 8)), (4, (8, 16)), (6, (8, 16))):
        for depth in depths:
            for size in ((1, 1), (9, 5), (21, 18)):
                # few values, and those that a key's low byte and a 16-bit sample's high byte share
                top = (1 << depth) - 1
                values = [0, top, top // 3, r.randrange(top + 1)] + ([0x0303, 0xA1A1] if depth == 16 else [])
                table = [[[r.choice(values) for _ in range(n_samples[colour])] for _ in range(size[0])]
                         for _ in range(size[1])]
                keys = [None]
                if colour in (0, 2):
                    keys += [table[0][0], [values[0]] * 3, [values[2]] * 3, [top] * 3, [0x0100 | top & 255] * 3]
                if colour == 3:
                    keys += [bytes(r.randrange(256) for _ in range(n)) for n in (1, top + 1)] + [b"\0", b"\xff\0"]
                all_colours, short = (top + 1,) if colour == 3 else (0,), (1 + top // 2,) if colour == 3 else ()
                for n_colours in all_colours + (short if black_follows_a_palette() else ()):
                    for k, key in enumerate(keys):
                        chunks = b""
                        if colour == 3:
                            chunks = chunk(b"PLTE", bytes(r.randrange(256) for _ in range(3 * n_colours)))
                        if key is not None:
                            if colour == 3:
                                chunks += chunk(b"tRNS", key[:n_colours])
                            else:
                                chunks += chunk(b"tRNS", struct.pack(f">{n_samples[colour]}H",
                                                                     *key[:n_samples[colour]]))
                        for interlaced in (0, 1):
                            name = f"kind-{colour}-{depth}-{size[0]}x{size[1]}-{n_colours}-{k}-{interlaced}.png"
                            yield name, samples_as_png(size, colour, depth, interlaced, chunks,
                                                       lambda x, y: table[y][x])


def black_follows_a_palette():
    """1: this Pillow has black past the end of a short palette."""
    file = samples_as_png((1, 1), 3, 8, 0, chunk(b"PLTE", b"\7" * 6), lambda x, y: [9])
    with Image.open(io.BytesIO(file)) as image:
        return image.convert("RGB").getpixel((0, 0)) == (0, 0, 0)


def odd_transparency():
    """Yield (before PLTE, after it, after the image data): contents of tRNS chunks, as no encoder writes them."""
    r = random.Random(13)
    yield from (((), (b"",), ()), ((), (), (b"",)), ((b"",), (), ()), ((b"\1\2\3",), (), ()),
                ((), (b"\1\2\3", b"\7"), ()), ((), (b"\1\2\3", b""), ()), ((b"\1\2\3",), (b"\5",), ()),
                ((), (b"\1\2\3",), (b"\6\0",)), ((), (), (b"\6", b"\7\0\7\0\7\0")))
    for length in (2, 5, 6, 9, 10, 40, 255, 256, 257, 300, 70000):
        yield (), (bytes(r.randrange(256) for _ in range(length)),), ()
        for zero in (0, 1, 254, 255, 256, length - 1):  # Pillow takes a single 0 among 255s for an index
            if zero < length:
                simple = b"\xff" * zero + b"\0" + b"\xff" * (length - zero - 1)
                for odd in (simple, simple + b"\n", simple + b"\n\n", simple[:-1] + b"\n", simple + b"\0", b"\n" + simple):
                    yield (), (odd,), ()
        yield (), (b"\xff" * length,), ()
        yield (), (b"\xff" * length + b"\n",), ()


def pngs_of_odd_transparency():
    """Yield (name, bytes) of PNGs with tRNS chunks that are too long, empty, doubled, or out of place."""
    for colour, depth in ((3, 8), (3, 4), (3, 1), (0, 8), (0, 1), (2, 8), (4, 8), (6, 8)):
        n_samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
        top = (1 << depth) - 1
        for i, (before, between, after) in enumerate(odd_transparency() if black_follows_a_palette() else ()):
            palette = chunk(b"PLTE", bytes(range(3, 3 + 3 * min(7, top + 1)))) if colour == 3 else b""
            chunks = b"".join(chunk(b"tRNS", c) for c in before) + palette
            chunks += b"".join(chunk(b"tRNS", c) for c in between)
            file = samples_as_png((16, 16), colour, depth, i & 1, chunks,
                                  lambda x, y: [(x + 16 * y + 5 * k) & top for k in range(n_samples)])
            end = b"".join(chunk(b"tRNS", c) for c in after)
            kind = "palette" if colour == 3 else "key"
            yield f"odd-{kind}-{colour}-{depth}-{i}.png", file[:-12] + end + file[-12:]


class Tally:
    def __init__(self):
        self.files = self.bytes = self.differing = self.refused = self.stricter = self.wrong = 0

    def take(self, name, ours, theirs):
        self.files += 1
        if theirs is None:
            self.refused += 1
            if not isinstance(ours, str):
                self.fail(name, "Pillow refuses it, the decoder does not")
        elif isinstance(ours, str):
            if any(text in ours for text in STRICTER):
                self.stricter += 1
            else:
                self.fail(name, f"Pillow reads it, the decoder says: {ours}")
        elif ours[:2] != theirs[:2]:
            self.fail(name, f"size, orientation {ours[:2]}, Pillow's {theirs[:2]}")
        else:
            n = sum(a != b for a, b in zip(ours[2], theirs[2])) if ours[2] != theirs[2] else 0
            self.bytes += len(theirs[2])
            self.differing += n
            if n:
                self.fail(name, f"{n} of {len(theirs[2])} bytes differ")

    def fail(self, name, text):
        self.wrong += 1
        print(f"{name}: {text}")


def compare(dump, tally, path):
    """Compare a file in every number of channels."""
    if path.endswith("/truncated_exif_dpi.jpg") and pillow(path, "L") is None:
        return  # Pillow before 10 refuses a file for an Exif segment that ends within its header
    for channels, mode in MODES.items():
        if "odd-key" in path and channels != 4:
            continue  # Pillow refuses a key that is too short in every mode, the decoder where it is used
        tally.take(f"{path} as {mode}", dump.decode(path, channels), pillow(path, mode))


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    dump, tally = Dump(sys.argv[1]), Tally()
    with tempfile.TemporaryDirectory() as folder:
        for make in (jpegs, incomplete_jpegs, pngs, pngs_of_every_kind, pngs_of_odd_transparency):
            for name, data in itertools.islice(make(), 0, None, EVERY):
                path = os.path.join(folder, name)
                with open(path, "wb") as f:
                    f.write(data)
                compare(dump, tally, path)
    wished = [os.environ.get(name) for name in ("PENSTOCK_TEST_IMAGES", "PENSTOCK_TEST_JPEGS")]
    for folder in sys.argv[2:] + [folder for folder in wished if folder]:
        for name in sorted(os.listdir(folder)):
            if name.lower().endswith((".jpg", ".jpeg", ".png")):
                path = os.path.join(folder, name)
                compare(dump, tally, path)
    print(f"{tally.files} decodes, {tally.bytes} bytes compared, {tally.differing} differ; "
          f"{tally.refused} refused by both or by Pillow, {tally.stricter} refused by us alone, "
          f"{tally.wrong} wrong")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
