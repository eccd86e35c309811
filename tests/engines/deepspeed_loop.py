# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed: deepspeed_loop.py OUT [CHECKPOINT]. It accumulates two batches a step, saves a checkpoint after the
second step, and goes on from CHECKPOINT. Each process leaves what it saw in OUT."""
import json
import pathlib
import sys

import deepspeed
import plain
import torch

import penstock

# DeepSpeed compiles no operations of its own: its all-reduce for CPUs takes a minute, and torch has one.
deepspeed.ops.__compatible_ops__ = {}
CONFIG = {"train_batch_size": 16, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2,
          "zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": True}


def main(out, checkpoint=None):
    seen = {"ids": [], "losses": []}
    mse_loss = torch.nn.functional.mse_loss
    deepspeed.init_distributed("gloo")
    network = plain.network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    engine, *_ = deepspeed.initialize(model=network, optimizer=optimizer, config=CONFIG)
    loader = penstock.Loader("train", batch_size=engine.train_micro_batch_size_per_gpu(),
                             ranks="auto", seed=3,
                             device=engine.device, outputs=["x", "y"], framework="torch")
    if checkpoint is not None:
        _, saved = engine.load_checkpoint(checkpoint)
        loader.load_state_dict(saved["loader"])
    for epoch in range(loader.current_epoch, 2):
        for batch in loader.epoch(epoch):
            loss = mse_loss(engine(batch["x"]), batch["y"])
            engine.backward(loss)
            engine.step()
            note(seen, batch, loss)
            is_whole_step = engine.micro_steps % engine.gradient_accumulation_steps() == 0
            if is_whole_step and engine.global_steps == 2 and checkpoint is None:
                engine.save_checkpoint(f"{out}/saved", client_state={"loader": loader.state_dict()})
    seen["source"] = loader.ranks.source
    seen["weights"] = plain.weights_of(network)
    pathlib.Path(out, f"{loader.ranks.rank}.json").write_text(json.dumps(seen))


def note(seen, batch, loss):
    seen["ids"].append(batch.sample_ids)
    seen["losses"].append(loss.item())


if __name__ == "__main__":
    main(*sys.argv[1:])
