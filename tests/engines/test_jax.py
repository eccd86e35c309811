# SPDX-License-Identifier: Apache-2.0
"""JAX on two processes: each gives its rows of the global batch, as one array over all devices."""
import socket
import unittest

from data_fixture import optional

optional("torch")  # the plain loop needs it
optional("jax")

import plain  # noqa: E402
import training  # noqa: E402


class Loop(training.TrainingCase):
    program, page = "jax_loop.py", "jax.md"

    def test_two_processes(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        seen = self.started_alone("whole", lambda rank: [address, str(rank), "2"], JAX_PLATFORMS="cpu")
        wanted, weights = plain.train(str(self.folder / "train"), 2)
        self.assertEqual([one["ids"] for one in seen], [one["ids"] for one in wanted])
        self.assertEqual(seen[0]["losses"], seen[1]["losses"])  # they are the global batch's
        # XLA sums in another order than PyTorch.
        for found, first, second in zip(seen[0]["losses"], wanted[0]["losses"], wanted[1]["losses"]):
            self.assertAlmostEqual(found, (first + second) / 2, delta=1e-6)
        for one in seen:
            self.assertEqual(one["source"], "jax.distributed")
            for found, other in zip(one["weights"], weights[-1]):
                self.assertAlmostEqual(found, other, delta=1e-6)


if __name__ == "__main__":
    unittest.main()
