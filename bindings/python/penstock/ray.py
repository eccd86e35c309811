# SPDX-License-Identifier: Apache-2.0
"""Ray Data: `ds.write_datasink(penstock.ray.Datasink(path))` packs a data set in Ray's tasks, and
`ray.data.read_datasource(penstock.ray.Datasource(path))` reads one. This module imports Ray if it is installed."""
from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ._optional import needed
from .errors import SettingsError
from .hints import explained

try:
    import ray.data as _data
except ImportError:  # the constructors report it
    _SINK: Any = object
    _SOURCE: Any = object
else:
    _SINK, _SOURCE = _data.Datasink, _data.Datasource

if TYPE_CHECKING:
    from .dataset import Dataset
    from .packing.cluster import ClusterPack, Done, Place
    from .packing.schema import Field, Schema

__all__ = ["Datasink", "Datasource"]

BLOCK_SIZE = 64 << 20  # bytes of stored records in a block of a read task


def _field_of(name: str, kind: Any) -> Field:
    """Return the field of a column, by its Arrow type. Raises SettingsError."""
    from .packing import arrow
    from .packing.schema import Field
    shape = getattr(kind, "shape", None)
    if shape is None:  # no tensor
        return arrow.field_of(name, kind)
    dtype = arrow.field_of(name, kind.value_type).kind
    if len(shape) == 3 and dtype == "uint8" and shape[2] == 3:
        return Field("image")
    return Field(dtype, tuple(shape)) if len(shape) else Field(dtype)


class Datasink(_SINK):  # type: ignore[misc]
    """A sink that packs a Ray data set into the penstock data set `path`: ds.write_datasink(penstock.ray.Datasink(path,
    schema)).

    path: in a folder that all machines of the cluster see at the same path.
    schema: {name: field}, see penstock.Field. None: it follows from the types of the first block's columns: binary ->
        bytes, text -> utf8, numbers, tensors and lists of numbers -> arrays, uint8 tensors of height x width x 3, all
        of one size -> images. Give a schema for images of several sizes, and for files of images: {"image": "image",
        ...}.
    overwrite: replace an existing data set there, in the last step. The other arguments are those of penstock.pack and
        penstock.Writer.

    Ray's write tasks make parts in a directory next to the data set; images are re-encoded there. The driver commits
    one attempt at each task, in the order of the tasks' numbers. It is the order of the rows if Ray keeps that:
    ray.data.DataContext.get_current().execution_options.preserve_order = True. Tasks that fail, are retried or lose
    their worker leave neither duplicates nor files. If the driver is killed, an old data set stays whole, and the next
    pack to this path removes the parts that are left. After the write, the attribute `dataset` is the data set, opened.

    Raises SettingsError, DataSetExistsError, DataSetBusyError. write_datasink raises SettingsError (the path is not
    shared; there are no samples; no field has a column's type), and errors of tasks as Ray does. After an error nothing
    of the pack remains.
    """

    @explained("penstock.ray.Datasink", {})
    def __init__(self, path: str | os.PathLike[str], schema: Schema | None = None, *, overwrite: bool = False,
                 shard_size: int = 0, note: str | None = None, names: Sequence[str] | None = None,
                 dictionary_size: int = 0, check_images: bool = True, damaged: str = "refuse",
                 columns: bool = True) -> None:
        needed("ray.data", "packing a data set of Ray", "ray[data]")
        from .packing.cluster import WriterSettings, check
        from .packing.schema import schema_of
        self._path = path
        self._schema = None if schema is None else schema_of(schema)
        self._settings = WriterSettings(overwrite, shard_size, note, names, dictionary_size, check_images, damaged, columns)
        check(path, self._settings, self._schema)
        self._pack: ClusterPack | None = None
        self._place: Place | None = None
        self.dataset: Dataset | None = None

    def on_write_start(self, schema: Any = None) -> None:
        """Reserve the path of the data set. Ray calls it on the driver, before the first write task."""
        from .packing.cluster import ClusterPack
        fields = self._schema
        if fields is None:
            if schema is None:
                raise SettingsError("schema: value is None; must be given, since the blocks of this data set have no types "
                                    "(schema={...})")
            fields = {str(name): _field_of(str(name), kind) for name, kind in zip(schema.names, schema.types)}
        self.on_write_failed(None)  # a former write may not have ended
        self._pack = ClusterPack(self._path, fields, self._settings, "penstock.ray")
        self._place = self._pack.place

    def write(self, blocks: Iterable[Any], ctx: Any) -> Done:
        """Write the part of one attempt at a task. Ray calls it in the task."""
        from ray.data.block import BlockAccessor
        assert self._place is not None  # Ray called on_write_start before
        rows = itertools.chain.from_iterable(
            BlockAccessor.for_block(block).iter_rows(public_row_format=True) for block in blocks)
        return self._place.write(ctx.task_idx, rows)

    def on_write_complete(self, write_result: Any) -> None:
        """Commit the results of the write tasks. Ray calls it on the driver."""
        if self._pack is None:  # there was no block
            from .packing.samples import NO_SAMPLES
            raise SettingsError(NO_SAMPLES)
        pack, self._pack = self._pack, None
        self.dataset = pack.commit([done for done in write_result.write_returns if done is not None])

    def on_write_failed(self, error: Exception | None) -> None:
        """Remove the files that were written. Ray calls it on the driver."""
        pack, self._pack = self._pack, None
        if pack is not None:
            pack.abort()

    def get_name(self) -> str:
        """Return the sink's name in Ray's reports."""
        return "penstock"

    @property
    def min_bytes_per_write(self) -> int | None:
        """Least bytes of a write. Ray fuses a write without one with the operation before it, and then on_write_start
        gets the types of that operation's input."""
        return 1 if self._schema is None else None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for tasks: it has the place, and not the driver's writer."""
        return {**vars(self), "_pack": None, "dataset": None}


