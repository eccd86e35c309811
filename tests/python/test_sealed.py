# SPDX-License-Identifier: Apache-2.0
"""An attribute that is no setting cannot be set: the AttributeError says what to do instead."""
import copy
import inspect
import os
import pickle
import tempfile
import typing
import unittest

import penstock
import sets

MISSPELT = "wieghts_"


def refusal(of, name, value=None):
    """Return the text of the AttributeError; fails where the attribute is set."""
    try:
        setattr(of, name, value)
    except AttributeError as error:
        return str(error)
    raise AssertionError("%s.%s was set" % (type(of).__name__, name))


def loader(**more):
    return penstock.Loader(sets.scalars(), batch_size=10, framework="dlpack", **more)


class OpenLoader(unittest.TestCase):
    def setUp(self):
        self.loader = loader()
        self.addCleanup(self.loader.close)

    def test_each_argument_except_the_batch_size_is_refused_with_the_argument(self):
        ways = {"epoch": "loader.set_epoch(3)", "position": "loader.seek(epoch, position)",
                "n_slots": "penstock.Loader (open a new Loader with memory=penstock.Memory(n_slots=...))",
                "rank": "penstock.Loader (open a new Loader with ranks=penstock.Ranks(rank=...))",
                "on_bad_sample": "penstock.Loader (open a new Loader with bad_sample=...)"}
        names = set(inspect.signature(penstock.Loader).parameters) - {"batch_size"} | set(ways)
        self.assertGreaterEqual(names, {"weights", "mix", "subset", "shuffle", "seed", "last_batch", "ranks", "memory"})
        for name in sorted(names):
            with self.subTest(name):
                found = refusal(self.loader, name)
                self.assertTrue(found.startswith("Loader.%s cannot be set: " % name), found)
                self.assertIn(ways.get(name, "penstock.Loader (open a new Loader with %s=...)" % name), found)

    def test_a_misspelling_is_refused_with_the_name_that_was_meant(self):
        self.assertEqual(refusal(self.loader, "shufle"),
                         "Loader.shufle cannot be set: there is no such attribute; did you mean 'shuffle'?")
        self.assertIn("did you mean 'batch_size'?", refusal(self.loader, "batch_sise"))

    def test_names_of_other_loaders_have_their_advice(self):
        self.assertIn("n_threads=", refusal(self.loader, "num_workers", 4))

    def test_methods_and_what_can_only_be_read_stay(self):
        for name in ("stats", "close", "epoch", "state_dict"):
            refusal(self.loader, name, 3)
            self.assertTrue(callable(getattr(self.loader, name)))
        for name in ("n_samples", "n_batches_left", "closed", "mixture"):
            before = getattr(self.loader, name)
            self.assertIn("can only be read", refusal(self.loader, name, 3))
            self.assertEqual(getattr(self.loader, name), before)

    def test_the_batch_size_can_be_set(self):
        with loader(memory=penstock.Memory(max_batch_size=20)) as data:
            data.batch_size = 20
            self.assertEqual(next(iter(data)).n_valid, 20)

    def test_the_ways_that_are_advised_lead_there(self):
        self.loader.set_epoch(3)
        self.assertEqual(next(iter(self.loader)).epoch, 3)
        self.loader.seek(2, 40)
        self.assertEqual(next(iter(self.loader)).position, 40)


