# SPDX-License-Identifier: Apache-2.0
"""Pack a data set in the tasks of an engine: penstock.ray, penstock.spark and penstock.dask.

    driver: ClusterPack ------- Place ------> tasks: Place.write, a part of unknown number for each attempt
            holds the data set                       |
            commits one attempt at each task <- Done +

The parts lie in a directory next to the data set. All machines must see it at the same path. Its marker has the pack's
id; a task that does not find it there ends with an error. Each attempt writes a directory of its own. The driver
commits the attempts whose results the engine returns, and then removes the directory with all others. A writer of the
driver reserves the path of the data set. The next pack to this path removes the files of a killed driver; no other pack
does.
"""
from __future__ import annotations

import dataclasses
import os
import secrets
import socket
import uuid
import warnings
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import paths
from .._version import __version__
from ..dataset import Dataset
from ..arguments import items
from ..errors import PenstockError, SettingsError
from . import parts
from .pack import PALETTES
from .samples import NO_SAMPLES, PackError, record_of
from .schema import Field, Schema, schema_of
from .task import Task
from .writer import Writer

__all__ = ["ClusterPack", "Done", "Place", "WriterSettings"]

_SHARED = ("must be in a folder that all machines mount at this path, such as one of NFS or Lustre (give such a path, "
           "or run the tasks on the driver's machine)")


@dataclasses.dataclass(frozen=True)
class WriterSettings:
    """The settings of a penstock.Writer: those of the data set, and those of each part. They are checked when the data
    set's writer is opened."""
    overwrite: bool = False
    shard_size: int = 0
    note: str | None = None
    names: Sequence[str] | None = None
    dictionary_size: int = 0
    check_images: bool = True
    damaged: str = "refuse"
    columns: bool = True

    def __post_init__(self) -> None:
        if self.names is not None:  # once, because they may be an iterator
            object.__setattr__(self, "names", items("names", self.names, "a list of class names"))

    def open(self, path: str, schema: Schema, **whose: Any) -> Writer:
        """Open and return a writer. whose: its part or pack_id, and other differences from these settings."""
        return Writer(path, schema, **{**vars(self), **whose})


@dataclasses.dataclass(frozen=True)
class Done:
    """The result of one attempt at a task: the name of its part's directory, and the number of the task, by which parts
    are ordered."""
    task: int
    name: str
    n_samples: int
    n_palette_images: int
    host: str


def _host() -> str:
    return socket.gethostname()


def _where(path: str | os.PathLike[str]) -> str:
    """Return the data set's path as all machines can use it. Links in it are kept, because they may differ between
    machines."""
    found = os.path.abspath(paths.local(path))
    return os.path.realpath(found) if os.path.islink(found) else found


@dataclasses.dataclass(frozen=True)
class Place:
    """The place where tasks write; it is sent to them. host: name of the driver's machine."""
    path: str
    directory: str
    pack_id: str
    host: str
    schema: dict[str, Field]
    settings: WriterSettings
    version: str = __version__

    def _check(self) -> None:
        """Raise SettingsError unless the directory is the driver's."""
        if self.version != __version__:
            raise SettingsError(f"penstock: version on {_host()} is {__version__}; must be {self.version}, as on the "
                                f"driver's machine {self.host} (pip install penstock=={self.version})")
        marker = os.path.join(self.directory, parts.MARKER)
        try:
            with open(marker, encoding="utf-8") as file:
                is_ours = self.pack_id in file.read()
        except OSError as error:
            raise SettingsError(f"path: value is {self.path!r}; a task on {_host()} cannot read {marker}, which the "
                                f"driver on {self.host} made ({error.strerror}); the path {_SHARED}. A task whose pack "
                                "has ended fails in this way too") from error
        if not is_ours:
            raise SettingsError(f"path: value is {self.path!r}; on {_host()} {marker} belongs to another pack than "
                                f"the driver's on {self.host}; the path {_SHARED}")

    def write(self, task: int, samples: Iterable[Any], attempt: int = 0) -> Done:
        """Write the part of one attempt at a task: all its samples, in their order. Returns the Done that the driver
        commits. After an error nothing of the part remains. Raises PackError, which names task and sample, and
        SettingsError."""
        self._check()
        name, names, n = f"part-{task:06}-{uuid.uuid4().hex[:16]}", list(self.schema), 0
        writer = self.settings.open(os.path.join(self.directory, name), self.schema, overwrite=False,
                                    part=Task(self.pack_id, str(task), attempt))
        with writer:
            for sample in samples:  # the engine reports errors of the source
                try:
                    writer.add(record_of(sample, names))
                except Exception as error:
                    raise _failed(task, n, error) from error
                n += 1
        return Done(task, name, n, writer.n_palette_images, _host())


