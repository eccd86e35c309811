# SPDX-License-Identifier: Apache-2.0
"""PyTorch on a CPU in a few seconds, which is all of it that `make test` runs; `make test-more` has the rest."""
import unittest

import sets
import penstock

sets.need_numpy()
torch = sets.torch_or_skip()
torch.set_num_threads(1)

N, BATCH, EPOCHS = 103, 8, 2


def data(**keywords):
    keywords = {"batch_size": BATCH, "seed": 3, "outputs": ["x", "i"], "framework": "torch", **keywords}
    return penstock.Loader(sets.small(N), **keywords)


class Training:
    """A regression on one thread: the same batches in the same order give the same bits."""

    def __init__(self):
        self.weight = torch.full((3,), 0.5, requires_grad=True)
        self.optimizer = torch.optim.SGD([self.weight], lr=1e-6, momentum=0.9)

    def step(self, x, i):
        self.optimizer.zero_grad()
        ((x @ self.weight - i.to(torch.float32)) ** 2).mean().backward()
        self.optimizer.step()


class Loop(unittest.TestCase):
    def test_training_gives_the_weights_of_a_naive_loop(self):
        ours, naive = Training(), Training()
        source = penstock.Dataset(sets.small(N))
        with data() as loader:
            for _ in range(EPOCHS):
                for batch in loader:
                    ours.step(batch["x"], batch["i"])
                    samples = [source[int(i)] for i in batch.sample_ids]
                    naive.step(torch.stack([torch.as_tensor(sample["x"]) for sample in samples]),
                               torch.tensor([sample["i"] for sample in samples]))
        self.assertTrue(torch.equal(ours.weight, naive.weight))
        self.assertFalse(torch.equal(ours.weight, torch.full((3,), 0.5)))

    def test_resumed_training_gives_the_same_weights(self):
        whole, parts = Training(), Training()
        with data() as loader:
            for _ in range(EPOCHS):
                for x, i in loader:
                    whole.step(x, i)
        with data() as loader:
            for n, (x, i) in enumerate(loader):
                parts.step(x, i)
                if n == 4:
                    break
            state = loader.state_dict()
        with data() as loader:
            loader.load_state_dict(state)
            for _ in range(EPOCHS):
                for x, i in loader:
                    parts.step(x, i)
        self.assertTrue(torch.equal(whole.weight, parts.weight))


class Tensors(unittest.TestCase):
    def test_each_kind_has_the_bytes_that_numpy_sees(self):
        outputs = {"image": sets.images(), "float": sets.images("float16", "nchw"), "x": "x", "i": "i",
                   "tokens": "tokens", "text": "text"}
        same = {"outputs": outputs, "last_batch": "short"}
        with data(**same) as loader, data(framework="numpy", **same) as other:
            for ours, theirs in zip(loader, other):
                for name in ("image", "float", "x", "i"):
                    self.assertEqual(ours[name].numpy().tobytes(), theirs[name].tobytes(), name)
                for name in ("tokens", "text"):
                    self.assertEqual(ours[name].data.tolist(), theirs[name].data.tolist(), name)
                    self.assertEqual(ours[name].offsets.tolist(), theirs[name].offsets.tolist(), name)
            self.assertEqual([ours[name].dtype for name in ("image", "float", "x", "i")],
                             [torch.uint8, torch.float16, torch.float32, torch.int64])
            self.assertEqual(ours["image"].shape[1:], (16, 16, 3))
            self.assertEqual(ours["float"].shape[1:], (3, 16, 16))

    def test_a_kept_tensor_stays_unchanged(self):
        with data(memory=penstock.Memory(n_slots=3), shuffle=False) as loader:
            batches = iter(loader)
            kept = next(batches)["i"]
            before = kept.data_ptr()
            for _ in range(6):
                self.assertNotEqual(next(batches)["i"].data_ptr(), before)
        self.assertEqual(kept.tolist(), list(range(BATCH)))


if __name__ == "__main__":
    unittest.main()
