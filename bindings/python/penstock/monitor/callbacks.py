# SPDX-License-Identifier: Apache-2.0
"""Callbacks that run a Monitor during the training of Lightning and of Hugging Face's Trainer."""
from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from .. import _optional
from ..errors import SettingsError
from .monitor import Monitor

if TYPE_CHECKING:
    from ..loader import Loader

__all__ = ["lightning_callback", "transformers_callback"]


class _Watch:
    """A Monitor that follows a trainer's loader: if the trainer changes the loader, a new Monitor is started."""

    def __init__(self, loader: Loader | None, settings: dict[str, Any]) -> None:
        self._given, self._settings = loader, settings
        self.monitor: Monitor | None = None

    def follow(self, found: Any) -> None:
        """Start a Monitor unless this loader has one. found: the object that the trainer iterates over. Raises
        SettingsError if it is no penstock.Loader."""
        from ..loader import Loader
        loader = found if self._given is None else self._given
        if not isinstance(loader, Loader):
            raise SettingsError(f"loader: value is None, and the trainer's is {type(found).__name__}; must be the "
                                "penstock.Loader to watch")
        if self.monitor is None or self.monitor.loader is not loader:
            self.close()
            self.monitor = Monitor(loader, **self._settings).start()

    def new(self) -> dict[str, float] | None:
        """Return the newest line that was not returned before, and skip older ones; None: there is none."""
        newest = None
        while self.monitor is not None and (numbers := self.monitor.new()) is not None:
            newest = numbers
        return newest

    def close(self) -> None:
        monitor, self.monitor = self.monitor, None
        if monitor is not None:
            monitor.close()


def _lightning() -> Any:
    """Return the module with Callback: lightning's, or pytorch_lightning's if only that was imported."""
    if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
        return importlib.import_module("pytorch_lightning")
    return _optional.needed("lightning.pytorch", "penstock.monitor.lightning_callback", "lightning")


def lightning_callback(loader: Loader | None = None, **settings: Any) -> Any:
    """Return a callback for lightning.Trainer(callbacks=[...]) that watches the training loader.

    After a batch, the numbers of the newest line, Reading.scalars(), go to the trainer's loggers at global_step, on
    rank 0. The Monitor starts with the training, and ends with it, also after an exception. If the trainer makes a new
    loader for an epoch, a new Monitor watches that. `callback.watch.monitor` is the Monitor. Validation between the
    epochs counts as a step, not as waiting.

    loader: the loader to watch; None: the result of train_dataloader().
    settings: those of penstock.Monitor.

    Raises MissingPackageError without Lightning. At the start of training it raises SettingsError if the loader is not
    a penstock.Loader.
    """
    watch = _Watch(loader, settings)

    class MonitorCallback(_lightning().Callback):  # type: ignore[misc]  # the base is Any
        """See penstock.monitor.lightning_callback."""

        def __init__(self) -> None:
            self.watch = watch

        def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
            watch.follow(trainer.train_dataloader)

        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            numbers = watch.new()
            if numbers is not None and trainer.is_global_zero:
                for logger in trainer.loggers:
                    logger.log_metrics(numbers, step=trainer.global_step)

        def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
            watch.close()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            watch.close()

    return MonitorCallback()


def transformers_callback(loader: Loader | None = None, **settings: Any) -> Any:
    """Return a callback for transformers.Trainer(callbacks=[...]) that watches the training loader.

    The numbers of the newest line, Reading.scalars(), are added to the trainer's next log and to
    trainer.state.log_history. The trackers of report_to= see a log before this callback does, unless it comes first:

        trainer.callback_handler.callbacks.insert(0, penstock.monitor.transformers_callback())

    The Monitor ends with the training. After an exception in a step close it: callback.watch.close().

    loader: the loader to watch; None: the result of get_train_dataloader().
    settings: those of penstock.Monitor.

    Raises MissingPackageError without transformers. At the start of training it raises SettingsError if the loader is
    not a penstock.Loader.
    """
    watch = _Watch(loader, settings)
    base = _optional.needed("transformers", "penstock.monitor.transformers_callback").TrainerCallback

    class MonitorCallback(base):  # type: ignore[misc, valid-type]  # the base is Any
        """See penstock.monitor.transformers_callback."""

        def __init__(self) -> None:
            self.watch = watch

        def on_epoch_begin(self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **more: Any) -> None:
            watch.follow(train_dataloader)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
            numbers = watch.new()
            if numbers is not None and logs is not None:
                logs.update(numbers)
                if state.log_history:
                    state.log_history[-1].update(numbers)

        def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            watch.close()

    return MonitorCallback()
