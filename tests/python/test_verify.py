# SPDX-License-Identifier: Apache-2.0
"""`penstock verify` of other libraries' data: every damaged file is listed, and what lies before the damage is checked;
checksums that were kept show later damage. The damage is done here, byte by byte: it is the oracle."""
import ctypes
import hashlib
import io
import itertools
import json
import os
import shutil
import subprocess
import unittest

import penstock
from data_fixture import Case, image_file, np
from test_mds import entry, shard
from test_megatron import idx
from test_tar import member, packed
from tfrecords import example, frame


SIZE = 512 + 1024 + 512 + 512  # bytes of a sample in an archive
# Hashes of a shard, by Python's hashlib and its package xxhash.
XXH32 = "c58ce22c"
XXH64 = "e685e6cf81d67f4f"
XXH3_64 = "bd0e1732a3231da4"
XXH128 = "03400d51d6d0dcf3bd0e1732a3231da4"
SHA1 = "688e8b6c716bfc62e85cabdc78547dad0f060971"


class Verify(Case):
    def put(self, files, name="data"):
        """Write {file name: bytes}; returns the folder."""
        folder = self.path(name)
        for file, data in files.items():
            os.makedirs(os.path.dirname(os.path.join(folder, file)), exist_ok=True)
            with open(os.path.join(folder, file), "wb") as out:
                out.write(data)
        return folder

    def verify(self, path, *options, status=None):
        """Return the report of --json."""
        env = dict(os.environ, PENSTOCK_CACHE=self.path("cache"))
        done = subprocess.run([os.environ["PENSTOCK_COMMAND"], "verify", path, "--json", *options], env=env,
                              capture_output=True, text=True, timeout=100)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(done.returncode, int(found["n_bad"] > 0))
        self.assertEqual(len(found["bad"]), found["n_bad"])
        if status is not None:
            self.assertEqual(done.returncode, status, found)
        return found

    def bad(self, path, *options):
        """Return (shard, record, offset) of each damaged place."""
        return [(bad["shard"], bad["record"], bad["offset"]) for bad in self.verify(path, *options, status=1)["bad"]]

    def change(self, path, at, xor=1):
        """Flip bits of a byte; size and times stay."""
        times = os.stat(path)
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ xor]))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def archive(self, numbers):
        return packed([m for n in numbers for m in (member(f"{n:04d}.bin", bytes([n % 251 + 1]) * 1000),
                                                    member(f"{n:04d}.cls", str(n).encode()))])

    def data_sets(self):
        """Return {format: (folder, {file: a byte of the values of its sample 3})}, three files of ten samples each."""
        columns = [("x", "bytes", None)]
        mds = [shard(columns, [[bytes([n + 1]) * 500] for n in range(10)]) for _ in range(3)]
        lists = [entry(columns, f"shard.{k:05d}.mds", data, 10) for k, data in enumerate(mds)]
        tokens = np.arange(1, 1001, dtype="<u2")
        arrays = {f"{k}.npy": np.arange(7, 2007, dtype="<i4").reshape(10, 200) for k in range(3)}
        made = {
            "tar": {f"{k}.tar": self.archive(range(10)) for k in range(3)},
            "mds": {**{f"shard.{k:05d}.mds": data for k, data in enumerate(mds)},
                    "index.json": json.dumps({"version": 2, "shards": lists}).encode()},
            "megatron": {name: data for k in range(3) for name, data in (
                (f"{k}.bin", tokens.tobytes()), (f"{k}.idx", idx("uint16", [100] * 10, range(11))))},
            "folder": {f"c{k}/{n}.jpg": image_file(10 * k + n) for k in range(3) for n in range(10)},
            "npy": {},
        }
        folders = {name: self.put(files, name) for name, files in made.items()}
        os.makedirs(self.path("npy"), exist_ok=True)
        for name, values in arrays.items():
            np.save(os.path.join(self.path("npy"), name), values)
        places = {"tar": ("1.tar", 3 * SIZE + 512 + 100), "mds": ("shard.00001.mds", len(mds[1]) - 6 * 504 - 300),
                  "megatron": ("1.bin", 3 * 200 + 51), "folder": ("c1/3.jpg", len(made["folder"]["c1/3.jpg"]) - 60),
                  "npy": ("1.npy", 128 + 3 * 800 + 50)}
        return {name: (path or self.path(name), *places[name]) for name, path in folders.items()}

    def test_checksums_show_later_damage_of_each_format(self):
        for form, (folder, name, at) in self.data_sets().items():
            with self.subTest(form):
                n = 10 if form == "npy" else 30
                first = self.verify(folder, status=0)
                self.assertEqual((first["checksums"], first["n_samples"], first["note"]), ("without", n, None))
                path = os.path.join(folder, name)
                self.change(path, at)
                self.assertEqual(self.verify(folder, status=0)["n_bad"], 0)  # nothing shows it
                self.change(path, at)
                kept = self.verify(folder, "--checksums", status=0)
                self.assertEqual((kept["checksums"], kept["n_samples"], kept["note"]), ("kept", n, None))
                self.assertEqual(self.verify(folder, status=0)["checksums"], "compared")
                info = subprocess.run([os.environ["PENSTOCK_COMMAND"], "info", folder, "--json"], capture_output=True,
                                      env=dict(os.environ, PENSTOCK_CACHE=self.path("cache")), check=True)
                self.assertTrue(json.loads(info.stdout)["has_kept_checksums"])
                self.change(path, at)
                for options in ((), ("--checksums",), ("--threads", "1")):  # none replaces what was kept
                    found = self.verify(folder, *options, status=1)
                    self.assertEqual((found["n_bad"], found["checksums"]), (1, "compared"))
                    bad = found["bad"][0]
                    self.assertIn("the checksum that was kept", bad["reason"])
                    self.assertEqual(bad["record"], 3)
                    if form != "npy":
                        self.assertEqual(bad["shard"], name)
                    if form not in ("npy", "folder"):
                        self.assertLessEqual(bad["offset"], at)
                        self.assertLess(at, bad["offset"] + bad["length"])
                self.change(path, at)
                self.assertEqual(self.verify(folder, status=0)["checksums"], "compared")

    def test_checksums_of_another_state_are_not_used_and_that_is_said(self):
        for form, (folder, name, at) in self.data_sets().items():
            with self.subTest(form):
                self.verify(folder, "--checksums", status=0)
                path = os.path.join(folder, name)
                os.utime(path, ns=(1, 10**18))
                if form == "folder":  # its index is of the folder's time
                    os.utime(os.path.dirname(path), ns=(1, 10**18))
                found = self.verify(folder, status=0)
                self.assertEqual(found["checksums"], "without")
                self.assertIn("are not used: since they were made, ", found["note"])
                self.assertEqual(self.verify(folder, "--checksums", status=0)["checksums"], "kept")
                self.assertEqual(self.verify(folder, status=0)["note"], None)

    def test_checksums_of_files_that_were_added_are_not_used(self):
        folder = self.put({f"{k}.tar": self.archive(range(10)) for k in range(2)})
        self.verify(folder, "--checksums", status=0)
        self.put({"2.tar": self.archive(range(10))})
        self.assertIn("added, removed or renamed", self.verify(folder, status=0)["note"])
        # The checksums of a pattern belong to another data set.
        self.assertEqual(self.verify(folder + "/{0,1}.tar", status=0)["note"], None)

    def test_a_folder_that_moved_has_its_checksums(self):
        folder = self.put({f"{k}.tar": self.archive(range(10)) for k in range(2)})
        self.verify(folder, "--checksums", status=0)
        os.rename(folder, self.path("moved"))
        self.assertEqual(self.verify(self.path("moved"), status=0)["checksums"], "compared")

    def test_damaged_checksums_are_reported(self):
        folder = self.put({"0.tar": self.archive(range(10))})
        self.verify(folder, "--checksums", status=0)
        place, = [name for name in os.listdir(folder + "/.penstock") if name.endswith(".checksums")]
        path = os.path.join(folder, ".penstock", place)
        self.change(path, 4096 + 40)  # a page
        found = self.verify(folder, status=1)
        self.assertEqual((found["n_bad"], found["bad"][0]["shard"], found["bad"][0]["offset"]), (1, path[:127], 4096))
        self.assertIn("not compared", found["bad"][0]["reason"])
        self.change(path, 100)  # the header
        found = self.verify(folder, status=0)
        self.assertEqual(found["checksums"], "without")
        self.assertIn("damaged", found["note"])
        self.assertEqual(self.verify(folder, "--checksums", status=0)["checksums"], "kept")
        self.assertEqual(self.verify(folder, status=0)["checksums"], "compared")

    def test_no_checksums_are_kept_of_damaged_data_or_of_data_that_has_its_own(self):
        folder = self.put({"0.tar": packed([member("a.cls", b"1"), member("b.cls", b"x")])}, "a")
        found = self.verify(folder, "--checksums", status=1)
        self.assertEqual((found["checksums"], found["n_bad"]), ("without", 1))
        self.assertIn("no new checksums were kept, because", found["note"])
        folder = self.put({"0.tfrecord": frame(example({"i": [1]}))}, "b")
        self.assertEqual(self.verify(folder, "--checksums", status=0)["checksums"], "own")
        self.assertEqual([name for name in os.listdir(folder + "/.penstock") if ".checksums" in name], [])

    def test_every_damaged_archive_is_listed(self):
        data = self.archive(range(10))
        flipped = bytearray(data)
        flipped[4 * SIZE + 3] ^= 4  # in the header of sample 4
        twice = packed([member("a.cls", b"1"), member("a.bin", b"x"), member("b.cls", b"1"), member("b.bin", b"x"),
                        member("b.bin", b"x")])
        folder = self.put({"0.tar": data, "1.tar": bytes(flipped), "2.tar": data, "3.tar": data[:7 * SIZE + 700],
                           "4.tar": twice, "5.tar": data + b"more", "6.tar": b"", "7.tar": data})
        found = self.verify(folder, status=1)
        self.assertEqual([(bad["shard"], bad["offset"]) for bad in found["bad"]],
                         [("1.tar", 4 * SIZE), ("3.tar", 7 * SIZE), ("4.tar", 2048 + 2048), ("5.tar", len(data)),
                          ("6.tar", 0)])
        for bad, word in zip(found["bad"], ("checksum", "cut short", "twice", "follow the end", "cut short")):
            self.assertIn(word, bad["reason"])
        self.assertEqual((found["n_files"], found["n_samples"]), (8, 10 + 4 + 10 + 7 + 2 + 10 + 0 + 10))
        self.assertIn("checked each damaged file only up to", found["note"])
        # Damage of a sample before that of its archive is found, too.
        flipped[2 * SIZE + 1536 + 512] = ord("x")  # a byte of the label 2
        self.put({"1.tar": bytes(flipped)})
        self.assertEqual(self.bad(folder)[:2], [("1.tar", None, 4 * SIZE), ("3.tar", None, 7 * SIZE)])
        self.assertIn(("1.tar", 2, 2 * SIZE + 2048), self.bad(folder))
        left = os.listdir(self.path("cache/index")) if os.path.exists(self.path("cache/index")) else []
        self.assertEqual(left, [])  # an index of a damaged data set has no name

    def test_an_archive_alone_is_checked_before_its_damage(self):
        data = self.archive(range(10))
        for cut in (SIZE, 5 * SIZE + 100, 9 * SIZE + 2000):
            path = self.put({"0.tar": data[:cut]}) + "/0.tar"
            found = self.verify(path, status=1)
            self.assertEqual((found["n_bad"], found["n_samples"], found["bad"][0]["shard"]), (1, cut // SIZE, "0.tar"))
        path = self.put({"0.tar": data[:100]}) + "/0.tar"
        self.assertEqual(self.bad(path), [("0.tar", None, 0)])

    def test_every_damaged_tfrecord_file_is_listed(self):
        records = [frame(example({"i": [n], "b": [b"text"]})) for n in range(10)]
        size = len(records[0])
        data = b"".join(records)
        length = bytearray(data)
        length[4 * size] ^= 1  # a length
        value = bytearray(length)
        value[2 * size + 15] ^= 1  # and a value before it
        folder = self.put({"0.tfrecord": data, "1.tfrecord": bytes(value), "2.tfrecord": data[:7 * size + 20],
                           "3.tfrecord": data})
        found = self.verify(folder, status=1)
        self.assertEqual([(bad["shard"], bad["record"], bad["offset"]) for bad in found["bad"]],
                         [("1.tfrecord", 4, 4 * size), ("2.tfrecord", 7, 7 * size), ("1.tfrecord", 2, 2 * size + 12)])
        self.assertEqual((found["n_files"], found["n_samples"], found["checksums"]), (4, 10 + 4 + 7 + 10, "own"))

    def test_shards_of_a_set_that_are_missing_are_listed(self):
        data = frame(example({"i": [1]}))
        folder = self.put({f"train-{k:05d}-of-00010": data for k in (1, 2, 5, 8)})
        self.put({"test-00000-of-00001": data})
        want = ["train-00000-of-00010", "train-00003-of-00010", "train-00006-of-00010", "train-00009-of-00010"]
        found = self.verify(folder, status=1)
        self.assertEqual([bad["shard"] for bad in found["bad"]], want)
        self.assertIn("to number 4, are missing", found["bad"][1]["reason"])
        self.assertEqual([shard for shard, *_ in self.bad(folder + "/train-*-of-00010")], want)
        self.verify(folder + "/train-0000{1,2}-of-00010", status=0)  # chosen

    def test_shards_of_sets_are_counted_in_any_order_of_names(self):
        data, numbers = self.archive([0]), itertools.count()

        def missing(*names, files=None):
            folder = self.put({name: data for name in names}, str(next(numbers)))
            if files is None:
                return [shard for shard, *_ in self.bad(folder)]
            return self.assertEqual(self.verify(folder, status=0)["n_files"], files)
        plain = [f"data-{k}-of-12.tar" for k in range(12)]  # by name: 0, 1, 10, 11, 2, ...
        missing(*plain, files=12)
        self.assertEqual(missing(*plain[1:9], *plain[10:11]), [plain[0], plain[9], plain[11]])
        interleaved = [f"data-{k:05d}-of-00003.{kind}.tar" for k in range(3) for kind in ("images", "more")]
        missing(*interleaved, files=6)
        self.assertEqual(missing(*interleaved[:2], *interleaved[3:]), interleaved[2:3])
        both = [f"data-{k}-of-{count}.tar" for count in (2, 11) for k in range(count)]
        missing(*both, files=13)
        self.assertEqual(missing(*both[1:-1]), [both[0], both[-1]])
        missing("x-0-of-2.tar", "x-00-of-2.tar", "x-1-of-2.tar", "xy-0-of-1.tar", "x-0-of-1-of-1.tar", files=5)

    def test_every_damaged_mds_shard_is_listed(self):
        folder, *_ = self.data_sets()["mds"]
        paths = [os.path.join(folder, f"shard.{k:05d}.mds") for k in range(3)]
        os.truncate(paths[0], 3000)
        os.remove(paths[2])
        found = self.verify(folder, status=1)
        self.assertEqual([(bad["shard"], bad["offset"]) for bad in found["bad"]],
                         [("shard.00000.mds", 3000), ("shard.00002.mds", None)])
        self.assertEqual((found["n_files"], found["n_samples"]), (3, 10))
        folder, *_ = self.data_sets()["mds"]
        self.change(paths[1], 0)  # the number of samples
        self.change(paths[2], 4 + 4 * 5 + 1, 0x80)  # an offset
        found = self.verify(folder, status=1)
        self.assertEqual([(bad["shard"], bad["offset"]) for bad in found["bad"]],
                         [("shard.00001.mds", 0), ("shard.00002.mds", 24)])
        self.assertIn("index.json gives it 10", found["bad"][0]["reason"])
        self.assertEqual(found["n_samples"], 10 + 4)

    def test_hashes_of_index_json_are_checked(self):
        columns = [("x", "bytes", None)]
        data = shard(columns, [[bytes([n + 1]) * 500] for n in range(10)])
        known = {"xxh64": XXH64, "xxh3_64": XXH3_64, "xxh3_128": XXH128, "xxh128": XXH128, "xxh32": XXH32}
        known.update((name, hashlib.new(name, data).hexdigest())
                     for name in ("md5", "sha1", "sha256", "sha384", "sha512"))
        self.assertEqual(hashlib.sha1(data).hexdigest(), SHA1)  # the constants are of these bytes

        def put(hashes):
            one = entry(columns, "shard.00000.mds", data, 10, hashes=sorted(hashes))
            one["raw_data"]["hashes"] = hashes
            return self.put({"shard.00000.mds": data,
                             "index.json": json.dumps({"version": 2, "shards": [one]}).encode()})
        for name, digits in known.items():
            with self.subTest(name):
                folder = put({"blake2b": "00", name: digits})
                found = self.verify(folder, status=0)
                if found["note"]:
                    self.skipTest("missing: xxHash or libmd, when this was built")
                self.assertEqual(found["checksums"], "own")
                self.change(folder + "/shard.00000.mds", len(data) - 7)
                found = self.verify(folder, status=1)
                self.assertEqual((found["n_bad"], found["bad"][0]["shard"]), (1, "shard.00000.mds"))
                for word in (name, digits, "copy the file again"):
                    self.assertIn(word, found["bad"][0]["reason"])
        found = self.verify(put({"blake2b": "00"}), status=0)
        self.assertEqual(found["checksums"], "without")
        self.assertIn("blake2b", found["note"])
        for odd in ({"xxh64": 5}, {}):
            self.assertEqual(self.verify(put(odd), status=0)["checksums"], "without")

    def test_every_damaged_megatron_pair_is_listed(self):
        folder, *_ = self.data_sets()["megatron"]
        os.truncate(os.path.join(folder, "0.bin"), 750)
        os.remove(os.path.join(folder, "2.bin"))
        found = self.verify(folder, status=1)
        self.assertEqual([bad["shard"] for bad in found["bad"]], ["0.idx", "2.bin"])
        self.assertEqual((found["n_files"], found["n_samples"]), (3, 3 + 10))

    def punch(self, path, at, size):
        """Make a hole of these bytes, which are multiples of 4096."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.fallocate.argtypes = ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long
        with open(path, "r+b") as file:
            if libc.fallocate(file.fileno(), 3, at, size):
                self.skipTest("this file system makes no holes")

    def test_bytes_are_judged_the_same_in_a_hole(self):
        zeros = io.BytesIO()
        np.save(zeros, np.zeros((100, 100)))
        folder = self.put({"a.tar": packed([member(f"{n}.npy", zeros.getvalue()) for n in range(4)])}, "plain")
        plain = self.verify(folder, status=0)
        self.assertEqual((plain["n_holes"], plain["note"]), (0, None))
        os.mkdir(self.path("sparse"))
        shutil.copy(folder + "/a.tar", self.path("sparse/a.tar"))
        for n in range(4):
            first = -(-(512 + 128 + n * (1024 + 80128 + 384)) // 4096) * 4096
            self.punch(self.path("sparse/a.tar"), first, 4096 * 3)
        with open(folder + "/a.tar", "rb") as one, open(self.path("sparse/a.tar"), "rb") as other:
            self.assertEqual(one.read(), other.read())
        sparse = self.verify(self.path("sparse"), status=0)
        self.assertEqual(sparse["n_holes"], 4)
        for word in ("4 samples have bytes in holes", "a.tar, record 0, bytes 4096 to 16383", "copy the file again"):
            self.assertIn(word, sparse["note"])
        done = subprocess.run([os.environ["PENSTOCK_COMMAND"], "verify", self.path("sparse")], capture_output=True,
                              text=True, check=True)
        self.assertIn("4 samples have bytes in holes", done.stdout)
        kept = self.verify(self.path("sparse"), "--checksums", status=0)
        self.assertEqual((kept["checksums"], kept["n_holes"]), ("kept", 4))
        compared = self.verify(self.path("sparse"), status=0)
        self.assertEqual((compared["checksums"], compared["n_holes"], compared["note"]), ("compared", 0, None))
        os.utime(self.path("sparse/a.tar"))
        self.assertRegex(self.verify(self.path("sparse"), status=0)["note"], "are not used: .*; 4 samples have bytes in")

    def test_holes_are_reported(self):
        data = packed([member(f"{n}.bin", bytes([n + 1]) * 20000) for n in range(10)])
        path = self.put({"0.tar": data}) + "/0.tar"
        at = 5 * 20992 // 4096 * 4096 + 4096
        self.punch(path, at, 4096)
        found = self.verify(path, status=0)
        self.assertEqual(found["n_holes"], 1)
        self.assertIn(f"1 sample has bytes in holes of sparse files, whose bytes all read as 0 (the first in 0.tar, "
                      f"record 5, bytes {at} to {at + 4095})", found["note"])
        image = image_file(0, height=300, width=200)
        path = self.put({"0.tar": packed([member(f"{n}.jpg", image) for n in range(3)])}, "images") + "/0.tar"
        size = 512 + -(-len(image) // 512) * 512
        at = -(-(size + 512 + 1000) // 4096) * 4096
        self.punch(path, at, (2 * size - at) // 4096 * 4096)
        self.assertEqual(self.verify(path, status=0)["n_holes"], 1)
        found = self.verify(path, "--decode", status=1)  # no image
        self.assertEqual([bad["record"] for bad in found["bad"]], [1])
        values = np.lib.format.open_memmap(self.path("zeros.npy"), "w+", np.int64, (4000,))  # a hole by design
        values[0] = 1
        del values
        self.verify(self.path("zeros.npy"), status=0)

    @unittest.skipIf(os.geteuid() == 0, "root may read everything")
    def test_files_without_permission_are_listed(self):
        folder, *_ = self.data_sets()["folder"]
        self.verify(folder, status=0)
        for name in ("c0/1.jpg", "c2/9.jpg"):
            os.chmod(os.path.join(folder, name), 0)
        self.assertEqual([shard for shard, *_ in self.bad(folder)], ["c0/1.jpg", "c2/9.jpg"])
        folder = self.put({f"{k}.tar": self.archive(range(10)) for k in range(3)}, "t")
        os.chmod(os.path.join(folder, "1.tar"), 0)
        found = self.verify(folder, status=1)
        self.assertEqual(([bad["shard"] for bad in found["bad"]], found["n_samples"]), (["1.tar"], 20))

    def test_files_that_are_gone_are_listed(self):
        folder, *_ = self.data_sets()["folder"]
        times = os.stat(os.path.join(folder, "c1")).st_mtime_ns
        self.verify(folder, status=0)
        os.remove(os.path.join(folder, "c1/3.jpg"))
        os.utime(os.path.join(folder, "c1"), ns=(times, times))
        found = self.verify(folder, status=1)
        self.assertEqual((found["n_bad"], found["n_samples"]), (1, 30))
        self.assertIn("c1/3.jpg", found["bad"][0]["reason"])
        folder = self.put({f"{k}.tar": self.archive(range(10)) for k in range(3)}, "t")
        os.remove(os.path.join(folder, "1.tar"))
        found = self.verify(folder + "/{0..2}.tar", status=1)
        self.assertEqual(([bad["shard"] for bad in found["bad"]], found["n_samples"]), (["1.tar"], 20))

    def test_the_report_of_the_library(self):
        folder, *_ = self.data_sets()["tar"]
        report = penstock._c.VerifyReport(size=ctypes.sizeof(penstock._c.VerifyReport))
        settings = penstock._c.VerifySettings(size=ctypes.sizeof(penstock._c.VerifySettings), path=os.fsencode(folder),
                                              report=ctypes.pointer(report))
        error = penstock._c.Error()
        self.assertEqual(penstock._c.lib.pstk_verify_data(ctypes.byref(settings), ctypes.byref(error)), 0)
        self.assertEqual((report.n_files, report.n_samples, report.n_bad, report.checksums), (3, 30, 0, 0))
        report.size = 8
        self.assertLess(penstock._c.lib.pstk_verify_data(ctypes.byref(settings), ctypes.byref(error)), 0)


if __name__ == "__main__":
    unittest.main()
