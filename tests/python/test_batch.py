# SPDX-License-Identifier: Apache-2.0
"""A batch in Python, and in functions that move, collate and compile batches. The protocols of Python need no
other package; the rest is skipped where its package is not installed."""
import collections
import copy
import dataclasses
import pickle
import unittest

import sets
import penstock

NAMES = ["i", "half"]


def loader(**keywords):
    keywords.setdefault("framework", "dlpack")
    return penstock.Loader(sets.scalars(), batch_size=10, shuffle=False, **keywords)


def first(**keywords):
    with loader(**keywords) as data:
        return next(iter(data))


class Protocols(unittest.TestCase):
    """Iterating is over tensors; all else that a dict can do goes by names."""

    def setUp(self):
        self.batch = first()
        self.i, self.half = self.batch["i"], self.batch["half"]
        self.plain = dict(i=self.i, half=self.half)

    def assert_same(self, found, kind=dict, **more):
        """A mapping of this type with all tensors under their names."""
        self.assertIs(type(found), kind)
        wanted = {**self.plain, **more}
        self.assertEqual(list(found.keys()), list(wanted))
        for name, tensor in wanted.items():
            self.assertIs(found[name], tensor)

    def assert_still(self, found, **more):
        """Check the same of a batch that stays on its device."""
        self.assert_same(found, penstock.Batch, **more)
        self.assertEqual(found.sample_ids, list(range(10)))

    def test_a_batch_unpacks_to_its_tensors_in_the_order_of_the_outputs(self):
        i, half = self.batch
        self.assertIs(i, self.i)
        self.assertIs(half, self.half)
        for made in (list(self.batch), tuple(self.batch), [*self.batch], [t for t in self.batch]):
            self.assertEqual([id(t) for t in made], [id(i), id(half)])
        with loader(outputs={"b": "half", "a": "i"}) as data:
            for b, a in data:
                self.assertEqual((b.dtype, a.dtype), ("float32", "int64"))
        self.assertEqual([id(t) for t in reversed(self.batch)], [id(half), id(i)])

    def test_a_batch_of_one_output_unpacks_to_one_tensor(self):
        with loader(outputs=["i"]) as data:
            for (i,) in data:
                self.assertEqual(i.dtype, "int64")

    def test_names_come_from_keys_and_items(self):
        self.assertEqual(list(self.batch.keys()), NAMES)
        self.assertEqual([name for name, _ in self.batch.items()], NAMES)
        self.assertEqual([id(t) for t in self.batch.values()], [id(self.i), id(self.half)])
        self.assertEqual(self.batch.keys() & {"i", "x"}, {"i"})
        self.assertEqual(self.batch.keys() | {"x"}, {"i", "half", "x"})
        self.assertEqual(list(reversed(self.batch.keys())), NAMES[::-1])
        self.assertEqual(len(self.batch), 2)

    def test_in_is_of_names(self):
        self.assertIn("i", self.batch)
        self.assertNotIn("x", self.batch)
        self.assertNotIn(self.i, self.batch)
        self.assertIs(self.batch.get("i"), self.i)
        self.assertIsNone(self.batch.get("x"))

    def test_a_plain_dict_of_a_batch_has_its_names(self):
        def keywords(**found):
            return found

        for made in (dict(self.batch), {**self.batch}, keywords(**self.batch), dict(**self.batch),
                     dict(self.batch.items()), {} | dict(self.batch)):
            self.assert_same(made)
        into = {}
        into.update(self.batch)
        self.assert_same(into)
        self.assert_same(collections.OrderedDict(self.batch), collections.OrderedDict)
        self.assert_same(penstock.Batch(self.batch), penstock.Batch)

    def test_copies_and_unions_are_batches(self):
        self.assert_still(self.batch.copy())
        self.assert_still(copy.copy(self.batch))
        self.assert_still(self.batch | {"x": 1}, x=1)
        self.assert_still({"i": 0, "half": 0} | self.batch)
        joined = self.batch | first(outputs={"more": "i"})
        self.assertEqual((list(joined.keys()), joined.n_valid), (["i", "half", "more"], 10))
        self.assertIs(self.batch.__or__([]), NotImplemented)
        self.assertRaises(TypeError, lambda: self.batch | 3)
        changed = self.batch.copy()
        changed |= {"x": 2}
        changed["y"] = 3
        self.assert_still(changed, x=2, y=3)
        self.assert_still(self.batch)
        i, half, x, y = changed
        self.assertEqual((x, y), (2, 3))

    def test_a_tensor_may_be_named_info(self):
        batch = first(framework="numpy", outputs={"info": penstock.scalar("i")})
        for found in (batch, batch | {"half": self.half}, copy.copy(batch), pickle.loads(pickle.dumps(batch))):
            self.assertEqual((found.epoch, found.index), (0, 0))
            self.assertEqual(list(found["info"]), list(range(10)))

    def test_every_form_has_the_number_of_the_batch(self):
        for form in ("dict", "tuple", "dataclass"):
            self.assertEqual(first(form=form).index, 0)

    def test_a_batch_is_equal_to_a_dict_of_the_same_tensors(self):
        self.assertEqual(self.batch, self.plain)
        self.assertEqual(self.batch, self.batch.copy())
        self.assertNotEqual(self.batch, {"i": self.i})
        self.assertNotEqual(self.batch, [self.i, self.half])

    def test_a_batch_is_a_mapping_and_no_sequence(self):
        self.assertIsInstance(self.batch, collections.abc.Mapping)
        self.assertNotIsInstance(self.batch, collections.abc.Sequence)

    def test_a_copy_of_what_a_dataclass_holds_has_all_tensors(self):
        made = dataclasses.make_dataclass("Made", ["batch"])({name: name.upper() for name in NAMES})
        made.batch = penstock.Batch(made.batch)
        found = dataclasses.asdict(made)["batch"]
        self.assertEqual((type(found), dict(found)), (penstock.Batch, {"i": "I", "half": "HALF"}))
        self.assertEqual(copy.deepcopy(found), found)

    def test_it_can_be_pickled_by_every_protocol(self):
        batch = penstock.Batch(i=[1, 2], half=[3])
        batch.info = self.batch.info
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(batch, protocol))
            self.assertEqual((type(again), dict(again)), (penstock.Batch, {"i": [1, 2], "half": [3]}))
            self.assertEqual(again.sample_ids, list(range(10)))

    def test_a_key_that_is_no_name_is_refused_with_advice(self):
        for wrong in ("x", 0, self.i, [1]):
            with self.assertRaisesRegex(KeyError, "it has i, half"):
                self.batch[wrong]
        with self.assertRaisesRegex(KeyError, r"a Tensor is not a name.*batch.keys\(\)"):
            {name: self.batch[name] for name in self.batch}
        with self.assertRaisesRegex(KeyError, "form='tuple'"):
            self.batch[0]
        with self.assertRaisesRegex(KeyError, "did you mean 'half'"):
            self.batch["hafl"]


