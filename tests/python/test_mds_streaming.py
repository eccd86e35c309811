# SPDX-License-Identifier: Apache-2.0
"""Data sets of the real MosaicML streaming are read as it decodes them, column by column.

It needs older versions of NumPy and transformers than versions.txt has, so it has no place in requirements.txt: run
this in an environment of its own. tests/golden/mds was written so (mosaicml-streaming 0.13.0), by write_golden, and
is always compared: test_mds.py.
"""
import decimal
import io
import json
import os
import shutil

import penstock
import test_mds
from data_fixture import Case, np, optional

FILES = ("jpeg", "png", "jpeg_array", "jpegarray", "list[jpeg]", "list[png]")


def write(path, samples, size_limit, hashes=(), compression=None):
    """By the real encoders, except files of images, which it keeps as they are."""
    from streaming.base.format.mds.encodings import mds_decode
    from streaming.base.format.mds.writer import MDSWriter
    with MDSWriter(columns={c: v[0] for c, v in samples[0].items()}, out=path, size_limit=size_limit,
                   hashes=list(hashes), compression=compression) as out:
        for sample in samples:
            out.write({c: v[2] if v[0] in FILES else mds_decode(v[0], v[2]) for c, v in sample.items()})


def write_golden(path):
    shutil.rmtree(path, ignore_errors=True)
    write(path, [test_mds.every_encoding(i) for i in range(5)], 3500, ["sha1"])


class Real(Case):
    def setUp(self):
        super().setUp()
        optional("streaming")
        self.image = optional("PIL.Image")

    def pixels(self, file):
        return np.asarray(self.image.open(io.BytesIO(bytes(file))))

    def same(self, encoding, real, own):
        if encoding in ("jpeg", "png"):
            return np.array_equal(np.asarray(real), self.pixels(own))
        if encoding in FILES:
            return len(real) == len(own) and all(np.array_equal(np.asarray(a), self.pixels(b)) for a, b in zip(real, own))
        if encoding == "pil":
            return np.array_equal(np.asarray(real), own)
        if encoding.startswith("ndarray"):
            return (real.dtype, real.shape, real.tobytes()) == (own.dtype, own.shape, own.tobytes())
        convert = {"json": json.loads, "str_float": float, "str_decimal": decimal.Decimal}.get(encoding, lambda value: value)
        return real == convert(own)

    def check(self, samples, size_limit, compression=None):
        from streaming.base.format.mds.encodings import mds_decode
        shutil.rmtree(self.path(), ignore_errors=True)
        write(self.path(), samples, size_limit, compression=compression)
        with penstock.Dataset(self.path(), foreign=penstock.Foreign(cache_path=os.path.join(self.path(), "cache"))) as data:
            self.assertEqual(len(data), len(samples))
            for i, sample in enumerate(samples):
                got = data[i]
                for name, value in sample.items():
                    self.assertTrue(self.same(value[0], mds_decode(value[0], value[2]), got[name]), (i, name))
        return len([name for name in os.listdir(self.path()) if ".mds" in name])

    def test_every_encoding_without_images(self):
        self.assertGreater(self.check([test_mds.every_encoding(i) for i in range(101)], 20000), 10)

    def test_every_compression(self):
        samples = [test_mds.every_encoding(i) for i in range(60)]
        for compression in ("zstd", "zstd:16", "br:5", "bz2", "gz:1", "snappy"):
            with self.subTest(compression):
                self.assertGreater(self.check(samples, 20000, compression), 4)
                self.assertFalse([name for name in os.listdir(self.path()) if name.endswith(".mds")])

    def test_every_encoding_of_images(self):
        self.check([test_mds.every_image(3 * i + 1 + i % 2) for i in range(10)], 1 << 20)
