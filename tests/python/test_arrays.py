# SPDX-License-Identifier: Apache-2.0
"""Arrays in .npz and .safetensors files, in one .npy file, and in directories of them. NumPy and the test's own lines
are the oracle; where the package safetensors is installed, its files are read, too."""
import ctypes
import io
import json
import os
import struct
import time
import unittest.mock
import zipfile

import penstock
from data_fixture import np, optional
from penstock import _c, errors
from test_npy import N, SHAPES, Arrays, head, same_bytes, values

NAMES = {"?": "BOOL", "u1": "U8", "i1": "I8", "<u2": "U16", "<i2": "I16", "<u4": "U32", "<i4": "I32", "<u8": "U64",
         "<i8": "I64", "<f2": "F16", "<f4": "F32", "<f8": "F64"}


def npy(array, **keywords):
    out = io.BytesIO()
    np.save(out, array, **keywords)
    return out.getvalue()


def npz(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def zipped(members, method=zipfile.ZIP_STORED, comment=b""):
    """Return an archive of these (name, bytes); the names need not differ."""
    out = io.BytesIO()
    with unittest.mock.patch("warnings.warn"), zipfile.ZipFile(out, "w") as file:
        for name, data in members:
            file.writestr(zipfile.ZipInfo(name), data, method)
        file.comment = comment
    return out.getvalue()


def framed(text, body=b""):
    """Return a .safetensors file with any text in its head."""
    text = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(text)) + text + body


