# SPDX-License-Identifier: Apache-2.0
"""Subsets of a data set, beside Python's own sets and slices."""
import fractions
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import sets
import penstock
from data_fixture import Case
from penstock import Balanced, Fold, Fraction, Ids, Range, Weighted, Where

N = 2000


def opened(subset, path=None, **keywords):
    keywords.setdefault("batch_size", 7)
    keywords.setdefault("last_batch", "short")
    return penstock.Loader(path or sets.scalars(), subset=subset, framework="dlpack", n_threads=1, **keywords)


def ids_of(subset, path=None, **keywords):
    """Return the ids of an epoch, in order."""
    with opened(subset, path, **keywords) as loader:
        found = [i for batch in loader for i in batch.sample_ids]
        assert len(found) == loader.n_samples and (keywords.get("last_batch") or len(loader) == -(-len(found) // 7))
        return found


def written(kind, values):
    """Return a data set with a scalar `c` in each record."""
    path = os.path.join(tempfile.mkdtemp(dir=sets.ROOT), "c")
    with penstock.Writer(path, {"c": kind}) as writer:
        for value in values:
            writer.add(c=value)
    return path


class Members(unittest.TestCase):
    def test_train_and_validation_are_disjoint_and_whole(self):
        for cut in (0.8, 0.001, 1 / 3, 0.7):
            train, valid = ids_of(Fraction(0, cut, seed=1)), ids_of(Fraction(cut, 1, seed=1))
            self.assertEqual(len(train), int(N * round(cut, 9)))
            self.assertEqual(sorted(train + valid), list(range(N)))
        self.assertNotEqual(sorted(train), sorted(ids_of(Fraction(0, cut, seed=2))))
        self.assertEqual(set(train), set(ids_of(Fraction(0, cut, seed=1), seed=9)))  # not the loader's seed

    def test_folds(self):
        parts = [ids_of(Fold(k, 7, seed=3)) for k in range(7)]
        self.assertEqual(sorted(sum(parts, [])), list(range(N)))
        self.assertLessEqual(max(map(len, parts)) - min(map(len, parts)), 1)
        for k in (0, 3, 6):
            self.assertEqual(set(ids_of(Fold(k, 7, seed=3, rest=True))), set(range(N)) - set(parts[k]))
        self.assertEqual(ids_of(Fold(0, 5, seed=1)), ids_of(Fraction(0, 0.2, seed=1)))

    def test_ranges_and_ids(self):
        self.assertEqual(ids_of(Range(5, 50), shuffle=False), list(range(5, 50)))
        self.assertEqual(sorted(ids_of(Range(5, 50))), list(range(5, 50)))
        some = [7, 3, 1999, 0, 12]
        self.assertEqual(ids_of(Ids(some), shuffle=False), some)
        self.assertEqual(ids_of(Ids(iter(some)), shuffle=False), some)
        self.assertEqual(ids_of(Ids(range(1500)), shuffle=False), list(range(1500)))

    def test_ids_of_arrays(self):
        if sets.numpy is None:
            self.skipTest("NumPy is not installed")
        some = [7, 3, 1999, 0, 12]
        for dtype in ("i8", "u8", "i4", "u2", ">i4"):
            self.assertEqual(ids_of(Ids(sets.numpy.array(some, dtype)), shuffle=False), some)
        torch = sets.torch_or_skip()
        self.assertEqual(ids_of(Ids(torch.tensor(some)), shuffle=False), some)

    def test_conditions_on_columns(self):
        self.assertEqual(ids_of(Where("i", in_=[5, 1700, -4]), shuffle=False), [5, 1700])
        self.assertEqual(ids_of(Where("i", in_=8), shuffle=False), [8])
        self.assertEqual(ids_of(Where("i", in_=True), shuffle=False), [1])  # as columns of bools have them
        self.assertEqual(ids_of(Where("i", in_=[False, 4]), shuffle=False), [0, 4])
        self.assertEqual(ids_of(Where("i", not_in=range(3, N)), shuffle=False), [0, 1, 2])
        self.assertEqual(ids_of(Where("half", at_least=3, below=4.5), shuffle=False), [6, 7, 8])
        self.assertEqual(ids_of(Where("half", below=1), shuffle=False), [0, 1])
        self.assertEqual(ids_of(Where("i", in_=range(90), not_in=range(3, 80), at_least=2, below=85), shuffle=False),
                         [2, 80, 81, 82, 83, 84])

    def test_bounds_are_exact_in_columns_of_whole_numbers(self):
        for kind, first in (("int64", 1732700000000000001), ("int64", -2**63), ("int64", 2**63 - N), ("uint64", 2**64 - N),
                            ("int64", 2**53 - 3)):
            path = written(kind, [first + i for i in range(N)])
            for k in (0, 1, 2, 3, 100, N - 1):
                with self.subTest(kind=kind, first=first, k=k):
                    self.assertEqual(ids_of(Where("c", at_least=first + k), path, shuffle=False), list(range(k, N)))
                    self.assertEqual(ids_of(Where("c", at_least=first + k, below=first + k + 1), path, shuffle=False), [k])
                    if k:
                        self.assertEqual(ids_of(Where("c", below=first + k), path, shuffle=False), list(range(k)))
            for least, below in ((first, first + N), (-10**30, 10**30), (-2.0**70, 2.0**70), (first - 1, float("inf"))):
                self.assertEqual(ids_of(Where("c", at_least=least, below=below), path, shuffle=False), list(range(N)))
        path = written("int64", range(-3, 4))
        for least, below, wanted in ((-0.5, 1, [3]), (-1, 0.5, [2, 3]), (-1.5, 1.5, [2, 3, 4]), (0.5, 10, [4, 5, 6])):
            self.assertEqual(ids_of(Where("c", at_least=least, below=below), path, shuffle=False), wanted)

    def test_bounds_may_be_numbers_of_other_libraries(self):
        sets.need_numpy()
        numpy = sets.numpy
        path = written("int64", range(2**60, 2**60 + 4))
        for value, wanted in ((numpy.int64(2**60 + 1), [1, 2, 3]), (numpy.array(2**60 + 1), [1, 2, 3]), (numpy.float32(2.0**60), [0, 1, 2, 3]),
                              (numpy.array(0.5), [0, 1, 2, 3]), (fractions.Fraction(1, 2), [0, 1, 2, 3])):
            with self.subTest(value=value):
                self.assertEqual(ids_of(Where("c", at_least=value), path, shuffle=False), wanted)
        if sets.has_torch():
            import torch
            self.assertEqual(ids_of(Where("c", at_least=torch.tensor(0.5), below=torch.tensor(2**60 + 1)), path, shuffle=False), [0])

    def test_bounds_are_exact_in_columns_of_floats(self):
        big, inf = float(2**60), float("inf")  # beside big, doubles are 128 and 256 apart
        path = written("float64", [-inf, -1.5, 0.0, big - 128, big, big + 256, inf, float("nan")])
        for keywords, wanted in (({"at_least": 0}, [2, 3, 4, 5, 6]), ({"at_least": 0, "below": inf}, [2, 3, 4, 5]),
                                 ({"below": 0}, [0, 1]), ({"at_least": -inf}, [0, 1, 2, 3, 4, 5, 6]), ({"at_least": inf}, [6]),
                                 ({"below": inf}, [0, 1, 2, 3, 4, 5]), ({"at_least": 2**60 + 1}, [5, 6]),
                                 ({"at_least": 2**60 - 1, "below": 2**60 + 1}, [4]), ({"below": 2**60 - 1}, [0, 1, 2, 3]),
                                 ({"at_least": -1.7976931348623157e308}, [1, 2, 3, 4, 5, 6])):
            with self.subTest(**keywords):
                self.assertEqual(ids_of(Where("c", **keywords), path, shuffle=False), wanted)

    def test_steps_apply_to_what_the_steps_before_left(self):
        train = ids_of(Fraction(0, 0.8, seed=1), shuffle=False)
        self.assertEqual(ids_of([Fraction(0, 0.8, seed=1), Range(10, 500)], shuffle=False), train[10:500])
        even = [i for i in train if i % 2 == 0]
        self.assertEqual(ids_of([Fraction(0, 0.8, seed=1), Where("i", in_=range(0, N, 2))], shuffle=False), even)
        self.assertEqual(ids_of((Fraction(0, 0.8, seed=1), [Where("i", in_=range(0, N, 2)), Range(3, 9)]),
                                shuffle=False), even[3:9])
        few = range(100, 0, -1)
        self.assertEqual(ids_of([Fraction(0, 0.8, seed=1), Ids(few)], shuffle=False), [i for i in few if i in train])
        odd = [Where("i", in_=range(1, N, 2))]
        halves = ids_of(odd + [Fraction(0, 0.5)]) + ids_of(odd + [Fraction(0.5, 1)])
        self.assertEqual(sorted(halves), list(range(1, N, 2)))

    def test_every_order_has_each_member_once(self):
        wanted = sorted(ids_of(Fraction(0.2, 0.9, seed=4), shuffle=False))
        for order in ("full", "sequential"):
            self.assertEqual(sorted(ids_of(Fraction(0.2, 0.9, seed=4), order=penstock.Order(order, epoch=3))), wanted)


class Files(Case):
    def file(self, name, content):
        path = os.path.join(self.folder, name)
        pathlib.Path(path).write_bytes(content)
        return path

    def npy(self, descr, values, code, version=1):
        head = repr({"descr": descr, "fortran_order": False, "shape": (len(values),)}).encode() + b"\n"
        size = struct.pack("<H" if version == 1 else "<I", len(head))
        return self.file("ids-%s.npy" % descr[1:], b"\x93NUMPY" + bytes([version, 0]) + size + head
                         + struct.pack("<%d%s" % (len(values), code), *values))

    def test_lists_in_files(self):
        some = [9, 4, 100, 0]
        self.assertEqual(ids_of(Ids(self.file("ids.txt", b"9\n4\n\n100\n0\n")), shuffle=False), some)
        self.assertEqual(ids_of(Ids(pathlib.Path(self.file("ids.txt", b"9\r\n4\n100\n0"))), shuffle=False), some)
        for descr, code in (("<i8", "q"), ("<u8", "Q"), ("<i4", "i"), ("<u2", "H"), ("|u1", "B")):
            for version in (1, 2):
                self.assertEqual(ids_of(Ids(self.npy(descr, some, code, version)), shuffle=False), some)

    def test_files_that_are_refused(self):
        for path, says in ((self.file("a", b"1\nx\n"), "line 2 of .*a is 'x'"),
                           (self.file("b", b"1\n-2\n"), "line 2 of .* is '-2'"),
                           (self.file("c", b"\n"), "no ids"),
                           (self.file("d.npy", b"1\n2\n"), "is not a .npy file"),
                           (self.npy("<f8", [1.5], "d"), "dtype <f8 and shape"),
                           (self.npy("<i8", [3, -1], "q"), r"Ids\[1\]: value is -1")):
            with self.assertRaisesRegex(penstock.SettingsError, says):
                Ids(path)
        path = self.npy("<i8", [3, 4], "q")
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) - 8)
        with self.assertRaisesRegex(penstock.SettingsError, "fewer than its 2"):
            Ids(path)
        with self.assertRaisesRegex(FileNotFoundError, "Ids: cannot read the file: No such file or directory: .*none"):
            Ids(os.path.join(self.folder, "none"))

    def test_odd_bytes_are_refused(self):
        head = b"{'descr': '<u8', 'fortran_order': False, 'shape': (%d,)}" % (2**47)
        for path, says in ((self.file("e", b"1\n\x99\xff\n"), r"line 2 of .*e is '.*x99.*xff'; must be a sample id"),
                           (self.file("f", b"0" * 10_000 + b"\n"), "line 1 of .*f is '0+'; must be a sample id"),
                           (self.file("g", b"1\r2\r"), "line 1 of .*g is"),
                           (self.file("h.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head), "fewer than its 140737488355328"),
                           (self.file("i.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", 60_000) + b"(" * 60_000), "is not a .npy file"),
                           (self.file("j.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff("), "is not a .npy file")):
            with self.subTest(path=path), self.assertRaisesRegex(penstock.SettingsError, says):
                Ids(path)

    def test_a_file_that_is_not_regular_is_refused_at_once(self):
        with self.assertRaisesRegex(IsADirectoryError, "Ids: cannot read the file: Is a directory"):
            Ids(self.folder)
        for name in ("pipe", "pipe.npy"):
            path = os.path.join(self.folder, name)
            os.mkfifo(path)
            with self.assertRaisesRegex(penstock.SettingsError, f"{name}', which is not a regular file; must be the path of a .npy file"):
                Ids(path)
        for path in ("/dev/zero", "/dev/null", "/dev/ptmx"):
            with self.assertRaisesRegex(penstock.SettingsError, f"'{path}', which is not a regular file"):
                Ids(path)

    def test_standard_input_is_read_where_it_is_a_file_and_else_refused(self):
        code = "import penstock; print(len(penstock.Ids('/dev/stdin')._ids))"
        with open(self.file("ids", b"3\n4\n"), "rb") as file:
            self.assertEqual(subprocess.run([sys.executable, "-c", code], stdin=file, stdout=subprocess.PIPE, check=True, timeout=60).stdout, b"2\n")
        reader, writer = os.pipe()  # its writer writes nothing
        try:
            done = subprocess.run([sys.executable, "-c", code], stdin=reader, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        finally:
            os.close(reader)
            os.close(writer)
        self.assertIn("Ids: value is '/dev/stdin', which is not a regular file; must be", done.stderr)


class Runs(unittest.TestCase):
    def test_ranks_share_a_subset_and_a_run_goes_on_with_others(self):
        subset = Fraction(0, 0.8, seed=1)
        wanted, found, state = sorted(ids_of(subset)), [], None
        for world, n_batches in ((3, 5), (8, 2), (5, None)):
            for rank in range(world):
                with opened(subset, batch_size=penstock.GlobalBatch(120), ranks=penstock.Ranks(rank, world)) as loader:
                    if state is not None:
                        loader.load_state_dict(state)
                    for i, batch in enumerate(loader):
                        if i == n_batches:
                            break
                        found += batch.sample_ids
                        after = loader.state_dict(batch)
            state = after
        self.assertEqual(sorted(found), wanted)

    def test_a_state_of_another_subset_is_refused_with_both(self):
        with opened(Fraction(0, 0.8, seed=1)) as saved, opened(Fraction(0, 0.8, seed=1)) as same, \
                opened(Fraction(0, 0.8, seed=2)) as other, opened(None) as whole:
            state = saved.state_dict()
            self.assertEqual(len(state["subset"]), 32)
            same.load_state_dict(state)
            self.assertEqual(same.state_dict(), state)
            self.assertNotIn("subset", whole.state_dict())
            digest = other.state_dict()["subset"]
            with self.assertRaisesRegex(penstock.SettingsError, f"subset is '{state['subset']}', but this loader's is "
                                                                f"'{digest}' .open the loader with the subset="):
                other.load_state_dict(state)
            with self.assertRaisesRegex(penstock.SettingsError, "this loader's is the whole data set"):
                whole.load_state_dict(state)
            with self.assertRaisesRegex(penstock.SettingsError, "subset is the whole data set, but"):
                saved.load_state_dict(whole.state_dict())

    def test_a_subset_by_a_column_is_known_by_its_samples(self):
        with opened(Where("i", in_=range(10))) as a, opened(Where("half", below=5)) as b:
            self.assertEqual(a.state_dict()["subset"], b.state_dict()["subset"])

    def test_loaders_and_subsets_describe_themselves(self):
        with opened([Fraction(0, 0.8, seed=1), Range(0, 10)]) as loader:
            self.assertEqual((loader.n_samples, len(loader), len(loader.dataset)), (10, 2, N))
            self.assertIn("10 samples", repr(loader))
            self.assertIn("subset [Fraction(0, 0.8, seed=1), Range(0, 10)]", repr(loader))
        self.assertEqual(repr(Where("cls", in_=[3, 7], below=5)), "Where('cls', in_=[3, 7], below=5)")
        self.assertEqual(repr(Ids(range(9))), "Ids(<9 ids>)")
        self.assertEqual(repr(Fold(1, 5, seed=2, rest=True)), "Fold(1, 5, seed=2, rest=True)")
        self.assertEqual(Ids([1, 2]), Ids(range(1, 3)))
        self.assertNotEqual(Ids([1, 2]), Ids([2, 1]))
        self.assertEqual(len({Range(0, 1), Range(0, 1), Range(0, 2)}), 2)


def drawn(weights, subset=None, n=None, epoch=0, **keywords):
    return ids_of(subset, weights=weights, order=penstock.Order(samples_per_epoch=n, epoch=epoch), **keywords)


class Draws(unittest.TestCase):
    def check(self, ids, probabilities):
        """Chi-square of the counts of classes, with a bound that a true one passes but once in some million runs: its mean
        is the number of degrees of freedom, its deviation the root of twice that. The seeds are fixed."""
        n, freedom = len(ids), len(probabilities) - 1
        counts = dict.fromkeys(probabilities, 0)
        for i in ids:
            counts[i] += 1
        chi = sum((counts[i] - n * p) ** 2 / (n * p) for i, p in probabilities.items())
        self.assertLess(chi, freedom + 5 * (2 * freedom) ** 0.5 + 10)
        self.assertGreater(chi, freedom - 5 * (2 * freedom) ** 0.5)  # nor too even

    def test_samples_come_as_often_as_their_weights_say(self):
        weights = [i % 7 for i in range(N)]
        whole = sum(weights)
        ids = drawn(Weighted(weights), n=100000)
        self.assertEqual(len(ids), 100000)
        self.check(ids, {i: weight / whole for i, weight in enumerate(weights) if weight})
        self.check([i % 7 for i in ids], {k: sum(w for w in weights if w == k) / whole for k in range(1, 7)})
        self.assertEqual(drawn(Weighted(iter(weights)), n=500), ids[:500])
        self.assertEqual(drawn(Weighted([0.125 * weight for weight in weights]), n=500), ids[:500])
        self.assertNotEqual(drawn(Weighted(weights), n=500, seed=1), ids[:500])
        self.assertNotEqual(drawn(Weighted(weights), n=500, epoch=1), ids[:500])
        self.assertEqual(set(drawn(Weighted([0] * 5 + [1e-300] + [0] * (N - 6)))), {5})

    def test_weights_of_a_column_and_of_a_subset(self):
        self.assertEqual(drawn(Weighted("half"), n=300), drawn(Weighted([i / 2 for i in range(N)]), n=300))
        part = ids_of(Fraction(0, 0.1, seed=1), shuffle=False)
        ids = drawn(Weighted("half"), Fraction(0, 0.1, seed=1), 20000)
        self.check(ids, {i: i / sum(part) for i in part})

    def test_classes_come_equally_often(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "d")
            classes = [0] * 900 + [-3] * 90 + [2 ** 40] * 10
            with penstock.Writer(path, {"cls": "int64"}) as writer:
                for cls in classes:
                    writer.add(cls=cls)
            ids = drawn(Balanced("cls"), path=path, n=60000)
            self.check([classes[i] for i in ids], {0: 1 / 3, -3: 1 / 3, 2 ** 40: 1 / 3})
            self.check([i for i in ids if i >= 990], {i: 0.1 for i in range(990, 1000)})
            ids = drawn(Balanced("cls"), Range(850, 991), path=path, n=20000)
            self.check([classes[i] for i in ids], {0: 1 / 3, -3: 1 / 3, 2 ** 40: 1 / 3})
            self.assertEqual(set(ids), set(range(850, 991)))

    def test_ranks_and_resume(self):
        keywords = {"weights": Balanced("i"), "order": penstock.Order(samples_per_epoch=600),
                    "batch_size": penstock.GlobalBatch(60)}
        with opened(None, **keywords) as loader:
            wanted = [sorted(batch.sample_ids) for batch in loader]
            self.assertEqual((loader.n_samples, len(loader)), (600, 10))
        found, state = [[] for _ in wanted], None
        for world, n_batches in ((3, 4), (5, 7), (2, 10)):
            for rank in range(world):
                with opened(None, ranks=penstock.Ranks(rank, world), **keywords) as loader:
                    if state is not None:
                        loader.load_state_dict(state)
                    for batch in loader:
                        if batch.index >= n_batches:
                            break
                        found[batch.index] += batch.sample_ids
                        after = loader.state_dict(batch)
            state = after
        self.assertEqual([sorted(ids) for ids in found], wanted)
        for other in ({"order": penstock.Order(samples_per_epoch=601)}, {"weights": Weighted("i")},
                      {"weights": None, "order": penstock.Order(samples_per_epoch=None)}):
            with opened(None, **{**keywords, **other}) as loader, self.assertRaisesRegex(
                    penstock.SettingsError, "open the loader with the subset=, weights= and Order.samples_per_epoch of the saved one"):
                loader.load_state_dict(state)

    def test_a_sample_that_comes_twice_is_augmented_twice(self):
        sets.need_numpy()
        one = [0] * 103
        one[7] = 1
        crops = set()
        with penstock.Loader(sets.small(), weights=Weighted(one), order=penstock.Order(samples_per_epoch=40), batch_size=8,
                             framework="numpy",
                             observe=penstock.Observe(report_crops=True), outputs={"x": sets.images()}) as loader:
            for batch in loader:
                self.assertEqual(set(batch.sample_ids), {7})
                crops.update(str(crop) for crop in batch.crops["x"])
        self.assertGreater(len(crops), 35)

    def test_wrong_weights(self):
        for weights, says in ((Weighted([1] * 5), "value has 5 numbers; must have 2000"),
                              (Weighted([0] * N), "value is 0 for all 2000 samples"),
                              (Weighted([1] * 9 + [-1] * (N - 9)), "value of sample 9 is -1; must be finite"),
                              (Weighted([1] * 8 + [float("nan")] * (N - 8)), "value of sample 8 is -?nan"),
                              (Weighted([float("inf")] * N), "value of sample 0 is inf"),
                              (Weighted("none"), "^weights: .*has no column none"),
                              (Balanced("none"), "^weights: .*has no column none"),
                              (Balanced("half"), "column half: its dtype is f32; must be one of whole numbers")):
            with self.assertRaisesRegex(penstock.SettingsError, says):
                opened(None, weights=weights)
        for empty in ([], ""):
            with self.assertRaisesRegex(penstock.SettingsError, "Weighted: value is empty"):
                Weighted(empty)
        with self.assertRaisesRegex(penstock.SettingsError, "value is 0 for all 1 samples"):
            opened(Range(0, 1), weights=Weighted("i"))
        for keywords, says in (({"weights": Weighted("i"), "shuffle": False}, "order: value is 'sequential'; must be 'full'"),
                               ({"order": penstock.Order(samples_per_epoch=5)},
                                "samples_per_epoch: value is 5; must be None without"),
                               ({"weights": Weighted("i"), "order": penstock.Order(samples_per_epoch=0)},
                                "samples_per_epoch: value is 0"),
                               ({"subset": [Weighted("i")]}, "give weights=Weighted")):
            with self.assertRaisesRegex(penstock.SettingsError, says):
                opened(**{"subset": None, **keywords})
        for make in (lambda: opened(None, weights=[1] * N), lambda: Weighted(5), lambda: Weighted(["a"]), lambda: Balanced(5),
                     lambda: Weighted({i: 1 for i in range(N)})):
            with self.assertRaises(TypeError):
                make()


class Refused(unittest.TestCase):
    def test_steps_that_are_none(self):
        for make, says in ((lambda: Range(5, 5), "5 to 5, which is empty"), (lambda: Range(-1, 5), "Range.first: value is -1"),
                           (lambda: Fraction(0.5, 0.5), "0.5 to 0.5, which is empty"),
                           (lambda: Fraction(0, 1.1), "Fraction.stop: value is 1.1; must be from 0 to 1"),
                           (lambda: Fraction(0, 1e-12), "which is empty"),
                           (lambda: Fold(5, 5), "Fold.k: value is 5; must be from 0 to 4"),
                           (lambda: Fold(0, 1), "Fold.of: value is 1; must be from 2"),
                           (lambda: Ids([]), "no ids"), (lambda: Ids([3, -1]), r"Ids\[1\]: value is -1"),
                           (lambda: Where("i"), "no condition"), (lambda: Where("i", in_=[]), "is empty"),
                           (lambda: Where("i", at_least=3, below=3), "at_least=3, below=3, which no value fits"),
                           (lambda: Where("i", at_least=2**60 + 1, below=2**60 + 1), "which no value fits"),
                           (lambda: Where("i", below=-float("inf")), "which no value fits"),
                           (lambda: Where("i", below=float("nan")), "Where.below: value is nan")):
            with self.assertRaisesRegex(penstock.SettingsError, says):
                make()
        for make in (lambda: Range(0.5, 2), lambda: Fraction("half", 1), lambda: Fraction(0, float("nan")),
                     lambda: Ids([0.5]), lambda: Ids(5), lambda: Where(5, in_=[1]), lambda: Where("i", in_=["a"]),
                     lambda: Where("i", below="5"), lambda: Fold(0, 5, rest=2)):
            with self.assertRaises(TypeError):
                make()
        for values in (5, None, {3: 1}):
            with self.assertRaisesRegex(TypeError, "Ids: value is .*; must be sample ids"):
                Ids(values)
        with self.assertRaisesRegex(TypeError, r"Ids.0.: value is True; must be a sample id .of a mask give .*flatnonzero"):
            Ids([True, False])

    def test_subsets_that_the_data_set_does_not_have(self):
        for subset, says in ((Range(0, 2001), "step 0, range: value is 0 to 2001; .* at most 2000"),
                             ([Fraction(0, 0.5), Range(0, 1001)], "step 1, range: .* at most 1000"),
                             (Fraction(0, 0.0001), "step 0, fraction, leaves none of 2000 samples"),
                             (Ids([0, 2000]), r"step 0, ids\[1\]: value is 2000; must be below 2000"),
                             (Ids([4, 1, 4]), r"ids\[2\]: value is 4, and so is that of ids\[0\]"),
                             ([Range(0, 5), Ids([7, 8])], "step 1, ids, leaves none of 5 samples"),
                             (Where("i", in_=[-1]), "step 0, i, leaves none of 2000 samples"),
                             (Where("none", in_=[1]), "has no column none; its columns are .*half"),
                             (Where("half", in_=[1]), "column half: its dtype is f32; must be one of whole numbers"),
                             ([Range(0, 9)] * 17, "more than 16 steps"),
                             ([], "subset: value is empty")):
            with self.assertRaisesRegex(penstock.SettingsError, says):
                opened(subset)
        for subset in (5, "fraction:0..0.8", {"a": Range(0, 1)}, [5]):
            with self.assertRaisesRegex(TypeError, "must be penstock.Range"):
                opened(subset)
        with self.assertRaisesRegex(penstock.SettingsError, "20 rows .* more than the 5 samples of the subset of"):
            opened(Range(0, 5), batch_size=20, last_batch="drop")
        with opened(Range(0, 5)) as loader, self.assertRaisesRegex(penstock.SettingsError, "at most 5"):
            loader.seek(0, 6)


if __name__ == "__main__":
    unittest.main()