class Frameworks(unittest.TestCase):
    """Functions that take batches apart and put them together keep every tensor, under its name, in its order."""

    def setUp(self):
        self.torch = sets.torch_or_skip()
        with penstock.Loader(sets.small(), batch_size=4, shuffle=False, framework="torch",
                             outputs=["i", "x", "tokens"]) as data:
            self.batch = next(iter(data))
            data._make = penstock.batch.maker("tuple", ("i", "x", "tokens"))
            self.pair = next(iter(data))
        self.meta = self.torch.device("meta")

    def assert_moved(self, found, kind=penstock.Batch):
        """All tensors are on the device "meta", under their names, and unpack in their order."""
        self.assertIs(type(found), kind)
        if kind is not penstock.TupleBatch:
            self.assertEqual(list(found.keys()), ["i", "x", "tokens"])
            self.assertEqual([id(t) for t in found], [id(t) for t in found.values()])
        i, x, tokens = found
        self.assertEqual([t.device.type for t in (i, x, tokens.data, tokens.device_offsets)], ["meta"] * 4)
        self.assertEqual((i.dtype, x.shape[1]), (self.torch.int64, 3))

    def test_to_moves_every_tensor_and_keeps_the_batchs_info(self):
        for batch in (self.batch, self.pair):
            for moved in (batch.to("meta"), batch.to(self.meta, non_blocking=True)):
                self.assert_moved(moved, type(batch))
                self.assertEqual((moved.sample_ids, moved.next_position),
                                 (batch.sample_ids, batch.next_position))
                tokens = list(moved)[2]
                self.assertEqual((tokens.offsets.device.type, tokens.n_rows), ("cpu", 4))
            self.assertIs(batch.to("cpu"), batch)
        with penstock.Loader(sets.small(), batch_size=4, form="dataclass", framework="torch",
                             outputs=["i", "x"]) as data:
            batch = next(iter(data))
        moved = batch.to("meta")
        self.assertIs(type(moved), type(batch))
        self.assertEqual((moved.i.device.type, moved.x.device.type, moved.sample_ids),
                         ("meta", "meta", batch.sample_ids))

    def test_to_takes_no_dtype(self):
        torch = sets.torch_or_skip()
        with self.assertRaisesRegex(TypeError, "takes a device, not the dtype torch.float16"):
            penstock.Batch(a=torch.zeros(2)).to(torch.float16)

    def test_to_passes_non_blocking_through(self):
        class Movable:
            shape = ()

            def to(self, *args, **keywords):
                return args, keywords

        self.assertEqual(penstock.Batch(a=Movable()).to("there", non_blocking=True)["a"],
                         (("there",), {"non_blocking": True}))

    def test_to_leaves_what_is_no_array(self):
        moved = penstock.Batch(i=self.batch["i"], names=["a", "b"]).to("meta")
        self.assertEqual((moved["i"].device.type, moved["names"]), ("meta", ["a", "b"]))

    def test_lightning_moves_a_batch_whole(self):
        try:
            from lightning.fabric.utilities.apply_func import move_data_to_device
            from lightning_utilities.core.apply_func import apply_to_collection
        except ImportError:
            self.skipTest("Lightning is not installed")
        for batch in (self.batch, self.pair):
            moved = move_data_to_device(batch, self.meta)
            self.assert_moved(moved, type(batch))
            self.assertEqual(moved.sample_ids, batch.sample_ids)
            # Lightning's treatment of an object without to(): it moves the parts of other types.
            self.assert_moved(apply_to_collection(batch, (self.torch.Tensor, penstock.Ragged),
                                                  lambda t: t.to("meta")), type(batch))
            self.assertEqual(move_data_to_device([batch], self.meta)[0].epoch, batch.epoch)

    def test_accelerate_moves_a_batch_whole(self):
        try:
            from accelerate.utils import operations
        except ImportError:
            self.skipTest("Accelerate is not installed")
        for batch in (self.batch, self.pair):
            moved = operations.send_to_device(batch, self.meta, non_blocking=True)
            self.assert_moved(moved, type(batch))
            self.assertEqual(moved.sample_ids, batch.sample_ids)
            halved = operations.slice_tensors(batch, slice(0, 2))
            self.assertEqual(next(iter(halved)).tolist(), [0, 1])
            self.assertIs(type(halved), type(batch))
        self.assertEqual(operations.find_batch_size(self.batch), 4)
        both = operations.concatenate([{"b": penstock.Batch(i=self.batch["i"])}] * 2)
        self.assertEqual(both["b"]["i"].shape[0], 8)

    def test_accelerate_prepares_a_loader_as_it_is(self):
        try:
            from accelerate import Accelerator
        except ImportError:
            self.skipTest("Accelerate is not installed")
        with loader(framework="torch") as data:
            prepared = Accelerator(cpu=True).prepare(data)
            self.assertIs(prepared, data)
            i, half = next(iter(prepared))
        self.assertEqual((i.tolist()[3], half.tolist()[3]), (3, 1.5))

    def test_pytrees_of_torch_have_the_tensors_as_leaves(self):
        from torch.utils import _pytree
        for batch in (self.batch, self.pair):
            leaves, spec = _pytree.tree_flatten(batch)
            self.assertEqual(len(leaves), 5)
            again = _pytree.tree_unflatten(leaves, spec)
            self.assertIs(type(again), type(batch))
            self.assertEqual([id(t) for t in leaves[:2]], [id(t) for t in list(again)[:2]])
            self.assertIsNone(again.info)
        self.assert_moved(_pytree.tree_map(lambda t: t.to("meta"), self.batch))

    def test_compiled_functions_take_batches(self):
        def step(batch):
            i, x, _ = batch
            return batch["x"].sum() + x.sum() + i.sum()

        wanted = step(self.batch)
        self.assertEqual(self.torch.compile(step, backend="eager", fullgraph=True)(self.batch), wanted)

    def test_data_parallel_copies_have_all_tensors(self):
        from torch.distributed import utils
        moved = utils._recursive_to(({"b": penstock.Batch(i=self.batch["i"], x=self.batch["x"])},),
                                    self.torch.device("cpu"), False)
        i, x = moved[0][0]["b"]
        self.assertEqual((i.tolist(), tuple(x.shape)), ([0, 1, 2, 3], (4, 3)))

    def test_fsdp_gives_modules_a_plain_dict_with_all_names(self):
        from torch.distributed import utils
        found = utils._apply_to_tensors(lambda t: t.to("meta"), self.batch)
        self.assertEqual((type(found), list(found)), (dict, ["i", "x", "tokens"]))
        self.assertEqual({found["x"].device.type, found["tokens"].data.device.type}, {"meta"})

    def test_pinned_memory_keeps_names(self):
        from torch.utils.data._utils.pin_memory import pin_memory

        class Pinned:
            shape = ()

            def pin_memory(self):
                return "pinned"

        self.assertEqual(dict(pin_memory(penstock.Batch(a=Pinned(), b=Pinned()))),
                         {"a": "pinned", "b": "pinned"})

    def test_collating_batches_takes_dicts_of_them(self):
        from torch.utils.data import default_collate
        del self.batch["tokens"]
        with self.assertRaisesRegex(KeyError, r"batch.keys\(\)"):
            default_collate([self.batch, self.batch])
        stacked = default_collate([dict(self.batch)] * 2)
        self.assertEqual((list(stacked), tuple(stacked["x"].shape)), (["i", "x"], (2, 4, 3)))

    def test_saved_batches_are_loaded_with_their_info(self):
        import io
        file = io.BytesIO()
        self.torch.save(self.batch, file)
        file.seek(0)
        again = self.torch.load(file, weights_only=False)
        self.assertEqual((list(again.keys()), again.sample_ids), (["i", "x", "tokens"], [0, 1, 2, 3]))
        self.assertEqual(again["x"].tolist(), self.batch["x"].tolist())