class Others(unittest.TestCase):
    def objects(self):
        data = loader()
        self.addCleanup(data.close)
        writer = penstock.Writer(os.path.join(sets.ROOT, "never"), {"i": "int64"})
        self.addCleanup(writer.abort)
        dataset = penstock.Dataset(sets.scalars())
        self.addCleanup(dataset.close)
        return [data, writer, dataset, dataset[2:5], penstock.Monitor(data), penstock.ops.Resize(16), penstock.ops.Normalize(),
                penstock.draw([penstock.ops.RandomCrop(2)], (8, 8), seed=1)[0],
                penstock.image("jpg", [penstock.ops.CenterCrop(8)]), penstock.scalar("cls"), penstock.ragged("t"),
                penstock.boxes("b"), penstock.python(len, "t", shape=(), dtype="int64"), penstock.Fraction(0, 0.5),
                penstock.Where("i", in_=[3]), penstock.Balanced("i"), penstock.MixUp(num_classes=3), penstock.Mosaic(),
                penstock.Mixture({sets.scalars(): 1}), penstock.Budget(100, "i")]

    def test_a_name_that_does_not_exist_is_refused(self):
        for one in self.objects():
            with self.subTest(type(one).__name__):
                self.assertIn("there is no such attribute", refusal(one, MISSPELT))
                self.assertFalse(hasattr(one, MISSPELT))

    def test_setting_a_constructor_argument_is_refused_with_the_way_to_another(self):
        ways = {"Writer": ("schema", "penstock.Writer (open another Writer with schema=...)"),
                "Dataset": ("decode", "penstock.Dataset (open a new Dataset with decode=...)"),
                "Monitor": ("every", "penstock.Monitor (make another one with every=...)"),
                "Resize": ("size", "penstock.ops.Resize (make another one with size=...)"),
                "Fraction": ("seed", "penstock.Fraction (make another one with seed=...)"),
                "MixUp": ("alpha", "penstock.MixUp (make another one with alpha=...)"),
                "Mixture": ("weights", "penstock.Mixture (make another one with weights=...)"),
                "Budget": ("total", "penstock.Budget (make another one with total=...)")}
        for one in self.objects():
            name, way = ways.pop(type(one).__name__, (None, ""))
            if name is not None:
                self.assertIn(way, refusal(one, name, 3))
        self.assertEqual(ways, {})

    def test_an_output_names_the_function_that_makes_it_and_only_its_arguments(self):
        image, scalar = penstock.image("jpg", [penstock.ops.CenterCrop(8)]), penstock.scalar("cls")
        self.assertIn("penstock.image (make another one with layout=...)", refusal(image, "layout", "nchw"))
        self.assertIn("penstock.scalar (make another one with dtype=...)", refusal(scalar, "dtype", 3))
        self.assertIn("can only be read", refusal(scalar, "ops", []))
        self.assertEqual((image.layout, scalar.ops), ("nhwc", ()))

    def test_refused_attributes_keep_their_values(self):
        for one in self.objects():
            for name in ("path", "name", "loader", "total", "size", "field", "n_samples"):
                if hasattr(one, name):
                    before = getattr(one, name)
                    refusal(one, name, "other")
                    self.assertEqual(getattr(one, name), before)

    def test_copies_and_pickles_are_as_before(self):
        for one in self.objects():
            if type(one).__name__ in ("Loader", "Writer", "Monitor"):  # pickle refuses these
                continue
            with self.subTest(type(one).__name__):
                for made in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
                    self.assertEqual(repr(made), repr(one))
                    refusal(made, MISSPELT)
                    if type(one).__name__ in ("Where", "Mixture", "Budget", "Fraction"):
                        self.assertEqual((made, hash(made)), (one, hash(one)))

    def test_read_only_attributes_cannot_be_deleted(self):
        for one in self.objects():
            with self.subTest(type(one).__name__):
                for name in ("path", "name", "total", "schema", "close", "n_samples"):
                    if hasattr(one, name):
                        before = getattr(one, name)
                        self.assertRaisesRegex(AttributeError, f"{name} cannot be deleted: it can only be read|cannot delete field", delattr, one, name)
                        self.assertEqual(getattr(one, name), before)
                self.assertRaisesRegex(AttributeError, "cannot be deleted: there is no such attribute|cannot delete field", delattr, one, MISSPELT)

    def test_a_tensor_of_a_batch_is_set_by_its_name(self):
        with loader() as data:
            batch = next(iter(data))
            self.assertIn("(write batch['i'] = ...)", refusal(batch, "i", 3))
            self.assertIn("(write batch['mine'] = ...)", refusal(batch, "mine", 4))
            self.assertIn("it can only be read", refusal(batch, "index", 4))
            batch["i"] = 3
            batch["mine"] = 4
            self.assertEqual((batch["i"], batch["mine"], batch.index), (3, 4, 0))
            self.assertEqual(copy.copy(batch).index, 0)
        for form in ("tuple", "dataclass"):
            with loader(form=form) as data:
                batch = next(iter(data))
                self.assertIn("there is no such attribute", refusal(batch, "mine", 4))
                self.assertIn("it can only be read", refusal(batch, "epoch", 4))
        batch.i = 3  # the dataclass
        self.assertEqual(batch.i, 3)

    def test_a_mapping_that_is_shown_cannot_be_changed(self):
        with loader() as data, penstock.Dataset(sets.scalars()) as dataset:
            for one in (data.outputs, dataset.fields, dataset.columns, penstock.Mixture({sets.scalars(): 1}).subsets,
                        penstock.Mixture({sets.scalars(): 1}).sample_weights):
                self.assertEqual((pickle.loads(pickle.dumps(one)), copy.deepcopy(one), copy.copy(one), one.copy()), 4 * (dict(one),))
                self.assertIs(type(copy.deepcopy(one)), dict)
                for change in (one.clear, one.popitem, lambda one=one: one.pop("i"), lambda one=one: one.update(i=1)):
                    with self.assertRaisesRegex(TypeError, r"change a copy, dict\(\.\.\.\)"):
                        change()
                with self.assertRaisesRegex(TypeError, "does not support item assignment"):
                    one["i"] = 3
            self.assertEqual(list(dataset.fields), ["i", "half"])

    def test_sinks_and_rules_of_a_monitor(self):
        monitor = penstock.monitor
        with tempfile.TemporaryDirectory() as folder:
            lines = monitor.JSONLines(os.path.join(folder, "a"))
            self.addCleanup(lines.close)
            ones = [lines, monitor.Webhook("http://127.0.0.1:1/x"), monitor.SlowReads(5), *monitor.defaults()]
            for one in ones:
                with self.subTest(type(one).__name__):
                    self.assertIn("there is no such attribute", refusal(one, MISSPELT))
                    self.assertFalse(hasattr(one, MISSPELT))
            self.assertIn("penstock.monitor.Slow (make another one with share=...)", refusal(monitor.Slow(), "share", 0.1))
            self.assertIn("penstock.monitor.JSONLines (make another one with path=...)", refusal(lines, "path", "b"))
            self.assertIn("it can only be read", refusal(monitor.Slow(), "raised", True))

    def test_a_rule_of_the_users_has_attributes_of_its_own(self):
        class Mine(penstock.monitor.Slow):
            def __init__(self):
                super().__init__()
                self.limit, self.mine = 0.1, 5

        self.assertEqual((Mine().limit, Mine().mine), (0.1, 5))


