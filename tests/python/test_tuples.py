# SPDX-License-Identifier: Apache-2.0
"""form="tuple" in what people train with: PyTorch's pytrees, export and files, Accelerate, Lightning, JAX. What is
the same for the default form is tested with both."""
import importlib
import io
import unittest
import warnings

import sets
import penstock

sets.need_numpy()

OUTPUTS = ["i", "x", "tokens"]
TOKENS = [[], [1], [2, 2], [3, 3, 3]]


def loader(form="tuple", outputs=OUTPUTS, **keywords):
    return penstock.Loader(sets.small(), **{"batch_size": 4, "shuffle": False, "framework": "torch", "form": form,
                                            "outputs": outputs, **keywords})


def first(form="tuple", outputs=OUTPUTS, **keywords):
    with loader(form, outputs, **keywords) as data:
        return next(iter(data))


def optional(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        raise unittest.SkipTest(f"{name} is not installed") from None


class Case(unittest.TestCase):
    def setUp(self):
        self.torch = sets.torch_or_skip()
        self.torch.set_num_threads(1)

    def assert_whole(self, batch, kind=penstock.TupleBatch):
        """The first batch, with all that it had."""
        i, x, tokens = batch
        self.assertIs(type(batch), kind)
        self.assertEqual((i.tolist(), x[:, 2].tolist()), ([0, 1, 2, 3], [2, 3, 4, 5]))
        self.assertEqual((tokens.tolist(), type(tokens)), (TOKENS, penstock.Ragged))


class Pytrees(Case):
    def setUp(self):
        super().setUp()
        from torch.utils import _pytree
        self.pytree = _pytree

    def test_tree_map_gives_a_batch_of_the_same_form(self):
        for form, kind in (("tuple", penstock.TupleBatch), ("dict", penstock.Batch)):
            batch = first(form)
            again = self.pytree.tree_map(lambda t: t.clone(), batch)
            self.assert_whole(again, kind)
            self.assertNotEqual(list(again)[0].data_ptr(), list(batch)[0].data_ptr())
            self.assertRaisesRegex(AttributeError, "made from another", lambda: again.sample_ids)

    def test_each_tensor_is_reached_by_its_number_or_name(self):
        if not hasattr(self.pytree, "tree_flatten_with_path"):
            self.skipTest("PyTorch is older than 2.3")
        for form, places in (("tuple", ["[0]", "[1]", "[2]"]), ("dict", ["['i']", "['x']", "['tokens']"])):
            found, _ = self.pytree.tree_flatten_with_path(first(form))
            ragged = [places[2] + part for part in (".data", ".offsets", ".device_offsets")]
            self.assertEqual([self.pytree.keystr(path) for path, _ in found], [*places[:2], *ragged])

    def test_a_form_survives_json(self):
        for form in ("tuple", "dict"):
            spec = self.pytree.tree_structure(first(form))
            self.assertEqual(self.pytree.treespec_loads(self.pytree.treespec_dumps(spec)), spec)

    def test_exported_programs_take_batches(self):
        class Sum(self.torch.nn.Module):
            def forward(self, batch):
                i, x, tokens = batch
                return x.sum() + i.sum() + tokens.data.sum()

        for form in ("tuple", "dict"):
            batch = first(form)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program = self.torch.export.export(Sum(), (batch,))
            self.assertEqual(program.module()(batch), Sum()(batch))

    def test_a_batch_mapped_to_other_values_has_a_repr_and_a_table(self):
        for form in ("tuple", "dict"):
            made = self.pytree.tree_map(str, first(form))
            self.assertIn("ragged ? [] of ? rows", repr(made))
            self.assertIn("ragged, ? rows", made._repr_html_())

    def test_vmap_goes_over_rows(self):
        batch = first(outputs=["i", "x"])
        found = self.torch.func.vmap(lambda pair: pair[0] + pair[1].sum())(batch)
        self.assertEqual(found.tolist(), [3, 7, 11, 15])


class Files(Case):
    def saved(self, what, **keywords):
        file = io.BytesIO()
        self.torch.save(what, file)
        file.seek(0)
        return self.torch.load(file, **keywords)

    def test_a_batch_is_loaded_with_where_it_is_from(self):
        batch = first()
        again = self.saved(batch, weights_only=False)
        self.assert_whole(again)
        self.assertEqual((again.sample_ids, again.next_position), (batch.sample_ids, batch.next_position))

    def test_its_tensors_are_loaded_without_running_anything(self):
        i, x, tokens = first()
        again = self.saved((i, x, {"data": tokens.data, "offsets": tokens.offsets}), weights_only=True)
        ragged = penstock.Ragged(again[2]["data"], again[2]["offsets"], again[2]["offsets"])
        self.assert_whole(penstock.TupleBatch((again[0], again[1], ragged)))
        plain = self.saved(tuple(first(outputs=["i", "x"])), weights_only=True)
        self.assertEqual((type(plain), plain[0].tolist()), (tuple, [0, 1, 2, 3]))


class Collated(Case):
    def test_batches_are_stacked_and_ragged_ones_refused(self):
        from torch.utils.data import default_collate
        i, x = default_collate([first(outputs=["i", "x"])] * 2)
        self.assertEqual((tuple(i.shape), tuple(x.shape)), ((2, 4), (2, 4, 3)))
        self.assertRaisesRegex(TypeError, "Ragged", default_collate, [first()] * 2)


class Accelerated(Case):
    def setUp(self):
        super().setUp()
        self.accelerate = optional("accelerate")
        self.operations = optional("accelerate.utils.operations")

    def test_a_prepared_loop_trains_on_every_batch(self):
        accelerator = self.accelerate.Accelerator(cpu=True)
        model = self.torch.nn.Linear(3, 1)
        before = model.weight.detach().clone()
        optimizer = self.torch.optim.SGD(model.parameters(), lr=1e-6)
        with loader(order=penstock.Order(epoch=2)) as data:
            model, optimizer, prepared = accelerator.prepare(model, optimizer, data)
            self.assertIs(prepared, data)
            seen = []
            for batch in prepared:
                i, x, tokens = self.operations.send_to_device(batch, accelerator.device)
                accelerator.backward((model(x).squeeze(1) - i).pow(2).mean())
                optimizer.step()
                optimizer.zero_grad()
                seen += i.tolist()
                self.assertEqual(tokens.n_rows, 4)
        self.assertEqual(seen, list(range(100)))
        self.assertFalse(self.torch.equal(before, model.weight))

    def test_it_is_moved_whole(self):
        moved = self.operations.send_to_device(first(), "meta")
        self.assertEqual((type(moved), moved.sample_ids), (penstock.TupleBatch, [0, 1, 2, 3]))
        i, x, tokens = moved
        self.assertEqual({t.device.type for t in (i, x, tokens.data, tokens.device_offsets)}, {"meta"})

    def test_ragged_outputs_are_kept_whole_or_refused_by_name(self):
        _, _, tokens = self.operations.slice_tensors(first(), slice(0, 2))
        self.assertEqual(tokens.tolist(), TOKENS)
        self.assert_whole(self.accelerate.Accelerator(cpu=True).gather_for_metrics(first()))
        for refused in (lambda: self.operations.concatenate([first()] * 2), lambda: self.operations.reduce(first()),
                        lambda: self.operations.pad_across_processes(first())):
            self.assertRaisesRegex(TypeError, "penstock.tensors.Ragged", refused)

    def test_skipping_batches_is_refused(self):
        with loader() as data:
            self.assertRaisesRegex(AttributeError, "'Loader' object has no attribute 'sampler'",
                                   self.accelerate.skip_first_batches, data, 2)


class Lightning(Case):
    def model(self, lightning, torch):
        class Model(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer, self.seen = torch.nn.Linear(3, 1), []

            def loss(self, batch):
                i, x, tokens = batch
                self.seen.append((type(batch), batch.sample_ids, tokens.tolist()))
                return (self.layer(x).squeeze(1) - i).pow(2).mean()

            def training_step(self, batch, _number):
                return self.loss(batch)

            def validation_step(self, batch, _number):
                self.log("loss", self.loss(batch), batch_size=4)

            test_step = validation_step

            def predict_step(self, batch, _number):
                self.loss(batch)
                return batch

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=1e-6)

        return Model()

    def test_a_trainer_gives_its_steps_whole_batches(self):
        lightning = optional("lightning")
        for form, kind in (("tuple", penstock.TupleBatch), ("dict", penstock.Batch)):
            with warnings.catch_warnings(), loader(form) as data:
                warnings.simplefilter("ignore")
                trainer = lightning.Trainer(fast_dev_run=True, accelerator="cpu", devices=1, logger=False,
                                            enable_progress_bar=False, enable_model_summary=False)
                model = self.model(lightning, self.torch)
                with loader(form) as other:
                    trainer.fit(model, data, other)
                    trainer.validate(model, other, verbose=False)
                    trainer.test(model, other, verbose=False)
                    predicted = trainer.predict(model, other)
            self.assertEqual(model.seen, [(kind, [0, 1, 2, 3], TOKENS)] * 5)  # one batch for each of five loops
            self.assert_whole(predicted[0], kind)


class Jax(unittest.TestCase):
    def test_each_tensor_is_reached_by_its_number_or_name(self):
        jax = optional("jax")
        for form, places in (("tuple", ["[0]", "[1]", "[2]"]), ("dict", ["['i']", "['x']", "['tokens']"])):
            batch = first(form, framework="jax")
            found, _ = jax.tree_util.tree_flatten_with_path(batch)
            ragged = [places[2] + part for part in (".data", ".offsets", ".device_offsets")]
            self.assertEqual([jax.tree_util.keystr(path) for path, _ in found], [*places[:2], *ragged])
            again = jax.jit(lambda b: b)(batch)
            self.assertEqual((type(again), again[2 if form == "tuple" else "tokens"].tolist()), (type(batch), TOKENS))


if __name__ == "__main__":
    unittest.main()
