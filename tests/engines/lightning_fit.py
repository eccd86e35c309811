# SPDX-License-Identifier: Apache-2.0
"""Lightning: lightning_fit.py OUT [CHECKPOINT]. It fits on two processes with validation, saves a checkpoint after each
second step, and goes on from CHECKPOINT. Each process leaves what it saw in OUT."""
import json
import pathlib
import sys
import warnings

import lightning
import plain
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

import penstock


class Data(lightning.LightningDataModule):
    """The hooks open the loaders: by then each process has its rank and its device."""

    def open(self, path, **settings):
        return penstock.Loader(path, batch_size=penstock.GlobalBatch(8), ranks="auto",
                               device=self.trainer.strategy.root_device,
                               outputs=["x", "y"], framework="torch", **settings)

    def train_dataloader(self):
        return self.open("train", seed=3)

    def val_dataloader(self):
        return self.open("val", shuffle=False, last_batch="short")


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = plain.network()

    def training_step(self, batch, index):
        return torch.nn.functional.mse_loss(self.network(batch["x"]), batch["y"])

    def validation_step(self, batch, index):
        loss = torch.nn.functional.mse_loss(self.network(batch["x"]), batch["y"])
        self.log("val", loss, batch_size=batch.n_valid, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=plain.LR)


class Notes(lightning.Callback):
    """A record of what this process sees."""

    def __init__(self):
        self.seen = {"ids": [], "losses": [], "val": []}

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        self.seen["ids"].append(batch.sample_ids)
        self.seen["losses"].append(outputs["loss"].item())

    def on_validation_epoch_end(self, trainer, module):
        self.seen["val"].append(trainer.callback_metrics["val"].item())


def main(out, checkpoint=None):
    warnings.simplefilter("ignore")
    notes = Notes()
    trainer = lightning.Trainer(
        max_epochs=2, use_distributed_sampler=False,  # the loader gives each rank its part
        callbacks=[ModelCheckpoint(out, "{step}", save_top_k=-1, every_n_train_steps=2),
                   notes],
        accelerator="cpu", devices=2, strategy="ddp", logger=False, enable_progress_bar=False, enable_model_summary=False,
        num_sanity_val_steps=0)
    model = Model()
    trainer.fit(model, datamodule=Data(), ckpt_path=checkpoint)
    notes.seen["weights"] = plain.weights_of(model)
    pathlib.Path(out, f"{trainer.global_rank}.json").write_text(json.dumps(notes.seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
