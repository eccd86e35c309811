#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train an image classifier with Lightning on a penstock data set. Lightning's own checkpoints contain
the position of the loader, so a run can resume in the middle of an epoch.

    train_lightning.py train --val val
    train_lightning.py train --val val --resume last.ckpt
"""
from __future__ import annotations

import argparse
import os
from typing import Any

import lightning
import penstock
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import ModelCheckpoint
from penstock.ops import CenterCrop, Normalize, RandomFlip, RandomResizedCrop, Resize
from torch import Tensor, nn


class Data(lightning.LightningDataModule):
    """The hooks open the loaders: by then each process has its rank and its device."""

    def __init__(self, train: str, val: str | None, batch_size: int, size: int) -> None:
        super().__init__()
        self.paths, self.batch_size, self.size = {"train": train, "val": val or train}, batch_size, size

    def open(self, which: str, ops: list[Any], **settings: Any) -> penstock.Loader:
        image = penstock.image("jpg", [*ops, Normalize()], dtype="float32", layout="channels_last")
        return penstock.Loader(
            self.paths[which], batch_size=self.batch_size, ranks="auto", **settings,
            device=self.trainer.strategy.root_device,
            outputs={"image": image, "label": penstock.scalar("cls", dtype="int64")})

    def train_dataloader(self) -> penstock.Loader:
        return self.open("train", [RandomResizedCrop(self.size), RandomFlip()], seed=1)

    def val_dataloader(self) -> penstock.Loader:
        ops = [Resize(self.size * 8 // 7), CenterCrop(self.size)]
        return self.open("val", ops, shuffle=False, last_batch="pad")


class Classifier(lightning.LightningModule):
    def __init__(self, n_classes: int, lr: float) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.network = nn.Sequential(
            nn.Conv2d(3, 32, 7, 4, 3), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, n_classes))

    def training_step(self, batch: Any, index: int) -> Tensor:
        loss = F.cross_entropy(self.network(batch["image"]), batch["label"])
        self.log("loss", loss, prog_bar=True, batch_size=len(batch["label"]))
        return loss

    def validation_step(self, batch: Any, index: int) -> None:
        right = (self.network(batch["image"]).argmax(1) == batch["label"]).float().mean()
        self.log("right", right, prog_bar=True, sync_dist=True, batch_size=len(batch["label"]))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), self.hparams["lr"])


def main() -> None:
    parser = argparse.ArgumentParser(description="Train an image classifier with Lightning.")
    parser.add_argument("train", help="data set to train on")
    parser.add_argument("--val", help="data set to validate on (default: the training data set)")
    parser.add_argument("--resume", help="checkpoint to resume from")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--checkpoints", default="checkpoints", help="folder for the checkpoints")
    parser.add_argument("--checkpoint-every", type=int, default=1000, metavar="STEPS")
    args = parser.parse_args()

    if not torch.cuda.is_available() and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, torch.get_num_threads() // 2))  # the other cores are the loader's
    lightning.seed_everything(1)
    trainer = lightning.Trainer(
        max_epochs=args.epochs, logger=False, log_every_n_steps=1,
        use_distributed_sampler=False,  # the loader distributes the samples among the ranks
        callbacks=[ModelCheckpoint(args.checkpoints, "{step}", save_top_k=-1,
                                   every_n_train_steps=args.checkpoint_every)])
    trainer.fit(Classifier(len(penstock.Dataset(args.train).names), args.lr),
                datamodule=Data(args.train, args.val, args.batch_size, args.size), ckpt_path=args.resume)


if __name__ == "__main__":
    main()
