#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train an image classifier with PyTorch, all of it: bf16, several GPUs, accumulation, validation, checkpoints.

    penstock pack imagenet/train train && penstock pack imagenet/val val
    train_classifier.py train --val val                                 # one GPU, or the CPU where there is none
    torchrun --nproc-per-node 8 train_classifier.py train --val val     # eight

Killed and started again by the same command it goes on behind its last checkpoint, in the middle of an epoch
as well, and on the CPU it ends with the bits of a run that was never stopped.
"""
from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import penstock
import torch
import torch.distributed as dist
import torch.nn.functional as F
from penstock import CenterCrop, Normalize, RandomFlip, RandomResizedCrop, Resize
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

# ---- the network -----------------------------------------------------------------------------------------


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True),
            nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False), nn.BatchNorm2d(n_out))
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or n_in != n_out:
            self.shortcut = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.path(x) + self.shortcut(x))


def small_resnet(n_classes: int, widths: tuple[int, ...] = (16, 32, 64, 128)) -> nn.Module:
    """For CPUs, and where torchvision is not installed."""
    layers = [nn.Conv2d(3, widths[0], 3, 2, 1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU(inplace=True)]
    n_in = widths[0]
    for i, n_out in enumerate(widths):
        layers += [Block(n_in, n_out, 1 if i == 0 else 2), Block(n_out, n_out, 1)]
        n_in = n_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n_in, n_classes))


def network(name: str, n_classes: int) -> nn.Module:
    if name == "small":
        return small_resnet(n_classes)
    try:
        import torchvision
    except ImportError:
        sys.exit(f"--model {name} is torchvision's, which is not installed: pip install torchvision, "
                 "or take --model small")
    return torchvision.models.get_model(name, num_classes=n_classes)  # type: ignore[no-any-return]


# ---- the data --------------------------------------------------------------------------------------------


def outputs(args: argparse.Namespace, augment: bool) -> dict[str, penstock.Output]:
    ops = [RandomResizedCrop(args.size), RandomFlip()] if augment else \
        [Resize(args.size * 256 // 224), CenterCrop(args.size)]
    return {"image": penstock.image("jpg", [*ops, Normalize()], dtype="bfloat16" if args.amp else "float32",
                                    layout="channels_last"),
            "label": penstock.scalar("cls", dtype="int64")}


def train_loader(args: argparse.Namespace, device: torch.device) -> penstock.Loader:
    return penstock.Loader(args.train, batch_size=args.batch_size, outputs=outputs(args, args.augment),
                           device=device, rank="auto", seed=args.seed)


def val_loader(args: argparse.Namespace, device: torch.device) -> penstock.Loader:
    # Every sample once: ranks have batches in equal number, of which the last may have no rows.
    return penstock.Loader(args.val, batch_size=args.batch_size, outputs=outputs(args, augment=False),
                           device=device, rank="auto", shuffle=False, last="short")


# ---- training --------------------------------------------------------------------------------------------


def mean_over_ranks(value: Tensor) -> float:
    """The same on all ranks. Waits for the device."""
    if dist.is_initialized():
        dist.all_reduce(value)
        value = value / dist.get_world_size()
    return value.item()


@dataclass
class Report:
    """What happened since the last line."""

    device: torch.device
    n_steps: int = 0
    n_samples: int = 0
    waited: float = 0.0  # seconds in which this process had no batch to go on with
    loss: Tensor | float = 0.0  # sum over steps, on the device: nothing waits for it until it is printed
    since: float = 0.0

    def __post_init__(self) -> None:
        self.since = time.perf_counter()

    def line(self) -> str:
        loss = mean_over_ranks(torch.as_tensor(self.loss, device=self.device) / self.n_steps)
        seconds = time.perf_counter() - self.since
        world = dist.get_world_size() if dist.is_initialized() else 1
        return (f"loss {loss:.6f}  {self.n_samples * world / seconds:.0f} samples/s  "
                f"waited for data {1e3 * self.waited / self.n_steps:.2f} ms of "
                f"{1e3 * seconds / self.n_steps:.1f} ms a step")


class Trainer:
    """Model, optimizer and loader, which are saved and loaded together."""

    def __init__(self, args: argparse.Namespace, device: torch.device) -> None:
        self.args, self.device, self.step = args, device, 0
        with penstock.Dataset(args.train) as dataset:
            n_classes = args.classes or len(dataset.names)
        if not n_classes:
            sys.exit(f"{args.train} has no class names: say how many there are, --classes N")
        self.loader = train_loader(args, device)
        self.steps_per_epoch = math.ceil(len(self.loader) / args.accumulate)
        torch.manual_seed(args.seed)
        self.model = network(args.model, n_classes).to(device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), args.lr, momentum=0.9, nesterov=True,
                                         weight_decay=args.weight_decay)
        self.restore()
        self.parallel = DistributedDataParallel(self.model, device_ids=[device] if device.type == "cuda" else None) \
            if dist.is_initialized() else self.model
        self.report = Report(device)

    def learning_rate(self) -> float:
        """A linear rise over the first epoch's steps, then half a cosine."""
        warmup, total = self.steps_per_epoch, self.steps_per_epoch * self.args.epochs
        if self.step < warmup:
            return float(self.args.lr * (self.step + 1) / warmup)
        return float(self.args.lr * 0.5 * (1 + math.cos(math.pi * (self.step - warmup) / max(total - warmup, 1))))

    def forward(self, model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.args.amp):
            return model(batch["image"]).float()  # type: ignore[no-any-return]

    def train_step(self, batches: Iterator[Any], n_batches: int) -> None:
        """One step of the optimizer on the mean gradient of n_batches batches."""
        for i in range(n_batches):
            start = time.perf_counter()
            batch = next(batches)
            self.report.waited += time.perf_counter() - start
            self.report.n_samples += batch.n_valid
            # Ranks exchange gradients once a step, with the last batch of it.
            last = i == n_batches - 1
            with contextlib.nullcontext() if last or self.parallel is self.model else self.parallel.no_sync():
                loss = F.cross_entropy(self.forward(self.parallel, batch), batch["label"]) / n_batches
                loss.backward()
            self.report.loss = self.report.loss + loss.detach()
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        self.report.n_steps += 1

    def train_epoch(self, epoch: int) -> None:
        """The epoch, or what is left of it after restore()."""
        batches = self.loader.epoch(epoch)
        for first in range(0, len(batches), self.args.accumulate):
            self.train_step(batches, min(self.args.accumulate, len(batches) - first))
            if self.step % self.args.log_every == 0:
                say(f"epoch {epoch}  step {self.step}  {self.report.line()}")
                self.report = Report(self.device)
            if self.step % self.args.checkpoint_every == 0:
                self.save()

    @torch.inference_mode()
    def validate(self, loader: penstock.Loader) -> tuple[float, float]:
        """Mean loss, and the share of samples that are classified rightly, over all ranks."""
        self.model.eval()
        sums = torch.zeros(3, dtype=torch.float64, device=self.device)
        for batch in loader:
            if batch.n_valid:
                found, label = self.forward(self.model, batch), batch["label"]
                sums += torch.stack([F.cross_entropy(found, label, reduction="sum").double(),
                                     (found.argmax(1) == label).sum().double(), sums.new_tensor(batch.n_valid)])
        if dist.is_initialized():
            dist.all_reduce(sums)
        self.model.train()
        loss, right, n = sums.tolist()
        return loss / n, right / n

    def save(self) -> None:
        """All of it, in one file that is whole or not there. The loader's state is the same on all ranks."""
        if not self.args.checkpoint or (dist.is_initialized() and dist.get_rank() > 0):
            return
        torch.save({"step": self.step, "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                    "loader": self.loader.state_dict()}, self.args.checkpoint + ".new")
        os.replace(self.args.checkpoint + ".new", self.args.checkpoint)

    def restore(self) -> None:
        if not self.args.checkpoint or not os.path.exists(self.args.checkpoint):
            return
        saved = torch.load(self.args.checkpoint, map_location=self.device, weights_only=True)
        self.step = saved["step"]
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.loader.load_state_dict(saved["loader"])
        say(f"going on from step {self.step} of {self.args.checkpoint}")


# ---- the program -----------------------------------------------------------------------------------------


def say(text: str) -> None:
    if not dist.is_initialized() or dist.get_rank() == 0:
        print(text, flush=True)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("train", help="data set to train on")
    add("--val", help="data set to validate on after each epoch")
    add("--checkpoint", help="file to save to, and to go on from where it exists")
    add("--checkpoint-every", type=int, default=1000, metavar="STEPS")
    add("--model", default="resnet50", help="a model of torchvision's, or small")
    add("--classes", type=int, help="number of classes; default: of the data set's names")
    add("--epochs", type=int, default=90)
    add("--batch-size", type=int, default=256, help="of each process and forward pass")
    add("--accumulate", type=int, default=1, help="batches for one step of the optimizer")
    add("--size", type=int, default=224, help="of images, in pixels")
    add("--augment", action=argparse.BooleanOptionalAction, default=True, help="random crops and flips")
    add("--amp", action=argparse.BooleanOptionalAction, default=True, help="compute in bfloat16 where it is safe")
    add("--lr", type=float, default=0.1)
    add("--weight-decay", type=float, default=5e-5)
    add("--seed", type=int, default=0)
    add("--log-every", type=int, default=20, metavar="STEPS")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def chosen_device(name: str) -> torch.device:
    """Under torchrun each process has a GPU of its own."""
    device = torch.device(name)
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", device.index or 0)))
        torch.cuda.set_device(device)
    return device


def main() -> None:
    args = parsed()
    device = chosen_device(args.device)
    if "RANK" in os.environ:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    trainer = Trainer(args, device)
    validation = val_loader(args, device) if args.val else None
    for epoch in range(trainer.loader.current_epoch, args.epochs):
        trainer.train_epoch(epoch)
        if validation is not None:
            loss, accuracy = trainer.validate(validation)
            say(f"epoch {epoch}  validation loss {loss:.6f}, {100 * accuracy:.2f} % right")
    trainer.save()
    say(str(trainer.loader.stats()))
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
