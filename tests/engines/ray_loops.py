# SPDX-License-Identifier: Apache-2.0
"""The loops that the workers of Ray Train run in test_ray.py."""
import json
import os
import pathlib
import tempfile

import epoch as epoch_loop
import ray.train

import penstock


def epoch(config):
    """The loop of epoch.py: TorchTrainer has initialised torch.distributed."""
    epoch_loop.seen_by(config["data"], config["out"], "gloo")


def training(config):
    """A loop that saves a checkpoint after each step. Rank 1 fails once, in the middle."""
    checkpoint = ray.train.get_checkpoint()
    steps, failed = [], pathlib.Path(config["out"], "failed")
    with penstock.Loader(config["data"], batch_size=penstock.GlobalBatch(200), ranks="auto", framework="dlpack",
                         n_threads=1) as loader:
        assert loader.ranks.source == "Ray Train", loader.ranks
        if checkpoint is not None:
            with checkpoint.as_directory() as folder:
                saved = json.loads(pathlib.Path(folder, "state.json").read_text())
            loader.load_state_dict(saved["state"])
            steps = saved["steps"]
        for batch in loader:
            steps.append(batch.index)
            path = pathlib.Path(config["out"], f"{len(steps)}-{loader.ranks.rank}.ids")
            path.write_text(json.dumps(list(batch.sample_ids)))
            if len(steps) == 4 and loader.ranks.rank == 1 and not failed.exists():
                failed.touch()
                os._exit(1)
            with tempfile.TemporaryDirectory() as folder:
                state = {"state": loader.state_dict(batch), "steps": steps}
                pathlib.Path(folder, "state.json").write_text(json.dumps(state))
                saved = ray.train.Checkpoint.from_directory(folder) if loader.ranks.rank == 0 else None
                ray.train.report({"step": len(steps), "resumed": checkpoint is not None}, checkpoint=saved)
