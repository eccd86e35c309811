# SPDX-License-Identifier: Apache-2.0
"""Pack a bag of Dask: `penstock.dask.write(bag, path)`. Dask is imported at the first call."""
from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ._optional import is_a, needed
from .errors import SettingsError
from .hints import explained

if TYPE_CHECKING:
    from .dataset import Dataset
    from .packing.cluster import Done, Place
    from .packing.schema import Field, Schema

__all__ = ["write"]

_FRAMES = ("DataFrame", "Series", "Array")


def _write_partition(samples: Iterable[Any], numbers: Iterable[int], place: Place) -> list[Done]:
    """Write the samples of one partition, in a task. numbers: the number of the partition, as the only item."""
    return [place.write(next(iter(numbers)), samples)]


def _inferred(bag: Any) -> dict[str, Field]:
    """Return the schema of the first samples of the first partition."""
    from .packing.samples import N_LOOKED_AT, inferred_schema, record_of
    first = bag.take(N_LOOKED_AT, npartitions=1, warn=False)
    if not first:
        raise SettingsError("schema: value is None; must be given, since the first partition of the bag is empty "
                            "(schema={...})")
    return inferred_schema([record_of(sample, None) for sample in first])


@explained("penstock.dask.write", {})
def write(bag: Any, path: str | os.PathLike[str], schema: Schema | None = None, *, overwrite: bool = False,
          shard_size: int = 0, note: str | None = None, names: Sequence[str] | None = None,
          dictionary_size: int = 0, check_images: bool = True, damaged: str = "refuse",
          columns: bool = True) -> Dataset:
    """Pack every item of a dask.bag.Bag into the penstock data set `path`. Returns it, opened.

    bag: items are samples as penstock.pack takes them: dicts, tuples, single values. It is computed by Dask's
        scheduler, as bag.compute() is; each partition is a task. Samples are in the order of the partitions, and of the
        items in each.
    path: in a folder that all workers and this process see at the same path.
    schema: {name: field}, see penstock.Field. None: penstock infers it from up to 8 samples, as penstock.pack does;
        Dask computes the first partition once more for that.
    overwrite: replace an existing data set there, in the last step. The other arguments are those of penstock.pack and
        penstock.Writer.

    Workers write parts in a directory next to the data set. This process commits one attempt at each task, and removes
    the rest. Tasks that fail, are run again, or lose their worker leave neither duplicates nor files. If this process
    is killed, an old data set stays whole, and the next pack to this path removes the parts that are left.

    Raises SettingsError (the path is not shared; there are no samples), DataSetExistsError, DataSetBusyError,
    PackError, and any error of the bag's computation. After an error nothing of the pack remains.
    """
    needed("dask.bag", "packing a bag", "dask[bag]")
    if not is_a(bag, "dask.bag", "Bag"):
        kind = type(bag).__name__
        advice = " (frame.to_bag(format='dict'))" if kind in _FRAMES[:2] else \
            " (dask.bag.from_delayed(...))" if kind in _FRAMES else " (dask.bag.from_sequence(...))"
        raise TypeError(f"bag: value is of type {kind}; must be a dask.bag.Bag{advice}")
    import dask.bag
    from .packing.cluster import ClusterPack, WriterSettings, check
    settings = WriterSettings(overwrite, shard_size, note, names, dictionary_size, check_images, damaged, columns)
    check(path, settings, schema)
    fields = _inferred(bag) if schema is None else schema
    with ClusterPack(path, fields, settings, "penstock.dask") as pack:
        numbers = dask.bag.from_sequence(range(bag.npartitions), npartitions=bag.npartitions)
        done: list[Done] = bag.map_partitions(_write_partition, numbers, place=pack.place).compute()
        return pack.commit(done)
