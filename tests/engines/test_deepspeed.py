# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed on two processes, on CPUs: ZeRO with accumulation, and a run that goes on from a checkpoint."""
import unittest

from data_fixture import needs, optional

optional("torch")
needs("deepspeed")

import plain  # noqa: E402
import template  # noqa: E402
import training  # noqa: E402


class Loop(training.TrainingCase):
    program, page = "deepspeed_loop.py", "deepspeed.md"
    modules = (*template.TRAINING, "deepspeed", "deepspeed.runtime.zero.muon.muon_optimizer")

    def compare(self, seen, first):
        wanted, weights = plain.train(str(self.folder / "train"), 2, accumulate=2)
        for one, plain_one in zip(seen, wanted):
            for name in ("ids", "losses"):
                self.assertEqual(one[name], plain_one[name][first:], name)
            self.assertEqual(one["weights"], weights[-1])
            self.assertEqual(one["source"], "torch.distributed")

    def test_two_processes_and_the_rest_of_an_epoch(self):
        self.compare(self.started(2, "whole"), 0)
        self.compare(self.started(2, "rest", "whole/saved"), 4)


if __name__ == "__main__":
    unittest.main()