class OtherArrays(unittest.TestCase):
    def test_to_says_what_to_do_with_arrays_of_other_libraries(self):
        for framework in ("dlpack", *(["numpy"] if sets.numpy else [])):
            for form in ("dict", "tuple", "dataclass"):
                with self.assertRaisesRegex(TypeError, "batch.to: tensor .* framework='torch'"):
                    first(framework=framework, form=form).to("cuda")

    def test_jax_takes_batches_apart(self):
        try:
            import jax
        except ImportError:
            self.skipTest("JAX is not installed")
        for form, kind in (("dict", penstock.Batch), ("tuple", penstock.TupleBatch)):
            batch = first(framework="jax", form=form)
            for made in (jax.device_put(batch, jax.devices()[0]), jax.jit(lambda b: b)(batch),
                         jax.tree_util.tree_map(lambda t: t, batch)):
                i, half = made
                self.assertEqual((type(made), i.tolist()[3], half.tolist()[3]), (kind, 3, 1.5))
            i, half = jax.jit(lambda b: tuple(b))(batch)
            self.assertEqual(half.tolist()[3], 1.5)


class Packed(unittest.TestCase):
    def test_batches_are_packed_under_their_names(self):
        sets.need_numpy()
        batch = first(framework="numpy")
        for name, source, wanted in (("columns", batch, 10), ("records", [batch, batch], 2)):
            packed = penstock.pack(source, sets.os.path.join(sets.ROOT, name), num_workers=0, progress=False)
            self.assertEqual((list(packed.fields), len(packed)), (NAMES, wanted))


