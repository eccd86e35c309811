# SPDX-License-Identifier: Apache-2.0
"""Lightning on two processes: fit with validation, and a run that goes on from a checkpoint inside an epoch."""
import unittest

from data_fixture import needs, optional

optional("torch")
needs("lightning")

import plain  # noqa: E402
import template  # noqa: E402
import training  # noqa: E402

LAUNCHER = []  # Lightning starts the second process


class Fit(training.TrainingCase):
    program, page = "lightning_fit.py", "lightning.md"
    modules = (*template.TRAINING, "lightning")

    def test_two_processes_and_the_rest_of_an_epoch(self):
        whole = self.started(2, "whole", launcher=LAUNCHER)
        weights = self.check(whole)
        for one in whole:  # the mean over ranks and batches sums in another order than one over all rows
            for found, step in zip(one["val"], (plain.STEPS, 2 * plain.STEPS)):
                self.assertAlmostEqual(found, plain.validate(weights[step - 1]), delta=1e-6)
            self.assertEqual(len(one["val"]), 2)
        rest = self.started(2, "rest", "whole/step=4.ckpt", launcher=LAUNCHER)
        self.check(rest, first=4)
        self.assertEqual([one["val"] for one in rest], [one["val"] for one in whole])


if __name__ == "__main__":
    unittest.main()
