# SPDX-License-Identifier: Apache-2.0
"""Archives of samples as data sets. Python's tarfile is the oracle: what it extracts is what a sample has."""
import bz2
import gzip
import io
import json
import lzma
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tarfile
import time
import unittest

import forge
import penstock
import sets
from data_fixture import Case, np
from penstock import _c

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def member(name, data=b"", kind=tarfile.REGTYPE, **more):
    info = tarfile.TarInfo(name)
    info.size, info.type, info.mtime = len(data), kind, 1.5
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def packed(members, form="ustar"):
    """Return the bytes of an archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=FORMATS[form]) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def sample(number, size=None, seed=0):
    """Return the members of a sample: {suffix: bytes}."""
    chance = random.Random(f"{seed} {number}")
    return {"cls": str(number).encode(), "txt": f"text {number} é".encode(),
            "bin": chance.randbytes(chance.randrange(3000) if size is None else size)}


class Tar(Case):
    def put(self, archives, name="data"):
        """Write {file name: bytes}; returns the folder."""
        folder = self.path(name)
        os.makedirs(folder, exist_ok=True)
        for file, data in archives.items():
            with open(os.path.join(folder, file), "wb") as out:
                out.write(data)
        return folder

    def archive(self, numbers, form="ustar", **more):
        return packed([member(f"{n:06d}.{suffix}", data) for n in numbers
                       for suffix, data in sample(n, **more).items()], form)

    def check_samples(self, path, numbers, **more):
        data = penstock.Dataset(path)
        self.assertEqual(len(data), len(numbers))
        for i, n in enumerate(numbers):
            wanted = sample(n, **more)
            self.assertEqual(data[i], {"bin": wanted["bin"], "cls": n, "txt": wanted["txt"].decode()})
        data.close()

    def refused(self, path, *words, kind=penstock.CorruptRecordError):
        with self.assertRaises(kind) as caught:
            penstock.Dataset(path)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_a_column_that_an_archive_cannot_have_is_had_by_packing_it(self):
        path = self.put({"a.tar": self.archive(range(8))})
        out = self.path("out")
        open_ = {"subset": lambda of: penstock.Loader(of, batch_size=1, framework="numpy", subset=penstock.Where("cls", at_least=6)),
                 "weights": lambda of: penstock.Loader(of, batch_size=1, framework="numpy", weights=penstock.Balanced("cls")),
                 "Budget.column": lambda of: penstock.Loader(of, batch_size=penstock.Budget(99, "cls"), last_batch="short"),
                 "name": lambda of: penstock.Dataset(of).column("cls")}
        for what, use in open_.items():
            with self.assertRaisesRegex(penstock.SettingsError, f"^{what}: .*the format tar has no side columns \\(pack it: ") as caught:
                use(path)
            self.assertNotIn("penstock column", str(caught.exception))
        for change in (lambda: penstock.add_column(path, "w", [0] * 8), lambda: penstock.remove_column(path, "cls")):
            with self.assertRaisesRegex(penstock.UnsupportedError, "the format tar has no side columns"):
                change()
        # The advice, as the last message and the last but one of columns print it.
        advice = re.search("`penstock (pack .*) OUT`, or penstock.pack in Python, and open OUT", self.said(change))[1]
        subprocess.run([os.environ["PENSTOCK_COMMAND"], *advice.split(), out], check=True, stdout=subprocess.DEVNULL)
        eval(re.search("pack it: (penstock.pack.*), and open OUT", str(caught.exception))[1],
             {"penstock": penstock, "OUT": self.path("out2")})
        for packed_path in (out, self.path("out2")):
            for use in open_.values():
                use(packed_path)
            self.assertEqual(penstock.Dataset(packed_path).column("cls").tolist(), list(range(8)))

    def said(self, call):
        with self.assertRaises(penstock.PenstockError) as caught:
            call()
        return str(caught.exception)

    def test_every_member_is_what_tarfile_extracts(self):
        for form in FORMATS:
            folder = self.put({f"{k:03d}.tar": self.archive(range(100 * k, 100 * k + 100), form) for k in range(3)}, form)
            self.check_samples(folder, range(300))
            self.check_samples(folder + "/{000..002}.tar", range(300))
            self.check_samples(folder + "/00?.tar", range(300))
            self.check_samples(folder + "/{002,000}.tar", [*range(200, 300), *range(100)])
            self.check_samples(folder + "/001.tar", range(100, 200))

    def test_a_loader_has_each_sample_once_an_epoch_in_every_order(self):
        folder = self.put({f"{k}.tar": self.archive(range(101 * k, 101 * k + 101)) for k in range(3)})
        for keywords in ({"order": "full"}, {"order": "sequential"}, {"order": penstock.Order("windowed", ways=1)},
                         {"reading": penstock.Reading(reader="threads"), "order": "full"},
                         {"reading": penstock.Reading(io="direct"), "order": "full"}):
            with penstock.Loader(folder, batch_size=32, framework="numpy", last_batch="short", **keywords) as loader:
                for epoch in (0, 1):
                    ids = []
                    for batch in loader.epoch(epoch):
                        rows = [int(i) for i in batch.sample_ids]
                        self.assertEqual([int(n) for n in batch["cls"]], rows)
                        for i, n in enumerate(rows):
                            self.assertEqual(bytes(batch["bin"][i]), sample(n)["bin"])
                        ids += rows
                    self.assertEqual(sorted(ids), list(range(303)))

    def test_resume_goes_on_where_it_was(self):
        folder = self.put({"0.tar": self.archive(range(200))})
        keywords = {"batch_size": 16, "framework": "numpy", "seed": 3}
        with penstock.Loader(folder, **keywords) as loader:
            batches = iter(loader.epoch(0))
            for _ in range(5):
                next(batches)
            state = loader.state_dict()
            wanted = [list(map(int, batch.sample_ids)) for batch in batches]
        with penstock.Loader(folder, **keywords) as loader:
            loader.load_state_dict(state)
            self.assertEqual([list(map(int, batch.sample_ids)) for batch in loader], wanted)

    def test_interleaved_members_are_one_sample(self):
        parts = [[member(f"{n}.{suffix}", sample(n)[suffix]) for n in range(40)] for suffix in ("cls", "txt", "bin")]
        near = self.put({"0.tar": packed([part[n] for n in range(40) for part in parts])}, "near")
        far = self.put({"0.tar": packed(sum(parts, []))}, "far")
        mixed = sum(parts, [])
        random.Random(5).shuffle(mixed)
        for folder in (near, far):
            self.check_samples(folder, range(40))
        data = penstock.Dataset(self.put({"0.tar": packed(mixed)}, "mixed"))
        self.assertEqual(sorted(data[i]["cls"] for i in range(40)), list(range(40)))
        for i in range(40):
            self.assertEqual(data[i]["bin"], sample(data[i]["cls"])["bin"])
        with penstock.Loader(far, batch_size=8, framework="numpy") as loader:
            for batch in loader:
                for i, n in enumerate(batch["cls"]):
                    self.assertEqual(bytes(batch["bin"][i]), sample(int(n))["bin"])

    def test_names_of_all_kinds(self):
        names = ["dir/" * 30 + "a", "n" * 200, "ünï", "x.y/z", "./dot"]
        for form in FORMATS:
            members = [member("skipped")] + [member(f"{name}.cls", b"1") for name in names if form != "ustar" or len(name) < 99]
            folder = self.put({"0.tar": packed(members, form)}, form)
            self.assertEqual(len(penstock.Dataset(folder)), len(members) - 1)
        raw = packed([member("bad\udcff\udcfe.cls", b"7")], "gnu")  # not UTF-8
        self.assertEqual(penstock.Dataset(self.put({"0.tar": raw}, "raw"))[0], {"cls": 7})

    def test_members_that_webdataset_skips_are_skipped(self):
        members = [member("d", kind=tarfile.DIRTYPE), member("__meta__/x.json", b"{}"), member("._a.cls", b"junk"),
                   member("a.CLS", b" 5\n"), member("noext", b"x")]
        self.assertEqual(penstock.Dataset(self.put({"0.tar": packed(members)}))[0], {"cls": 5})

    def test_fields_may_be_named(self):
        folder = self.put({"0.tar": self.archive(range(10))})
        data = penstock.Dataset(folder, foreign=penstock.Foreign(fields={"cls": "uint8", "txt": "bytes"}))
        self.assertEqual((data[3]["cls"], data[3]["txt"]), (3, sample(3)["txt"]))
        with penstock.Loader(folder, foreign=penstock.Foreign(fields={"cls": "int16"}), outputs=["cls"], batch_size=5,
                             framework="numpy") as loader:
            self.assertEqual(next(iter(loader))["cls"].dtype, np.int16)
        with self.assertRaises(penstock.UnsupportedError) as caught:
            penstock.Dataset(folder, foreign=penstock.Foreign(fields={"cls": "float32"}))
        self.assertIn("must be an integer type", str(caught.exception))

    def test_a_label_that_is_no_number_is_a_bad_sample(self):
        members = [member(f"{n}.cls", b"many" if n == 7 else b"300" if n == 8 else str(n).encode()) for n in range(20)]
        folder = self.put({"0.tar": packed(members)})
        data = penstock.Dataset(folder)
        with self.assertRaises(penstock.CorruptRecordError) as caught:
            data[7]
        for word in ("0.tar", "record 7", "'many'", "must be an integer"):
            self.assertIn(word, str(caught.exception))
        with self.assertRaises(penstock.CorruptRecordError) as caught:
            penstock.Dataset(folder, foreign=penstock.Foreign(fields={"cls": "uint8"}))[8]
        self.assertIn("300", str(caught.exception))
        bad = []
        with penstock.Loader(folder, batch_size=4, framework="numpy",
                             bad_sample=lambda error, other: bad.append((error.sample_id, other)), order="sequential") as loader:
            rows = [int(n) for batch in loader for n in batch["cls"]]
        self.assertEqual(len(rows), 20)
        self.assertEqual([one[0] for one in bad], [7])

    def test_a_missing_member_is_an_error_of_its_field_alone(self):
        members = [m for n in range(9) for m in ([member(f"{n}.cls", b"1")] if n == 4 else
                                                 [member(f"{n}.cls", b"1"), member(f"{n}.txt", b"t")])]
        data = penstock.Dataset(self.put({"0.tar": packed(members)}))
        self.assertEqual(data.get(4, "cls"), 1)
        with self.assertRaises(penstock.CorruptRecordError) as caught:
            data[4]
        for word in ("0.tar", "record 4", "no member with the suffix 'txt'"):
            self.assertIn(word, str(caught.exception))

    def test_a_suffix_that_comes_late_is_named(self):
        members = [member(f"{n}.cls", b"1") for n in range(1500)] + [member("1500.late", b"")]
        folder = self.put({"0.tar": packed(members)})
        self.refused(folder, "0.tar", "member 1500", "'late'", "name it in fields")
        self.assertEqual(penstock.Dataset(folder, foreign=penstock.Foreign(fields={"late": "bytes"})).get(1499, "cls"), 1)

    def test_a_suffix_that_is_no_name_of_a_field_is_refused(self):
        for name, words in (("c.Dr. Smith and others at the conference dinner in Vienna, 2024.cls", "64 bytes or more"),
                            ("c.a b", "not the name of a field")):
            self.refused(self.put({"0.tar": packed([member("a.cls", b"1"), member(name, b"2")])}, "odd"), words, "rename it",
                         kind=penstock.UnsupportedError)

    def test_values_that_nobody_asked_for_need_not_be_right(self):
        """cls and cls2 are read together with txt, which lies between them."""
        folder = self.put({"0.tar": packed([m for n in range(8) for m in (
            member(f"{n}.cls2", b"5"), member(f"{n}.txt", b"\xff"), member(f"{n}.cls", b"6"))])})
        with penstock.Loader(folder, outputs=["cls", "cls2"], batch_size=8, framework="numpy") as loader:
            self.assertEqual(next(iter(loader))["cls2"].tolist(), [5] * 8)
        self.assertEqual(penstock.Dataset(folder).get(3, "cls"), 6)
        with self.assertRaises(penstock.CorruptRecordError):
            penstock.Dataset(folder).get(3, "txt")

    def test_a_name_that_no_field_has_is_refused(self):
        folder = self.put({"0.tar": self.archive(range(5))})
        for open_it in (penstock.Dataset, penstock.Loader):
            with self.assertRaises(penstock.SettingsError) as caught:
                open_it(folder, foreign=penstock.Foreign(fields={"clss": "int32"}),
                        **({"batch_size": 2} if open_it is penstock.Loader else {}))
            self.assertIn("'clss'", str(caught.exception))

    def test_text_may_be_read_as_numbers(self):
        folder = self.put({"0.tar": packed([member(f"{n}.txt", str(n).encode()) for n in range(5)])})
        with penstock.Loader(folder, foreign=penstock.Foreign(fields={"txt": "int64"}), outputs=["txt"], batch_size=5,
                             framework="numpy",
                             order="sequential") as loader:
            self.assertEqual(next(iter(loader))["txt"].tolist(), list(range(5)))
        mixture = penstock.Mixture({folder: 1})
        with penstock.Loader(mixture, foreign=penstock.Foreign(fields={"txt": "int64"}), outputs=["txt"], batch_size=5,
                             framework="numpy") as loader:
            self.assertEqual(sorted(next(iter(loader))["txt"].tolist()), list(range(5)))

    def test_damage_of_scattered_members_names_their_bytes(self):
        members = [member(f"{n}.cls", b"no number") for n in range(3)] + [member(f"{n}.bin", bytes(70000)) for n in range(3)]
        with self.assertRaises(penstock.CorruptRecordError) as caught:
            penstock.Dataset(self.put({"0.tar": packed(members)}))[1]
        self.assertIn("(bytes 1536 to 1544)", str(caught.exception))
        self.assertEqual(caught.exception.offset, 1536)

    def test_an_index_of_another_owner_is_not_used(self):
        if os.geteuid() != 0:
            raise unittest.SkipTest("missing: root, to give a file away")
        folder = self.put({"0.tar": self.archive(range(5))})
        penstock.Dataset(folder).close()
        name = next(n for n in os.listdir(folder + "/.penstock") if n.endswith(".index"))
        path = os.path.join(folder, ".penstock", name)
        os.chown(path, 12345, 12345)
        penstock.Dataset(folder).close()
        self.assertEqual(os.stat(path).st_uid, 0)  # built again

    def test_duplicates_links_and_what_follows_the_end_are_refused(self):
        one = member("a.cls", b"1")
        self.refused(self.put({"0.tar": packed([one, member("b.cls", b"2"), one])}, "a"), "twice", "byte 0", "byte 2048")
        self.refused(self.put({"0.tar": packed([one, member("l.cls", kind=tarfile.SYMTYPE, linkname="/etc/passwd")])}, "b"),
                     "is a link", "--dereference")
        self.refused(self.put({"0.tar": packed([one, member("l.cls", kind=tarfile.FIFOTYPE)])}, "c"), "neither a file")
        self.refused(self.put({"0.tar": packed([one]) + packed([one])}, "d"), "joined by cat", "tar --concatenate")

    def test_an_archive_cut_anywhere_is_refused(self):
        whole = self.archive(range(6), size=700)
        end = len(whole.rstrip(b"\0")) // 512 * 512 + 512  # end of the last member's data
        for size in range(0, len(whole), 512):
            folder = self.put({"0.tar": whole[:size], "1.tar": whole}, f"cut{size}")
            if size > end:
                self.assertEqual(len(penstock.Dataset(folder)), 12)  # the blocks of zeros alone are cut
            else:
                self.refused(folder, "0.tar", "cut short")
        for size in (1, 511, 513, 1000, end - 1):
            self.refused(self.put({"0.tar": whole[:size]}, f"odd{size}"), "cut short")

    def test_a_compressed_archive_with_a_plain_name_is_named_as_what_it_is(self):
        whole = self.archive(range(3), size=100)
        for data, word in ((gzip.compress(whole), "begins as a gzip file: name it .tar.gz"), (gzip.compress(b""), "gzip"),
                             (bytes.fromhex("28b52ffd") + bytes(600), "begins as a zstd file: name it .tar.zst"),
                             (bz2.compress(whole), "bzip2"), (lzma.compress(whole), "xz"), (b"PK\3\4" + bytes(99), "zip")):
            self.refused(self.put({"0.tar": data}, "packed"), "0.tar", word, kind=penstock.UnsupportedError)

    def test_a_zstd_window_that_is_too_large_is_named_with_the_way_out(self):
        whole = self.archive(range(3), size=100)

        def frame(log):  # RFC 8878: one raw block
            return bytes.fromhex("28b52ffd00") + bytes([log - 10 << 3]) + (len(whole) << 3 | 1).to_bytes(3, "little") + whole
        self.assertEqual(len(penstock.Dataset(self.put({"0.tar.zst": frame(27)}, "small"))), 3)
        for log in (28, 31):
            self.refused(self.put({"0.tar.zst": frame(log)}, "large"), "0.tar.zst", "for decoding; the window must be at most 128 MiB",
                         "zstd -dc --long=31 OLD | zstd --long=27 -o NEW", kind=penstock.UnsupportedError)

    def test_flipped_bits_of_headers_are_seen_at_open_and_in_a_run(self):
        whole = bytearray(self.archive(range(30), size=100))
        folder = self.put({"0.tar": bytes(whole)})
        chance = random.Random(1)
        for _ in range(40):
            block, bit = chance.randrange(0, 90), chance.randrange(8 * 148)
            damaged = bytearray(whole)
            damaged[1024 * block + bit // 8] ^= 1 << bit % 8
            self.refused(self.put({"0.tar": bytes(damaged)}, "damaged"), "0.tar", "checksum of a header is wrong")
        # After open, with size and time kept: parsing checks the header again.
        path = os.path.join(folder, "0.tar")
        data, times = penstock.Dataset(folder), os.stat(path)
        with open(path, "r+b") as file:
            file.seek(1024 * 9 + 3)
            file.write(b"X")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        with self.assertRaises(penstock.CorruptRecordError) as caught:
            data[3]
        self.assertIn("was the file changed?", str(caught.exception))

    def test_a_file_that_changes_is_refused_and_indexed_again(self):
        folder = self.put({"0.tar": self.archive(range(50))})
        loader = penstock.Loader(folder, batch_size=10, framework="numpy", memory=penstock.Memory(n_slots=2), outputs=["cls"])
        self.put({"0.tar": self.archive(range(60))})
        with self.assertRaises(penstock.PenstockError) as caught:
            for epoch in range(100):
                for _ in loader.epoch(epoch):
                    pass
            penstock.Dataset(folder)[0]
            raise penstock.CorruptRecordError("was changed: its file stayed open")  # the old one, whole
        self.assertIn("was changed", str(caught.exception))
        loader.close()
        self.assertEqual(len(penstock.Dataset(folder)), 60)

    def test_a_damaged_index_is_built_again_or_named(self):
        folder = self.put({"0.tar": self.archive(range(500))})
        penstock.Dataset(folder).close()
        name = next(n for n in os.listdir(folder + "/.penstock") if n.endswith(".index"))
        index = os.path.join(folder, ".penstock", name)
        with open(index, "r+b") as file:
            file.seek(100)
            file.write(b"damage")
        self.assertEqual(len(penstock.Dataset(folder)), 500)
        with open(index, "r+b") as file:
            file.seek(4096 + 40)
            file.write(b"damage")
        with self.assertRaises(penstock.CorruptRecordError) as caught:
            penstock.Dataset(folder)[0]
        self.assertIn("remove it, and it is built again", str(caught.exception))
        os.remove(index)
        self.check_samples(folder, range(500))

    def test_an_index_of_bytes_that_are_not_there_is_named(self):
        folder = self.put({"0.tar": self.archive(range(9))})
        penstock.Dataset(folder).close()
        index = forge.move_rows(folder + "/.penstock")
        self.assert_says(["0.tar: record 3 (bytes ", "): the file does not have these bytes; remove the index " + index +
                          ", and it is built again"], lambda: penstock.Dataset(folder)[3])

    def test_an_index_that_the_limit_of_open_files_leaves_no_room_for_is_named(self):
        folder = self.put({"0.tar": self.archive(range(9))})
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        with penstock.Dataset(folder) as data:
            free = os.open(os.devnull, os.O_RDONLY)
            os.close(free)
            resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
            try:
                self.assert_says([f"cannot open the index {folder}/.penstock/tar-", "ulimit -n"], lambda: data[0])
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    def test_processes_build_one_index(self):
        folder = self.put({f"{k}.tar": self.archive(range(1000 * k, 1000 * k + 1000), size=2000) for k in range(4)})
        program = f"import penstock; print(penstock.Dataset({folder!r}).info.identity)"
        environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(penstock.__file__))}
        started = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment, text=True)
                   for _ in range(4)]
        found = [process.communicate()[0].strip() for process in started]
        self.assertEqual(len(set(found)), 1)
        self.assertEqual(len(found[0]), 32)
        self.assertEqual(len([n for n in os.listdir(folder + "/.penstock") if n.endswith(".index")]), 1)

    def test_a_builder_that_is_killed_leaves_nothing_in_the_way(self):
        folder = self.put({f"{k}.tar": self.archive(range(3000 * k, 3000 * k + 3000), size=10) for k in range(4)})
        program = f"import penstock; penstock.Dataset({folder!r})"
        environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(penstock.__file__))}
        process = subprocess.Popen([sys.executable, "-c", program], env=environment)
        while process.poll() is None and not os.path.exists(folder + "/.penstock"):
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertEqual(len(penstock.Dataset(folder)), 12000)

    def test_ctrl_c_ends_the_indexing(self):
        folder = self.put({"0.tar": self.archive(range(500), size=10)})
        for i in range(1, 600):  # enough bytes to be interrupted in
            os.link(os.path.join(folder, "0.tar"), os.path.join(folder, f"{i}.tar"))
        code = """if True:
            import os, penstock, signal, sys, threading, time
            signal.signal(signal.SIGINT, signal.default_int_handler)
            threading.Thread(target=lambda: (time.sleep(0.05), os.kill(os.getpid(), signal.SIGINT))).start()
            try:
                penstock.Dataset(sys.argv[1])
            except KeyboardInterrupt:
                print("interrupted", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        """
        done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.stderr), ("interrupted True\n", ""))
        place = os.path.join(folder, ".penstock")
        names = os.listdir(place) if os.path.isdir(place) else []
        self.assertFalse([name for name in names if name.endswith(".index")])

    def test_mixtures_subsets_and_identities(self):
        a = self.put({"0.tar": self.archive(range(40))}, "a")
        b = self.put({"0.tar": self.archive(range(40, 100))}, "b")
        self.assertNotEqual(penstock.Dataset(a).info.identity, penstock.Dataset(b).info.identity)
        with penstock.Loader(penstock.Mixture({a: 1, b: 1}), batch_size=8, framework="numpy", outputs=["cls", "bin"]) as loader:
            for batch in loader:
                for i, n in enumerate(batch["cls"]):
                    self.assertEqual(bytes(batch["bin"][i]), sample(int(n))["bin"])
        with penstock.Loader(b, batch_size=5, framework="numpy", subset=penstock.Range(10, 30), outputs=["cls"],
                             last_batch="short") as loader:
            self.assertEqual(sorted(int(n) for batch in loader for n in batch["cls"]), list(range(50, 70)))

    def test_an_empty_archive_and_one_without_samples(self):
        self.refused(self.put({"0.tar": packed([])}, "a"), "no samples", kind=penstock.PenstockError)
        self.refused(self.put({"0.tar": packed([member("readme", b"x")])}, "b"), "no samples", kind=penstock.PenstockError)
        self.check_samples(self.put({"0.tar": packed([]), "1.tar": self.archive(range(5))}, "c"), range(5))
        self.refused(self.put({"0.tar": b""}, "d"), "cut short")
        self.refused(self.path("e") + "/{0..3}.tar", "0.tar", kind=penstock.DataSetNotFoundError)

    def test_verify_lists_what_is_damaged(self):
        members = [m for n in range(9) for m in ([member(f"{n}.cls", b"1")] if n == 4 else
                                                 [member(f"{n}.cls", b"x" if n == 2 else b"1"), member(f"{n}.txt", b"t")])]
        folder = self.put({"0.tar": packed(members)})
        done = subprocess.run([os.environ["PENSTOCK_COMMAND"], "verify", folder, "--json"], capture_output=True, text=True)
        found = json.loads(done.stdout)
        self.assertEqual((done.returncode, found["n_bad"]), (1, 2))
        self.assertEqual([bad["record"] for bad in found["bad"]], [2, 4])

    def test_pack_takes_archives_and_gives_the_same_values(self):
        images = self.path("images")
        subprocess.run([os.environ["PENSTOCK_MAKE_IMAGES"], "12", images, "--kind", "420"], check=True, capture_output=True)
        files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(images) for name in names
                       if name.endswith((".jpg", ".jpeg")))
        data = [open(file, "rb").read() for file in files]
        members = [m for n, image in enumerate(data) for m in
                   (member(f"{n:03d}.jpg", image[:len(image) // 2] if n == 3 else image), member(f"{n:03d}.cls", str(n).encode()))]
        source, made = self.put({"0.tar": packed(members)}), self.path("made")
        command = [os.environ["PENSTOCK_COMMAND"], "pack", source, made]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("sample 3: ", done.stderr)
        self.assertIn(f"1 of {len(data)} samples cannot be packed:", done.stderr)
        subprocess.run([*command, "--skip-bad"], check=True, capture_output=True)
        found = penstock.Dataset(made)
        self.assertEqual([(record["cls"], record["jpg"]) for record in found],
                         [(n, image) for n, image in enumerate(data) if n != 3])

    def test_a_name_without_a_suffix_is_no_example_of_dots(self):
        members = [member(name, b"1") for name in ("README", ".hidden", "__index__", "s_0.00.jpg", "s_0.00.cls", "s_1.01.jpg",
                                                   "s_1.01.cls")]
        self.refused(self.put({"0.tar": packed(members)}), "'s_0.00.jpg' ends its key", kind=penstock.PenstockError)

    def keyed(self, form, scattered=False):
        """Archives with keys of all lengths; the folder and the keys, in the order of the samples."""
        deep = "d" * 90 + "/" + "e" * 60  # with a name after it too long for a header's one field
        keys = ["a/0001", "b", "c/d", "ä/ü", deep + "/f", "g" * 90, deep + "/" + "h" * 60]
        names = [("./" if key == "c/d" else "") + key for key in keys]
        if scattered:
            members = [member(f"{name}.{suffix}", b"1" * size) for suffix, size in (("cls", 1), ("bin", 70000), ("seg.txt", 9))
                       for name in names]
        else:
            members = [member(f"{name}.{suffix}", b"1") for name in names for suffix in ("cls", "bin", "seg.txt")]
        return self.put({"0.tar": packed(members, form)}, f"{form}{scattered}"), keys

    def test_keys_are_a_field_that_is_asked_for(self):
        for form in FORMATS:
            for scattered in (False, True):
                with self.subTest(form=form, scattered=scattered):
                    path, keys = self.keyed(form, scattered)
                    with penstock.Dataset(path) as data:
                        self.assertNotIn("__key__", data.fields)
                    for kind, wanted in (("utf8", keys), ("bytes", [key.encode() for key in keys])):
                        with penstock.Dataset(path, foreign=penstock.Foreign(fields={"__key__": kind})) as data:
                            self.assertEqual([sample["__key__"] for sample in data], wanted)
                            self.assertEqual([data.get(i, "__key__") for i in range(len(data))], wanted)
                            self.assertEqual(data[2]["cls"], 1)

    def test_loaders_packs_and_exports_have_the_keys(self):
        sets.need_numpy()
        path, keys = self.keyed("ustar")
        with penstock.Loader(path, batch_size=len(keys), outputs=[penstock.ragged("__key__")],
                             foreign=penstock.Foreign(fields={"__key__": "utf8"}),
                             shuffle=False, framework="numpy") as loader:
            [batch] = [[bytes(row).decode() for row in batch["__key__"]] for batch in loader.epoch(0)]
        self.assertEqual(batch, keys)
        made, out = self.path("made"), self.path("out")
        subprocess.run([os.environ["PENSTOCK_COMMAND"], "pack", path, made, "--field", "__key__=utf8"], check=True,
                       capture_output=True)
        with penstock.Dataset(made) as data:
            self.assertEqual([sample["__key__"] for sample in data], keys)
        penstock.export(made, to="webdataset", out=out, key="__key__")
        with penstock.Dataset(out, foreign=penstock.Foreign(fields={"__key__": "utf8"})) as data:
            self.assertEqual([sample["__key__"] for sample in data], keys)

    def test_keys_are_text_that_no_member_has(self):
        path, _ = self.keyed("pax")
        for kind in ("int64", "image"):
            with self.assertRaisesRegex(penstock.PenstockError, "__key__, the key of samples: must be utf8 or bytes"):
                penstock.Dataset(path, foreign=penstock.Foreign(fields={"__key__": kind}))
        odd = self.put({"0.tar": packed([member("a.__key__", b"1"), member("a.cls", b"1")])}, "odd")
        with penstock.Dataset(odd) as data:
            self.assertEqual(data[0], {"__key__": b"1", "cls": 1})
        with self.assertRaisesRegex(penstock.PenstockError, "its suffix is '__key__'.*leave it out of fields"):
            penstock.Dataset(odd, foreign=penstock.Foreign(fields={"__key__": "utf8"}))

    def test_names_that_another_dot_parts_are_refused(self):
        def put(name, *names):
            return self.put({"0.tar": packed([member(n, b"7") for n in names])}, name)
        dotted = put("dotted", *(f"shot_{i}.{i:02d}.cls" for i in range(6)))
        self.refused(dotted, "member 0", "'shot_0.00.cls'", "'00.cls'", "split_at", kind=penstock.UnsupportedError)
        with penstock.Dataset(dotted, foreign=penstock.Foreign(split_at="last")) as data:
            self.assertEqual((len(data), data[5]), (6, {"cls": 7}))
        with penstock.Loader(dotted, batch_size=6, outputs=["cls"], foreign=penstock.Foreign(split_at="last")) as loader:
            self.assertEqual(len(loader.dataset), 6)
        with penstock.Dataset(dotted, foreign=penstock.Foreign(split_at="first")) as data:
            self.assertEqual(len(data.fields), 6)
        halves = penstock.Mixture({dotted: 1.0}, subset=penstock.Range(0, 3), exhaustion="drop")
        with penstock.Loader(halves, batch_size=3, outputs=["cls"], foreign=penstock.Foreign(split_at="last")) as loader:
            self.assertEqual(len(loader), 1)
        many = put("many", *(f"shot_{i}.{i:02d}.cls" for i in range(80)))
        self.refused(many, "'shot_0.00.cls'", "split_at", kind=penstock.UnsupportedError)
        for meant in (("a.x.cls", "a.y.cls", "b.x.cls", "b.y.cls"), ("a.x.cls", "b.x.cls"), ("a.x.cls", "b.y.txt"), ("a.cls", "b.x.cls")):
            self.assertEqual(len(penstock.Dataset(put("-".join(meant), *meant))), 2, meant)
        self.refused(put("long", *(f"a.{i}.{'b' * 70}" for i in range(2))), "split_at", kind=penstock.UnsupportedError)
        with self.assertRaisesRegex(penstock.SettingsError, "split_at: value is 'middle'; must be 'auto', 'first' or 'last'"):
            penstock.Dataset(dotted, foreign=penstock.Foreign(split_at="middle"))
        with self.assertRaisesRegex(penstock.UnsupportedError, "split_at: value is 'last'; .*only tar archives"):
            penstock.Dataset(os.path.join(self.folder, self.npy()), foreign=penstock.Foreign(split_at="last"))
        command = os.environ["PENSTOCK_COMMAND"]
        done = subprocess.run([command, "info", many], capture_output=True, text=True)
        self.assertEqual((done.returncode, "set --split-at to 'last'" in done.stderr), (2, True), done.stderr)
        for words in (["info", many], ["pack", many, self.path("packed")], ["verify", many]):
            subprocess.run([command, *words, "--split-at", "last"], check=True, capture_output=True)

    def named(self, name, *names):
        return self.put({"0.tar": packed([member(n, b"7") for n in names])}, name)

    def test_a_stem_for_each_sample_is_refused_whatever_stands_beside_it(self):
        kinds = {"pairs": [f"s_{i}.{i:02d}.{end}" for i in range(8) for end in ("txt", "cls")],
                 "apart": [f"s_{i}.{i:02d}.{end}" for end in ("txt", "cls") for i in range(8)],
                 "some_labels": [f"s_{i}.{i:02d}.{end}" for i in range(8) for end in ("txt", "cls")[:1 + i % 2]],
                 "two_types": [f"s_{i}.{i:02d}.{('jpg', 'png')[i % 2]}" for i in range(8)],
                 "letters": [f"s_{c}.{c}.{end}" for c in "abc" for end in ("txt", "cls")],
                 "some_shared": [f"s_{i // 2}.{i:02d}.txt" for i in range(30)],
                 "one_sample": [f"v1.0_{i}.{end}" for i in range(8) for end in ("txt", "cls")],
                 "dates": [f"2020.01.{i:02d}.txt" for i in range(9)],
                 "years": [f"{2020 + i // 5}.{1 + i // 5:02d}.{i:02d}.txt" for i in range(10)]}
        for name, names in kinds.items():
            folder = self.named(name, *names)
            self.refused(folder, "member 0", f"'{names[0]}'", "'" + names[0].split(".", 1)[1] + "'",
                         "set split_at to 'last'", kind=penstock.UnsupportedError)
            with penstock.Dataset(folder, foreign=penstock.Foreign(split_at="last")) as data:
                self.assertEqual(len(data), len({n.rsplit(".", 1)[0] for n in names}), name)
            self.assertGreater(len(penstock.Dataset(folder, foreign=penstock.Foreign(split_at="first")).fields), 2)

    def test_samples_that_share_suffixes_with_dots_are_read_as_webdataset_does(self):
        kinds = {"views": [f"{i}.{view}.txt" for i in range(4) for view in ("left", "right")],
                 "one_sample": ["a.left.txt", "a.right.txt"],
                 "numbered": [f"{i}.{view}.txt" for i in range(4) for view in (0, 1, 2)],
                 "numbered_some": [f"{i}.{view}.txt" for i in range(4) for view in (0, 1, 2)[:1 + i % 3]],
                 "beside": ["a.txt", "a.x.txt", "b.txt", "b.y.txt"],
                 "beside_one": ["a.json", "a.0.txt", "a.1.txt"]}
        for name, names in kinds.items():
            self.assertEqual(len(penstock.Dataset(self.named(name, *names))), len({n.split(".")[0] for n in names}), name)

    def test_the_error_for_a_suffix_with_dots_advises_split_at(self):
        folder = self.named("some", *(f"s{i}.txt" for i in range(5)), "s.7.07.txt")
        words = "suffix '{}', which other samples have; keys end at the first dot of a name; if the last is meant, set split_at to 'last'"
        with penstock.Dataset(folder) as data:
            for i, suffix in ((0, "7.07.txt"), (5, "txt")):
                with self.assertRaisesRegex(penstock.CorruptRecordError, words.format(suffix)):
                    data[i]
        command = os.environ["PENSTOCK_COMMAND"]
        done = subprocess.run([command, "verify", folder, "--split-at", "last"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        with penstock.Dataset(folder,
                              foreign=penstock.Foreign(split_at="first")) as data, self.assertRaises(penstock.CorruptRecordError) as caught:
            data[0]
        self.assertNotIn("split_at", str(caught.exception))
        late = self.named("late", *(f"s{i}.txt" for i in range(1005)), "s_7.07.txt")
        self.refused(late, "member 1005", "'07.txt'", "set split_at to 'last'", kind=penstock.CorruptRecordError)
        done = subprocess.run([command, "info", late], capture_output=True, text=True)
        self.assertIn("if the last is meant, set --split-at to 'last'", done.stderr)
        self.assertEqual(len(penstock.Dataset(late, foreign=penstock.Foreign(split_at="last"))), 1006)

    def test_an_integer_that_is_too_large_is_reported_with_its_dtype_and_as_text(self):
        path = self.put({"0.tar": packed([member("a.cls", b"99999999999999999999"), member("b.cls", b"-1")])})
        for fields, says in ((None, "is '9+', which does not fit in i64; "), ({"cls": "uint8"}, "is '9+', which does not fit in u8; ")):
            with penstock.Dataset(path, foreign=penstock.Foreign(fields=fields)) as data:
                with self.assertRaisesRegex(penstock.CorruptRecordError, says + 'foreign=penstock.Foreign\\(fields={"cls": "utf8"}\\) reads text'):
                    data[0]
        with penstock.Dataset(path, foreign=penstock.Foreign(fields={"cls": "utf8"})) as data:
            self.assertEqual(data[0], {"cls": "99999999999999999999"})
        command = os.environ["PENSTOCK_COMMAND"]
        for words in (["verify", path, "--decode"], ["get", path, "0", "cls"], ["pack", path, self.path("made")]):
            done = subprocess.run([command, *words], capture_output=True, text=True)
            self.assertIn("; --field cls=utf8 reads text", done.stderr, words)
        subprocess.run([command, "verify", path, "--decode", "--field", "cls=utf8"], check=True, capture_output=True)

    def npy(self):
        np.save(self.path("x.npy"), np.zeros((3, 2), "f4"))
        return "x.npy"

    def test_an_index_of_read_only_data_goes_into_the_cache(self):
        folder, cache, programs = self.put({"0.tar": self.archive(range(20))}), self.path("cache"), self.path("programs")
        for path in (folder, os.path.dirname(folder)):
            os.chmod(path, 0o755)
        for path in (cache, programs):
            os.mkdir(path)
        os.chmod(cache, 0o777)
        command = [*sets.as_another_user(programs), "info", folder]
        for environment, says in (({"PENSTOCK_CACHE": cache}, "samples   20"), ({"HOME": ""}, "set $PENSTOCK_CACHE")):
            done = subprocess.run(command, capture_output=True, text=True, env={"PATH": os.environ["PATH"], **environment})
            self.assertIn(says, done.stdout + done.stderr)
        self.assertEqual(os.listdir(folder), ["0.tar"])
        self.assertTrue(os.listdir(cache + "/index"))


if __name__ == "__main__":
    unittest.main()
