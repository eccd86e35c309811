#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training loop in JAX on a penstock data set, with a checkpoint of parameters and loader.

    jax_loop.py train --checkpoint run.pkl
"""
from __future__ import annotations

import argparse
import os
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import penstock
from penstock.ops import Normalize, RandomFlip, RandomResizedCrop

Parameters = Any  # a pytree


def init(key: jax.Array, n_classes: int) -> Parameters:
    keys = jax.random.split(key, 3)
    return {"conv1": 0.05 * jax.random.normal(keys[0], (7, 7, 3, 32)),
            "conv2": 0.05 * jax.random.normal(keys[1], (3, 3, 32, 64)),
            "linear": 0.05 * jax.random.normal(keys[2], (64, n_classes))}


def classify(parameters: Parameters, images: jax.Array) -> jax.Array:
    """images: [B, H, W, 3]. Returns logits [B, classes]."""
    x = images
    for name, stride in (("conv1", 4), ("conv2", 2)):
        x = jax.nn.relu(jax.lax.conv_general_dilated(
            x, parameters[name], (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    return x.mean((1, 2)) @ parameters["linear"]


def loss_of(parameters: Parameters, batch: Any) -> jax.Array:
    logits = jax.nn.log_softmax(classify(parameters, batch["image"]))
    return -jnp.take_along_axis(logits, batch["label"][:, None], 1).mean()


@jax.jit
def train_step(parameters: Parameters, batch: Any, lr: float) -> tuple[Parameters, jax.Array]:
    loss, gradient = jax.value_and_grad(loss_of)(parameters, batch)
    return jax.tree_util.tree_map(lambda p, g: p - lr * g, parameters, gradient), loss


def save(path: str, parameters: Parameters, loader: penstock.Loader) -> None:
    with open(path + ".new", "wb") as file:
        pickle.dump({"parameters": jax.device_get(parameters), "loader": loader.state_dict()}, file)
    os.replace(path + ".new", path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train an image classifier with JAX on a penstock data set.")
    parser.add_argument("train", help="data set to train on")
    parser.add_argument("--checkpoint", help="file to save to after each epoch; training resumes from it")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()

    ops = [RandomResizedCrop(args.size), RandomFlip(), Normalize()]
    loader = penstock.Loader(
        args.train, batch_size=args.batch_size, framework="jax",
        device="cuda" if jax.default_backend() == "gpu" else "cpu",
        ranks=penstock.Ranks(jax.process_index(), jax.process_count()), outputs={
            "image": penstock.image("jpg", ops, dtype="float32"), "label": penstock.scalar("cls")})
    parameters = init(jax.random.key(0), len(penstock.Dataset(args.train).names))
    if args.checkpoint and os.path.exists(args.checkpoint):
        with open(args.checkpoint, "rb") as file:
            saved = pickle.load(file)
        parameters = saved["parameters"]
        loader.load_state_dict(saved["loader"])
    for epoch in range(loader.current_epoch, args.epochs):
        losses = []
        for batch in loader.epoch(epoch):
            parameters, loss = train_step(parameters, batch, args.lr)
            losses.append(loss)
        if losses:
            print(f"epoch {epoch}: loss {jnp.stack(losses).mean():.6f}", flush=True)
        if args.checkpoint:
            save(args.checkpoint, parameters, loader)
    print(loader.stats())


if __name__ == "__main__":
    main()