def safetensors(arrays, **dtypes):
    """Return a .safetensors file, as its package writes it; dtypes: what the head has instead of the array's."""
    table, body = {"__metadata__": {"format": "np"}}, b""
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).tobytes()
        dtype = dtypes.get(name) or NAMES["?" if array.dtype == bool else array.dtype.str.lstrip("|")]
        table[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(table)
    return framed(text + " " * (-len(text) % 8), body)


class Files(Arrays):
    def file(self, data, name="x.npz"):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def folder_of(self, name="data", **files):
        """Return a directory; the file x_npz="..." is x.npz."""
        os.makedirs(self.path(name), exist_ok=True)
        for file, data in files.items():
            self.file(data, os.path.join(name, ".".join(file.rsplit("_", 1))))
        return self.path(name)

    def check(self, path, arrays, kind, **keywords):
        """Every row by Loader and Dataset is that of the arrays, and verify finds no damage."""
        self.check_epochs(path, arrays, **keywords)
        with penstock.Dataset(path) as data:
            self.assertEqual(data.info.format, kind)
            self.assertEqual(sorted(data[0]), sorted(arrays))
            for i in range(0, len(data), max(1, len(data) // 7)):
                row = data[i]
                for field, array in arrays.items():
                    self.assertTrue(same_bytes(np.asarray(row[field]).astype(self.plain(array).dtype),
                                               self.plain(array)[i]), field)
        self.assertEqual(self.verify(path), 0)

    def verify(self, path):
        """Damaged places that pstk_verify finds."""
        error = errors.new()
        return _c.lib.pstk_verify(os.fsencode(path), 0, 2, _c.VerifyFn(), _c.ProgressFn(), None, ctypes.byref(error))


class Right(Files):
    def test_every_dtype_and_shape_in_one_file_bit_for_bit(self):
        arrays = {f"a{i}-{d}": values(dtype, shape, seed=i * 100 + d) for i, dtype in enumerate(NAMES)
                  for d, shape in enumerate(SHAPES) if d < 5}
        self.assertEqual(len(arrays), 60)
        self.check(self.file(npz(**arrays)), arrays, "npz")
        self.check(self.file(safetensors(arrays), "x.safetensors"), arrays, "safetensors")

    def test_one_npy_file(self):
        array = values("<f4", (3,))
        path = self.file(npy(array), "my-field.npy")
        self.check(path, {"my-field": array}, "npy")
        with penstock.Dataset(path) as one, penstock.Dataset(self.save({"my-field": array})) as folder:
            self.assertNotEqual(one.info.identity, folder.info.identity)  # its time of change differs
        os.utime(path, ns=(7, 7))
        os.utime(self.path("data/my-field.npy"), ns=(7, 7))
        with penstock.Dataset(path) as one, penstock.Dataset(self.path()) as folder:
            self.assertEqual(one.info.identity, folder.info.identity)

    def test_bfloat16_is_its_bits(self):
        bits = values("<u2", (5,))
        path = self.file(safetensors({"x": bits, "y": bits[:, 0]}, x="BF16", y="BF16"), "x.safetensors")
        fields = {field["name"]: field for field in json.loads(self.command("info", path, "--json"))["fields"]}
        self.assertEqual([fields[name]["dtype"] for name in "xy"], ["bf16", "bf16"])
        self.assertEqual(self.command("get", path, "17", "x"), bits[17].tobytes())
        with penstock.Loader(path, batch_size=16, framework="numpy") as loader:
            for batch in loader.epoch(0):
                rows = np.asarray(batch.sample_ids)
                self.assertEqual(np.asarray(batch["x"]).view("u2").tolist(), bits[rows].tolist())

    def test_several_files_as_fields(self):
        arrays = {"a": values("<f4", (3,)), "b": values("<i8", ()), "c": values("u1", (2, 2)), "d": values("<f8", ()),
                  "e": values("<i2", (9,)), "f": values("?", ())}
        path = self.folder_of(a_npy=npy(arrays["a"]), f_npy=npy(arrays["f"]), two_npz=npz(b=arrays["b"], e=arrays["e"]),
                              t_safetensors=safetensors({"d": arrays["d"], "c": arrays["c"]}))
        self.check(path, arrays, "arrays")
        info = json.loads(self.command("info", path, "--json"))
        self.assertEqual(([field["name"] for field in info["fields"]], info["has_checksums"]), (list("abcdef"), False))
        self.assertIn(b"files     4\n", self.command("info", path))
        self.assertEqual(self.command("get", path, "17", "e"), arrays["e"][17].tobytes())
        os.unlink(os.path.join(path, "a.npy"))
        os.unlink(os.path.join(path, "f.npy"))
        os.unlink(os.path.join(path, "t.safetensors"))
        self.check(path, {name: arrays[name] for name in "be"}, "npz")

    def test_threads_readers_orders_and_batch_sizes_do_not_change_a_byte(self):
        arrays = {"x": values("<f4", (33,)), "y": values("<i8", ()), "z": values("u1", (5000,))}
        for path in (self.file(npz(**arrays)), self.file(safetensors(arrays), "x.safetensors")):
            wanted = {}
            for order in ("full", "sequential", "windowed"):
                for threads, size, reader in ((1, 64, "threads"), (3, 301, "io_uring"), (3, 7, "threads")):
                    ids = self.check_epochs(path, arrays, (0, 1), order=order, n_threads=threads,
                                            reading=penstock.Reading(reader=reader),
                                            batch_size=size, seed=5)
                    self.assertEqual(sorted(ids[0]), list(range(N)))
                    self.assertEqual(wanted.setdefault(str(order), ids), ids)
            try:
                self.check_epochs(path, arrays, reading=penstock.Reading(io="direct"))
            except penstock.UnsupportedError as error:
                self.assertIn("O_DIRECT", str(error))

    def test_rows_past_the_io_memory_take_the_slow_path(self):
        arrays = {"x": values("u1", (300000,), 9), "y": values("<i8", (), 9), "z": values("u1", (200000,), 9)}
        for path in (self.file(npz(**arrays)), self.file(safetensors(arrays), "x.safetensors")):
            self.check_epochs(path, arrays, memory=penstock.Memory(io_memory=1 << 19), batch_size=2)

    def test_some_fields_of_a_file_alone(self):
        arrays = {name: values("<i4", (k + 1,), seed=k) for k, name in enumerate("abcdef")}
        for path in (self.file(npz(**arrays)), self.file(safetensors(arrays), "x.safetensors")):
            for names in ("a", "f", "bd", "ace"):
                outputs = {name: penstock.tensor(name) for name in names}
                with penstock.Loader(path, batch_size=16, framework="numpy", outputs=outputs) as loader:
                    for batch in loader.epoch(0):
                        for name in names:
                            self.assertTrue(same_bytes(batch[name], arrays[name][np.asarray(batch.sample_ids)]), name)

    def test_a_mixture_of_containers(self):
        parts = [{"x": values("<f4", (3,), n, seed), "y": values("<i8", (), n, seed)} for seed, n in enumerate((50, 70, 90))]
        paths = [self.file(npz(**parts[0])), self.file(safetensors(parts[1]), "x.safetensors"), self.save(parts[2])]
        with penstock.Loader(penstock.Mixture(dict(zip(paths, (1, 1, 1)))), batch_size=8, framework="numpy",
                             device="cpu") as loader:
            seen = set()
            for _, batch in zip(range(60), loader):
                for i, (part, row) in enumerate(zip(np.asarray(batch.data_sets), np.asarray(batch.sample_ids))):
                    for field in "xy":
                        self.assertTrue(same_bytes(batch[field][i], parts[part][field][row]))
                    seen.add(int(part))
            self.assertEqual(seen, {0, 1, 2})

    def test_resume_goes_on_where_it_was(self):
        path = self.file(npz(x=values("<f8", (2,)), y=values("<i8", ())))
        with penstock.Loader(path, batch_size=16, framework="numpy", seed=3) as first:
            stream = iter(first)
            for _ in range(7):
                next(stream)
            state = first.state_dict()
            wanted = [np.asarray(next(stream).sample_ids).tolist() for _ in range(5)]
        with penstock.Loader(path, batch_size=16, framework="numpy", seed=3) as second:
            second.load_state_dict(state)
            stream = iter(second)
            self.assertEqual([np.asarray(next(stream).sample_ids).tolist() for _ in range(5)], wanted)


class Archives(Files):
    """Archives that ZIP allows, and that numpy.savez may write."""

    def setUp(self):
        super().setUp()
        self.arrays = {"x": values("<f4", (3,), 20), "y": values("<i8", (), 20)}
        self.members = [(name + ".npy", npy(array)) for name, array in self.arrays.items()]

    def test_zip64_everywhere(self):
        with unittest.mock.patch("zipfile.ZIP64_LIMIT", 0), unittest.mock.patch("zipfile.ZIP_FILECOUNT_LIMIT", 0):
            data = npz(**self.arrays)
        self.assertIn(b"PK\6\6", data)
        self.check(self.file(data), self.arrays, "npz")
        end = data.rindex(b"PK\5\6")
        for at, size, words in ((end + 8, 2, "two end records differ"), (end + 16, 4, "two end records differ"),
                                (end - 20 + 8, 8, "not where the locator says"), (end - 76 + 4, 8, "not where"),
                                (end - 76 + 24, 8, "end records differ|several parts")):
            with self.subTest(at=at - end):
                bad = bytearray(data)
                bad[at:at + size] = b"\3" + bytes(size - 1)
                with self.assertRaisesRegex(penstock.PenstockError, words):
                    penstock.Dataset(self.file(bytes(bad)))

    def test_members_past_4_gib(self):
        """A file with a hole, whose second member begins past 4 GiB, and is as large: zip64 in earnest."""
        array = values("<i2", (), 16)
        path, large = self.path("x.npz"), 2**32 + 64
        with open(path, "wb") as file:
            heads = [head("{'descr': '|u1', 'fortran_order': False, 'shape': (16, %d)}" % (large // 16)), npy(array)]
            sizes = [len(heads[0]) + large, len(heads[1])]
            entries = b""
            for name, text, size in zip((b"big.npy", b"small.npy"), heads, sizes):
                at = file.tell()
                local = struct.pack("<4s5H3L2H", b"PK\3\4", 45, 0, 0, 0, 0, 0, 2**32 - 1, 2**32 - 1, len(name), 20)
                file.write(local + name + struct.pack("<2H2Q", 1, 16, size, size) + text)
                file.seek(size - len(text), 1)
                entries += struct.pack("<4s6H3L5H2L", b"PK\1\2", 45, 45, 0, 0, 0, 0, 0, 2**32 - 1, 2**32 - 1, len(name), 28,
                                       0, 0, 0, 0, 2**32 - 1) + name + struct.pack("<2H3Q", 1, 24, size, size, at)
            start = file.tell()
            file.write(entries + struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 2, 2, len(entries), start))
            file.write(struct.pack("<4sLQL", b"PK\6\7", 0, start + len(entries), 1))
            file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2, 2, len(entries), 2**32 - 1, 0))
        outputs = {"small": penstock.scalar("small")}
        for i in (0, 15):
            self.assertEqual(self.command("get", path, str(i), "small"), array[i].tobytes())
        with penstock.Loader(path, batch_size=4, framework="numpy", outputs=outputs,
                             memory=penstock.Memory(max_record_size=2**30)) as loader:
            for batch in loader.epoch(0):
                self.assertEqual(batch["small"].tolist(), array[np.asarray(batch.sample_ids)].tolist())

    def test_an_archive_that_was_written_to_a_pipe(self):
        class Pipe(io.RawIOBase):
            data = b""

            def writable(self):
                return True

            def write(self, data):
                self.data += bytes(data)
                return len(data)

        pipe = Pipe()
        np.savez(pipe, **self.arrays)
        self.check(self.file(pipe.data), self.arrays, "npz")
        with unittest.mock.patch("zipfile.ZIP64_LIMIT", 0):
            pipe = Pipe()
            np.savez(pipe, **self.arrays)
        self.check(self.file(pipe.data), self.arrays, "npz")

    def test_comments_other_members_and_extra_fields(self):
        for comment in (b"a comment", b"PK\5\6" + bytes(30), b"c" * 65535):
            self.check(self.file(zipped(self.members, comment=comment)), self.arrays, "npz")
        self.check(self.file(zipped([("README", b"text"), ("folder/", b""), *self.members])), self.arrays, "npz")
        info = zipfile.ZipInfo("x.npy")
        info.extra = struct.pack("<2H4s", 0x5455, 4, b"time")
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as file:
            file.writestr(info, self.members[0][1])
        self.check(self.file(out.getvalue()), {"x": self.arrays["x"]}, "npz")

    def test_archives_not_readable_in_place_are_refused_with_advice(self):
        out = io.BytesIO()
        np.savez_compressed(out, **self.arrays)
        encrypted = bytearray(npz(**self.arrays))
        for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
            encrypted[encrypted.index(mark) + at] |= 1
        x = self.members[0][1]
        for data, words in (
                (out.getvalue(), ["member x.npy is compressed", "numpy.savez", "penstock.pack(FILE, DIRECTORY)"]),
                (zipped(self.members, zipfile.ZIP_BZIP2), ["is compressed"]),
                (bytes(encrypted), ["is encrypted"]),
                (b"prefix" + npz(**self.arrays), ["6 bytes before its archive", "write it again"]),
                (npz(**self.arrays) + b"more", ["not an archive (.npz), or one that is cut short"]),
                (zipped([("a/x.npy", x)]), ["member a/x.npy", "not the name of a field", "NAME=array"]),
                (zipped([("../x.npy", x)]), ["member ../x.npy", "not the name of a field"]),
                (zipped([("/x.npy", x)]), ["not the name of a field"]), (zipped([(".npy", x)]), ["not the name of a field"]),
                (zipped([("ä.npy", x)]), ["member ??.npy", "not the name of a field"]),
                (zipped([("x" * 64 + ".npy", x)]), ["not the name of a field", "1 to 63"]),
                (zipped([("x.npy", x), ("x.npy", x)]), ["two arrays of the name x"]),
                (zipped([("README", x)]), ["contains no arrays"]), (zipped([]), ["contains no arrays"]),
                (zipped([("x.npy", b"\x80\x04\x95" + bytes(40))]), ["array x", "a pickle"]),
                (npz(o=np.array([{}, 1], object)), ["array o", "Python objects", "penstock.Writer"]),
                (npz(o=np.zeros((4, 5), order="F")), ["array o", "Fortran", "numpy.ascontiguousarray"]),
                (npz(o=np.zeros(4, ">f4")), ["array o", "big-endian"]), (npz(o=np.zeros(())), ["array o", "no dimensions"]),
                (npz(o=np.zeros((0, 3))), ["0 rows"]), (npz(o=np.zeros((3, 0))), ["dimension 1 is 0"]),
                (npz(a=np.zeros(3), b=np.zeros(4)), ["a of x.npz has 3 rows, b of x.npz has 4"]),
                (npz(**{f"f{i}": np.zeros(1) for i in range(65)}), ["more than 64 arrays"]),
                (zipped([("x.npy", x + b"more")]), ["array x has 4 bytes after its array"]),
                (zipped([("x.npy", x[:-1])]), ["array x is cut short"]), (zipped([("x.npy", b"")]), ["array x", "cut short"]),
                (zipped([("r" * 65000, b"")] * 17), ["directory of the archive has 11", "at most 1 MiB"]),
                (b"", ["not an archive"]), (b"PK\5\6", ["not an archive"]), (x, ["not an archive"])):
            with self.subTest(words=words):
                self.refuse(self.file(data), "x.npz", *words)

    def test_lies_of_headers_are_found(self):
        data = npz(**self.arrays)
        first, entry, second = data.index(b"PK\3\4"), data.index(b"PK\1\2"), data.rindex(b"PK\1\2")
        end = data.index(b"PK\5\6")
        offset = struct.unpack("<L", data[second + 42:second + 46])[0]
        for at, new, words in (
                (entry + 20, b"\xff\xff\0\0", "two sizes differ"), (entry + 24, b"\xff\xff\0\0", "two sizes differ"),
                (entry + 20, b"\xff\xff\0\0\xff\xff\0\0", "reaches past the members"),
                (entry + 20, b"\xff" * 8, "extra field is not right"), (entry + 42, b"\xff" * 4, "extra field is not right"),
                (entry + 42, b"\xff\xff\xff\x7f", "reaches past the members"), (entry + 34, b"\1\0", "another disk"),
                (entry + 42, b"\1\0\0\0", "not where the directory says"), (entry + 46, b"q", "header has another name"),
                (entry + 16, b"\1\2\3\4", "another checksum"), (first + 14, b"\1\2\3\4", "another checksum"),
                (first + 8, b"\x08\0", "differ in how it is stored"), (first + 6, b"\x08\0", "differ in how it is stored"),
                (first + 18, b"\0" * 8, "another size"), (first + 28, b"\xff\xff", "cut short|extra field"),
                (first + 30, b"q", "header has another name"), (first + 35, b"\1\0\xff\0", "extra field of its header"),
                (second + 42, struct.pack("<L", 0), "another name"), (end + 10, b"\3\0", "several parts"),
                (end + 8, b"\3\0\3\0", "no room for so many"), (end + 8, b"\1\0\1\0", "goes on after the last"),
                (end + 4, b"\1\0", "several parts"), (end + 12, b"\xff\xff\0\0", "reaches past its end record"),
                (end + 8, b"\xff\xff\xff\xff", "no room for so many"), (end + 12, b"\1\0\0\0", "bytes before its archive"),
                (end + 20, b"\1\0", "not an archive"), (entry + 28, b"\xff\xff", "ends within a member")):
            with self.subTest(at=at, new=new):
                bad = bytearray(data)
                bad[at:at + len(new)] = new
                self.assertNotEqual(bytes(bad), data)
                with self.assertRaisesRegex(penstock.PenstockError, words):
                    penstock.Dataset(self.file(bytes(bad)))
        self.assertGreater(offset, 0)

    def test_members_that_overlap(self):
        """The second member lies within the rows of the first, which has a size of both."""
        inner = zipped([("y.npy", npy(np.zeros(3, "u1")))])
        local = inner[:inner.index(b"PK\1\2")]
        outer = zipped([("x.npy", npy(np.frombuffer(local, "u1")))])
        at = outer.index(local)
        start, entry = outer.index(b"PK\1\2"), inner[inner.index(b"PK\1\2"):inner.index(b"PK\5\6")]
        entries = outer[start:outer.index(b"PK\5\6")] + entry[:42] + struct.pack("<L", at) + entry[46:]
        data = outer[:start] + entries + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2, 2, len(entries), start, 0)
        self.assertEqual(np.load(io.BytesIO(outer))["x"].tobytes(), local)
        self.refuse(self.file(data), "x.npz", "member y.npy", "overlaps another")

    def test_a_file_cut_at_any_byte_is_refused(self):
        data = npz(**self.arrays)
        for size in range(len(data)):
            with self.assertRaises(penstock.PenstockError, msg=size):
                penstock.Dataset(self.file(data[:size]))

    def test_any_byte_changed_is_refused_or_found_or_changes_nothing(self):
        data = npz(x=values("<u2", (), 5), y=values("u1", (2,), 5))
        path = self.file(data)
        with penstock.Dataset(path) as right:
            wanted = [{name: np.asarray(value).tolist() for name, value in right[i].items()} for i in range(5)]
        n_refused = n_found = 0
        for at in range(len(data)):
            for change in (1, 0x80, 0xff):
                bad = bytearray(data)
                bad[at] ^= change
                self.file(bytes(bad))
                try:
                    with penstock.Dataset(path) as damaged:
                        rows = [{name: np.asarray(value).tolist() for name, value in damaged[i].items()}
                                for i in range(len(damaged))]
                except penstock.PenstockError:
                    n_refused += 1
                    continue
                n_bad = self.verify(path)
                n_found += n_bad > 0
                if not n_bad and len(rows) == 5 and list(rows[0]) == ["x", "y"]:
                    self.assertEqual(rows, wanted, (at, change))
        self.assertGreater(n_refused, 3 * 300)
        self.assertGreater(n_found, 3 * 20)

    def test_verify_checks_the_checksum_of_each_array(self):
        arrays = {"x": values("<f4", (3,), 1000), "y": values("<i8", (), 1000), "z": values("u1", (3000,), 1000)}
        data = bytearray(npz(**arrays))
        path = self.file(bytes(data))
        self.assertIn(b"no damage found", self.command("verify", path))
        self.assertIn(b"npz, whose checksums only `penstock verify` checks", self.command("info", path))
        for name in "xz":
            data[data.index(arrays[name].tobytes()) + 500] ^= 4
        self.file(bytes(data))
        report = json.loads(self.command("verify", path, "--json", status=1, out=True))
        self.assertEqual((report["n_bad"], report["has_checksums"]), (2, True))
        for bad, name in zip(report["bad"], "xz"):
            self.assertRegex(bad["reason"], f"field {name} .bytes [0-9]+ to [0-9]+.: the CRC-32 is")
            self.assertEqual((os.path.basename(bad["shard"]), bad["record"]), ("x.npz", None))
        folder = self.folder_of(x_npz=bytes(data), w_npy=npy(arrays["y"]))
        self.assertEqual(self.verify(folder), 2)
        self.assertIn(b"in which only .npz files have checksums", self.command("info", folder))
        os.unlink(os.path.join(folder, "x.npz"))
        self.file(npz(**arrays), "data/x.npz")
        self.assertIn(b"only .npz files have checksums", self.command("verify", folder))


class Tensors(Files):
    def test_tensors_not_readable_in_place_are_refused_with_advice(self):
        def one(shape="[3]", dtype='"U8"', offsets="[0, 3]", name="x", more=""):
            return '{"%s": {"dtype": %s, "shape": %s, "data_offsets": %s%s}}' % (name, dtype, shape, offsets, more)

        pair = '{"x": {"dtype": "U8", "shape": [3], "data_offsets": %s}, "y": {"dtype": "U8", "shape": [3], "data_offsets": %s}}'
        many = {f"t{i}": np.zeros(1) for i in range(65)}
        for data, words in (
                (framed(one(dtype='"F8_E4M3"'), bytes(3)), ["tensor x", "dtype is F8_E4M3", "must be BOOL, BF16", "tensor.to"]),
                (framed(one(dtype='"C64"'), bytes(3)), ["dtype is C64"]), (framed(one(dtype="7"), bytes(3)), ["dtype is not a text"]),
                (framed(one(shape="[]", offsets="[0, 1]"), bytes(1)), ["tensor x", "no dimensions"]),
                (framed(one(shape="[0]", offsets="[0, 0]")), ["0 rows"]),
                (framed(one(shape="[3, 0]", offsets="[0, 0]")), ["dimension 1 is 0"]),
                (framed(one(shape="[" + "1," * 9 + "3]"), bytes(3)), ["more than 9 dimensions", "reshape"]),
                (framed(one(shape="[" + "1," * 99 + "3]"), bytes(3)), ["more than 9 dimensions"]),
                (framed(one(shape="[4294967296, 4294967296, 4294967296]"), bytes(3)), ["2^32-1 bytes", "split"]),
                (framed(one(shape="[-3]"), bytes(3)), ["not a whole number"]), (framed(one(shape="[3.0]"), bytes(3)), ["not a whole"]),
                (framed(one(shape="[9223372036854775808]"), bytes(3)), ["damaged"]), (framed(one(shape="3"), bytes(3)), ["not a list"]),
                (framed(one(shape="[true]"), bytes(3)), ["not a whole"]),
                (framed(one(offsets="[0, 4]"), bytes(3)), ["reach past the end of the file"]),
                (framed(one(offsets="[3, 0]"), bytes(3)), ["reach past"]), (framed(one(offsets="[0]"), bytes(3)), ["not two numbers"]),
                (framed(one(offsets="[0, 3, 3]"), bytes(3)), ["not two numbers"]),
                (framed(one(offsets="[0, 2]"), bytes(2)), ["not as many as its shape needs"]),
                (framed(one(offsets="[1, 4]"), bytes(4)), ["1 bytes that belong to no tensor"]),
                (framed(one(), bytes(5)), ["2 bytes that belong to no tensor", "write it again"]),
                (framed(pair % ("[0, 3]", "[2, 5]"), bytes(5)), ["tensor y", "overlap those of another tensor"]),
                (framed(pair % ("[0, 3]", "[0, 3]"), bytes(3)), ["overlap those of another tensor"]),
                (framed(pair % ("[0, 3]", "[4, 7]"), bytes(7)), ["1 bytes that belong to no tensor"]),
                (framed(one(more=', "dtype": "U8"'), bytes(3)), ["each once"]), (framed(one(more=', "q": 1'), bytes(3)), ["each once"]),
                (framed('{"x": {"dtype": "U8", "shape": [3]}}', bytes(3)), ["must have dtype, shape and data_offsets"]),
                (framed('{"x": [1, 2, 3]}', bytes(3)), ["must have dtype"]), (framed('{"x": 7}', bytes(3)), ["must have dtype"]),
                (framed((pair % ("[0, 3]", "[3, 6]")).replace('"y"', '"x"'), bytes(6)), ["tensor x: it appears twice"]),
                (framed((pair % ("[0, 3]", "[3, 6]")).replace('"y"', '"\\u0078"'), bytes(6)), ["tensor x: it appears twice"]),
                (framed(one(name="layer/weight"), bytes(3)), ["tensor 'layer/weight'", "not the name of a field", "another name"]),
                (framed(one(name=""), bytes(3)), ["not the name of a field"]), (framed(one(name="ä"), bytes(3)), ["not the name"]),
                (framed(one(name="x" * 64), bytes(3)), ["1 to 63"]), (framed(one(name="\\u0000"), bytes(3)), ["a key is not a text"]),
                (framed(one(name="\xff").encode("latin1"), bytes(3)), ["a key is not a text"]),
                (framed('{"__metadata__": {}, "__metadata__": {}}'), ["__metadata__"]), (framed('{"__metadata__": 1}'), ["__metadata__"]),
                (framed("{}"), ["contains no arrays"]), (framed('{"__metadata__": {}}'), ["contains no arrays"]),
                (framed(" {}"), ["does not begin with '{'"]), (framed("[]"), ["does not begin with '{'"]),
                (framed(b"\x80\x04\x95" + bytes(40)), ["does not begin with '{'"]), (framed(""), ["does not begin with '{'"]),
                (framed("{} {}"), ["other bytes follow its object"]), (framed("{}\0"), ["other bytes follow its object"]),
                (framed("{"), ["not JSON"]), (framed('{"x"'), ["not JSON"]), (framed('{"x": ' + "[" * 100000), ["not JSON"]),
                (framed('{"x": ' + "[" * 10 + "]" * 10 + "}"), ["must have dtype"]),
                (framed('{"x": ' + "[" * 100000 + "]" * 100000 + "}"), ["more than 9 dimensions, or other keys"]),
                (struct.pack("<Q", 100000001) + bytes(50), ["its head has 100000001 bytes", "at most 100000000"]),
                (struct.pack("<Q", 2**64 - 1) + b"{}", ["its head has 18446744073709551615 bytes"]),
                (struct.pack("<Q", 3) + b"{}", ["cut short"]), (b"\0" * 7, ["cut short"]), (b"", ["cut short"]),
                (safetensors(many), ["more than 64 tensors"]),
                (safetensors({"a": np.zeros(3), "b": np.zeros(4)}), ["a of x.safetensors has 3 rows, b of x.safetensors has 4"])):
            with self.subTest(words=words, data=data[:80]):
                self.refuse(self.file(data, "x.safetensors"), "x.safetensors", *words)

    def test_any_layout_that_the_safetensors_format_allows_is_read(self):
        x, y = values("<i4", (2,), 3), values("u1", (), 3)
        body = y.tobytes() + x.tobytes()  # any order, any alignment, any metadata, spaces after the head
        text = ('{"__metadata__": {"a": "\\"}{", "b": ""}, "x": {"shape": [3, 2], "data_offsets": [3, 27], "dtype": "I32"},\n'
                '\t"y" : {"data_offsets":[0,3],"dtype":"U8","shape":[3]} }  \n ')
        self.check(self.file(framed(text, body), "x.safetensors"), {"x": x, "y": y}, "safetensors", batch_size=2)

    def test_a_file_cut_at_any_byte_is_refused(self):
        data = safetensors({"x": values("<f4", (3,), 20), "y": values("<i8", (), 20)})
        for size in range(len(data)):
            with self.assertRaises(penstock.PenstockError, msg=size):
                penstock.Dataset(self.file(data[:size], "x.safetensors"))

    def test_any_byte_changed_is_refused_or_read_within_the_file(self):
        data = safetensors({"x": values("<u2", (), 5), "y": values("u1", (2,), 5)})
        n_refused = 0
        for at in range(len(data)):
            for change in (1, 0x80, 0xff):
                bad = bytearray(data)
                bad[at] ^= change
                path = self.file(bytes(bad), "x.safetensors")
                try:
                    with penstock.Dataset(path) as damaged:
                        for i in range(len(damaged)):
                            damaged[i]
                except penstock.PenstockError:
                    n_refused += 1
        self.assertGreater(n_refused, 300)

    def test_files_of_the_package_safetensors(self):
        save = optional("safetensors.numpy").save_file
        arrays = {f"a{i}-{d}": values(dtype, shape, seed=i * 100 + d) for i, dtype in enumerate(NAMES)
                  for d, shape in enumerate(SHAPES) if d < 5}
        save(arrays, self.path("x.safetensors"), metadata={"made": "by the test"})
        self.check(self.path("x.safetensors"), arrays, "safetensors")
        own, kind = values("<u2", (7,)), optional("ml_dtypes").bfloat16
        save({"x": own.view(kind)}, self.path("b.safetensors"))
        with penstock.Loader(self.path("b.safetensors"), batch_size=16, framework="numpy") as loader:
            for batch in loader.epoch(0):
                self.assertEqual(batch["x"].dtype, kind)
                self.assertEqual(np.asarray(batch["x"]).view("u2").tolist(), own[np.asarray(batch.sample_ids)].tolist())
        load = optional("safetensors.numpy").load
        self.assertTrue(same_bytes(load(safetensors({"x": own}))["x"], own))  # the test's own lines are right


class Directories(Files):
    def test_a_field_that_comes_twice_names_both_files(self):
        x = np.zeros(3)
        self.refuse(self.folder_of("a", x_npy=npy(x), b_npz=npz(x=x)), "the field x is in b.npz and in x.npy")
        self.refuse(self.folder_of("b", x_npy=npy(x), b_safetensors=safetensors({"x": x})),
                    "the field x is in b.safetensors and in x.npy")
        self.refuse(self.folder_of("c", x_npz=npz(y=x), b_npz=npz(y=x)), "the field y is in b.npz and in x.npz")

    def test_rows_that_differ_name_both_arrays(self):
        self.refuse(self.folder_of(x_npy=npy(np.zeros(3)), b_npz=npz(a=np.zeros(4))),
                    "a of b.npz has 4 rows, x.npy has 3; all arrays must have the same number of rows")

    def test_more_than_64_arrays(self):
        many = {f"f{i}": np.zeros(1) for i in range(40)}
        self.refuse(self.folder_of(a_npz=npz(**many), b_safetensors=safetensors({"g" + name: many[name] for name in many})),
                    "b.safetensors", "more than 64 arrays")

    def test_64_arrays_in_two_files(self):
        arrays = {f"f{i}": values("u1", (i + 1,), seed=i) for i in range(64)}
        halves = [{name: arrays[name] for name in list(arrays)[part::2]} for part in (0, 1)]
        self.check(self.folder_of(a_npz=npz(**halves[0]), b_safetensors=safetensors(halves[1])), arrays, "arrays")


class Changed(Files):
    def test_a_file_that_changed_is_named(self):
        arrays = {"x": values("<f4", (1000,)), "y": values("<i8", ())}
        for name, write in (("x.npz", lambda a: npz(**a)), ("x.safetensors", safetensors)):
            path = self.file(write(arrays), name)
            with penstock.Dataset(path) as data:
                opened = os.stat(path).st_mtime_ns
                while os.stat(path).st_mtime_ns == opened:
                    time.sleep(0.01)
                    self.file(write(arrays), name)
                error = self.assert_says([name + " was changed or replaced", "its time of change differs"], lambda: data[5])
                self.assertIsInstance(error, penstock.CorruptRecordError)
            with penstock.Dataset(path) as data:
                self.assertEqual(data[1]["y"], arrays["y"][1])
                os.truncate(path, 1500)
                error = self.assert_says([path, "record 200", "the file ends at byte"], lambda: data[200])
                self.assertIsInstance(error, penstock.CorruptRecordError)
            self.file(write(arrays), name)
            with penstock.Dataset(path) as data:
                os.unlink(path)
                error = self.assert_says([path + " was removed or renamed while"], lambda: data[5])
                self.assertIsInstance(error, penstock.DataSetNotFoundError)
