# SPDX-License-Identifier: Apache-2.0
"""Compressed archives as data sets. The plain archives are the oracle: the same samples in the same order, whatever the
compression, and every damage of a compressed file is reported."""
import fcntl
import gzip
import hashlib
import io
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import threading
import time
import unittest
import unittest.mock
import zlib

import penstock
from data_fixture import Case, optional

MEMBERS = {"ustar": tarfile.USTAR_FORMAT, "pax": tarfile.PAX_FORMAT}


def archive(numbers, size=3000, form="ustar"):
    """Return an archive of samples, half of whose bytes do not compress."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=MEMBERS[form]) as tar:
        for n in numbers:
            chance = random.Random(n)
            noise = chance.randbytes(chance.randrange(size))
            for suffix, data in (("cls", str(n).encode()), ("bin", noise + bytes(chance.randrange(size))),
                                 ("txt", b"all of it is text %d " % n * 9)):
                info = tarfile.TarInfo(f"{n:06d}.{suffix}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def stored(data, level=0, strategy=zlib.Z_DEFAULT_STRATEGY):
    coder = zlib.compressobj(level, zlib.DEFLATED, 31, 8, strategy)
    return coder.compress(data) + coder.flush()


def full_header(data):
    """Return a member whose header has everything that RFC 1952 knows."""
    head = b"\x1f\x8b\x08" + bytes([2 | 4 | 8 | 16]) + bytes(6)
    head += struct.pack("<H", 300) + bytes(300) + b"a name\0" + b"a comment\0"
    head += struct.pack("<H", zlib.crc32(head) & 0xffff)
    coder = zlib.compressobj(6, zlib.DEFLATED, -15)
    return head + coder.compress(data) + coder.flush() + struct.pack("<II", zlib.crc32(data), len(data) & 0xffffffff)


def members(data, size):
    return b"".join(gzip.compress(data[i:i + size], 5) for i in range(0, len(data), size))


# Ways to write the same bytes.
GZIPS = {
    **{f"level {level}": lambda data, level=level: gzip.compress(data, level) for level in (1, 6, 9)},
    "stored blocks": stored,
    "fixed codes": lambda data: stored(data, 6, zlib.Z_FIXED),
    "codes without copies": lambda data: stored(data, 6, zlib.Z_HUFFMAN_ONLY),
    "members of 64 KiB": lambda data: members(data, 65536),
    "members of 3 MB": lambda data: members(data, 3_000_000),
    "an empty member first": lambda data: gzip.compress(b"") + gzip.compress(data),
    "an empty member last": lambda data: gzip.compress(data) + gzip.compress(b""),
    "zeros after it": lambda data: gzip.compress(data) + bytes(5000),
    "a header with all": full_header,
}


def large_archive(seed):
    """Return an archive of 12 MB, of one size whatever the seed."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for i in range(24):
            info = tarfile.TarInfo(f"{i:06d}.bin")
            info.size = 500_000
            tar.addfile(info, io.BytesIO(random.Random(seed * 100 + i).randbytes(info.size)))
    return buffer.getvalue()


def one_frame(data, window=13):
    """Return one zstd frame of blocks that are stored, without a checksum: it is unpacked into the cache, if it is
    large."""
    out = [struct.pack("<IBB", 0xfd2fb528, 0, window << 3)]
    for i in range(0, len(data), 1 << 17):
        block = data[i:i + (1 << 17)]
        out += [struct.pack("<I", len(block) << 3 | (i + len(block) == len(data)))[:3], block]
    return b"".join(out)


class Making:
    """Another process that makes the entry of the cache that a data set has now, and makes no progress."""
    def __init__(self, cache):
        place = os.path.join(cache, "entries")
        self.entry, = [os.path.join(place, name) for name in os.listdir(place) if os.path.getsize(os.path.join(place, name)) > 4096]
        os.unlink(self.entry)
        self.path = self.entry + ".tmp"
        self.file = open(self.path, "wb")  # pylint: disable=consider-using-with
        self.file.truncate(13 << 20)
        os.fchmod(self.file.fileno(), 0o600)
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def give_up(self):
        os.unlink(self.path)
        self.file.close()


