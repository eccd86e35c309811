# SPDX-License-Identifier: Apache-2.0
"""Give a data set back in the format of another library."""
from __future__ import annotations

import ctypes
import dataclasses
import os
from collections.abc import Callable, Sequence
from ctypes import byref, sizeof
from typing import Any

from . import _c, cores, errors, interrupts, paths
from .arguments import integer, items, switch, text
from .errors import SettingsError
from .foreign import Opening
from .hints import explained, near
from .subset import Subset, flat

__all__ = ["Exported", "export"]

TARGETS = {"folder": _c.EXPORT_FOLDER, "webdataset": _c.EXPORT_WEBDATASET, "tfrecord": _c.EXPORT_TFRECORD,
           "mds": _c.EXPORT_MDS, "npy": _c.EXPORT_NPY}
MAX_THREADS = 1024


@dataclasses.dataclass(frozen=True)
class Exported:
    """What penstock.export wrote.

    n_files, bytes: of all files except penstock-export.json. n_shards: 0 of targets without shards. n_images: values of
    image fields and mask fields. n_equivalent: JPEGs that are another file than the packed one, with the same
    coefficients and markers. n_encoded: PNG files of images that were stored as pixels. n_renamed: files whose key came
    twice, cannot be a file's name, or lacks the suffix of its image. n_remade: PNG files that packing made anew from the rows of a damaged file.
    n_left_out: files of an image folder without metadata.jsonl that its readers leave out, penstock too: they lie next
    to folders of images, or are called .jfif or .jpe. key="" numbers all files, and none is left out. n_renumbered: samples of an image folder
    whose class has another number for its readers, penstock too: they number the classes that have samples, by their
    sorted names, which stay as they are.
    """

    n_samples: int
    n_shards: int
    n_files: int
    bytes: int
    n_images: int
    n_equivalent: int
    n_encoded: int
    n_renamed: int
    n_remade: int
    n_left_out: int
    n_renumbered: int


def _names(fields: Sequence[str] | None) -> list[bytes] | None:
    if fields is None:
        return None
    return [text("fields", name) for name in items("fields", fields, "a list of names")]


def _chain(subset: Subset | None) -> list[_c.Subset]:
    """The steps of a subset as the library takes them, each leading to the next; the first is the subset."""
    chain = [] if subset is None else [part for step in flat(subset) for part in step.to_c()]
    for this, following in zip(chain, chain[1:]):
        this.next = ctypes.pointer(following)
    return chain


def _run(settings: _c.ExportSettings, foreign: Opening, on_progress: Callable[[int, int], Any] | None) -> _c.ExportResult:
    result, error, failed = _c.ExportResult(size=sizeof(_c.ExportResult)), errors.new(), []

    def watch(user: Any, n_done: int, n_total: int) -> int:
        try:
            if on_progress is not None:
                on_progress(n_done, n_total)
        except BaseException as raised:
            failed.append(raised)
        return 1 if failed or seen else 0

    opening = foreign.to_c()
    settings.foreign = ctypes.pointer(opening)
    with interrupts.collected() as seen:
        settings.on_progress = _c.ProgressFn(watch)
        code = _c.lib.pstk_export(byref(settings), byref(result), byref(error))
    if failed:
        raise failed[0]
    if code == _c.ECANCELED:
        raise KeyboardInterrupt
    errors.check(code, error)
    return result


@explained("penstock.export", {"format": "give to=", "path": "give out="})
def export(data: str | os.PathLike[str], *, to: str, out: str | os.PathLike[str], fields: Sequence[str] | None = None,
           image: str | None = None, label: str | None = None, key: str | None = None, subset: Subset | None = None,
           shard_size: int = 0, threads: int | None = None, overwrite: bool = False,
           on_progress: Callable[[int, int], Any] | None = None) -> Exported:
    """Write the samples of a data set into the new directory `out`, in the format of another library. The command
    `penstock export` does the same.

    to: "folder" (image files in class folders), "webdataset" (tar shards), "tfrecord" (records with tf.train.Example),
    "mds" (MosaicML Streaming) or "npy" (an array a field). fields: names of those to export; None: all. subset: as
    penstock.Loader takes it. shard_size: bytes of webdataset, tfrecord and mds; 0: 256 MiB, of mds 64 MiB. threads: that
    read and rebuild samples; None: all cores. overwrite: replace `out` if it is an export to which nothing was added or
    changed, or an empty directory. on_progress: called with the samples done and all samples; an exception in it ends the
    export.

    image, label, of "folder": the image field, and the field with the numbers of classes, whose names become folders.
    key, of "folder" and "webdataset": the text field that names the files; "": number them. None: `key`, `file_name` or `path`.

    Images are byte for byte the packed files; the result counts those that are not. `out` gets its name as the last step;
    after any error, and after Ctrl-C, nothing is left.

    Raises SettingsError (a field that the target cannot hold; then nothing was written), DataSetExistsError,
    DataSetBusyError (another export is at work there), CorruptRecordError, PenstockError.
    """
    if not isinstance(to, str) or to not in TARGETS:
        raise SettingsError(f"to: value is {to!r}; must be one of {', '.join(TARGETS)}{near(to, TARGETS)}")
    names, chain = _names(fields), _chain(subset)
    source, foreign = Opening().at(paths.local(data, "data"))
    if on_progress is not None and not callable(on_progress):
        raise TypeError(f"on_progress: value is {on_progress!r}; must be a function of (samples done, all samples)")
    settings = _c.ExportSettings(
        size=sizeof(_c.ExportSettings), target=TARGETS[to], data=os.fsencode(source),
        out=os.fsencode(paths.local(out, "out")), shard_size=integer("shard_size", shard_size),
        n_threads=cores.n_cores() if threads is None else integer("threads", threads, 0, MAX_THREADS),
        overwrite=int(switch("overwrite", overwrite)))
    if names is not None:
        settings.fields, settings.n_fields = (ctypes.c_char_p * max(len(names), 1))(*names), len(names)
    for name, value in (("image", image), ("label", label), ("key", key)):
        if value is not None:
            setattr(settings, name, text(name, value))
    if chain:
        settings.subset = ctypes.pointer(chain[0])
    try:
        result = _run(settings, foreign, on_progress)
    except errors.DataSetExistsError as exists:
        exists.args = (str(exists).replace("set overwrite to", "set overwrite=True to"),)
        raise
    return Exported(**{field.name: getattr(result, field.name) for field in dataclasses.fields(Exported)})
