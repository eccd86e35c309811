# SPDX-License-Identifier: Apache-2.0
"""A loop as Horovod has it: horovod_loop.py OUT RANK SIZE. Horovod is not there: two pipes in the folder OUT average
gradients of two processes. Nothing but rank and size reaches the loader. Each process leaves what it saw in OUT."""
import json
import pathlib
import sys

import plain
import torch

import penstock


class Hvd:
    """Horovod's functions that the loop calls, for two processes. Gradients go through named pipes."""

    def __init__(self, out, rank, size):
        self.numbers = rank, size
        first, second = (f"{out}/pipe-{i}" for i in range(2))
        # Both open the pipes in the same order.
        self.pipes = [open(path, "wb" if rank == i else "rb", buffering=0) for i, path in enumerate((first, second))]

    def rank(self):
        return self.numbers[0]

    def size(self):
        return self.numbers[1]

    local_rank, local_size = rank, size

    def allreduce_(self, tensor):
        """The average of both processes, in place."""
        mine, other = self.pipes[self.rank()], self.pipes[1 - self.rank()]
        mine.write(tensor.numpy().tobytes())
        theirs = torch.frombuffer(bytearray(other.read(tensor.numel() * 4)), dtype=torch.float32).reshape(tensor.shape)
        tensor.copy_(tensor / 2 + theirs / 2)


def main(out, rank, size):
    seen = {"ids": [], "losses": []}
    hvd = Hvd(out, int(rank), int(size))
    model = plain.network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = penstock.Loader("train", batch_size=penstock.GlobalBatch(8), seed=3,
                             outputs=["x", "y"], framework="torch",
                             ranks=penstock.Ranks(hvd.rank(), hvd.size(), hvd.local_rank(),
                                                  hvd.local_size()))
    for epoch in range(2):
        for batch in loader.epoch(epoch):
            loss = torch.nn.functional.mse_loss(model(batch["x"]), batch["y"])
            loss.backward()
            for parameter in model.parameters():
                hvd.allreduce_(parameter.grad)
            optimizer.step()
            optimizer.zero_grad()
            seen["ids"].append(batch.sample_ids)
            seen["losses"].append(loss.item())
    seen["source"] = loader.ranks.source
    seen["weights"] = plain.weights_of(model)
    pathlib.Path(out, f"{rank}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