class Packed(Case):
    def put(self, files, name="data"):
        folder = self.path(name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for file, data in files.items():
            with open(os.path.join(folder, file), "wb") as out:
                out.write(data)
        return folder

    def command(self, *arguments, status=0):
        done = subprocess.run([os.environ["PENSTOCK_COMMAND"], *arguments], capture_output=True, check=False)
        self.assertEqual(done.returncode, status, done)
        return done.stdout + done.stderr

    def check_equal(self, plain, packed, seed=1):
        """Compare the samples of both data sets, in order and in random order."""
        with penstock.Dataset(plain) as a, penstock.Dataset(packed) as b:
            self.assertEqual(len(a), len(b))
            self.assertEqual([a[i] for i in range(len(a))], [b[i] for i in range(len(b))])
            for i in random.Random(seed).sample(range(len(a)), min(len(a), 60)):
                self.assertEqual(a[i], b[i])

    def refused(self, path, *words, kind=penstock.CorruptRecordError):
        with self.assertRaises(kind) as caught:
            penstock.Dataset(path)
        for word in words:
            self.assertIn(word, str(caught.exception))
        return str(caught.exception)

    def test_every_way_to_write_gzip_gives_the_samples_of_the_plain_archive(self):
        data = archive(range(1300))
        plain = self.put({"0.tar": data}, "plain")
        for name, write in GZIPS.items():
            with self.subTest(name):
                self.check_equal(plain, self.put({"0.tar.gz": write(data)}, "packed"))

    def test_order_batches_and_resume_are_those_of_the_plain_archives(self):
        shards = [archive(range(400 * k, 400 * k + 400), form="pax") for k in range(3)]
        plain = self.put({f"{k}.tar": data for k, data in enumerate(shards)}, "plain")
        packed = self.put({f"{k}.tgz": gzip.compress(data, 3) for k, data in enumerate(shards)}, "packed")
        for keywords in ({"order": "full"}, {"order": "sequential"}, {"order": penstock.Order("windowed", ways=1)}):
            with self.subTest(keywords):
                state, found = None, {}
                for folder in (plain, packed):
                    with penstock.Loader(folder, batch_size=32, framework="numpy", seed=5, **keywords) as loader:
                        batches = iter(loader.epoch(0))
                        first = [self.rows(next(batches)) for _ in range(7)]
                        state = loader.state_dict()
                        found[folder] = first + [self.rows(batch) for batch in batches]
                self.assertEqual(found[plain], found[packed])
                with penstock.Loader(packed, batch_size=32, framework="numpy", seed=5, **keywords) as loader:
                    loader.load_state_dict(state)
                    self.assertEqual([self.rows(batch) for batch in loader], found[plain][7:])

    @staticmethod
    def rows(batch):
        return [(int(i), int(n), bytes(data)) for i, n, data in zip(batch.sample_ids, batch["cls"], batch["bin"])]

    def test_threads_that_read_one_file_at_once_get_its_bytes(self):
        data = archive(range(1200))
        plain, packed = self.put({"0.tar": data}, "plain"), self.put({"0.tar.gz": gzip.compress(data)}, "packed")
        with penstock.Dataset(plain) as a, penstock.Dataset(packed) as b:
            wanted, wrong = [a[i] for i in range(len(a))], []

            def read(seed):
                for i in random.Random(seed).choices(range(len(a)), k=150):
                    if b[i] != wanted[i]:
                        wrong.append(i)
            threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])

    def test_a_cut_file_is_refused_wherever_it_is_cut(self):
        data = gzip.compress(archive(range(60)))
        for size in [*range(0, 24), *range(24, len(data), 7919), *range(len(data) - 12, len(data))]:
            message = self.refused(self.put({"0.tar.gz": data[:size]}), "0.tar.gz", "byte ")
            self.assertTrue("cut short" in message or size < 4, message)

    def test_every_flipped_bit_of_a_trailer_is_seen(self):
        data = gzip.compress(archive(range(20)))
        for bit in range(64):
            broken = bytearray(data)
            broken[len(data) - 8 + bit // 8] ^= 1 << bit % 8
            self.refused(self.put({"0.tar.gz": broken}), "0.tar.gz", "CRC-32" if bit < 32 else "the size at the end of a gzip member")

    def test_flipped_bits_are_seen_at_the_first_open(self):
        data = gzip.compress(archive(range(100)))
        for seed in range(40):
            chance = random.Random(seed)
            broken = bytearray(data)
            broken[chance.randrange(10, len(data) - 8)] ^= 1 << chance.randrange(8)
            self.refused(self.put({"0.tar.gz": broken}), "0.tar.gz", "of the gzip file")

    def test_bytes_after_the_last_member_are_refused(self):
        data = gzip.compress(archive(range(20)))
        for rest in (b"x", b"\x1fx", b"trailing", b"x" * 40):
            self.refused(self.put({"0.tar.gz": data + rest}), "the bytes after the last gzip member are not")
        self.refused(self.put({"0.tar.gz": data + data[:7]}), "cut short")
        self.refused(self.put({"0.tar.gz": data + bytes(600) + b"rest of it"}), "the bytes after the last gzip member are not")

    def test_a_name_that_lies_is_refused(self):
        self.refused(self.put({"0.tar.gz": archive(range(3))}), "0.tar.gz", "does not begin as a gzip file")

    def test_a_bit_that_flips_later_is_found_by_the_read_of_its_sample_and_by_verify(self):
        data = gzip.compress(archive(range(1500)), 1)
        folder = self.put({"0.tar.gz": data})
        with penstock.Dataset(folder) as data_set:
            wanted = [data_set[i] for i in range(len(data_set))]
        file = os.path.join(folder, "0.tar.gz")
        times = os.stat(file)
        for seed in range(8):
            broken = bytearray(data)
            at = random.Random(seed).randrange(len(data) // 4, len(data) - 100)
            broken[at] ^= 1 << seed
            with open(file, "r+b") as out:
                out.write(broken)
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
            messages = []
            with penstock.Dataset(folder) as data_set:
                for i in range(0, len(data_set), 10):
                    try:
                        self.assertEqual(data_set[i], wanted[i])
                    except penstock.CorruptRecordError as error:
                        messages.append(str(error))
            self.assertTrue(messages, seed)
            self.assertIn("of the gzip file", messages[0])
            self.assertIn("0.tar.gz", messages[0])
            found = self.command("verify", folder, status=1).decode()
            self.assertIn("of the gzip file", found)

    def test_points_are_kept_and_made_again_when_a_file_changes(self):
        folder = self.put({"0.tar.gz": gzip.compress(archive(range(100)))})

        def kept():
            place = os.path.join(folder, ".penstock")
            return {name: os.stat(os.path.join(place, name)).st_mtime_ns for name in os.listdir(place)
                    if name.endswith(".points")}
        penstock.Dataset(folder).close()
        first = kept()
        self.assertEqual(len(first), 1)
        penstock.Dataset(folder).close()
        self.assertEqual(kept(), first)
        with open(os.path.join(folder, "0.tar.gz"), "wb") as out:
            out.write(gzip.compress(archive(range(130))))
        with penstock.Dataset(folder) as data_set:
            self.assertEqual(len(data_set), 130)
        self.assertNotEqual(kept(), first)
        for name in kept():  # removed: made again
            os.remove(os.path.join(folder, ".penstock", name))
        with penstock.Dataset(folder) as data_set:
            self.assertEqual(data_set[129]["cls"], 129)

    @unittest.skipUnless(os.geteuid() == 0, "missing: root, to give a file away")
    def test_points_of_another_user_are_not_used(self):
        folder = self.put({"0.tar.gz": gzip.compress(archive(range(50)))})
        penstock.Dataset(folder).close()
        place = os.path.join(folder, ".penstock")
        file, = [os.path.join(place, name) for name in os.listdir(place) if name.endswith(".points")]
        os.chown(file, 12345, 12345)
        with penstock.Dataset(folder) as data_set:
            self.assertEqual(data_set[49]["cls"], 49)
        self.assertEqual(os.stat(file).st_uid, 0)
        with penstock.Dataset(folder) as data_set:
            os.chown(file, 12345, 12345)
            with self.assertRaises(penstock.CorruptRecordError) as caught:
                _ = data_set[3]
            self.assertIn(file, str(caught.exception))

    def test_damage_of_the_points_file_is_an_error_that_names_it(self):
        folder = self.put({"0.tar.gz": gzip.compress(archive(range(900)))})
        with penstock.Dataset(folder) as data_set:
            wanted = data_set[800]
        place = os.path.join(folder, ".penstock")
        file, = [os.path.join(place, name) for name in os.listdir(place) if name.endswith(".points")]
        with open(file, "rb") as source:
            good = source.read()
        seen = 0
        for at in [0, 9, 50, *range(4096, len(good), 997)]:
            with open(file, "r+b") as out:
                out.seek(at)
                out.write(bytes([good[at] ^ 64]))
            with penstock.Dataset(folder) as data_set:
                try:
                    self.assertEqual(data_set[800], wanted)
                except penstock.CorruptRecordError as error:
                    self.assertIn("of the access points file", str(error))
                    self.assertIn(file, str(error))
                    seen += 1
            with open(file, "r+b") as out:
                out.write(good)
        self.assertGreater(seen, 3)

    def test_a_file_that_changes_during_a_run_is_refused(self):
        folder = self.put({f"{k}.tar.gz": gzip.compress(archive(range(50 * k, 50 * k + 50))) for k in range(3)})
        with penstock.Dataset(folder) as data_set:
            with open(os.path.join(folder, "2.tar.gz"), "ab") as out:
                out.write(bytes(100))
            with self.assertRaises(penstock.CorruptRecordError) as caught:
                for i in range(149, -1, -1):
                    _ = data_set[i]
            self.assertIn("2.tar.gz was changed", str(caught.exception))

    def test_plain_archives_of_a_folder_are_taken_before_compressed_ones(self):
        data = archive(range(30))
        folder = self.put({"0.tar": data, "0.tar.gz": gzip.compress(data)})
        with penstock.Dataset(folder) as data_set:
            self.assertEqual(len(data_set), 30)
        with penstock.Dataset(os.path.join(folder, "0.tar.gz")) as data_set:
            self.assertEqual(len(data_set), 30)

    def test_a_folder_that_is_unpacked_in_part_is_refused(self):
        data = archive(range(30))
        for lone in ("1.tar.gz", "1.tgz", "0.tar.x.tar.gz"):
            folder = self.put({"0.tar": data, "0.tar.gz": gzip.compress(data), lone: gzip.compress(data)}, name=lone + ".d")
            self.assert_says([f"{lone} has no plain copy", "*.tar.gz" if lone == "1.tar.gz" else "*."],
                             penstock.Dataset, folder)
            with penstock.Dataset(os.path.join(folder, "*.tar")) as data_set:
                self.assertEqual(len(data_set), 30)
            with penstock.Dataset(os.path.join(folder, lone)) as data_set:
                self.assertEqual(len(data_set), 30)
        folder = self.put({"0.tar": data, "0.tgz": gzip.compress(data)}, name="twins")
        with penstock.Dataset(folder) as data_set:
            self.assertEqual(len(data_set), 30)

    def test_bench_says_why_threads_read(self):
        folder = self.put({"0.tar.gz": gzip.compress(archive(range(40)))})
        told = self.command("bench", folder, "--seconds", "0.1", "--batch-size", "4", "--no-ceilings").decode()
        self.assertIn("files are compressed, so threads read and unpack them", told)
        self.assertNotIn("io_uring is refused", told)

    def test_without_proc_points_are_found_again_and_a_file_without_a_name_is_refused(self):
        environment = {**os.environ, "LD_LIBRARY_PATH": os.path.dirname(os.environ["PENSTOCK_LIBRARY"])}

        def without_proc(*arguments, status=0):
            line = ("unshare", "-rm", "sh", "-c", 'mount -t tmpfs none /proc || exit 77; exec "$0" "$@"', *arguments)
            done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
            if done.returncode == 77 or done.stderr.startswith("unshare"):
                self.skipTest("no mount namespace here")
            self.assertEqual(done.returncode, status, done)
            return done.stdout + done.stderr

        folder = self.put({"0.tar.gz": gzip.compress(archive(range(300)), 1)})
        indices = os.path.join(folder, ".penstock")
        found = []
        for _ in "ab":  # made, then found
            self.assertIn("300", without_proc(os.environ["PENSTOCK_COMMAND"], "info", folder))
            found.append({name: os.stat(os.path.join(indices, name)).st_ino for name in os.listdir(indices)})
        self.assertGreaterEqual(len(found[0]), 3)  # the samples, points of each file, and what they are of
        self.assertEqual(*found)
        data = archive(range(300))
        broken = self.put({"0.tar": data[:len(data) // 2], "1.tar": data}, "broken")
        told = without_proc(os.environ["PENSTOCK_COMMAND"], "verify", broken, status=1)
        self.assertIn(f"the rest of the data set was not checked: the index of {broken} is a file without a name, "
                      "which needs /proc: mount /proc, then try again", told)

    def test_files_that_webdataset_compresses_are_read_as_webdataset_reads_them(self):
        library = optional("webdataset")
        folder = self.put({})
        file = os.path.join(folder, "0.tar.gz")
        with library.TarWriter(file) as out:
            for n in range(300):
                out.write({"__key__": f"{n:05d}", "bin": random.Random(n).randbytes(n * 40), "cls": n})
        with open(file, "rb") as source:
            self.assertEqual(source.read(2), b"\x1f\x8b")
        theirs = [(sample["bin"], int(sample["cls"])) for sample in library.WebDataset(file, shardshuffle=False)]
        with penstock.Dataset(folder) as data_set:
            self.assertEqual([(sample["bin"], sample["cls"]) for sample in (data_set[i] for i in range(300))], theirs)

    def test_zstd_in_frames_gives_the_samples_of_the_plain_archive_and_one_frame_needs_the_cache(self):
        library = optional("zstandard")
        data = archive(range(4000))
        self.assertGreater(len(data), 9 << 20)
        plain = self.put({"0.tar": data}, "plain")
        coder = library.ZstdCompressor(write_checksum=True)
        frames = b"".join(coder.compress(data[i:i + 500_000]) for i in range(0, len(data), 500_000))
        self.check_equal(plain, self.put({"0.tar.zst": frames}, "frames"))
        cut = self.put({"0.tar.zst": frames[:-9]}, "cut")
        self.refused(cut, "0.tar.zst", "cut short")
        for seed in range(20):
            broken = bytearray(frames)
            broken[random.Random(seed).randrange(len(frames))] ^= 1 << seed % 8
            # A frame whose head then says that it is large needs the cache, where the damage is found.
            with self.assertRaises(penstock.CorruptRecordError) as caught:
                penstock.Dataset(self.put({"0.tar.zst": broken}, "broken"),
                                 foreign=penstock.Foreign(cache_path=self.path("cache")))
            self.assertIn("byte ", str(caught.exception))
        one = self.put({"0.tar.zstd": coder.compress(data)}, "one")
        with unittest.mock.patch("penstock.foreign._cache_folder", return_value=None):
            self.refused(one, "0.tar.zstd", "set cache_path", kind=penstock.UnsupportedError)
        with penstock.Dataset(plain) as a, penstock.Dataset(one, foreign=penstock.Foreign(cache_path=self.path("cache"))) as b:
            for i in random.Random(1).sample(range(len(a)), 200):
                self.assertEqual(a[i], b[i])

    @staticmethod
    def sample(folder, cache, i=0, out=None):
        """Return the hash of a sample of a large archive, or the exception."""
        out = [] if out is None else out
        try:
            with penstock.Dataset(folder, foreign=penstock.Foreign(cache_path=cache)) as data_set:
                out.append(hashlib.sha256(data_set.get(i, "bin")).hexdigest())
        except Exception as error:  # pylint: disable=broad-exception-caught
            out.append(error)
        return out[-1]

    def test_a_file_that_is_replaced_while_its_entry_is_awaited_does_not_get_into_the_cache(self):
        old, new = one_frame(large_archive(1)), one_frame(large_archive(2))
        self.assertEqual(len(old), len(new))
        folder, cache = self.put({"0.tar.zst": old}), self.path("cache")
        file = os.path.join(folder, "0.tar.zst")
        os.utime(file, ns=(10**18, 10**18))
        first = self.sample(folder, cache)
        making, out = Making(cache), []
        reader = threading.Thread(target=self.sample, args=(folder, cache, 0, out))
        reader.start()
        time.sleep(1)

        def replace(data, when):
            with open(file + ".new", "wb") as to:
                to.write(data)
            os.utime(file + ".new", ns=(when, when))
            os.rename(file + ".new", file)
        replace(new, 11 * 10**17)
        making.give_up()
        reader.join()
        self.assertIsInstance(out[0], penstock.CorruptRecordError)
        self.assertIn("0.tar.zst was changed or replaced since the data set was opened (its time of change differs)", str(out[0]))
        replace(old, 10**18)
        self.assertEqual(self.sample(folder, cache), first)

    def test_a_loader_that_waits_for_an_entry_is_closed_at_once(self):
        folder, cache = self.put({"0.tar.zst": one_frame(large_archive(1))}), self.path("cache")
        self.sample(folder, cache)
        making = Making(cache)
        with penstock.Loader(folder, batch_size=4, framework="numpy", foreign=penstock.Foreign(cache_path=cache),
                             reading=penstock.Reading(timeout=0.5)) as loader:
            with self.assertRaises(penstock.TimedOutError):
                next(iter(loader.epoch(0)))
            began = time.monotonic()
        self.assertLess(time.monotonic() - began, 2)
        making.give_up()

    def test_a_loader_ends_where_the_maker_of_an_entry_does_nothing(self):
        folder, cache = self.put({"0.tar.zst": one_frame(large_archive(1))}), self.path("cache")
        self.sample(folder, cache)
        making, began = Making(cache), time.monotonic()
        with penstock.Loader(folder, batch_size=4, framework="numpy", foreign=penstock.Foreign(cache_path=cache)) as loader:
            with self.assertRaises(penstock.PenstockError) as caught:
                next(iter(loader.epoch(0)))
        self.assertIn("has made no progress for 6", str(caught.exception))
        self.assertLess(time.monotonic() - began, 100)
        making.give_up()

    def test_a_file_replaced_and_opened_by_others_is_not_reported_as_damaged(self):
        folder = self.put({f"{k}.tar.gz": gzip.compress(large_archive(k), 1) for k in range(2)})
        with penstock.Dataset(folder) as data_set:
            data_set.get(0, "bin")
            file = os.path.join(folder, "0.tar.gz")
            with open(file + ".new", "wb") as out:
                out.write(gzip.compress(large_archive(5), 1))
            os.rename(file + ".new", file)
            self.command("info", folder)
            data_set.get(30, "bin")
            seen = []
            for i in range(23, 0, -1):
                try:
                    data_set.get(i, "bin")
                except penstock.CorruptRecordError as error:
                    seen.append(str(error))
            self.assertTrue(seen)
            for message in seen:
                self.assertNotIn("damaged", message)
                self.assertIn("open the data set again", message)

    def test_an_error_does_not_give_the_reason_of_another_file(self):
        folder, cache = self.put({f"{k}.tar.zst": one_frame(large_archive(k)) for k in range(2)}), self.path("cache")
        penstock.Dataset(folder, foreign=penstock.Foreign(cache_path=cache)).close()
        shutil.rmtree(self.path("cache/entries"))
        with penstock.Dataset(folder, foreign=penstock.Foreign(cache_path=cache, cache_size=2 << 20)) as data_set:
            for i, word in ((0, "cache"), (30, "No such file")):
                if i:
                    os.rename(os.path.join(folder, "1.tar.zst"), os.path.join(folder, "gone"))
                with self.assertRaises(Exception) as caught:
                    data_set.get(i, "bin")
                self.assertIn(word, str(caught.exception))
            self.assertNotIn("cache", str(caught.exception))

    def test_want_of_memory_is_no_damage(self):
        folder, cache = self.put({"0.tar.zst": one_frame(large_archive(1), 17)}), self.path("cache")
        penstock.Dataset(folder, foreign=penstock.Foreign(cache_path=cache)).close()
        shutil.rmtree(self.path("cache/entries"))
        code = f"""
import penstock, resource
with penstock.Dataset({folder!r}, foreign=penstock.Foreign(cache_path={cache!r})) as data_set:
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (100 << 20),) * 2)
    try:
        data_set.get(0, "bin")
    except Exception as error:
        print(type(error).__name__, error)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        self.assertIn(b"no memory to unpack", done.stdout)
        self.assertNotIn(b"CorruptRecordError", done.stdout)

    def test_a_failed_first_read_keeps_no_points(self):
        whole = gzip.compress(archive(range(50)))
        folder = self.put({"0.tar.gz": whole, "1.tar.gz": whole, "2.tar.gz": whole[:-9]})
        self.refused(folder, "2.tar.gz")
        place = os.path.join(folder, ".penstock")
        self.assertEqual([name for name in os.listdir(place) if ".points" in name and "lock" not in name], [])

    def verified(self, folder, *more):
        done = subprocess.run([os.environ["PENSTOCK_COMMAND"], "verify", folder, "--json", *more], capture_output=True, check=False,
                              env={**os.environ, "PENSTOCK_CACHE": self.path("cache")})
        return json.loads(done.stdout)

    def test_verify_reads_files_whose_bytes_are_in_the_cache(self):
        packed = one_frame(large_archive(1))
        folder, cache = self.put({"0.tar.zst": packed}), self.path("cache")
        file = os.path.join(folder, "0.tar.zst")
        wanted = self.sample(folder, cache)
        times = os.stat(file)
        self.assertEqual(self.verified(folder)["n_bad"], 0)
        # A byte of a sample, and the head of a block that then has no type.
        for at, byte, word in ((5_000_000, b"!", "its contents differ from the first reading"), (6 + (3 + (1 << 17)) * 40, b"\xff", "byte ")):
            with open(file, "r+b") as out:
                out.write(packed)
                out.seek(at)
                out.write(byte)
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
            told = self.verified(folder)
            self.assertEqual(told["n_bad"], 1)
            self.assertEqual(told["bad"][0]["shard"], "0.tar.zst")
            self.assertIn(word, str(told["bad"][0]))
            self.assertEqual(self.sample(folder, cache), wanted)

    def test_zstd_without_checksums_counts_as_data_without_and_gets_some(self):
        data = archive(range(100))
        checked = gzip.compress(data)
        for name, packed in (("0.tar.zst", one_frame(data)), ("0.tar.zst", one_frame(large_archive(1)))):
            folder = self.put({name: packed})
            wanted = self.verified(self.put({"0.tar": data}, "plain"))["checksums"]
            self.assertEqual(self.verified(folder)["checksums"], wanted)
            self.assertEqual(self.verified(folder, "--checksums")["checksums"], "kept")
            self.assertEqual(self.verified(folder)["checksums"], "compared")
            times = os.stat(os.path.join(folder, name))
            with open(os.path.join(folder, name), "r+b") as out:
                out.seek(len(packed) // 2)
                out.write(b"other bytes")
            os.utime(os.path.join(folder, name), ns=(times.st_atime_ns, times.st_mtime_ns))
            shutil.rmtree(self.path("cache/entries"), ignore_errors=True)
            self.assertGreater(self.verified(folder)["n_bad"], 0)
        self.assertEqual(self.verified(self.put({"0.tar.gz": checked}))["checksums"], "own")
        self.assertNotEqual(self.verified(self.put({"0.tar.gz": checked, "1.tar.zst": one_frame(data)}))["checksums"], "own")

    def test_info_prints_the_compression(self):
        folder = self.put({"0.tar.gz": gzip.compress(archive(range(5)))})
        self.assertIn(b"tar, gzip", self.command("info", folder))
        self.assertIn(b"no damage found", self.command("verify", folder))

    def test_verify_names_every_damaged_file(self):
        whole = gzip.compress(archive(range(50)))
        folder = self.put({"0.tar.gz": whole, "1.tar.gz": whole[:-1] + b"x", "2.tar.gz": whole[:len(whole) // 2],
                           "3.tar.gz": whole})
        done = subprocess.run([os.environ["PENSTOCK_COMMAND"], "verify", folder, "--json"], capture_output=True, check=False)
        told = json.loads(done.stdout)
        self.assertEqual((done.returncode, told["n_bad"], told["n_samples"]), (1, 2, 0))
        self.assertEqual([bad["shard"] for bad in told["bad"]], ["1.tar.gz", "2.tar.gz"])
        self.refused(folder, "1.tar.gz")

    def test_empty_members_alone_are_no_archive(self):
        self.refused(self.put({"0.tar.gz": gzip.compress(b"")}), "0.tar.gz")


if __name__ == "__main__":
    unittest.main()
