# SPDX-License-Identifier: Apache-2.0
"""Find the largest batch whose training step fits the memory of a device.

    python largest_batch.py train --most 4096                     # on a GPU
    python largest_batch.py train --most 256 --limit 200000000    # on a CPU, as if it had 200 MB for activations

One loader stays open: its batches change their size between two steps. On a CPU, --limit replaces the memory of a GPU:
it bounds the bytes that the backward pass keeps.
"""
import argparse

import torch

import penstock


def step(model, optimizer, images, limit):
    """One training step. Raises torch.cuda.OutOfMemoryError if it does not fit, on a CPU where it keeps over limit bytes."""
    kept = 0

    def keep(tensor):
        nonlocal kept
        kept += tensor.numel() * tensor.element_size()
        if limit is not None and kept > limit:
            raise torch.cuda.OutOfMemoryError(f"over {limit} bytes")
        return tensor
    optimizer.zero_grad(set_to_none=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = model(images).square().mean()
    loss.backward()
    optimizer.step()


def fits(loader, rows, use):
    loader.batch_size = rows
    try:
        for _ in range(2):  # the second step has the optimizer's state
            images, = next(iter(loader))
            use(images)
    except torch.cuda.OutOfMemoryError:
        return False
    return True


def largest(loader, most, use):
    """Return the largest number of rows, up to most, with which `use` of a batch fits; 0: none. Doubles, then halves
    the rest."""
    good, bad = 0, 1
    while bad <= most and fits(loader, bad, use):
        good, bad = bad, 2 * bad
        torch.cuda.empty_cache()
    bad = min(bad, most + 1)
    while bad - good > 1:
        torch.cuda.empty_cache()
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(loader, middle, use) else (good, middle)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--most", type=int, default=1024, help="rows")
    parser.add_argument("--size", type=int, default=64, help="pixels")
    parser.add_argument("--limit", type=int, help="bytes, in place of the memory of a GPU")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and options.limit is None:
        parser.error("--limit: must be given, because there is no GPU")
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 3)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    image = penstock.image("jpg", [penstock.ops.RandomResizedCrop(options.size), penstock.ops.Normalize()],
                           layout="channels_last")
    with penstock.Loader(options.data, batch_size=1, memory=penstock.Memory(max_batch_size=options.most), last_batch="pad",
                         device=device, framework="torch", outputs={"image": image}) as loader:
        rows = largest(loader, options.most, lambda images: step(model, optimizer, images, options.limit))
    print(f"largest batch: {rows} rows" + (", the most that was tried" if rows == options.most else ""))


if __name__ == "__main__":
    main()