class Subclasses(unittest.TestCase):
    """A user's class has attributes of its own, and methods of its own; the package's stay."""

    def test_a_data_set_with_attributes_of_its_own(self):
        class Mine(penstock.Dataset):
            decoded = 0

            def __init__(self, path):
                self.transform = str
                super().__init__(path)
                self.decoded = 5

            def __getitem__(self, index):
                return self.transform(super().__getitem__(index))

        with Mine(sets.scalars()) as data:
            self.assertEqual((data[3], data.decoded), ("{'i': 3, 'half': 1.5}", 5))
            self.assertIn("it is a method", refusal(data, "column"))

    def test_attributes_that_a_class_only_annotates_stay_sealed_in_subclasses(self):
        class Mine(penstock.Budget):
            seen: int

        one = Mine(100, "i")
        one.seen = 3
        del one.seen
        self.assertIn("(make another one with total=...)", refusal(one, "total", 5))
        self.assertRaises(AttributeError, delattr, one, "total")
        self.assertEqual((one.total, hasattr(one, "seen")), (100, False))

    def test_batches_with_attributes_of_their_own(self):
        class Mine(penstock.Batch):
            seen = 0

        class Row(penstock.TupleBatch):
            pass

        with loader() as data:
            found = next(iter(data))
            for one, tensor in ((Mine(found), "i"), (Row(found), None)):
                with self.subTest(type(one).__name__):
                    one.info = found.info
                    one.seen, one.mine = 3, 4
                    for made in (one, copy.copy(one)):
                        self.assertEqual((made.seen, made.mine, made.position), (3, 4, 0))
                    for name in ("epoch", "index", "to", "n_valid", *(("keys", "update") if tensor else ("count",))):
                        self.assertIn("it can only be read", refusal(one, name, 4))
                        self.assertRaisesRegex(AttributeError, f"{name} cannot be deleted: it can only be read", delattr, one, name)
                    del one.mine
                    self.assertFalse(hasattr(one, "mine"))
                    if tensor is not None:
                        self.assertIn("(write batch['i'] = ...)", refusal(one, tensor, 4))

    def test_each_sealed_class_may_be_one_with_attributes_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder, loader() as data:
            made = {
                penstock.Writer: (os.path.join(folder, "w"), {"i": "int64"}), penstock.Monitor: (data,), penstock.ops.Resize: (8,),
                penstock.Mixture: ({sets.scalars(): 1},), penstock.Fraction: (0, 0.5), penstock.Balanced: ("i",), penstock.Mosaic: (),
                penstock.Budget: (100, "i"), penstock.monitor.Webhook: ("http://127.0.0.1:1/",), penstock.monitor.Slow: (),
                penstock.monitor.JSONLines: (os.path.join(folder, "j"),)}
            for kind, arguments in made.items():
                class Mine(kind):
                    def __init__(self, *given):
                        super().__init__(*given)
                        self.mine = 5

                with self.subTest(kind.__name__):
                    one = Mine(*arguments)
                    if hasattr(one, "abort"):
                        self.addCleanup(one.abort)
                    one.mine += 1
                    self.assertEqual(one.mine, 6)
                    for name in dir(kind):
                        if name[0] != "_" and not isinstance(getattr(kind, name), property):
                            self.assertIn("cannot be set", refusal(one, name, 3))

    def test_a_base_next_to_the_package_s_class_has_attributes_of_its_own(self):
        class Counts:
            n_seen = 0
            limit = property(lambda self: 5)

        class Mine(penstock.Dataset, Counts):
            pass

        with Mine(sets.scalars()) as data:
            data.n_seen += 2
            self.assertEqual(data.n_seen, 2)
            self.assertIn("it can only be read", refusal(data, "limit", 4))

    def test_a_protocol_next_to_the_package_s_class_has_attributes_of_its_own(self):
        class HasSeen(typing.Protocol):
            n_seen: int

        class Mine(penstock.Dataset, HasSeen):
            pass
        with Mine(sets.scalars()) as mine:
            mine.n_seen = 1
            self.assertEqual(mine.n_seen, 1)
            with self.assertRaisesRegex(AttributeError, "path cannot be set"):
                mine.path = "x"

    def test_a_loader_with_attributes_of_its_own(self):
        class Mine(penstock.Loader):
            pass

        with Mine(sets.scalars(), batch_size=10, framework="dlpack") as data:
            data.seen = 3
            self.assertEqual(data.seen, 3)
            self.assertIn("loader.set_epoch(3)", refusal(data, "epoch"))


class WithTorch(unittest.TestCase):
    def test_a_data_loader_takes_a_data_set(self):
        torch = sets.torch_or_skip()
        with penstock.Dataset(sets.scalars()) as data:
            for n in (0, 2):
                rows = torch.utils.data.DataLoader(data, batch_size=500, num_workers=n)
                self.assertEqual([len(batch["i"]) for batch in rows], [500] * 4)


if __name__ == "__main__":
    unittest.main()
