# SPDX-License-Identifier: Apache-2.0
"""A training loop that torchrun restarts: elastic.py DATA FOLDER. After each step rank 0 commits the state and the
samples of the step, of all ranks; a process that starts goes on from there."""
import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed

import penstock


def main(data, folder):
    committed = pathlib.Path(folder, "committed.json")
    torch.distributed.init_process_group("gloo")
    saved = json.loads(committed.read_text()) if committed.exists() else None
    steps = saved["steps"] if saved else []
    with penstock.Loader(data, batch_size=penstock.GlobalBatch(20), ranks="auto", last_batch="short", framework="dlpack",
                         n_threads=1) as loader:
        if saved:
            loader.load_state_dict(saved["state"])
        for batch in loader:
            everyone = [None] * loader.ranks.world
            torch.distributed.all_gather_object(everyone, list(batch.sample_ids))  # the step; raises if a rank is gone
            if loader.ranks.rank == 0:
                steps.append({"world": loader.ranks.world, "ids": sum(everyone, [])})
                new = committed.with_suffix(".new")
                new.write_text(json.dumps({"state": loader.state_dict(batch), "steps": steps}))
                os.replace(new, committed)
            time.sleep(0.1)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
