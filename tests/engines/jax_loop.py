# SPDX-License-Identifier: Apache-2.0
"""JAX on several processes: jax_loop.py OUT ADDRESS PROCESS PROCESSES. Each process leaves what it saw in OUT."""
import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import penstock


def loss_of(parameters, batch):
    predicted = batch["x"] @ parameters["weight"] + parameters["bias"]
    return jnp.square(predicted - batch["y"]).mean()


@jax.jit
def train_step(parameters, batch):
    loss, gradient = jax.value_and_grad(loss_of)(parameters, batch)
    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradient), loss


def main(out, address, process, processes):
    seen = {"ids": [], "losses": []}
    jax.distributed.initialize(address, num_processes=int(processes), process_id=int(process))
    parameters = {"weight": jnp.arange(4.0).reshape(4, 1) / 8, "bias": jnp.full((1,), 0.5)}
    mesh = Mesh(numpy.array(jax.devices()), ("data",))
    rows = NamedSharding(mesh, PartitionSpec("data"))
    parameters = jax.device_put(parameters, NamedSharding(mesh, PartitionSpec()))
    loader = penstock.Loader("train", batch_size=penstock.GlobalBatch(8), ranks="auto",
                             seed=3, outputs=["x", "y"],
                             framework="numpy")
    for epoch in range(2):
        for batch in loader.epoch(epoch):
            whole = {name: jax.make_array_from_process_local_data(rows, tensor)
                     for name, tensor in batch.items()}
            parameters, loss = train_step(parameters, whole)
            note(seen, batch, whole, loss)
    seen["source"] = loader.ranks.source
    seen["weights"] = [*map(float, parameters["weight"].addressable_data(0)[:, 0]),
                       float(parameters["bias"].addressable_data(0)[0])]
    pathlib.Path(out, f"{process}.json").write_text(json.dumps(seen))
    jax.distributed.shutdown()


def note(seen, batch, whole, loss):
    assert whole["x"].shape == (8, 4), whole["x"].shape
    seen["ids"].append(batch.sample_ids)
    seen["losses"].append(float(loss.addressable_data(0)))


if __name__ == "__main__":
    main(*sys.argv[1:])
