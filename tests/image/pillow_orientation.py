#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare the orientation of JPEG and PNG files with Pillow's ImageOps.exif_transpose.

usage: pillow_orientation.py DUMP_IMAGE [FOLDER...]

DUMP_IMAGE is the program built from tests/image/dump_image.c. Its pixels, turned by its orientation, must be those
that exif_transpose gives: for files of the folders, and for files made here, whose Exif and XMP are right,
contradictory, malformed, in several segments, in every chunk that Pillow reads, and mutated at random. Where
exif_transpose raises an exception, the orientation must be that of Image.getexif, or 1 where that raises, too. Exit status: 0 equal, 1 not, 77 no Pillow of the 12
that counts.
"""
import io
import itertools
import os
import random
import struct
import sys
import tempfile
import warnings
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pillow_decode import Dump, Image, chunk, noise  # noqa: E402  (ends with 77 without Pillow)

import PIL  # noqa: E402
from PIL import ImageOps  # noqa: E402

if int(PIL.__version__.split(".")[0]) < 12:
    print("Pillow", PIL.__version__, "is older than 12")
    sys.exit(77)

warnings.simplefilter("ignore")

N_MUTATIONS = 1500
EVERY = int(os.environ.get("PENSTOCK_TEST_EVERY", "1"))  # one of so many files: tests/meson.build
XMP_HEAD = b"http://ns.adobe.com/xap/1.0/\0"
TRANSPOSES = [None, None] + [getattr(Image.Transpose, name) for name in (
    "FLIP_LEFT_RIGHT", "ROTATE_180", "FLIP_TOP_BOTTOM", "TRANSPOSE", "ROTATE_270", "TRANSVERSE", "ROTATE_90")]
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}
FORMATS = {1: "B", 2: "B", 3: "H", 4: "I", 6: "b", 7: "B", 8: "h", 9: "i", 11: "f", 12: "d", 13: "I", 16: "Q"}


# ---- metadata ---------------------------------------------------------------------------------------------


def value(order, kind, *numbers):
    """Return the bytes of a TIFF value. kind 5, 10: pairs of numbers."""
    code = {5: "I", 10: "i"}.get(kind) or FORMATS[kind]
    return struct.pack(order + code * len(numbers), *numbers)


def tiff(order, entries, mark=42, n=None, end=b"\0\0\0\0", base=8):
    """Return a TIFF structure. entries: (tag, type, count, bytes of the value, or an offset)."""
    head = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", mark, base)
    entries = list(entries)
    at = base + 2 + 12 * len(entries) + len(end)
    directory, far = struct.pack(order + "H", len(entries) if n is None else n), b""
    for tag, kind, count, data in entries:
        if isinstance(data, int):
            field = struct.pack(order + "I", data)
        elif len(data) > 4:
            field = struct.pack(order + "I", at + len(far))
            far += data
        else:
            field = data.ljust(4, b"\0")
        directory += struct.pack(order + "HHI", tag, kind, count) + field
    return head + bytes(base - 8) + directory + end + far


def entry(order, k, kind=3, tag=0x112):
    return tag, kind, 1, value(order, kind, k, *((1,) if kind in (5, 10) else ()))


def structures():
    """Yield (name, bytes) of TIFF structures."""
    make = (0x10F, 2, 8, b"Penstock")
    for order in "<>":
        for k in range(11):
            yield f"short {k}", tiff(order, [make, entry(order, k)])
            for kind in (4, 5, 6, 8, 9, 10, 11, 12, 13, 16):
                yield f"type {kind} {k}", tiff(order, [entry(order, k, kind), make])
        for kind in (1, 2, 7, 14, 15, 17, 129):
            yield f"type {kind}", tiff(order, [(0x112, kind, 1, b"\6")])
            yield f"text {kind}", tiff(order, [(0x112, kind, 2, b"6\0")])
        for n, kind in ((2, 3), (3, 3), (9, 3), (2, 4)):
            yield f"{n} values", tiff(order, [(0x112, kind, n, value(order, kind, *range(6, 6 - n, -1)) if n < 4 else
                                               value(order, kind, 6, *range(n - 1)))])
        yield "no values", tiff(order, [(0x112, 3, 0, b"\6\6")])
        yield "no values, then one", tiff(order, [(0x112, 3, 0, b"\6\6"), entry(order, 8)])
        for pair in ((12, 2), (12, 4), (6, 0), (0, 0), (0, 6), (13, 2)):
            yield f"rational {pair}", tiff(order, [(0x112, 5, 1, value(order, 5, *pair))])
        for pair in ((-12, -2), (-12, 2), (12, 2), (6, 0)):
            yield f"signed rational {pair}", tiff(order, [(0x112, 10, 1, value(order, 10, *pair))])
        for number in (6.5, -6.0, float("nan"), float("inf"), 5.999999):
            yield f"float {number}", tiff(order, [(0x112, 11, 1, value(order, 11, number))])
            yield f"double {number}", tiff(order, [(0x112, 12, 1, value(order, 12, number))])
        for kind in (6, 8, 9):
            yield f"negative {kind}", tiff(order, [(0x112, kind, 1, value(order, kind, -6))])
        yield "long with a high part", tiff(order, [(0x112, 4, 1, value(order, 4, 0x10006))])
        yield "twice", tiff(order, [entry(order, 6), make, entry(order, 3)])
        yield "twice, the second wrong", tiff(order, [entry(order, 6), entry(order, 0)])
        yield "twice, the second unknown", tiff(order, [entry(order, 6), (0x112, 99, 1, b"\3\0\0\3")])
        yield "not in order", tiff(order, [(0x8769, 4, 1, b"\0\0\0\0"), entry(order, 6), make])
        yield "far off, cut", tiff(order, [(0x10F, 2, 8, 10**6), entry(order, 6)])
        yield "far off, cut, after", tiff(order, [entry(order, 6), (0x10F, 2, 8, 10**6)])
        yield "cut by a byte", tiff(order, [(0x10F, 2, 8, 47 - 8), entry(order, 6)], end=b"")
        yield "huge count", tiff(order, [(0x10F, 12, 2**32 - 1, 8), entry(order, 6)])
        yield "huge count of bytes", tiff(order, [(0x112, 7, 2**32 - 1, 8)])
        yield "unknown type first", tiff(order, [(0x10F, 77, 2**32 - 1, 8), entry(order, 6)])
        yield "too many entries", tiff(order, [entry(order, 6)], n=500)
        yield "too few entries", tiff(order, [make, entry(order, 6)], n=1)
        yield "no entries", tiff(order, [entry(order, 6)], n=0)
        yield "no end", tiff(order, [entry(order, 6)], end=b"")
        yield "elsewhere", tiff(order, [make, entry(order, 6)], base=50)
        yield "other tags", tiff(order, [make, (0x11A, 5, 1, value(order, 5, 72, 1)), entry(order, 2, tag=0x128)])
        yield "at the head", tiff(order, [entry(order, 6)])[:4] + struct.pack(order + "I", 0)
        yield "at the end", tiff(order, [])[:4] + struct.pack(order + "I", 8)
        yield "past the end", tiff(order, [entry(order, 6)])[:4] + struct.pack(order + "I", 2**32 - 1)
        yield "dpi and orientation", tiff(order, [(0x11A, 5, 1, value(order, 5, 72, 1)), (0x128, 3, 1, value(order, 3, 2)),
                                                  entry(order, 6)])
        for mark in (0, 41, 43, 0x2A00, 0x2B00, 0xFFFF):
            yield f"mark {mark}", tiff(order, [entry(order, 6)], mark=mark)
        whole = tiff(order, [make, entry(order, 6)])
        for n in range(len(whole)):
            yield f"cut {n}", whole[:n]
        yield "prefix", b"Exif\0\0" + whole
        yield "prefixes", b"Exif\0\0" * 3 + whole
        yield "half a prefix", b"Exif\0" + whole
        yield "only prefixes", b"Exif\0\0" * 3
    yield "text", b"this is no TIFF structure"


def packets():
    """Yield (name, bytes) of XMP."""
    around = b"<x:xmpmeta><rdf:Description %s/>%s</x:xmpmeta>"
    for k in range(10):
        yield f"attribute {k}", around % (b'tiff:Orientation="%d"' % k, b"")
        yield f"element {k}", around % (b"", b"<tiff:Orientation>%d</tiff:Orientation>" % k)
    yield "both", around % (b'tiff:Orientation="6"', b"<tiff:Orientation>3</tiff:Orientation>")
    yield "second is right", b'tiff:Orientation="x" tiff:Orientation=\'3\' tiff:Orientation="5"'
    for text in (b"", b"tiff:Orientation", b'tiff:Orientation="', b"tiff:Orientation>", b"tiff:Orientation=>6", b"tiff:Orientation 6",
                 b'tiff:Orientation=""6', b"tiff:Orientiff:Orientation>6", b'tiff:Orientation="66"', b"TIFF:Orientation>6",
                 b'\xff\xfetiff:Orientation="6"', b'tiff:Orientation="6"\xff', b"tiff:Orientation>6\0rest", b"\0tiff:Orientation>6"):
        yield f"text {text}", text


# ---- files ------------------------------------------------------------------------------------------------


def segment(data, marker=0xE1):
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def base_of(kind):
    out = io.BytesIO()
    noise("RGB", (24, 16), 3).save(out, kind, **({"quality": 95} if kind == "JPEG" else {}))
    return out.getvalue()


JPEG, PNG = base_of("JPEG"), base_of("PNG")
JFIF = segment(b"JFIF\0\1\1\1\0\x48\0\x48\0\0", 0xE0)  # states dots per inch, so that Pillow reads Exif later


def jpeg(*segments, dpi=False):
    start = 2 if not dpi else 2 + 2 + struct.unpack(">H", JPEG[4:6])[0]
    return JPEG[:2] + (JFIF if dpi else b"") + b"".join(segments) + JPEG[start:]


def exif_segment(data):
    return segment(b"Exif\0\0" + data)


def xmp_segment(data):
    return segment(XMP_HEAD + data)


def png(before=b"", after=b"", cut=0):
    return PNG[:33] + before + PNG[33:len(PNG) - 12] + after + PNG[len(PNG) - 12:len(PNG) - cut]


def profile(data, lines=b"\nexif\n%8d\n", step=72):
    """Return the text of a raw profile, as ImageMagick writes it."""
    digits = data.hex().encode()
    return (lines % len(data) if b"%" in lines else lines) + b"\n".join(
        digits[i:i + step] for i in range(0, len(digits), step)) + b"\n"


def text(key, data):
    return chunk(b"tEXt", key + b"\0" + data)


def compressed(key, data, packed=None, method=0):
    return chunk(b"zTXt", key + b"\0" + bytes([method]) + (zlib.compress(data) if packed is None else packed))


def international(key, data, flag=0, method=0, more=b"\0\0"):
    return chunk(b"iTXt", key + b"\0" + bytes([flag, method]) + more + (zlib.compress(data) if flag and not method else data))


RAW, XML = b"Raw profile type exif", b"XML:com.adobe.xmp"


def jpegs():
    for name, data in structures():
        for dpi in (False, True):
            yield f"{name} dpi {dpi}", jpeg(exif_segment(data), dpi=dpi)
            yield f"{name} dpi {dpi} and xmp", jpeg(exif_segment(data), xmp_segment(b'tiff:Orientation="8"'), dpi=dpi)
    six, three = (tiff(">", [entry(">", k)]) for k in (6, 3))
    for name, data in packets():
        yield f"xmp {name}", jpeg(xmp_segment(data))
        yield f"xmp {name} after another", jpeg(xmp_segment(b"tiff:Orientation>2"), xmp_segment(data))
        yield f"xmp {name} and exif", jpeg(xmp_segment(data), exif_segment(three))
        yield f"xmp {name} and empty exif", jpeg(exif_segment(b""), xmp_segment(data))
    for head in (b"Exif\0\1", b"Exif\0", b"exif\0\0", b"Exif", b""):
        yield f"head {head}", jpeg(segment(head + six))
        yield f"head {head}, then exif", jpeg(segment(head + six), exif_segment(three))
    for head in (XMP_HEAD[:-1], XMP_HEAD[:-1] + b"\1", b"http://ns.adobe.com/xmp/extension/\0"):
        yield f"xmp head {head}", jpeg(segment(head + b"tiff:Orientation>6"))
    yield "exif in another segment", jpeg(segment(b"Exif\0\0" + six, 0xE2))
    yield "exif twice", jpeg(exif_segment(six), exif_segment(three))
    yield "exif after an empty one", jpeg(exif_segment(b""), exif_segment(six))
    yield "exif after empty ones", jpeg(*[exif_segment(b"")] * 9, exif_segment(six), b"\xff\xff\xff")
    whole = tiff("<", [(0x10F, 2, 8, b"Penstock"), (0x112, 5, 1, value("<", 5, 16, 2)), entry("<", 2, tag=0x128)])
    for n in range(len(whole) + 1):
        for between in (b"", segment(b"other", 0xE5), b"\0\1\2" + xmp_segment(b"tiff:Orientation>4")):
            yield f"exif cut at {n}", jpeg(exif_segment(whole[:n]), between, exif_segment(whole[n:]), segment(b"end", 0xE7))
    yield "exif in single bytes", jpeg(*(exif_segment(whole[i:i + 1]) for i in range(len(whole))))
    yield "prefix in single bytes", jpeg(*(exif_segment(bytes([c])) for c in b"Exif\0\0" * 2 + whole))
    at = JPEG.index(b"\xff\xda")
    yield "exif after the scan", JPEG[:-2] + exif_segment(six) + JPEG[-2:]
    yield "exif before the scan", JPEG[:at] + exif_segment(six) + JPEG[at:]
    yield "bare markers", jpeg(b"\xff\xd0\xff\x01"[:2], b"\0\0", exif_segment(six))


def pngs():
    exif = chunk(b"eXIf", tiff("<", [entry("<", 6)]))
    other = chunk(b"eXIf", tiff(">", [entry(">", 3)]))
    none = chunk(b"eXIf", tiff(">", []))
    for name, data in structures():
        it = chunk(b"eXIf", data)
        yield name, png(it)
        yield f"{name} after", png(b"", it)
        yield f"{name} and xmp", png(international(XML, b"tiff:Orientation>8"), it)
        yield f"{name} in a profile", png(compressed(RAW, profile(data)), international(XML, b"tiff:Orientation>7"))
        yield f"{name} as a text", png(text(b"exif", data))
    six = tiff(">", [entry(">", 6)])
    for name, data in packets():
        for where in ((0, 1), (1, 0)):
            for make in (international, text, compressed, lambda k, d: international(k, d, flag=1)):
                it = make(XML, data)
                yield f"xmp {name} {where}", png(*(it * n for n in where))
            yield f"xmp {name} and none", png(none, international(XML, data))
            yield f"xmp {name} and exif", png(exif, international(XML, data))
    for a, b in itertools.product((exif, other, none, text(b"exif", six), compressed(b"exif", six), international(b"exif", six),
                                   chunk(b"eXIf", b""), chunk(b"eXIf", b"junk"), compressed(RAW, profile(six)), b"",
                                   text(RAW, profile(six)), international(XML, b"tiff:Orientation>5"), chunk(b"exIf", six)), repeat=2):
        yield "two chunks", png(a + b)
        yield "two chunks, one after", png(a, b)
        yield "two chunks after", png(b"", a + b)
    for lines in (b"\nexif\n%8d\n", b"\nexif\r\n%8d\n", b"\n\n\n", b"\n\n", b"", b"\n\n\n\n\n", b"a\nb\nc\n \t", b"\nAPP1\n%8d\n"):
        for data in (six, b"Exif\0\0" + six, b""):
            yield f"profile {lines}", png(text(RAW, profile(data, lines)))
    digits = profile(b"Exif\0\0" + six)
    for bad in (digits + b"0", digits + b" \r\t\v\f", digits + b"x", digits + b"4 5", digits.upper(), digits.replace(b"45", b"4\n5", 1),
                digits.replace(b"45", b"4 5", 1), digits + b"\xe9", digits[:20], digits.replace(b"45", b" 45 ", 1), digits + b"\0"):
        for make in (text, compressed, international, lambda k, d: international(k, d, flag=1)):
            yield "profile of odd digits", png(make(RAW, bad))
    yield "profile of 3 bytes a line", png(compressed(RAW, profile(six, step=3)))
    yield "profile of a long line", png(compressed(RAW, profile(six + bytes(100000), step=10**6)))
    packed = zlib.compress(digits)
    for n in range(len(packed)):
        yield "cut profile", png(compressed(RAW, b"", packed[:n]))
    for n in range(2, len(packed), 3):
        yield "damaged profile", png(compressed(RAW, b"", packed[:n] + bytes([packed[n] ^ 0x10]) + packed[n + 1:]))
    yield "bytes after a profile", png(compressed(RAW, b"", packed + b"junk"))
    xmp = zlib.compress(b" " * 9000 + b"<tiff:Orientation>6</tiff:Orientation>" + b" " * 9000)
    for n in range(0, len(xmp), 2):
        for flag, method in ((1, 0), (7, 0), (1, 1), (0, 1)):
            it = chunk(b"iTXt", XML + b"\0" + bytes([flag, method]) + b"\0\0" + xmp[:n])
            yield "cut xmp", png(text(XML, b"tiff:Orientation>3") + it)
    for n in range(4060, 4110):
        yield "xmp across a border", png(international(XML, b" " * n + b'tiff:Orientation="6"' + b"1" * n, flag=1))
        yield "xmp across a border", png(international(XML, b" " * n + b'tiff:Orientation="6"' + b"1" * n))
    for bad in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xc3\xa9", b"\xf0\x9f\x98\x80"):
        for n, flag in itertools.product((0, 4070, 4071, 4072, 4073, 8000), (0, 1)):
            it = international(XML, b" " * n + b"tiff:Orientation>6" + bad, flag=flag)
            yield "other UTF-8", png(text(XML, b"tiff:Orientation>3") + it)
            yield "other UTF-8 alone", png(text(XML, b"") + it)
        yield "other language", png(text(XML, b"tiff:Orientation>3") + international(XML, b"tiff:Orientation>6", more=bad + b"\0\0"))
        yield "profile of other UTF-8", png(text(RAW, digits) + international(RAW, profile(tiff(">", [entry(">", 3)])) + bad))
    for n in (0, 1, 2, 3):
        yield "short iTXt", png(chunk(b"iTXt", (XML + b"\0\0\0\0\0tiff:Orientation>6")[:len(XML) + n]))
    yield "language", png(international(XML, b"tiff:Orientation>6", more=b"de\0Schluessel\0"))
    yield "no key", png(text(b"", b"tiff:Orientation>6") + exif)
    yield "key without a text", png(chunk(b"tEXt", b"exif") + international(XML, b"tiff:Orientation>6"))
    yield "key without a text", png(chunk(b"zTXt", RAW) + international(XML, b"tiff:Orientation>6"))
    for n_frames, before, after in itertools.product((0, 1, 2), (0, 1), (0, 1)):
        control = chunk(b"acTL", struct.pack(">II", n_frames, 0))
        frame = lambda i: chunk(b"fcTL", struct.pack(">IIIIIHHBB", i, 24, 16, 0, 0, 1, 10, 0, 0))  # noqa: E731
        yield "animation", png(control + frame(0) * before + none, exif * (1 - after) + frame(before) + exif * after)


def mutated(r, whole):
    data = bytearray(whole)
    for _ in range(r.randrange(1, 4)):
        at = r.randrange(len(data))
        data[at] = r.choice((0, 1, 2, 3, 6, 8, 0xFF, data[at] ^ 1 << r.randrange(8)))
    return bytes(data[:r.randrange(len(data))] if r.random() < 0.2 else data)


def mutations():
    r = random.Random(20)
    for i in range(N_MUTATIONS):
        order = r.choice("<>")
        kinds = [r.choice(list(SIZES)) for _ in range(r.randrange(1, 5))]
        whole = tiff(order, [entry(order, r.randrange(0, 10), kind, r.choice((0x112, 0x112, 0x10F))) for kind in kinds])
        exif, xmp = mutated(r, whole), mutated(r, b'<tiff:Orientation>6</tiff:Orientation> tiff:Orientation="3"')
        at = r.randrange(len(exif) + 1)
        yield f"mutation {i}.jpg", jpeg(xmp_segment(xmp), exif_segment(exif[:at]), exif_segment(exif[at:]), dpi=r.random() < 0.5)
        yield f"mutation {i}.png", png(chunk(b"eXIf", exif), international(XML, xmp) * r.randrange(2))


# ---- comparing --------------------------------------------------------------------------------------------


def transposed(path):
    """Return (image, its exif_transpose; None where that raises), or None where Pillow refuses the file."""
    try:
        with Image.open(path) as image:
            image.load()
            plain = image.convert("RGB")
    except Exception:  # Pillow's refusals have no common class
        return None
    try:
        with Image.open(path) as image:
            return plain, ImageOps.exif_transpose(image).convert("RGB")
    except Exception:  # perhaps where it writes Exif without the orientation
        return plain, stated(path, plain)


def stated(path, plain):
    """Return `plain` turned by the orientation that Pillow reads; None where it cannot."""
    try:
        with Image.open(path) as image:
            image.load()
            k = image.getexif().get(0x112, 1)
    except Exception:
        return None
    return plain if k not in range(2, 9) else plain.transpose(TRANSPOSES[int(k)])


class Tally:
    def __init__(self):
        self.files = self.turned = self.raised = self.refused = self.wrong = 0

    def compare(self, dump, name, path):
        theirs = transposed(path)
        self.files += 1
        if theirs is None:
            self.refused += 1
            return
        ours = dump.decode(path, 3)
        if isinstance(ours, str):
            self.fail(name, ours)
            return
        size, orientation, pixels = ours
        image = Image.frombytes("RGB", size, pixels)
        plain, expected = theirs
        if image.tobytes() != plain.tobytes():
            self.fail(name, "other pixels")
            return
        self.raised += expected is None
        self.turned += orientation != 1
        expected = plain if expected is None else expected
        ours = image if orientation == 1 else image.transpose(TRANSPOSES[orientation])
        if (ours.size, ours.tobytes()) != (expected.size, expected.tobytes()):
            self.fail(name, f"orientation {orientation}; Pillow's exif_transpose gives other pixels")

    def fail(self, name, why):
        self.wrong += 1
        print(f"{name}: {why}")


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    dump, tally = Dump(sys.argv[1]), Tally()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        for make in (jpegs, pngs, mutations):
            for i, (name, data) in itertools.islice(enumerate(make()), 0, None, EVERY):
                with open(path, "wb") as file:
                    file.write(data)
                tally.compare(dump, f"{make.__name__} {i}: {name}", path)
    for folder in sys.argv[2:]:
        for name in sorted(os.listdir(folder)):
            if name.lower().endswith((".jpg", ".jpeg", ".png")):
                tally.compare(dump, os.path.join(folder, name), os.path.join(folder, name))
    print(f"{tally.files} files, {tally.turned} turned; {tally.raised} where Pillow cannot read it, {tally.refused} that Pillow "
          f"refuses; {tally.wrong} wrong")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