def _failed(task: int, index: int, error: Exception) -> PackError:
    what = str(error) if isinstance(error, PenstockError) else f"{type(error).__name__}: {error}"
    return PackError(f"task {task}: sample {index} could not be packed, and so nothing was: {what}", index)


def _remove(directory: str, owner: int) -> None:
    if os.getpid() == owner:  # in a child made by fork it belongs to the parent
        parts.remove(directory)


class ClusterPack:
    """The driver's side of a pack. It holds the path of the data set from the start until commit or abort. Give `place`
    to the tasks. Use it in the process that made it, one call at a time.

    Raises SettingsError, DataSetExistsError, DataSetBusyError before anything runs.
    """

    def __init__(self, path: str | os.PathLike[str], schema: Schema, settings: WriterSettings, source: str) -> None:
        fields, pack_id = schema_of(schema), secrets.token_hex(16)
        note = f"packed by {source}, penstock {__version__}" if settings.note is None else settings.note
        where = _where(path)
        self._guard = settings.open(where, fields, pack_id=pack_id, note=note)
        try:
            directory = parts.make(where, f"{pack_id}\n", mode=0o777)
        except BaseException:
            self._guard.abort()
            raise
        self.place = Place(where, directory, pack_id, _host(), fields, dataclasses.replace(settings, note=note))
        self._end = weakref.finalize(self, _remove, directory, os.getpid())

    def commit(self, found: Iterable[Done]) -> Dataset:
        """Make the data set of one attempt at each task, in the order of the tasks' numbers. After an error nothing of
        the pack remains. Raises SettingsError (no samples, a part is missing or comes twice) and PenstockError."""
        try:
            done = sorted(found, key=lambda one: one.task)
            self._check(done)
            self._guard.commit_parts([os.path.join(self.place.directory, one.name) for one in done])
        finally:
            self.abort()
        n = sum(one.n_palette_images for one in done)
        if n:
            s, have = ("", "has") if n == 1 else ("s", "have")
            warnings.warn(PALETTES.format(n=n, s=s, have=have), stacklevel=3)
        return Dataset(self.place.path)

    def _check(self, done: Sequence[Done]) -> None:
        for one, other in zip(done, done[1:]):
            if one.task == other.task:
                raise SettingsError(f"parts: task {one.task} has two, {one.name} of {one.host} and {other.name} of "
                                    f"{other.host}; must have one (take one attempt at each task)")
        for one in done:
            part = os.path.join(self.place.directory, one.name)
            if not os.path.isfile(os.path.join(part, "manifest.json")):
                raise SettingsError(f"path: value is {self.place.path!r}; {part}, which task {one.task} wrote on "
                                    f"{one.host}, is not on the driver's machine {self.place.host}; the path {_SHARED}")
        if not sum(one.n_samples for one in done):
            raise SettingsError(NO_SAMPLES)

    def abort(self) -> None:
        """Give up the path of the data set, and remove the parts that are not committed. A second call, or one after
        commit, does nothing."""
        self._guard.abort()
        self._end()

    def __enter__(self) -> ClusterPack:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()


def check(path: str | os.PathLike[str], settings: WriterSettings, schema: Mapping[str, Any] | None = None) -> None:
    """Raise the errors that ClusterPack would raise, before anything runs. schema: None: it is not known yet."""
    settings.open(_where(path), {"x": "uint8"} if schema is None else schema).abort()
