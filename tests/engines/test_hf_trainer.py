# SPDX-License-Identifier: Apache-2.0
"""Trainer of Hugging Face on two processes: with accumulation, evaluation, and a run that goes on from a checkpoint."""
import unittest

from data_fixture import needs, optional

optional("torch")
needs("transformers")

import plain  # noqa: E402
import template  # noqa: E402
import training  # noqa: E402


class Train(training.TrainingCase):
    program, page = "hf_trainer.py", "hf-trainer.md"
    modules = (*template.TRAINING, "transformers.trainer")

    def compare(self, seen, first):
        """In steps of two batches each, from step `first` on."""
        wanted, weights = plain.train(str(self.folder / "train"), 2, accumulate=2)
        for one, plain_one in zip(seen, wanted):
            self.assertEqual(one["losses"], plain_one["losses"][2 * first:])
            self.assertEqual(one["x"], [plain.rows(ids)[0].tolist() for ids in plain_one["ids"][2 * first:]])
            self.assertEqual(one["weights"], weights[-1])
            for found, step in zip(one["val"], (3, 6)):  # a mean over batches sums in another order than one over rows
                self.assertAlmostEqual(found, plain.validate(weights[step - 1]), delta=1e-6)
            self.assertEqual(len(one["val"]), 2)

    def test_two_processes_and_the_rest_of_an_epoch(self):
        whole = self.started(2, "whole")
        self.compare(whole, 0)
        self.assertEqual([round(3 * epoch, 6) for epoch in whole[0]["epochs"]], [1, 2, 3, 4, 5, 6])
        self.compare(self.started(2, "rest", "whole/checkpoint-2"), 2)


if __name__ == "__main__":
    unittest.main()
