# SPDX-License-Identifier: Apache-2.0
"""Pairs of .bin and .idx of Megatron-LM read in place. This file writes the published layout by itself: it is the oracle."""
import os
import shutil
import struct

import forge
import penstock
from data_fixture import Case, np

CODES = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float64": 6, "float32": 7, "uint16": 8}


def idx(dtype, lengths, boundaries, pointers=None, modes=b"", magic=b"MMIDIDX\0\0", version=1, code=None):
    """Return the bytes of a .idx."""
    lengths = np.asarray(lengths, "<i4")
    if pointers is None:
        pointers = np.cumsum([0, *lengths[:-1].tolist()])[:len(lengths)] * np.dtype(dtype).itemsize
    return (magic + struct.pack("<QBQQ", version, CODES[dtype] if code is None else code, len(lengths), len(boundaries)) +
            lengths.tobytes() + np.asarray(pointers, "<i8").tobytes() + np.asarray(boundaries, "<i8").tobytes() + modes)


class Megatron(Case):
    def write(self, documents, name="corpus", dtype="uint16", modes=False):
        """documents: lists of sequences. Returns the prefix."""
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        sequences = [s for document in documents for s in document]
        boundaries = np.cumsum([0, *(len(document) for document in documents)])
        with open(self.path(name + ".bin"), "wb") as file:
            file.write(b"".join(np.asarray(s, dtype).tobytes() for s in sequences))
        with open(self.path(name + ".idx"), "wb") as file:
            file.write(idx(dtype, [len(s) for s in sequences], boundaries, modes=bytes(len(sequences)) if modes else b""))
        return self.path(name)

    def corpus(self, n=50, seed=0, dtype="uint16", **keywords):
        random = np.random.default_rng(seed)
        documents = [[random.integers(0, 100, random.integers(0, 40)).astype(dtype) for _ in range(random.integers(0, 4))]
                     for _ in range(n)]
        return documents, self.write(documents, dtype=dtype, **keywords)

    def check(self, path, documents, dtype="uint16"):
        wanted = [np.concatenate([np.zeros(0, dtype), *document]).astype(dtype) for document in documents]
        with penstock.Dataset(path) as data:
            self.assertEqual((len(data), data.info.format, data.info.has_checksums), (len(documents), "megatron", False))
            for i, tokens in enumerate(wanted):
                got = data[i]["tokens"]
                self.assertEqual((got.dtype, got.tolist()), (tokens.dtype, tokens.tolist()), i)
        for keywords in ({"order": "sequential", "n_threads": 1}, {"order": "full", "n_threads": 3}):
            ids = []
            with penstock.Loader(path, batch_size=16, framework="numpy", last_batch="short", device="cpu",
                                 outputs={"tokens": penstock.ragged("tokens")}, **keywords) as loader:
                for batch in loader.epoch(0):
                    rows = np.asarray(batch.sample_ids).tolist()
                    ids += rows
                    for k, i in enumerate(rows):
                        self.assertEqual(np.asarray(batch["tokens"][k]).tobytes(), wanted[i].tobytes())
            self.assertEqual(sorted(ids), list(range(len(documents))))

    def samples(self, path, length, dtype):
        """Return (tokens, starts) of each sample of a length."""
        with penstock.Dataset(path, foreign=penstock.Foreign(fields={"tokens": (dtype, (length,))})) as data:
            return [(sample["tokens"], sample["starts"]) for sample in data]

