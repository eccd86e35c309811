# SPDX-License-Identifier: Apache-2.0
"""Spark: `penstock.spark.write(df, path)` packs a data frame in Spark's tasks, and `penstock.spark.read(spark, path)`
reads a data set as one. Spark is imported at the first call."""
from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ._optional import needed
from .errors import SettingsError
from .hints import explained

if TYPE_CHECKING:
    from .dataset import Dataset
    from .packing.cluster import Place
    from .packing.schema import Field, Schema

__all__ = ["read", "write"]

BATCH_SIZE = 16 << 20  # bytes of stored records in a batch of a read task
_DONE = "task long, name string, n_samples long, n_palette_images long, host string"
# Spark's types by the kind of a field. Unsigned numbers need wider types.
_TYPES = {"uint8": "smallint", "int8": "tinyint", "uint16": "int", "int16": "smallint", "uint32": "bigint",
          "int32": "int", "int64": "bigint", "float16": "float", "float32": "float",
          "float64": "double", "utf8": "string", "bytes": "binary", "image": "binary"}
# kinds of fields by Spark's types
_KINDS = {"boolean": "uint8", "tinyint": "int8", "smallint": "int16", "int": "int32", "bigint": "int64",
          "float": "float32", "double": "float64", "string": "utf8", "binary": "bytes"}


# ---- write -----------------------------------------------------------------------------------------------


def _write_partition(batches: Iterator[Any], place: Place) -> Iterator[Any]:
    """Write one partition, as the body of a task for mapInArrow. Yields one row: the result of the task."""
    import dataclasses

    import pyarrow
    from pyspark import TaskContext
    context = TaskContext.get()
    rows = (row for batch in batches for row in batch.to_pylist())
    done = place.write(context.partitionId(), rows, context.attemptNumber())
    yield pyarrow.RecordBatch.from_pylist([dataclasses.asdict(done)])


def _field_of(name: str, kind: str) -> Field:
    """Return the field of a column, by its type as Spark writes it. Raises SettingsError."""
    from .packing.schema import Field
    depth, inner = 0, kind
    while inner.startswith("array<"):
        depth, inner = depth + 1, inner[len("array<"):-1]
    found = _KINDS.get(inner)
    if found is None or (depth > 1 and found in ("utf8", "bytes")):
        raise SettingsError(f"schema: column {name} has the type {kind}, which no field has; must be numbers, boolean, "
                            "string, binary, or arrays of them (convert or drop the column)")
    if depth and found in ("utf8", "bytes"):
        return Field([found])
    return Field(found, (None,) * depth) if depth else Field(found)


@explained("penstock.spark.write", {})
def write(df: Any, path: str | os.PathLike[str], schema: Schema | None = None, *, overwrite: bool = False,
          shard_size: int = 0, note: str | None = None, names: Sequence[str] | None = None,
          dictionary_size: int = 0, check_images: bool = True, damaged: str = "refuse",
          columns: bool = True) -> Dataset:
    """Pack every row of a Spark data frame into the penstock data set `path`. Returns it, opened.

    df: a pyspark.sql.DataFrame. Each of its partitions is a task. Samples are in the order of the partitions, and of
        the rows in each: df.orderBy(...) orders them.
    path: in a folder that all executors and this process see at the same path.
    schema: {name: field}, see penstock.Field. It names all columns of df. None: it follows from the columns' types:
        binary -> bytes, string -> utf8, boolean -> uint8, numbers, arrays of numbers -> arrays, arrays of string or
        binary -> lists. Give a schema for files of images: {"image": "image", ...}.
    overwrite: replace an existing data set there, in the last step. The other arguments are those of penstock.pack and
        penstock.Writer.

    Tasks make parts in a directory next to the data set; images are re-encoded there. This process commits one attempt
    at each task, and removes the rest. Tasks that fail, are retried, run speculatively or lose their executor leave
    neither duplicates nor files. If this process is killed, an old data set stays whole, and the next pack to this path
    removes the parts that are left.

    Raises SettingsError (no field has a column's type; there are no samples), DataSetExistsError, DataSetBusyError, and
    Spark's exception for a task that failed. Its text has the task's error, such as a path that is not shared. After an
    error nothing of the pack remains.
    """
    needed("pyspark.sql", "packing a data frame of Spark", "pyspark")
    needed("pyarrow", "packing a data frame of Spark", "pyarrow")
    if not hasattr(df, "mapInArrow") or not hasattr(df, "schema"):
        raise TypeError(f"df: value is of type {type(df).__name__}; must be a pyspark.sql.DataFrame "
                        "(spark.createDataFrame(...))")
    from .packing.cluster import ClusterPack, Done, WriterSettings, check
    from .packing.schema import schema_of
    settings = WriterSettings(overwrite, shard_size, note, names, dictionary_size, check_images, damaged, columns)
    check(path, settings, schema)
    fields = {name: _field_of(name, kind) for name, kind in df.dtypes} if schema is None else schema_of(schema)
    _check_columns(df.columns, fields)
    with ClusterPack(path, fields, settings, "penstock.spark") as pack:
        rows = df.mapInArrow(functools.partial(_write_partition, place=pack.place), _DONE).collect()
        return pack.commit([Done(**row.asDict()) for row in rows])


