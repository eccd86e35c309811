# SPDX-License-Identifier: Apache-2.0
"""Batches in parts, for the accumulation of gradients: the rows of the batch, as views of its slot."""
import gc
import os
import pickle
import unittest

import sets
import penstock
from data_fixture import optional

N = 103  # samples
OUTPUTS = {"image": sets.images(), "i": "i", "x": "x", "tokens": "tokens", "boxes": "boxes", "text": "text"}


def loader(**keywords):
    sets.need_numpy()
    settings = dict(batch_size=10, framework="numpy", last_batch="short", seed=4, observe=penstock.Observe(report_crops=True),
                    outputs=OUTPUTS)
    return penstock.Loader(sets.small(), n_threads=1, **{**settings, **keywords})


def plain(value):
    """Return the values of a tensor."""
    if isinstance(value, penstock.Ragged):
        return [plain(row) for row in value]
    return value.tolist()


def rows_of(batch):
    """Return a batch, row by row: all that it says of each."""
    tensors = [plain(batch[name]) for name in OUTPUTS]
    crops = [batch.crops["image"]] if batch.info is not None and batch.info._crops is not None else []
    return list(zip(batch.sample_ids, *tensors, *crops))


class Parts(unittest.TestCase):
    def test_they_are_the_rows_of_the_batch(self):
        for framework in ("numpy", "torch", "jax", "dlpack"):
            if framework != "dlpack":
                optional(framework)
            for n_parts in (1, 2, 3, 4, 10, 13):
                outputs = {**OUTPUTS, "i": "x"} if framework == "jax" else OUTPUTS
                with loader(framework=framework, outputs=outputs, memory=penstock.Memory(n_slots=4)) as whole, \
                        loader(framework=framework, outputs=outputs, memory=penstock.Memory(n_slots=4)) as data:
                    batches = data.micro_batches(n_parts)
                    self.assertEqual(len(batches), 11)
                    for wanted, parts in zip(whole, batches):
                        n = wanted.n_valid
                        self.assertEqual((len(parts), parts.n_valid), (n_parts, n))
                        self.assertEqual([part.n_valid for part in parts],
                                         [n * (i + 1) // n_parts - n * i // n_parts for i in range(n_parts)])
                        self.assertEqual(sum((rows_of(part) for part in parts), []), rows_of(wanted))
                        for part in parts:
                            self.assertEqual((part.epoch, part.position, part.next_position, part.index),
                                             (wanted.epoch, wanted.position, wanted.next_position, wanted.index))
                            self.assertEqual({len(part[name]) if isinstance(part[name], penstock.Ragged) else part[name].shape[0]
                                              for name in OUTPUTS}, {part.n_valid})

    def test_ragged_parts_have_data_and_offsets_of_their_own(self):
        for framework in ("numpy", "torch"):
            optional(framework)
            with loader(framework=framework) as data:
                for parts in data.micro_batches(3):
                    for part in parts:
                        for name in ("tokens", "boxes", "text"):
                            ragged = part[name]
                            ends = ragged.offsets.tolist()
                            self.assertEqual((ends[0], ends[-1], len(ends)), (0, ragged.data.shape[0], part.n_valid + 1))
                            self.assertIs(ragged.device_offsets, ragged.offsets)

    def test_the_slot_is_held_by_the_last_part(self):
        with loader(memory=penstock.Memory(n_slots=2), framework="dlpack") as data:
            batches = data.micro_batches(3)
            first, second = next(batches), next(batches)
            images = [part["image"] for part in first]
            del first
            for _ in range(2):
                gc.collect()
                with self.assertRaises(penstock.OutOfSlotsError):
                    next(batches)
                images.pop()
            images.pop()
            self.assertEqual(next(batches).info.index, 2)
            del second

    def test_copies_forms_and_mixes(self):
        with loader(device=penstock.Device(copy=True), memory=penstock.Memory(n_slots=2)) as data:
            kept = list(data.micro_batches(2))
        with loader() as data:
            self.assertEqual(sum((rows_of(part) for parts in kept for part in parts), []),
                             sum((rows_of(batch) for batch in data), []))
        part = pickle.loads(pickle.dumps(kept[0][1]))
        self.assertEqual((part.n_valid, part.sample_ids, part.crops), (5, kept[0][1].sample_ids, kept[0][1].crops))
        with loader(form="tuple") as data:
            parts = next(data.micro_batches(2))
            self.assertEqual([len(part) for part in parts], [6, 6])
            self.assertEqual(parts[1][1].tolist(), parts[1].sample_ids)
        with loader(form="dataclass") as data:
            self.assertEqual([part.i.tolist() for part in next(data.micro_batches(2))],
                             [kept[0][0].sample_ids, kept[0][1].sample_ids])
        mix = dict(mix=penstock.MixUp(0.4, num_classes=N), observe=penstock.Observe(report_crops=False),
                   memory=penstock.Memory(n_slots=4),
                   outputs={"image": sets.images("float32"), "i": "i"})
        with loader(**mix) as whole, loader(**mix) as data:
            for batch, parts in zip(whole, data.micro_batches(4)):
                for name in ("image", "i"):
                    self.assertEqual(sum((part[name].tolist() for part in parts), []), batch[name].tolist())

    def test_channels_last(self):
        optional("torch")
        with loader(framework="torch", outputs={"image": sets.images("float32", "channels_last")}) as data:
            parts = next(data.micro_batches(3))
            import torch
            self.assertEqual([tuple(part["image"].shape) for part in parts], [(3, 3, 16, 16), (3, 3, 16, 16), (4, 3, 16, 16)])
            self.assertTrue(all(part["image"].is_contiguous(memory_format=torch.channels_last) for part in parts))

    def test_gradients_are_those_of_the_batch(self):
        torch = optional("torch")
        model = torch.nn.Linear(3, 1)

        def gradients(losses):
            model.zero_grad()
            for loss in losses:
                loss.backward()
            return model.weight.grad.clone()

        with loader(framework="torch") as whole, loader(framework="torch") as data:
            for batch, parts in zip(whole, data.micro_batches(3)):
                wanted = gradients([model(batch["x"]).square().mean()])
                found = gradients(model(part["x"]).square().mean() * part.n_valid / parts.n_valid
                                  for part in parts if part.n_valid)
                self.assertTrue(torch.allclose(found, wanted, rtol=1e-4))

    def test_places_and_states(self):
        with loader() as data:
            batches = data.micro_batches(2, epoch=3)
            parts = next(batches)
            self.assertEqual((parts.info.epoch, data.cursor), (3, (3, 10)))
            for after in (parts, *parts):
                self.assertEqual(data.state_dict(after=after)["position"], 10)
            self.assertEqual(repr(parts), "<penstock.MicroBatches of 5, 5 rows, epoch 3, batch 0, 10 rows>")
            data.batch_size = 7
            self.assertEqual([part.n_valid for part in next(batches)], [3, 4])
            ids = sum((part.sample_ids for parts in batches for part in parts), [])
            self.assertEqual(len(set(ids)), N - 17)
            self.assertEqual(next(iter(data)).epoch, 4)

    def test_wrong_numbers(self):
        with loader() as data:
            with self.assertRaisesRegex(penstock.SettingsError, "micro_batches.n_parts: value is 0; must be at least 1"):
                data.micro_batches(0)
            with self.assertRaisesRegex(TypeError, "micro_batches.n_parts: value is 2.5; must be a whole number"):
                data.micro_batches(2.5)
            self.assertEqual(next(iter(data)).epoch, 0)  # no pass was begun


FAKE = os.environ.get("PENSTOCK_FAKE_LIBRARY", "")
DEVICE = """
import sys
import penstock

def loader(device):
    return penstock.Loader(sys.argv[1], batch_size=10, device=device, framework="dlpack", last_batch="short", outputs={
        "x": penstock.image("image", [penstock.ops.Resize((8, 8)), penstock.ops.Normalize()]), "i": "i", "tokens": "tokens"})

with loader("cpu") as whole, loader("cuda") as data:
    for batch, parts in zip(whole, data.micro_batches(3)):
        assert b"".join(part["x"].read() for part in parts) == batch["x"].read()
        assert b"".join(part["i"].read() for part in parts) == batch["i"].read()
        assert [n for part in parts for n in part["tokens"].offsets.tolist()[1:]] == batch["tokens"].offsets.tolist()[1:]
        assert all(part["tokens"].device_offsets.device == (2, 0) for part in parts)
        assert parts[0]["tokens"].data.read() == batch["tokens"].data.read()
        data.set_batch_size(7), whole.set_batch_size(7)
print("same")
"""


class OnADevice(unittest.TestCase):
    @unittest.skipUnless(FAKE, "PENSTOCK_FAKE_LIBRARY names no library")
    def test_parts_are_those_of_the_host(self):
        sets.need_numpy()
        done = sets.python(DEVICE, sets.small(), PENSTOCK_LIBRARY=FAKE, PENSTOCK_FAKE_CUDA="devices=1,delay_us=200")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "same\n", ""), done.stdout)


if __name__ == "__main__":
    unittest.main()
