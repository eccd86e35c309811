# SPDX-License-Identifier: Apache-2.0
"""Accelerate: accelerate_loop.py OUT [CHECKPOINT]. It saves its state after the fourth step, and goes on from
CHECKPOINT. Each process leaves what it saw in OUT."""
import json
import pathlib
import sys

import plain
import torch
from accelerate import Accelerator

import penstock


def main(out, checkpoint=None):
    seen = {"ids": [], "losses": []}
    mse_loss = torch.nn.functional.mse_loss
    accelerator = Accelerator(cpu=True)
    loader = penstock.Loader("train", batch_size=penstock.GlobalBatch(8), ranks="auto",
                             seed=3, device=accelerator.device,
                             outputs=["x", "y"], framework="torch")
    model = plain.network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    accelerator.register_for_checkpointing(loader)
    if checkpoint is not None:
        accelerator.load_state(checkpoint)
    for epoch in range(loader.current_epoch, 2):
        for batch in loader.epoch(epoch):
            loss = mse_loss(model(batch["x"]), batch["y"])
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            note(seen, batch, loss)
            if len(seen["ids"]) == 4 and checkpoint is None:
                accelerator.save_state(f"{out}/step-4")
    seen["source"] = loader.ranks.source
    seen["is_as_it_was"] = accelerator.prepare(loader) is loader
    seen["weights"] = plain.weights_of(model)
    pathlib.Path(out, f"{accelerator.process_index}.json").write_text(json.dumps(seen))
    accelerator.end_training()


def note(seen, batch, loss):
    seen["ids"].append(batch.sample_ids)
    seen["losses"].append(loss.item())


if __name__ == "__main__":
    main(*sys.argv[1:])
