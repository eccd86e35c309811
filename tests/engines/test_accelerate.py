# SPDX-License-Identifier: Apache-2.0
"""Accelerate on two processes: prepare() leaves the loader as it is, and save_state() has its place inside an epoch."""
import unittest

from data_fixture import needs, optional

optional("torch")
needs("accelerate")

import template  # noqa: E402
import training  # noqa: E402


class Loop(training.TrainingCase):
    program, page = "accelerate_loop.py", "accelerate.md"
    modules = (*template.TRAINING, "accelerate")

    def test_two_processes_and_the_rest_of_an_epoch(self):
        whole = self.started(2, "whole")
        self.check(whole)
        self.assertEqual([(one["source"], one["is_as_it_was"]) for one in whole], [("torch.distributed", True)] * 2)
        self.check(self.started(2, "rest", "whole/step-4"), first=4)


if __name__ == "__main__":
    unittest.main()
