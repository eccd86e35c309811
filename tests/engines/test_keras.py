# SPDX-License-Identifier: Apache-2.0
"""Keras 3: fit() with validation on PyTorch and on JAX, and a run that goes on after an epoch."""
import unittest

from data_fixture import optional

optional("torch")
optional("h5py")
import importlib.util  # noqa: E402

import plain  # noqa: E402
import training  # noqa: E402

if importlib.util.find_spec("keras") is None:  # its import chooses a backend
    raise unittest.SkipTest("missing: keras")


class Fit(training.TrainingCase):
    program, page = "keras_fit.py", "keras.md"

    def compare(self, seen, first):
        """Keras and JAX sum in other orders than PyTorch: weights near 0.1 agree to 1e-6."""
        _, weights = plain.train(str(self.folder / "train"), 1)
        wanted = weights[first * plain.STEPS:]
        self.assertEqual(len(seen["weights"]), len(wanted))
        for found, step in zip(seen["weights"], wanted):
            for one, other in zip(found, step):
                self.assertAlmostEqual(one, other, delta=1e-6)
        self.assertEqual(seen["epochs"], list(range(first, plain.EPOCHS)))
        for epoch, found in zip(seen["epochs"], seen["val"]):
            self.assertAlmostEqual(found, plain.validate(weights[(epoch + 1) * plain.STEPS - 1]), delta=1e-6)

    def check_backend(self, name):
        for first in (0, 1):
            words = [f"whole-{name}/1.keras"] if first else []
            out = f"rest-{name}" if first else f"whole-{name}"
            seen, = self.started(1, out, *words, launcher=[], KERAS_BACKEND=name, JAX_PLATFORMS="cpu")
            self.assertEqual(seen["backend"], name)
            self.compare(seen, first)

    def test_pytorch(self):
        self.check_backend("torch")

    def test_jax(self):
        optional("jax")
        self.check_backend("jax")


if __name__ == "__main__":
    unittest.main()
