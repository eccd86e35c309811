# SPDX-License-Identifier: Apache-2.0
"""Run a program and write down which samples its loaders in full order hand out.

usage: watch.py FILE PROGRAM ARGUMENTS...   FILE.RANK gets a line [epoch, position, sample ids] for each batch

The module that WATCH_HIDES names is not found.
"""
import json
import os
import runpy
import sys

from penstock.loader import Pass

_next = Pass.__next__


def next_and_tell(self):
    loader = self._loader
    batch = _next(self)
    if loader.state_dict()["order"] == "full":
        with open(FILE, "a", encoding="utf-8") as file:
            file.write(json.dumps([batch.epoch, batch.position, batch.sample_ids]) + "\n")
    return batch


if __name__ == "__main__":
    FILE = f"{sys.argv[1]}.{os.environ.get('RANK', 0)}"
    del sys.argv[:2]
    Pass.__next__ = next_and_tell
    if "WATCH_HIDES" in os.environ:
        sys.modules[os.environ["WATCH_HIDES"]] = None
    runpy.run_path(sys.argv[0], run_name="__main__")
