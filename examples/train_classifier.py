#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train an image classifier with PyTorch: bf16, several GPUs, accumulation, validation, checkpoints.

    penstock pack imagenet/train train && penstock pack imagenet/val val
    train_classifier.py train --val val --checkpoint run.pt     # on a GPU, or the CPU where there is none
    torchrun --nproc-per-node 8 train_classifier.py train --val val --checkpoint run.pt

A run that was killed and is started again resumes after its last checkpoint, also in the middle of an
epoch. On the CPU its result has the same bits as that of a run that was never stopped.
"""
from __future__ import annotations

import argparse
import contextlib
import math
import os
import time
from collections.abc import Iterator
from typing import Any

import penstock
import torch
import torch.distributed as dist
import torch.nn.functional as F
from penstock.ops import CenterCrop, Normalize, RandomFlip, RandomResizedCrop, Resize
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

try:
    import torchvision
except ImportError:
    torchvision = None

# ---- the network -----------------------------------------------------------------------------------------


class Block(nn.Module):
    """Two convolutions in parallel with a shortcut."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True),
            nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False), nn.BatchNorm2d(n_out))
        self.shortcut = nn.Identity() if stride == 1 and n_in == n_out else nn.Sequential(
            nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.path(x) + self.shortcut(x))


def small_resnet(n_classes: int) -> nn.Module:
    layers = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)]
    for n_in, n_out in ((16, 16), (16, 32), (32, 64), (64, 128)):
        layers += [Block(n_in, n_out, n_out // n_in), Block(n_out, n_out, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, n_classes))


def network(name: str, n_classes: int) -> nn.Module:
    if name == "small":
        return small_resnet(n_classes)
    if torchvision is None:
        raise SystemExit(f"--model {name} needs torchvision: pip install torchvision, or use --model small")
    return torchvision.models.get_model(name, num_classes=n_classes)


# ---- the data --------------------------------------------------------------------------------------------


def open_loader(args: argparse.Namespace, device: torch.device, train: bool) -> penstock.Loader:
    """Training: full batches, in a new order each epoch. Validation: every sample once; all ranks have the same
    number of batches, and the last batch may have fewer rows, or none."""
    ops = [RandomResizedCrop(args.size), RandomFlip()] if train and args.augment else \
        [Resize(args.size * 8 // 7), CenterCrop(args.size)]
    dtype = "bfloat16" if args.amp else "float32"
    return penstock.Loader(
        args.train if train else args.val, batch_size=args.batch_size, device=device, ranks="auto",
        seed=args.seed, shuffle=train, last_batch="drop" if train else "short", outputs={
            "image": penstock.image("jpg", [*ops, Normalize()], dtype=dtype, layout="channels_last"),
            "label": penstock.scalar("cls", dtype="int64")})


# ---- training --------------------------------------------------------------------------------------------


def world() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def say(text: str) -> None:
    if not dist.is_initialized() or dist.get_rank() == 0:
        print(text, flush=True)


class Meter:
    """Sums since the last line. Until the next one the loss stays on the device: nothing waits for it."""

    def __init__(self, device: torch.device) -> None:
        self.loss, self.n_steps, self.n_samples = torch.zeros((), device=device), 0, 0
        self.start, self.waited = time.perf_counter(), 0.0  # seconds; waited: for a batch

    def line(self) -> str:
        if dist.is_initialized():
            dist.all_reduce(self.loss)
        loss, seconds = self.loss.item() / world() / self.n_steps, time.perf_counter() - self.start
        step, wait = 1e3 * seconds / self.n_steps, 1e3 * self.waited / self.n_steps
        return (f"loss {loss:.6f}, {self.n_samples * world() / seconds:.0f} samples/s; a step takes "
                f"{step:.1f} ms, {wait:.2f} of them waiting for data")


class Trainer:
    PARTS = ("model", "optimizer", "loader")  # saved and loaded together

    def __init__(self, args: argparse.Namespace, device: torch.device) -> None:
        self.args, self.device, self.step = args, device, 0
        self.loader = open_loader(args, device, train=True)
        self.steps_per_epoch = math.ceil(len(self.loader) / args.accumulate)
        torch.manual_seed(args.seed)
        n_classes = args.classes or len(penstock.Dataset(args.train).names)
        self.model = network(args.model, n_classes).to(device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), args.lr, momentum=0.9, nesterov=True,
                                         weight_decay=args.weight_decay)
        if args.checkpoint and os.path.exists(args.checkpoint):
            self.load()
        self.parallel = DistributedDataParallel(self.model) if dist.is_initialized() else self.model
        self.meter = Meter(device)

    def learning_rate(self) -> float:
        """Rises for one epoch, then falls along half a cosine."""
        progress = (self.step + 1) / self.steps_per_epoch
        fall = (progress - 1) / max(self.args.epochs - 1, 1)
        return float(self.args.lr * (progress if progress < 1 else (1 + math.cos(math.pi * fall)) / 2))

    def forward(self, model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.args.amp):
            return model(batch["image"]).float()

    def train_step(self, batches: Iterator[Any], n_batches: int) -> None:
        """One step of the optimizer, on the mean gradient of n_batches batches."""
        for i in range(n_batches):
            start = time.perf_counter()
            batch = next(batches)
            self.meter.waited += time.perf_counter() - start
            self.meter.n_samples += batch.n_valid
            # Ranks exchange their gradients with the last batch of a step.
            alone = i < n_batches - 1 and dist.is_initialized()
            with self.parallel.no_sync() if alone else contextlib.nullcontext():
                loss = F.cross_entropy(self.forward(self.parallel, batch), batch["label"]) / n_batches
                loss.backward()
            self.meter.loss += loss.detach()
        self.optimizer.param_groups[0]["lr"] = self.learning_rate()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        self.meter.n_steps += 1

    def train_epoch(self, epoch: int) -> None:
        """The epoch, or the rest of it after load()."""
        batches = self.loader.epoch(epoch)
        for first in range(0, len(batches), self.args.accumulate):
            self.train_step(batches, min(self.args.accumulate, len(batches) - first))
            if self.step % self.args.log_every == 0:
                say(f"epoch {epoch}, step {self.step}: {self.meter.line()}")
                self.meter = Meter(self.device)
            if self.step % self.args.checkpoint_every == 0:
                self.save()

    @torch.inference_mode()
    def validate(self, loader: penstock.Loader) -> tuple[float, float]:
        """Mean loss, and the share of samples that are classified correctly, over all ranks."""
        self.model.eval()
        sums = torch.zeros(3, dtype=torch.float64, device=self.device)  # losses, right ones, all
        for batch in loader:
            if batch.n_valid:
                found, label = self.forward(self.model, batch), batch["label"]
                sums[0] += F.cross_entropy(found, label, reduction="sum")
                sums[1] += (found.argmax(1) == label).sum()
                sums[2] += batch.n_valid
        if dist.is_initialized():
            dist.all_reduce(sums)
        self.model.train()
        loss, right, n = sums.tolist()
        return loss / n, right / n

    def save(self) -> None:
        """Writes one file, whole or not at all. The loader's state is the same on all ranks."""
        if self.args.checkpoint and (not dist.is_initialized() or dist.get_rank() == 0):
            parts = {name: getattr(self, name).state_dict() for name in self.PARTS}
            torch.save({"step": self.step, **parts}, self.args.checkpoint + ".new")
            os.replace(self.args.checkpoint + ".new", self.args.checkpoint)

    def load(self) -> None:
        saved = torch.load(self.args.checkpoint, map_location=self.device, weights_only=True)
        for name in self.PARTS:
            getattr(self, name).load_state_dict(saved[name])
        self.step = saved["step"]
        say(f"resuming after step {self.step} of {self.args.checkpoint}")


# ---- the program -----------------------------------------------------------------------------------------


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train an image classifier on a penstock data set.")
    add, switch = parser.add_argument, argparse.BooleanOptionalAction
    add("train", help="data set to train on")
    add("--val", help="data set to validate on after each epoch")
    add("--checkpoint", help="file to save to; if it exists, training resumes from it")
    add("--checkpoint-every", type=int, default=1000, metavar="STEPS")
    add("--log-every", type=int, default=20, metavar="STEPS")
    add("--model", default="resnet50" if torchvision else "small", help="a model's name in torchvision, or small")
    add("--classes", type=int, help="number of classes, for a data set without class names")
    add("--epochs", type=int, default=90)
    add("--batch-size", type=int, default=256, help="samples of a batch in each process")
    add("--accumulate", type=int, default=1, help="batches per step of the optimizer")
    add("--size", type=int, default=224, help="side of the images in pixels")
    add("--augment", action=switch, default=True, help="random crops and flips")
    add("--amp", action=switch, default=True, help="bfloat16 where that is safe")
    add("--lr", type=float, default=0.1)
    add("--weight-decay", type=float, default=5e-5)
    add("--seed", type=int, default=0)
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def main() -> None:
    args = parsed()
    device = torch.device(args.device)
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", device.index or 0)))
        torch.cuda.set_device(device)
    elif "OMP_NUM_THREADS" not in os.environ:
        # Half of the cores are the loader's. PyTorch's threads spin while they wait for each other, so that one without a
        # core holds up all: on 2 busy cores a step with 2 of them took 0.9 s, with 1 0.07 s.
        torch.set_num_threads(max(1, torch.get_num_threads() // 2))
    if "RANK" in os.environ:  # torchrun's
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    trainer = Trainer(args, device)
    validation = open_loader(args, device, train=False) if args.val else None
    for epoch in range(trainer.loader.current_epoch, args.epochs):
        trainer.train_epoch(epoch)
        if validation is not None:
            loss, right = trainer.validate(validation)
            say(f"epoch {epoch}: validation loss {loss:.6f}, {100 * right:.2f} % right")
    trainer.save()
    say(str(trainer.loader.stats()))
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
