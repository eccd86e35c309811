# SPDX-License-Identifier: Apache-2.0
"""Export a data set in the format of another library."""
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
    """The result of penstock.export.

    n_samples: number of samples.
    n_files, bytes: number and size of all files except penstock-export.json.
    n_shards: number of shards; 0 of targets without shards.
    n_images: number of values of image fields and mask fields, and of items of their lists.
    n_equivalent: number of JPEGs that are another file than the packed one, with the same coefficients and markers.
    n_encoded: number of PNG files that were made of images stored as pixels.
    n_renamed: number of samples whose file or key differs from the key field, or whose folder differs from the class
        name: the name came twice, cannot be a file's name, or lacks the suffix of its image.
    n_remade: number of PNG files that packing made anew from the rows of a damaged file.
    n_left_out: number of files of an image folder without metadata.jsonl that its readers leave out, penstock included:
        they lie next to folders of images, or end in .jfif or .jpe. With key="" it is 0, because all files are
        numbered.
    n_renumbered: number of samples of an image folder whose class has another number for its readers, penstock
        included: they number the classes that have samples, by their sorted names. The names stay.
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
    """Return the steps of a subset as an array for the library, in which each step points to the next. The first one is
    the subset."""
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
    `penstock export` does the same. Returns a penstock.Exported.

    data: path of the data set, of any format that penstock.Dataset opens.
    to: "folder" (image files in class folders), "webdataset" (tar shards), "tfrecord" (records with tf.train.Example),
        "mds" (MosaicML Streaming) or "npy" (an array for each field).
    out: the directory to make; its parent must exist.
    fields: names of the fields to export; None: all.
    image: for "folder": the image field; None: the only one.
    label: for "folder": the field of class numbers, whose names become folders; None: the only scalar of whole numbers,
        if the data set has class names.
    key: for "folder" and "webdataset": the text field that names the files; "": number them. None: the first of the
        text fields `key`, `__key__`, `file_name` and `path` that there is.
    subset: the samples to export, as for penstock.Loader; None: all.
    shard_size: bytes of a shard of webdataset, tfrecord and mds; 0: 256 MiB, for mds 64 MiB.
    threads: number of threads that read and rebuild samples; None: one for each core.
    overwrite: replace `out` if it is an export to which nothing was added or changed, or an empty directory.
    on_progress: function of the number of samples done and of all samples; an exception in it ends the export.

    Images are byte for byte the packed files; the result counts those that are not. `out` gets its name in the last
    step; after any error, and after Ctrl-C, nothing is left.

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
