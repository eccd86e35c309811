#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare the decoders with Pillow, byte for byte.

usage: pillow_decode.py DUMP_IMAGE [FOLDER...]

DUMP_IMAGE is the program built from tests/image/dump_image.c. Every image of the folders, and a set that
Pillow itself generates, and those of the folders that PENSTOCK_TEST_IMAGES and PENSTOCK_TEST_JPEGS
name, must give the pixels of Image.open(f).convert("RGB"); what Pillow refuses
must be refused. The only licences, each counted: 16-bit gray PNG (refused), and files which libjpeg
or libpng call damaged where Pillow looks away.
Exit status: 0 equal, 1 not, 77 no Pillow.
"""
import io
import os
import random
import subprocess
import sys
import tempfile
import warnings

try:
    from PIL import Image
except ImportError:
    print("no Pillow")
    sys.exit(77)

warnings.simplefilter("ignore")

# What is damaged by our rule though Pillow reads it: messages of libjpeg and libpng.
STRICTER = ("Corrupt JPEG data: premature end", "Corrupt JPEG data: bad", "Corrupt JPEG data: found",
            "Inconsistent progression", "CRC error", "16 bits of gray")


class Dump:
    """One dump_image process, asked file by file."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def decode(self, path):
        """(size, orientation, pixels) or the error line."""
        self.process.stdin.write(os.fsencode(path) + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().decode()
        if not line:
            raise RuntimeError(f"dump_image died on {path}")
        if line.startswith("error"):
            return line.strip()
        width, height, orientation = map(int, line.split()[1:])
        return (width, height), orientation, self.process.stdout.read(width * height * 3)


def pillow(path):
    """(size, orientation, pixels), or None where Pillow refuses."""
    try:
        with Image.open(path) as image:
            if image.format not in ("JPEG", "MPO", "PNG"):
                return None
            pixels = image.convert("RGB").tobytes()
            orientation = image.getexif().get(0x112, 1)
            return image.size, orientation if orientation in range(1, 9) else 1, pixels
    except Exception:  # Pillow's refusals have no common class
        return None


def noise(mode, size, seed):
    """An image with smooth parts, edges and noise."""
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
    """(name, bytes) of JPEGs as Pillow writes them."""
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


def pngs():
    """(name, bytes) of PNGs as Pillow writes them."""
    for size in ((1, 1), (7, 5), (40, 37), (300, 2)):
        rgb = noise("RGB", size, 5)
        kinds = {"1": rgb.convert("1"), "L": rgb.convert("L"), "LA": noise("LA", size, 6),
                 "RGB": rgb, "RGBA": noise("RGBA", size, 7), "I": rgb.convert("L").convert("I")}
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


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    dump, tally = Dump(sys.argv[1]), Tally()
    with tempfile.TemporaryDirectory() as folder:
        for make in (jpegs, pngs):
            for name, data in make():
                path = os.path.join(folder, name)
                with open(path, "wb") as f:
                    f.write(data)
                tally.take(name, dump.decode(path), pillow(path))
    wished = [os.environ.get(name) for name in ("PENSTOCK_TEST_IMAGES", "PENSTOCK_TEST_JPEGS")]
    for folder in sys.argv[2:] + [folder for folder in wished if folder]:
        for name in sorted(os.listdir(folder)):
            if name.lower().endswith((".jpg", ".jpeg", ".png")):
                path = os.path.join(folder, name)
                tally.take(path, dump.decode(path), pillow(path))
    print(f"{tally.files} files, {tally.bytes} bytes compared, {tally.differing} differ; "
          f"{tally.refused} refused by both or by Pillow, {tally.stricter} refused by us alone, "
          f"{tally.wrong} wrong")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