class Crops(unittest.TestCase):
    def open(self, **keywords):
        sets.need_numpy()
        return penstock.Loader(sets.small(), batch_size=8, framework="numpy", **keywords)

    def test_crops_without_the_setting_are_refused_by_its_name(self):
        for form in ("dict", "tuple", "dataclass"):
            with self.open(form=form, outputs={"a": sets.images(), "n": "i"}) as data:
                batch = next(iter(data))
            for use in (lambda: batch.crops, lambda: batch.info.crops,
                        lambda: pickle.loads(pickle.dumps(batch)).crops):
                self.assertRaisesRegex(penstock.SettingsError, "report_crops=True", use)

    def test_crops_are_of_images(self):
        with self.open(observe=penstock.Observe(report_crops=True), outputs={"n": "i", "a": sets.images()}) as data:
            batch = next(iter(data))
        for crops in (batch.crops, pickle.loads(pickle.dumps(batch)).crops):
            self.assertEqual({name: len(rows) for name, rows in crops.items()}, {"a": 8})
            self.assertTrue(all(row.height > 0 and row.image_width == 30 for row in crops["a"]))
        with self.open(observe=penstock.Observe(report_crops=True), outputs=["i"]) as data:
            self.assertEqual(next(iter(data)).crops, {})

    def test_crops_of_a_short_batch_are_of_its_rows(self):
        with self.open(observe=penstock.Observe(report_crops=True), last_batch="short", device=penstock.Device(copy=True),
                       outputs={"a": sets.images()}) as data:
            *_, batch = data
        self.assertEqual(len(batch.crops["a"]), 103 % 8)


