# SPDX-License-Identifier: Apache-2.0
"""penstock.monitor.TensorBoard with the writers of torch and of tensorboardX: TensorBoard's own reader finds the numbers."""
import sys
import tempfile
import unittest
from unittest import mock

import penstock
from data_fixture import optional
from penstock import monitor
from test_monitor import QUICK, opened

optional("tensorboard")
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402


def scalars(folder):
    """Return {tag: [(step, value)]} of the events in a folder."""
    found = EventAccumulator(folder, size_guidance={"scalars": 0})
    found.Reload()
    return {tag: [(one.step, one.value) for one in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


class Writers(unittest.TestCase):
    def check(self, kept):
        with tempfile.TemporaryDirectory() as folder:
            sink, readings = monitor.TensorBoard(folder), []
            with opened() as loader, penstock.Monitor(loader, sinks=[sink, readings.append], **QUICK):
                for _ in loader.epoch(0):
                    pass
            self.assertIn(kept, type(sink._writer).__module__)
            found = scalars(folder)
        self.assertEqual([step for step, _ in found["penstock/n_samples"]], [one.total.n_samples for one in readings])
        self.assertEqual(sum(value for _, value in found["penstock/n_samples"]), readings[-1].total.n_samples)
        self.assertEqual(set(found), {name for one in readings for name in one.scalars()})

    def test_of_torch(self):
        optional("torch")
        self.check("torch.utils.tensorboard")

    def test_of_tensorboardx(self):
        optional("tensorboardX")
        with mock.patch.dict(sys.modules, {"torch.utils.tensorboard": None}):
            self.check("tensorboardX")


if __name__ == "__main__":
    unittest.main()
