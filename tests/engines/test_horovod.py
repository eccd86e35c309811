# SPDX-License-Identifier: Apache-2.0
"""A loop as Horovod has it, on two processes: rank and size alone reach the loader."""
import os
import unittest

from data_fixture import optional

optional("torch")

import template  # noqa: E402
import training  # noqa: E402


class Loop(training.TrainingCase):
    program, page = "horovod_loop.py", "horovod.md"
    modules = template.TRAINING

    def test_two_processes(self):
        (self.folder / "whole").mkdir()
        for i in range(2):
            os.mkfifo(self.folder / "whole" / f"pipe-{i}")
        seen = self.started_alone("whole", lambda rank: [str(rank), "2"])
        self.check(seen)
        self.assertEqual([one["source"] for one in seen], ["given"] * 2)


if __name__ == "__main__":
    unittest.main()