class Right(Megatron):
    def test_documents_of_every_dtype(self):
        for dtype in CODES:
            with self.subTest(dtype=dtype):
                documents, prefix = self.corpus(dtype=dtype)
                self.check(prefix + ".idx", documents, dtype)

    def test_every_way_to_name_a_pair(self):
        documents, prefix = self.corpus(modes=True)
        for path in (prefix, prefix + ".idx", prefix + ".bin", self.folder):
            with self.subTest(path=path):
                self.check(path, documents)

    def test_pairs_of_a_folder_and_of_a_pattern_follow_each_other(self):
        parts = [self.corpus(20, k, name=f"parts/corpus-{k:02}")[0] for k in range(3)]
        self.check(self.path("parts"), [*parts[0], *parts[1], *parts[2]])
        self.check(self.path("parts/corpus-{00..01}.idx"), [*parts[0], *parts[1]])
        self.check(self.path("parts/corpus-*.idx"), [*parts[0], *parts[1], *parts[2]])
        self.check(self.path("parts/corpus-{01..02}.bin"), [*parts[1], *parts[2]])

    def test_a_new_idx_is_seen(self):
        documents, prefix = self.corpus()
        self.check(prefix, documents)
        joined = [[s for document in documents for s in document]]
        self.check(self.write(joined), joined)

    def test_other_idx_files_are_left_to_other_formats(self):
        with open(self.path("a.idx"), "wb") as file:
            file.write(b"0 512\n")
        self.assert_says("is not a data set", penstock.Dataset, self.folder)

    def test_samples_of_a_length(self):
        for dtype, n, seed in (("uint16", 50, 1), ("int32", 7, 2), ("uint8", 3, 3)):
            documents, prefix = self.corpus(n, seed, dtype=dtype)
            whole = [np.concatenate([np.zeros(0, dtype), *document]).astype(dtype) for document in documents]
            tokens = np.concatenate(whole)
            begins = np.cumsum([0, *map(len, whole)])[:-1]
            begins = sorted({int(b) for b, document in zip(begins, whole) if len(document)})
            for length in (2, 3, 17, 64, len(tokens) - 1, len(tokens)):
                with self.subTest(dtype=dtype, length=length):
                    got = self.samples(prefix, length, dtype)
                    self.assertEqual(len(got), (len(tokens) - 1) // (length - 1))
                    for k, (sample, starts) in enumerate(got):
                        at = k * (length - 1)
                        self.assertEqual(sample.tolist(), tokens[at:at + length].tolist())
                        self.assertEqual(starts.tolist(), [b - at for b in begins if at <= b < at + length])
            self.assert_says(f"must be of at most {len(tokens)}", self.samples, prefix, len(tokens) + 1, dtype)
        with self.assertRaises(penstock.UnsupportedError):
            self.samples(prefix, 1, dtype)
        with self.assertRaises(penstock.UnsupportedError):
            self.samples(prefix, 16, "int64")

    def test_loaders_give_samples_of_a_length(self):
        parts = [self.corpus(40, k, name=f"parts/corpus-{k:02}") for k in range(3)]
        wanted = self.samples(self.path("parts"), 33, "uint16")
        self.assertEqual(len(parts), 3)
        for outputs in (["tokens", "starts"], ["starts"], ["tokens"]):
            for order, threads, reader in (("sequential", 1, "threads"), ("full", 3, "io_uring")):
                ids = []
                with penstock.Loader(self.path("parts"), batch_size=16, framework="numpy", last_batch="short", outputs=outputs,
                                     foreign=penstock.Foreign(fields={"tokens": ("uint16", (33,))}), order=order,
                                     n_threads=threads, reading=penstock.Reading(reader=reader), device="cpu") as loader:
                    for batch in loader.epoch(0):
                        rows = np.asarray(batch.sample_ids).tolist()
                        ids += rows
                        for name in outputs:
                            for k, i in enumerate(rows):
                                self.assertEqual(np.asarray(batch[name][k]).tolist(), wanted[i][name == "starts"].tolist())
                self.assertEqual(sorted(ids), list(range(len(wanted))))

    def test_samples_of_a_length_do_not_cross_files(self):
        parts = [self.corpus(20, k, name=f"parts/corpus-{k:02}")[0] for k in range(3)]
        wanted = []
        for documents in parts:
            tokens = np.concatenate([s for document in documents for s in document])
            wanted += [tokens[at:at + 33].tolist() for at in range(0, len(tokens) - 32, 32)]
        self.assertEqual([sample.tolist() for sample, _ in self.samples(self.path("parts"), 33, "uint16")], wanted)

    def test_samples_longer_than_every_file_are_refused_with_both_lengths(self):
        self.write([[range(30)]], name="two/a")
        self.write([[range(20)], [range(25)]], name="two/b")
        for length in (46, 47, 1025):
            for use in (penstock.Dataset, lambda path, **more: penstock.Loader(path, batch_size=1, **more)):
                with self.assertRaisesRegex(penstock.SettingsError, f"fields.tokens: value is an array of {length} tokens; "
                                            "must be of at most 45, as many as the largest file"):
                    use(self.path("two"), foreign=penstock.Foreign(fields={"tokens": ("uint16", (length,))}))
        self.assertEqual(len(self.samples(self.path("two"), 45, "uint16")), 1)  # the advice
        self.write([[[]]], name="none/a")
        self.assert_says(["is empty: its files have no samples"], penstock.Dataset, self.path("none"),
                         foreign=penstock.Foreign(fields={"tokens": ("uint16", (2,))}))

    def test_raw_tokens_are_no_file_of_pairs(self):
        """As nanoGPT's train.bin: tokens alone."""
        self.write([[range(30)]], name="pairs/a")
        for folder in ("pairs", "raw"):
            os.makedirs(self.path(folder), exist_ok=True)
            np.arange(99, dtype="uint16").tofile(self.path(folder + "/train.bin"))
        page = "docs/how-to/tokens.md packs raw tokens"
        for path, words in (("pairs/train.bin", "has no .idx of Megatron-LM next to it"), ("raw/train.bin", "has no .idx of Megatron-LM"),
                            ("raw", "it has train.bin without a .idx"), ("raw/*.bin", "no .bin that .*raw/\\*.bin matches has a .idx")):
            with self.assertRaisesRegex(penstock.PenstockError, words + ".*" + page):
                penstock.Dataset(self.path(path))
            with self.assertRaisesRegex((penstock.PenstockError, RuntimeError), words + ".*" + page):
                penstock.pack(self.path(path), self.path("packed"))
        self.assertEqual(len(penstock.Dataset(self.path("pairs"))), 1)
        for i in range(3):
            self.write([[range(30)]], name=f"many/p{i}")
        os.remove(self.path("many/p1.idx"))
        for path, words in (("many/p{0..2}.bin", "p1.idx"), ("none/p{0..2}.bin", "p0.idx")):
            with self.assertRaisesRegex(penstock.PenstockError, "cannot open .*" + words):
                penstock.Dataset(self.path(path))


class Damaged(Megatron):
    def put(self, data, name="corpus.idx"):
        shutil.rmtree(self.path(".penstock"), ignore_errors=True)
        with open(self.path(name), "wb") as file:
            file.write(data)

    def refuse(self, *words, code="PSTK_EBADMSG"):
        error = self.assert_says(words, penstock.Dataset, self.path("corpus.idx"))
        self.assertEqual(error.code, code)

    def test_idx_of_every_wrong_kind(self):
        _, prefix = self.corpus()
        self.write([[[1, 2, 3], [4, 5]], [[6]]])
        right = {"dtype": "uint16", "lengths": [3, 2, 1], "boundaries": [0, 2, 3]}
        self.put(idx(**right))
        self.check(prefix, [[[1, 2, 3], [4, 5]], [[6]]])
        for change, words in (
                ({"magic": b"TNTIDX\0\0\0"}, ["byte 0", "does not begin as an .idx"]),
                ({"version": 2}, ["byte 9", "version is 2"]), ({"code": 0}, ["byte 17", "dtype is 0"]),
                ({"code": 9}, ["byte 17", "dtype is 9"]),
                ({"lengths": [3, -2, 1]}, ["byte 38", "sequence 1 has -2 tokens"]),
                ({"lengths": [3, 2, 2]}, ["byte 42", "sequence 2 has the bytes 10 to 14 of the .bin", "cut short"]),
                ({"lengths": [3, 1, 1]}, ["last sequence ends at byte 10", "which has 12"]),
                ({"lengths": [3, 0, 1], "pointers": [0, 6, 10]}, ["byte 62", "sequence 2 begins at byte 10", "must be 6"]),
                ({"pointers": [2, 6, 10]}, ["byte 46", "sequence 0 begins at byte 2", "must be 0"]),
                ({"pointers": [0, 6, 1 << 40]}, ["byte 62", "sequence 2"]),
                ({"pointers": [0, 6, -1]}, ["byte 62", "sequence 2"]), ({"pointers": [0, 4, 10]}, ["byte 54", "sequence 1"]),
                ({"pointers": [0, 8, 10], "lengths": [3, 1, 1]}, ["byte 54", "sequence 1 begins at byte 8", "must be 6"]),
                ({"boundaries": [1, 2, 3]}, ["byte 70", "first boundary", "must be 0"]),
                ({"boundaries": [0, 2, 2]}, ["byte 86", "last boundary", "is 2; must be 3"]),
                ({"boundaries": [0, 4, 3]}, ["byte 78", "document 0 ends before sequence 4"]),
                ({"boundaries": [0, 2, 1, 3]}, ["document 1 ends before sequence 1"]),
                ({"boundaries": [0, -1, 3]}, ["document 0 ends before"]), ({"boundaries": []}, ["0 boundaries"]),
                ({"modes": b"\0"}, ["byte 94", "has 95 bytes; its counts need 94, or with modes 97"])):
            with self.subTest(change=change):
                self.put(idx(**{**right, **change}))
                self.refuse("corpus.idx", *words)
        for n in (18, 26):
            data = bytearray(idx(**right))
            data[n:n + 8] = struct.pack("<Q", 1 << 61)
            self.put(data)
            self.refuse("below 2^40")
        self.put(idx("int32", [3, 3], [0, 1]) + b"", "other.idx")
        self.put(b"", "other.bin")
        self.put(idx(**right))
        self.assert_says("other.idx", penstock.Dataset, self.folder)
        self.write([[[1]]], "other", "int32")
        self.assert_says(["other.idx", "tokens are i32", "first file are u16"], penstock.Dataset, self.folder)

    def test_cut_at_every_512_bytes_and_more(self):
        documents, prefix = self.corpus(200)
        with open(prefix + ".idx", "rb") as file:
            data = file.read()
        for size in [0, 1, 8, 9, 17, 33, 34, *range(512, len(data), 512), len(data) - 1]:
            self.put(data[:size])
            self.refuse("corpus.idx: byte ", "copy it again" if size != 0 else "ends within its head")
        self.put(data)
        with open(prefix + ".bin", "rb") as file:
            tokens = file.read()
        for size in [0, 1, *range(512, len(tokens), 512), len(tokens) - 1]:
            self.put(tokens[:size], "corpus.bin")
            self.refuse("corpus.idx: byte ", "of the .bin")
        self.put(tokens + b"x", "corpus.bin")
        self.refuse("are the files of one pair")
        self.put(tokens, "corpus.bin")
        self.check(prefix, documents)
        os.remove(prefix + ".bin")
        for path in (prefix, prefix + ".idx", prefix + ".bin", self.folder):
            self.assert_says("corpus.bin is missing; it has the tokens of the .idx next to it", penstock.Dataset, path)

    def test_every_bit_is_found_or_harmless(self):
        documents = [[[1, 2, 3], [4, 5]], [], [[6]], [[7, 8], [9]]]
        prefix = self.write(documents)
        with open(prefix + ".idx", "rb") as file:
            right = file.read()
        for place in range(len(right)):
            for bit in range(8):
                bad = bytearray(right)
                bad[place] ^= 1 << bit
                self.put(bad)
                for function in (lambda: penstock.Dataset(prefix).close(), lambda: self.samples(prefix, 4, "uint16")):
                    try:
                        function()
                    except penstock.PenstockError as error:
                        self.assertIn(error.code, ("PSTK_EBADMSG", "PSTK_ENOTSUP"))
                        self.assertIn("corpus.idx: byte " if error.code == "PSTK_EBADMSG" else "field tokens", str(error))
                        continue
                    self.assertTrue(place == 17 or place >= len(right) - 32, (place, bit))  # a dtype, or a document's end

    def test_a_damaged_index_is_reported_or_built_again(self):
        _, prefix = self.corpus(30)
        wanted = [(a.tolist(), b.tolist()) for a, b in self.samples(prefix, 9, "uint16")]
        (name,) = (os.path.join(self.path(".penstock"), name) for name in os.listdir(self.path(".penstock"))
                   if name.endswith(".index"))
        with open(name, "rb") as file:
            right = file.read()
        n_refused = 0
        for place in (*range(0, 100, 7), *range(100, len(right), 61)):
            with open(name, "wb") as file:
                file.write(right[:place] + bytes([right[place] ^ 1 << place % 8]) + right[place + 1:])
            try:
                self.assertEqual([(a.tolist(), b.tolist()) for a, b in self.samples(prefix, 9, "uint16")], wanted)
            except penstock.CorruptRecordError as error:
                n_refused += 1
                self.assertIn(f"the index {name} is damaged in bytes ", str(error))
                self.assertIn("remove it", str(error))
        self.assertGreater(n_refused, 10)

    def test_an_index_of_bytes_that_are_not_there_is_named(self):
        _, prefix = self.corpus(30)
        penstock.Dataset(prefix).close()
        index = forge.move_rows(self.path(".penstock"))
        self.assert_says(["corpus.bin: record 3 (bytes ", "): the file does not have these bytes; remove the index " + index +
                          ", and it is built again"], lambda: penstock.Dataset(prefix)[3])

    def test_a_bin_that_changes_while_the_data_set_is_open(self):
        documents, prefix = self.corpus(300)
        with open(prefix + ".bin", "rb") as file:
            data = file.read()

        def replace():
            with open(self.path("new"), "wb") as file:
                file.write(data[::-1])
            os.replace(self.path("new"), prefix + ".bin")

        for change in (lambda: os.truncate(prefix + ".bin", len(data) // 2), replace):
            self.put(data, "corpus.bin")
            with penstock.Loader(prefix, batch_size=5, framework="numpy", order="sequential", memory=penstock.Memory(n_slots=2),
                                 device="cpu",
                                 outputs={"tokens": penstock.ragged("tokens")}) as loader:
                change()
                try:
                    for batch in loader.epoch(0):  # a file that was open keeps the bytes as they were
                        for k, i in enumerate(np.asarray(batch.sample_ids).tolist()):
                            wanted = [token for s in documents[i] for token in s.tolist()]
                            self.assertEqual(np.asarray(batch["tokens"][k]).tolist(), wanted)
                    self.assertIs(change, replace)
                except penstock.PenstockError as error:
                    self.assertIn("corpus.bin", str(error))