class Outputs(unittest.TestCase):
    def test_without_outputs_ragged_fields_come_in_their_dtype(self):
        with penstock.Loader(ragged_set(), batch_size=4, shuffle=False, framework="dlpack") as every, \
                penstock.Loader(ragged_set(), batch_size=4, shuffle=False, framework="dlpack",
                                outputs=["tokens", "text", "pair", "i"]) as named:
            self.assertEqual(every.outputs, named.outputs)
            for batch, other in zip(every, named):
                for a, b in zip(batch, other):
                    self.assertEqual(a.tolist(), b.tolist())
                self.assertEqual(batch["tokens"].data.dtype, "int64")
                self.assertEqual(batch["tokens"].tolist(), [[i] * (i % 3) for i in batch.sample_ids])
                self.assertEqual(batch["text"].data.dtype, "uint8")


def ragged_set():
    """12 samples: tokens (i64, i % 3 times i), text, pair (f32 [2]), i."""
    path = sets.os.path.join(sets.ROOT, "ragged")
    if not sets.os.path.exists(path):
        with penstock.Writer(path, {"tokens": ("int64", (None,)), "text": "utf8", "pair": ("float32", (2,)),
                                    "i": "int64"}) as writer:
            for i in range(12):
                writer.add(tokens=[i] * (i % 3), text="a" * i, pair=[i, i], i=i)
    return path


if __name__ == "__main__":
    unittest.main()
