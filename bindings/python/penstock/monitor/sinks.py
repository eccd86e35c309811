# SPDX-License-Identifier: Apache-2.0
"""Sinks of readings: JSON lines and TensorBoard. A sink is any function of a Reading. Its begin() is called at the
start of a Monitor, and its close() at the end, if it has them.

Weights & Biases, MLflow and other trackers take Reading.scalars() in the loop, where their own calls are: see
Monitor.new().
"""
from __future__ import annotations

import json
import os
import stat
from typing import Any, TextIO

from .. import _optional, paths
from ..arguments import switch
from ..errors import SettingsError
from ..sealed import Sealed
from .reading import Reading

__all__ = ["JSONLines", "TensorBoard"]


class Sink(Sealed):
    """The base of the package's sinks. every_look: whether it gets each look's reading, and not only each line's; may
    be set."""

    _every_look = False
    every_look = property(lambda self: self._every_look, lambda self, value: setattr(self, "_every_look", switch("every_look", value)))


def _opened(path: str, flags: int) -> int:
    """Open a file. A named pipe without a reader is an error, where opening it would wait."""
    file = os.open(path, flags | os.O_NONBLOCK, 0o666)
    os.set_blocking(file, True)
    return file


class JSONLines(Sink):
    """Append each reading as a line of JSON: Reading.to_dict(). Several processes may append to one file: each line is
    one write.

    path: the file, which is made if it is missing. The reader of a named pipe must run already.

    Raises OSError if the file cannot be opened, SettingsError for the name of a compressed file.
    """

    path: str

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._fix(path=paths.local(path, what="the name of a file"))
        paths.check_plain(self.path, "path")
        is_pipe = os.path.exists(self.path) and stat.S_ISFIFO(os.stat(self.path).st_mode)
        with paths.naming("path", "append to", self.path, " (start the pipe's reader first)" * is_pipe):
            self._file: TextIO | None = open(self.path, "a", encoding="utf-8", buffering=1 << 20, opener=_opened)  # noqa: SIM115

    def __call__(self, reading: Reading) -> None:
        if self._file is None:
            raise ValueError(f"{self.path} is closed")
        self._file.write(json.dumps(reading.to_dict(), separators=(",", ":"), default=str) + "\n")
        self._file.flush()

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def __repr__(self) -> str:
        return f"JSONLines({self.path!r})"


class TensorBoard(Sink):
    """Write each reading's scalars to TensorBoard. The step is the number of samples since open.

    writer: a SummaryWriter of torch.utils.tensorboard or tensorboardX, which stays open; or a folder, for which torch's
        is made, or tensorboardX's if torch has none.
    prefix: text in front of each name.

    Raises MissingPackageError if neither can be imported, SettingsError if no file can be made in the folder.
    """

    def __init__(self, writer: Any, prefix: str = "penstock/") -> None:
        self._owned = isinstance(writer, (str, os.PathLike))
        if not self._owned and not callable(getattr(writer, "add_scalar", None)):
            raise SettingsError(f"writer: value is {writer!r}; must be a SummaryWriter or a folder (give "
                                "torch.utils.tensorboard.SummaryWriter(folder))")
        if not isinstance(prefix, str):
            raise TypeError(f"prefix: value is {prefix!r}; must be a str")
        self._writer = _writer(paths.local(writer, "writer")) if self._owned else writer
        self._prefix = prefix

    def __call__(self, reading: Reading) -> None:
        for name, value in reading.scalars(self._prefix).items():
            self._writer.add_scalar(name, value, reading.total.n_samples, reading.time)
        self._writer.flush()

    def close(self) -> None:
        """Close the writer, if this sink made it."""
        if self._owned:
            self._writer.close()

    def __repr__(self) -> str:
        return f"TensorBoard({self._writer!r})"


def _writer(folder: str) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter as kind
    except ImportError:
        kind = _optional.needed("tensorboardX", "writing for TensorBoard").SummaryWriter
    try:
        return kind(folder)
    except OSError as error:
        raise SettingsError(f"writer: value is {folder!r}; must be a folder that files can be made in ({error.strerror})") from None