def _check_columns(found: Sequence[str], fields: Sequence[str] | Any) -> None:
    for name in found:
        if name not in fields:
            raise SettingsError(f"schema: there is no field {name}; must have one for each column "
                                f"(df.drop({name!r}) leaves it out)")
    for name in fields:
        if name not in found:
            raise SettingsError(f"schema: field {name} is not a column of the data frame; must be one of "
                                + ", ".join(found))


# ---- read ------------------------------------------------------------------------------------------------


def _type_of(name: str, field: Field) -> str:
    """Return a field as Spark's type. Raises SettingsError."""
    if field.is_list and field.kind in ("utf8_list", "bytes_list"):
        return f"array<{_TYPES[field.kind[:-len('_list')]]}>"
    found = _TYPES.get(field.kind)
    if found is None:
        raise SettingsError(f"fields: value has {name}, a field of {field.kind}, for which Spark has no type; must be "
                            "numbers, text, bytes, images, or lists of text or bytes (name the other fields)")
    for _ in field.shape or ():
        found = f"array<{found}>"
    return found


def _value(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _read_runs(batches: Iterator[Any], path: str, names: Sequence[str], n_rows: int, kinds: Any) -> Iterator[Any]:
    """Read consecutive records, as the body of a task for mapInArrow. batches: rows (start, stop)."""
    import pyarrow

    from .dataset import Dataset
    with Dataset(path, names) as dataset:
        for run in (row for batch in batches for row in batch.to_pylist()):
            for first in range(run["start"], run["stop"], n_rows):
                records = [dataset[i] for i in range(first, min(first + n_rows, run["stop"]))]
                yield pyarrow.RecordBatch.from_pydict(
                    {name: [_value(record[name]) for record in records] for name in names}, schema=kinds)


@explained("penstock.spark.read", {})
def read(spark: Any, path: str | os.PathLike[str], fields: Sequence[str] | None = None, *,
         num_partitions: int | None = None) -> Any:
    """Return the records of a data set as a Spark data frame, in their order.

    spark: a pyspark.sql.SparkSession.
    path: in a folder that all executors see at the same path.
    fields: names of the fields to read; None: all.
    num_partitions: number of partitions, each with consecutive records; None: spark.sparkContext.defaultParallelism.

    Types: numbers; unsigned ones become the next wider type. Arrays of numbers -> arrays, nested if they have several
        dimensions; text -> string; bytes -> binary; images -> binary, the bytes of their files.

    Raises DataSetNotFoundError, SettingsError (masks, lists of images, uint64, bfloat16, images that are stored as
    pixels).
    """
    needed("pyspark.sql", "reading a data set with Spark", "pyspark")
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    from .dataset import Dataset
    from .packing.writer import count
    with Dataset(path, fields) as dataset:
        infos, n, where = dataset.fields, len(dataset), dataset.path
    for name, info in infos.items():
        if info.encodings.get("pixels"):
            raise SettingsError(f"fields: value has {name}, with images that are stored as pixels, for which Spark "
                                "has no type; must be other fields (name them)")
    ddl = ", ".join(f"`{name}` {_type_of(name, info.field)}" for name, info in infos.items())
    if num_partitions is None:
        num_partitions = spark.sparkContext.defaultParallelism
    n_tasks = min(count("num_partitions", num_partitions, 1, 2**31 - 1), n)
    each = max(sum(info.plain_bytes for info in infos.values()) // n, 1)
    kinds = to_arrow_schema(StructType.fromDDL(ddl))
    task = functools.partial(_read_runs, path=where, names=list(infos), n_rows=max(BATCH_SIZE // each, 1), kinds=kinds)
    runs = spark.range(0, n_tasks, 1, n_tasks).selectExpr(
        f"cast(id * {n} div {n_tasks} as bigint) as start", f"cast((id + 1) * {n} div {n_tasks} as bigint) as stop")
    return runs.mapInArrow(task, ddl)