def _read(path: str, fields: Sequence[str], decode: bool, start: int, stop: int, n_rows: int) -> Iterator[Any]:
    """Yield the blocks of a read task: records start .. stop - 1, n_rows in each."""
    from ray.data.block import BlockAccessor

    from .dataset import Dataset
    with Dataset(path, fields, decode=decode) as dataset:
        for first in range(start, stop, n_rows):
            records = [dataset[i] for i in range(first, min(first + n_rows, stop))]
            yield BlockAccessor.batch_to_block({name: [record[name] for record in records] for name in fields})


class Datasource(_SOURCE):  # type: ignore[misc]
    """The records of a data set for ray.data.read_datasource. Each read task has consecutive records. Values are those
    of penstock.Dataset: images are the bytes of their files.

    path: in a folder that all machines of the cluster see at the same path.
    fields: names of the fields to read; None: all.
    decode: True: decode images to uint8 [height, width, 3].

    Raises DataSetNotFoundError, SettingsError.
    """

    @explained("penstock.ray.Datasource", {})
    def __init__(self, path: str | os.PathLike[str], fields: Sequence[str] | None = None, *, decode: bool = False) -> None:
        needed("ray.data", "reading a data set with Ray", "ray[data]")
        super().__init__()
        from .dataset import Dataset
        with Dataset(path, fields, decode=decode) as dataset:
            self._path, self._names, self._decode = dataset.path, list(dataset.fields), bool(decode)
            self._n, infos = len(dataset), dataset.fields.values()
        # the largest possible size of decoded images
        self._bytes = sum(3 * info.max_width * info.max_height * self._n if decode and info.field.kind == "image" else
                          info.plain_bytes for info in infos)

    def get_name(self) -> str:
        """Return the source's name in Ray's reports."""
        return "penstock"

    def estimate_inmemory_data_size(self) -> int:
        """Return an estimate of the bytes of all records."""
        return int(self._bytes)

    def get_read_tasks(self, parallelism: int, per_task_row_limit: int | None = None,
                       data_context: Any = None) -> list[Any]:
        """Return about `parallelism` tasks, each with consecutive records."""
        import functools

        from ray.data.block import BlockMetadata
        from ray.data.datasource import ReadTask
        n, n_tasks = self._n, max(min(parallelism, self._n), 1)
        each = max(self._bytes // max(n, 1), 1)  # bytes of a record
        n_rows = max(BLOCK_SIZE // each, 1)
        tasks = []
        for i in range(n_tasks):
            start, stop = n * i // n_tasks, n * (i + 1) // n_tasks
            about = BlockMetadata(num_rows=stop - start, size_bytes=each * (stop - start), exec_stats=None, input_files=None)
            read = functools.partial(_read, self._path, self._names, self._decode, start, stop, n_rows)
            tasks.append(ReadTask(read, about, per_task_row_limit=per_task_row_limit))
        return tasks
