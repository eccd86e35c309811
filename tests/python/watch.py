# SPDX-License-Identifier: Apache-2.0
"""Run a program and write down which samples its loaders in full order hand out.

usage: watch.py FILE PROGRAM ARGUMENTS...   FILE.RANK gets a line [epoch, position, sample ids] for each batch
"""
import json
import os
import runpy
import sys

import penstock

_next = penstock.Loader._next


def next_and_tell(self, number, epoch):
    batch = _next(self, number, epoch)
    if batch is not None and self._order == "full":
        with open(FILE, "a", encoding="utf-8") as file:
            file.write(json.dumps([batch.epoch, batch.position, batch.sample_ids]) + "\n")
    return batch


if __name__ == "__main__":
    FILE = f"{sys.argv[1]}.{os.environ.get('RANK', 0)}"
    del sys.argv[:2]
    penstock.Loader._next = next_and_tell
    runpy.run_path(sys.argv[0], run_name="__main__")
