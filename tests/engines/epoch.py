# SPDX-License-Identifier: Apache-2.0
"""A training loop of one epoch, as a launcher starts it: epoch.py DATA OUT [gloo|mpi]. Each process leaves what it saw
in OUT. gloo: it trains with DistributedDataParallel. mpi: it asks MPI who it is, and compares."""
import hashlib
import json
import os
import pathlib
import sys

import penstock

BATCH = 24


def trained(loader):
    """Train a line through the samples; its weight at the end of the epoch."""
    import torch
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in loader:
        x = torch.as_tensor(batch.sample_ids, dtype=torch.float64).float().reshape(-1, 1) / 1000
        optimizer.zero_grad()
        (model(x) - 3 * x).square().mean().backward()
        optimizer.step()
    return model.module.weight.item()


def rows(batch):
    """Return a digest of each row: its sample, and all its values."""
    fields = [memoryview(tensor) for tensor in batch]
    return [hashlib.sha256(b"%d" % sample + b"".join(bytes(field[i:i + 1]) for field in fields)).hexdigest()[:16]
            for i, sample in enumerate(batch.sample_ids)]


def seen_by(data, out, kind=""):
    """Write what this process saw."""
    with penstock.Loader(data, batch_size=penstock.GlobalBatch(BATCH), ranks="auto", framework="dlpack", n_threads=1) as loader:
        ranks = loader.ranks
        seen = {"ranks": ranks._asdict(), "length": len(loader), "cores": len(os.sched_getaffinity(0)),
                "batches": [{"ids": list(batch.sample_ids), "index": batch.index} for batch in loader.epoch(0)]}
    with penstock.Loader(data, batch_size=penstock.GlobalBatch(BATCH), ranks="auto", framework="numpy", n_threads=1) as loader:
        seen["rows"] = [rows(batch) for batch in loader.epoch(0)]
        seen["weight"] = trained(loader.epoch(1)) if kind == "gloo" else None
    if kind == "mpi":
        from mpi4py import MPI
        seen["mpi"] = [MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()]
    pathlib.Path(out, f"{ranks.rank}.json").write_text(json.dumps(seen))


def main(data, out, kind=""):
    if kind != "gloo":
        seen_by(data, out, kind)
        return
    import torch
    torch.distributed.init_process_group("gloo")
    seen_by(data, out, kind)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
