# SPDX-License-Identifier: Apache-2.0
"""The Monitor's callbacks in the trainers of Lightning and Hugging Face: numbers come, and no thread is left."""
import os
import pathlib
import shutil
import tempfile
import threading
import time
import unittest
import warnings

from data_fixture import optional

torch = optional("torch")

import penstock  # noqa: E402
import plain  # noqa: E402
from penstock import monitor  # noqa: E402

SETTINGS = {"every": 0.05, "look": 0.05, "gpu": None, "line": False}
STEP = 0.05


def monitors():
    return [thread.name for thread in threading.enumerate() if thread.name == "penstock-monitor"]


class CallbackCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-callbacks-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        plain.write(cls.folder / "train", plain.N)
        plain.write(cls.folder / "val", plain.N_VAL)
        os.environ["CUDA_VISIBLE_DEVICES"] = ""

    def opened(self, name="train", **more):
        return penstock.Loader(self.folder / name, batch_size=4, framework="torch", **more)


class Lightning(CallbackCase):
    def fit(self, callback, fails=False, **more):
        """Run a fit of two epochs with validation; return the numbers that its logger got."""
        lightning = optional("lightning")
        from lightning.pytorch.loggers import Logger

        class Kept(Logger):
            name, version, seen = "kept", 0, []

            def log_metrics(self, metrics, step=None):
                self.seen.append((step, metrics))

            def log_hyperparams(self, *_):
                pass

        class Model(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.network = plain.network()

            def training_step(self, batch, index):
                time.sleep(STEP)
                if fails and self.trainer.global_step == 2:
                    raise KeyError("broken step")
                return torch.nn.functional.mse_loss(self.network(batch["x"]), batch["y"])

            def validation_step(self, batch, index):
                time.sleep(STEP)

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)

        Kept.seen = []
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", devices=1, logger=Kept(), callbacks=[callback],
                                    use_distributed_sampler=False, enable_progress_bar=False, enable_model_summary=False,
                                    enable_checkpointing=False, num_sanity_val_steps=0, log_every_n_steps=1, **more)
        loaders = self.opened(outputs=["x", "y"]), self.opened("val", outputs=["x", "y"], shuffle=False)
        try:
            trainer.fit(Model(), *loaders)
        finally:
            for one in loaders:
                one.close()
        return [(step, metrics) for step, metrics in Kept.seen if "penstock/samples_per_s" in metrics]

    def test_the_loggers_get_the_numbers(self):
        callback = monitor.lightning_callback(**SETTINGS)
        found = self.fit(callback)
        self.assertGreater(len(found), 1)
        self.assertEqual([step for step, _ in found], sorted(step for step, _ in found))
        self.assertLess(max(metrics["penstock/waiting"] for _, metrics in found if "penstock/waiting" in metrics), 0.9)
        self.assertEqual((callback.watch.monitor, monitors()), (None, []))

    def test_an_exception_ends_the_monitor(self):
        with self.assertRaisesRegex(KeyError, "broken step"):
            self.fit(monitor.lightning_callback(**SETTINGS), fails=True)
        self.assertEqual(monitors(), [])

    def test_another_loader_each_epoch_is_followed(self):
        self.assertGreater(len(self.fit(monitor.lightning_callback(**SETTINGS), reload_dataloaders_every_n_epochs=1)), 1)
        self.assertEqual(monitors(), [])

    def test_a_loader_of_another_kind_is_named(self):
        optional("lightning")
        callback = monitor.lightning_callback()
        with self.assertRaisesRegex(penstock.SettingsError, "the trainer's is list; must be the penstock.Loader to watch"):
            callback.watch.follow([])


class Transformers(CallbackCase):
    def test_the_log_gets_the_numbers(self):
        transformers = optional("transformers")
        case = self

        class Trainer(transformers.Trainer):
            def get_train_dataloader(self):
                return case.opened(outputs={"x": "x", "labels": "y"}, memory=penstock.Memory(n_slots=4))

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.network = plain.network()

            def forward(self, x, labels):
                time.sleep(STEP)
                return {"loss": torch.nn.functional.mse_loss(self.network(x), labels)}

        args = transformers.TrainingArguments(str(self.folder / "out"), use_cpu=True, num_train_epochs=2, logging_steps=1,
                                              save_strategy="no", report_to="none", disable_tqdm=True)
        callback = monitor.transformers_callback(**SETTINGS)
        trainer = Trainer(Model(), args, callbacks=[callback])
        seen = []

        class Tracker(transformers.TrainerCallback):
            def on_log(self, args, state, control, logs=None, **more):
                seen.append(dict(logs))

        trainer.add_callback(Tracker())
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
        for logs in (seen, trainer.state.log_history):
            found = [one for one in logs if "penstock/samples_per_s" in one]
            self.assertGreater(len(found), 1)
        self.assertEqual((callback.watch.monitor, monitors()), (None, []))


class Life(CallbackCase):
    def test_a_monitor_that_was_closed_first_still_runs(self):
        with self.opened(outputs=["x"]) as loader:
            watching = penstock.Monitor(loader, **SETTINGS)
            watching.close()
            with watching:
                for _ in loader.epoch(0):
                    time.sleep(0.1)
                self.assertIn("running", repr(watching))

    def test_a_value_that_names_no_gpu_is_refused(self):
        with self.opened(outputs=["x"]) as loader:
            for wrong in ("zzz", "", "GPU", "01:00", "cuda:0"):
                with self.assertRaisesRegex(penstock.SettingsError, f"gpu: value is '{wrong}'; must be"):
                    penstock.Monitor(loader, gpu=wrong)
            for right in ("auto", "GPU-8f2c6a2e-1b7e-4a0e-9d2f-0c1d2e3f4a5b", "MIG-GPU-1a/2/0", "00000000:01:00.0", "01:00.0"):
                penstock.Monitor(loader, gpu=right)


if __name__ == "__main__":
    unittest.main()
