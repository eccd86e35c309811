# SPDX-License-Identifier: Apache-2.0
"""A small regression, and the plain loop that the training loops of other libraries are compared with.

The plain loop is one process. It takes from the loader only the ids of each rank's rows, makes the rows itself, and
averages the gradients of the ranks as DistributedDataParallel does.
"""
import torch

import penstock

N, N_VAL, WIDTH = 48, 20, 4
BATCH, SEED, LR, EPOCHS = 8, 3, 0.1, 2
STEPS = N // BATCH  # steps of an epoch


def row(i):
    """Sample i: x [WIDTH], y [1]; multiples of 1/16, which float32 holds."""
    x = [((7 * i + 5 * k) % 33 - 16) / 16 for k in range(WIDTH)]
    return x, [(i % 9 - 4) / 16]


def write(path, n):
    with penstock.Writer(path, {"x": ("float32", (WIDTH,)), "y": ("float32", (1,))}) as writer:
        for i in range(n):
            x, y = row(i)
            writer.add(x=x, y=y)
    return str(path)


def network():
    """Return a network, with the same weights on each call."""
    made = torch.nn.Linear(WIDTH, 1)
    with torch.no_grad():
        made.weight.copy_(torch.arange(WIDTH) / 8)
        made.bias.fill_(0.5)
    return made


def rows(ids):
    x, y = zip(*map(row, ids))
    return torch.tensor(x), torch.tensor(y)


def zeros(parameters, world):
    return [[torch.zeros_like(parameter) for parameter in parameters] for _ in range(world)]


def train(data, world, accumulate=1, lr=LR):
    """Return for each rank the ids of its batches and its losses, in the order of steps, and the weights after each
    step, which are those of all ranks."""
    loaders = [penstock.Loader(data, batch_size=penstock.GlobalBatch(BATCH), seed=SEED, ranks=penstock.Ranks(rank, world),
                               framework="numpy",
                               outputs=["y"], n_threads=1) for rank in range(world)]
    model, seen, weights = network(), [{"ids": [], "losses": []} for _ in range(world)], []
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr)
    for epoch in range(EPOCHS):
        gradients = zeros(parameters, world)
        for step, batches in enumerate(zip(*(loader.epoch(epoch) for loader in loaders)), 1):
            for one, batch, sums in zip(seen, batches, gradients):
                x, y = rows(batch.sample_ids)
                loss = torch.nn.functional.mse_loss(model(x), y)
                for total, gradient in zip(sums, torch.autograd.grad(loss / accumulate, parameters)):
                    total += gradient
                one["ids"].append(list(batch.sample_ids))
                one["losses"].append(loss.item())
            if step % accumulate == 0:
                for parameter, *totals in zip(parameters, *gradients):
                    parameter.grad = sum(total / world for total in totals)
                optimizer.step()
                gradients = zeros(parameters, world)
                weights.append(weights_of(model))
    for loader in loaders:
        loader.close()
    return seen, weights


def validate(weights, n=N_VAL):
    """Return the mean loss over samples 0 to n of a model with these weights."""
    model = network()
    with torch.no_grad():
        model.weight[0].copy_(torch.tensor(weights[:-1]))
        model.bias.fill_(weights[-1])
        x, y = rows(range(n))
        return torch.nn.functional.mse_loss(model(x), y).item()


def weights_of(model):
    """As `train` returns them."""
    values = [parameter.detach().reshape(-1).tolist() for parameter in model.parameters()]
    return sum(values, [])
