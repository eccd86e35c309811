# SPDX-License-Identifier: Apache-2.0
"""Pack samples of any source into a data set, with several processes where the source can be indexed.

    source --- process 0: samples [0, n/k) ---- part 0 ---+
           +-- process 1: samples [n/k, 2n/k) - part 1 ---+-- commit: hard links -- data set
           +-- ...

While parts are made, they lie next to the data set, in a directory `.NAME.parts-XXXXXXXX` of each pack's own. A writer
holds the data set's own directory from before the first sample until it commits the parts there, so that two packs
cannot meet. This writer also refuses a wrong path before any work.
"""
from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import itertools
import multiprocessing
import os
import pickle
import random
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from .. import paths
from .._version import __version__
from ..cores import n_cores
from ..dataset import Dataset
from ..arguments import items, switch
from ..errors import SettingsError
from ..hints import explained, kind_of
from ..progress import Progress, say
from ..topics import Foreign, given
from . import classes as class_numbers, folder, importers, parts
from .odd_boxes import OddBoxes
from .samples import (NO_SAMPLES, N_LOOKED_AT, PackError, SchemaError, advice_on, check_source,
                      failed, images_kept_as_bytes, inferred_schema, is_map_style, known_schema, record_of)
from .schema import Field, Schema, schema_of
from .task import Task
from .writer import Writer, count

__all__ = ["PackError", "SchemaError", "pack"]

REPORT_SECONDS = 0.1
STOP_SECONDS = 1.0  # time for a worker to end before it is killed
SAMPLES_PER_WORKER = 16  # least number of samples that is worth a process
PALETTES = ("{n:,} image{s} {have} a palette. Loaders read pictures correctly, in the palette's colours, but not "
            "masks: resizing mixes colours, and class ids are lost. Pack masks in a field of kind 'mask', with "
            "their image (schema={{'image': 'image', 'mask': 'mask', ...}}), which keeps their numbers")


# ---- samples --------------------------------------------------------------------------------------------


def _taken(source: Any, index: int) -> Any:
    try:
        return source[index]
    except Exception as error:
        raise failed(index, error) from error


def _numbered(source: Any) -> Iterator[tuple[int, Any]]:
    """Yield the samples of an iterable with their numbers. An error of the iterable becomes a PackError that names the
    sample."""
    index = 0
    try:
        for index, sample in enumerate(source):
            yield index, sample
            index += 1  # an error comes in place of the next sample
    except (PackError, GeneratorExit):
        raise
    except Exception as error:
        raise failed(index, error) from error


def _inferred(samples: Sequence[tuple[int, Any]]) -> dict[str, Field]:
    """Return the schema that these samples have, and warn where it may not be what their owner expects. samples:
    (number, sample)."""
    advice = advice_on(sample for _, sample in samples)
    if advice:
        warnings.warn(advice, stacklevel=6)  # points at the caller of pack
    records = [record_of(sample, None) for _, sample in samples]
    schema = inferred_schema(records, [i for i, _ in samples])
    kept = images_kept_as_bytes(schema, records)
    if kept:
        warnings.warn(kept, stacklevel=6)  # points at the caller of pack
    return schema


def _own(sample: Any) -> Any:
    """Return a copy of a sample, because its iterable may fill the same object again for the next one."""
    try:
        return copy.deepcopy(sample)
    except Exception:  # some objects cannot be copied, for example tensors in a graph of gradients
        return sample


def _schema_and_rest(source: Any, given: Schema | None) -> tuple[dict[str, Field], Any]:
    """Return the schema and the samples. For an iterable, the samples that were looked at come first again; a map-style
    source is returned as it is."""
    schema = schema_of(given) if given is not None else known_schema(source)
    if schema is not None:
        return schema, source if is_map_style(source) else _numbered(source)
    if is_map_style(source):
        n = len(source)
        looked_at = sorted({i * (n - 1) // max(N_LOOKED_AT - 1, 1) for i in range(N_LOOKED_AT)})
        return _inferred([(i, _taken(source, i)) for i in looked_at]), source
    samples = _numbered(source)
    first = [(index, _own(sample)) for index, sample in itertools.islice(samples, N_LOOKED_AT)]
    if not first:
        raise SettingsError(NO_SAMPLES)
    return _inferred(first), itertools.chain(first, samples)


def _add(writer: Writer, index: int, sample: Any, names: Sequence[str]) -> None:
    try:
        writer.add(record_of(sample, names))
    except Exception as error:
        raise failed(index, error) from error


# ---- in this process -------------------------------------------------------------------------------------


def _pack_here(samples: Iterator[tuple[int, Any]], open_writer: functools.partial[Writer],
               progress: Progress) -> int:
    """Pack in this process. Returns the number of images with a palette."""
    n = 0
    with open_writer() as writer, progress:
        names = list(writer.schema)
        for index, sample in samples:
            _add(writer, index, sample, names)
            n += 1
            progress.update(n)
        if n == 0:
            raise SettingsError(NO_SAMPLES)
    return writer.n_palette_images


# ---- one of several processes ------------------------------------------------------------------------


def _settle(part: int) -> None:
    """Prepare a worker process: its parent ends it, not Ctrl-C; it computes with one thread; and its random numbers
    differ from those of the other workers."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    random.seed(part)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None:
        torch.set_num_threads(1)
        torch.manual_seed(part)
    if numpy is not None:
        numpy.random.seed(part)


def _pack_part(pipe: Connection, source: Any, open_writer: functools.partial[Writer], part: int,
               samples: range) -> None:
    """Pack one part, as the body of a worker. It sends ("at", n) now and then, and at the end ("done", n,
    n_palette_images, odd boxes) or ("error", index, text, error)."""
    _settle(part)
    parent, told_at, index = os.getppid(), time.monotonic(), samples.start
    try:
        with open_writer() as writer:
            names, odd_boxes = list(writer.schema), writer._odd_boxes
            for n, index in enumerate(samples):
                _add(writer, index, _taken(source, index), names)
                if time.monotonic() - told_at > REPORT_SECONDS:
                    told_at = time.monotonic()
                    if os.getppid() != parent:
                        writer.abort()
                        raise SystemExit(1)  # the process that packs has ended
                    pipe.send(("at", n + 1))
            taken = odd_boxes.take()  # the parent warns for all workers
        pipe.send(("done", len(samples), writer.n_palette_images, taken))
    except Exception as error:
        pipe.send(_error_message(index, error))


def _error_message(index: int, error: Exception) -> tuple[Any, ...]:
    """Return the message to the parent about an error: the error itself if it can be pickled, and its traceback as
    text."""
    cause = error.__cause__ or error
    text = "".join(traceback.format_exception(type(cause), cause, cause.__traceback__))
    message = str(error) if isinstance(error, PackError) else str(failed(index, error))
    try:
        pickle.loads(pickle.dumps(cause))
    except Exception:  # whatever exception the pickling of an exception raises
        return "error", index, message, text, None
    return "error", index, message, text, cause


@contextlib.contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Return a context manager that blocks Ctrl-C: KeyboardInterrupt is raised at its end."""
    old = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


class WorkerTraceback(Exception):
    """The traceback in a worker process, as the cause of the error that is raised here."""

    def __str__(self) -> str:
        return "\n" + str(self.args[0])


class _Crew:
    """Worker processes, each with its part of the samples. At the end of `with` all have ended."""

    def __init__(self, context: Any, source: Any, parts: Sequence[range],
                 open_writer: functools.partial[Writer], directory: str) -> None:
        self._context = context.get_start_method()
        self._jobs = []
        task = open_writer.keywords["part"]
        for part, samples in enumerate(parts):
            receiver, sender = context.Pipe(duplex=False)
            whose = {"part": task.share(part)} if task else {"part": part, "n_parts": len(parts)}
            write = functools.partial(open_writer, part_path(directory, part), **whose)
            process = context.Process(target=_pack_part, args=(sender, source, write, part, samples),
                                      name=f"penstock-pack-{part}", daemon=True)
            self._jobs.append((process, receiver, sender, samples))
        self._started: list[Any] = []

    def __enter__(self) -> _Crew:
        try:
            # Ctrl-C is for this process: workers are born with it blocked, and then ignore it.
            with _ctrl_c_later():
                for process, _, sender, _ in self._jobs:
                    process.start()
                    self._started.append(process)
                    sender.close()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:
            process.terminate()
        until = time.monotonic() + STOP_SECONDS
        for process in self._started:
            process.join(max(until - time.monotonic(), 0))
            if process.is_alive():
                process.kill()
                process.join()
        for job in self._jobs:
            job[1].close()
            job[2].close()

    def run(self, progress: Progress, odd_boxes: OddBoxes) -> int:
        """Wait until all workers are done, and add up their odd boxes. Returns the number of images with a palette.
        Raises the PackError of the first worker that failed."""
        at, n_palettes = [0] * len(self._jobs), 0
        open_pipes: dict[Any, int] = {job[1]: i for i, job in enumerate(self._jobs)}
        while open_pipes:
            for pipe in wait(list(open_pipes), REPORT_SECONDS):
                i = open_pipes[pipe]
                try:
                    report = self._jobs[i][1].recv()
                except EOFError:
                    self._refuse_death(i)
                if report[0] == "error":
                    _raise(*report[1:])
                at[i] = report[1]
                if report[0] == "done":
                    n_palettes += report[2]
                    odd_boxes.add(report[3])
                    del open_pipes[pipe]
            progress.update(sum(at))
        for process in self._started:
            process.join()
        return n_palettes

    def _refuse_death(self, i: int) -> None:
        process, _, _, samples = self._jobs[i]
        process.join(STOP_SECONDS)
        code = process.exitcode
        why = f"was killed by signal {-code} ({signal.Signals(-code).name})" if code and code < 0 else \
            f"ended with status {code}"
        advice = ""
        if code == -signal.SIGKILL:
            advice = "; the machine may lack memory: give fewer workers (num_workers)"
        elif self._context != "fork":
            advice = f"; with context={self._context!r} the program's own work must be under " \
                     "if __name__ == '__main__':"
        raise PackError(f"the worker that packs samples {samples.start} to {samples.stop - 1} {why}, and so "
                        f"nothing was packed{advice}")


def _raise(index: int, message: str, text: str, cause: BaseException | None) -> None:
    error = PackError(message, index)
    if cause is None:
        raise error from WorkerTraceback(text)
    cause.__cause__ = WorkerTraceback(text)
    raise error from cause


# ---- several processes ---------------------------------------------------------------------------------


def part_path(directory: str, part: int) -> str:
    """Return the path of a part."""
    return os.path.join(directory, f"part-{part:05}")


def _split(n: int, n_parts: int) -> list[range]:
    return [range(n * i // n_parts, n * (i + 1) // n_parts) for i in range(n_parts)]


@contextlib.contextmanager
def _parts_directory(path: str) -> Iterator[str]:
    with contextlib.ExitStack() as stack:
        with _ctrl_c_later():
            directory = parts.make(path, advice=" (num_workers=0 needs none)")
            stack.callback(parts.remove, directory)
        yield directory


def _pack_parallel(source: Any, path: str, open_writer: functools.partial[Writer], n_workers: int,
                   context: str, progress: Progress) -> int:
    shares = _split(len(source), n_workers)
    with open_writer(path) as guard, _parts_directory(path) as directory:
        with progress, _Crew(multiprocessing.get_context(context), source, shares,
                             functools.partial(open_writer, overwrite=False), directory) as crew:
            n_palettes = crew.run(progress, guard._odd_boxes)
        guard.commit_parts([part_path(directory, part) for part in range(len(shares))])
    return n_palettes


# ---- pack ----------------------------------------------------------------------------------------------


def _n_workers(wished: int | None, source: Any) -> int:
    if not is_map_style(source):
        if wished not in (None, 0, 1):
            raise SettingsError(f"num_workers: value is {wished}; must be 0 or left out for an iterable, "
                                "whose samples come one after the other (or give a map-style data set, with "
                                "len and [i])")
        return 0
    n = len(source)
    if wished is None:
        workers = min(n_cores(), n // SAMPLES_PER_WORKER)
        return workers if workers > 1 else 0
    return min(count("num_workers", wished, 0, 4096), n)


@explained("penstock.pack", {})
def pack(dataset: Any, path: str | os.PathLike[str], *, num_workers: int | None = None,
         schema: Schema | None = None, overwrite: bool = False, shard_size: int = 0, note: str | None = None,
         names: Sequence[str] | None = None, dictionary_size: int = 0, check_images: bool = True,
         progress: bool = True, context: str = "fork", skip_bad: bool = False,
         classes: str | None = None, part: Task | None = None, damaged: str = "refuse",
         foreign: Foreign | None = None, columns: bool = True) -> Dataset:
    """Pack every sample of a data set into the penstock data set `path`. Returns it, opened.

    dataset: a source of samples: an object with len and [i] (a torch Dataset, a list), an iterable or IterableDataset,
        a dict of arrays or tensors of one length, a DataFrame of pandas, or a Hugging Face data set (of one split). Or
        the path of a .npy, .npz, .pt, .h5 or .parquet file; or a folder or a pattern of Parquet files, as
        data/*.parquet; or the folder that Hugging Face's save_to_disk made. Samples are dicts, tuples, named tuples,
        dataclasses, or single values. A sample's number becomes its sample id. Numbers of Parquet files and DataFrames
        keep their dtype; whole numbers with a null are float64, with NaN. WebDataset's __url__ and __local_path__ are
        left out, unless the schema has them. A Hugging Face data set with a transform has the columns of the transform.
        Without one, its image files are packed as they are. Hugging Face turns them upright by their EXIF; for that
        give exif_orientation=True to penstock.image. Or the path of a folder of images: JPEG and PNG files, flat or
        with a folder for each class. It is packed with fields jpg, cls and key, into the same bytes that `penstock
        pack` writes. Or a path, or a pattern of paths, of tar archives, TFRecords, MDS, Megatron's files, .safetensors
        or a folder of arrays, packed by the same command, with the fields of penstock.Dataset(path).
    num_workers: number of worker processes, each of which packs consecutive samples; 0: only this process; None: as
        many as there are cores, or 0 if samples are few. This process packs iterables. Every worker seeds Python's,
        NumPy's and torch's random numbers with its number. For a folder of images: number of threads.
    schema: {name: field}, see penstock.Field; the members of a tuple or list take its names in order. None: it is
        inferred from up to 8 samples: images (PIL, uint8 of height x width x 3, bytes of JPEG and PNG files), bytes,
        text, numbers, arrays, whose dimensions are variable where they differ. The members of a tuple of an image and a
        number get the names image and cls, those of others "0", "1", ...
    names: class names to keep; None: those that the data set has as `classes`, or in its only ClassLabel (Hugging
        Face), also within torch's Subset and ConcatDataset. If class numbers of the data set contradict its names, none
        are kept, with a warning.
    classes: name of a field of text that holds class names. They become class numbers (int64), and the data set keeps
        the names. The number of a name is its position in `names`, or without `names` in the sorted names of all
        samples, for which each sample is read once more.
    overwrite, shard_size, note, dictionary_size: as in penstock.Writer.
    part: a penstock.Task: pack its part, for penstock.merge. If the part of a folder of images exists already, made
        from the same files, it stays. Other data cannot be compared, and raises DataSetExistsError. Give every task the
        same schema and names. For a part without samples, open a penstock.Writer and add nothing.
    check_images: True: decode every image file in full, as the command `penstock pack` does, so that damage is found
        now. False: read only the headers.
    damaged: "accept": keep JPEGs that Pillow loads only by guessing, as penstock.Writer and `penstock pack --damaged
        accept` do; the fields' n_damaged counts them. If the fault of a PNG comes after its rows, a new file with these
        rows is stored. "refuse": both are damage.
    progress: True: show a bar on a terminal, else a line every 10 s, on stderr. For a folder of images it is always
        lines.
    context: start of processes: "fork", as in DataLoader, or "spawn", if the data set can be pickled.
    skip_bad: for a folder of images: skip files that were read but cannot be packed, and print their names. False: a
        PackError names them, and nothing is packed.
    foreign: a penstock.Foreign, of which packing takes `fields` for data in another format, and `by_content` for a
        folder of images. If records of a TFRecord lack a field, a line on stderr gives their number.
    columns: True: make side columns of scalars, sizes, lengths, widths and heights, as penstock.Writer does; False:
        none, as with `penstock pack --no-columns`.

    For a folder of images, and for data in such a format, only num_workers, overwrite, shard_size, progress, skip_bad,
    part, damaged, foreign and columns may be given. Files that are left out are named on stderr, as by `penstock pack`.

    Give an image as the bytes of its original file if there is one, because a decoded image is stored as pixels. With
    torchvision write ImageFolder(root, loader=lambda p: open(p, "rb").read()).

    Images with a palette (PNG files, PIL images of mode P) are often masks, but a loader's images lose class ids. A warning
    at the end gives the number of such images.

    Raises PackError, which names the sample, and the errors of penstock.Writer. After an error and after Ctrl-C nothing
    of the pack remains; a data set that was to be replaced is as it was.
    """
    if part is not None and not isinstance(part, Task):
        raise SettingsError(f"part: value is {part!r}; must be a penstock.Task")
    overwrite, check_images, columns = (switch(name, value) for name, value in (
        ("overwrite", overwrite), ("check_images", check_images), ("columns", columns)))
    progress, skip_bad, read_as = switch("progress", progress), switch("skip_bad", skip_bad), _read_as(foreign)
    shard_size, dictionary_size = count("shard_size", shard_size), count("dictionary_size", dictionary_size, 0, 2**32 - 1)
    _check_context(context)
    names = None if names is None else items("names", names, "a list of class names")
    if classes is not None and not isinstance(classes, str):
        raise TypeError(f"classes: value is {classes!r}; must be the name of a field of text, or None")
    source = importers.opened(dataset, has_schema=schema is not None)
    if isinstance(source, folder.ImageFolder):
        folder.refuse_given(source, {"schema": schema, "note": note, "names": names, "dictionary_size": dictionary_size or None,
                             "classes": classes,
                             "check_images": None if check_images else False,
                             "fields": None if isinstance(source, folder.InPlace) else read_as.fields})
        where = os.path.realpath(paths.local(path))
        folder.pack(source, where, skip_bad=skip_bad, overwrite=overwrite, shard_size=shard_size,
                    num_workers=num_workers, progress=progress, part=part, damaged=damaged,
                    foreign=read_as, columns=columns)
        return Dataset(where)
    if read_as.fields is not None:
        importers.close(source, dataset)
        raise SettingsError("fields: value is given; must be left out, except for the path of data that is read in place")
    if read_as.by_content:
        raise SettingsError("by_content: value is True; must be False, except for a folder of images")
    if skip_bad:
        raise SettingsError("skip_bad: value is True; must be False, except for a folder of images (leave bad samples "
                            "out of the data set)")
    try:
        check_source(source)
        if classes is not None:
            known = known_schema(source) if schema is None else schema_of(schema)
            if known and classes in known and known[classes].kind == "utf8":
                schema = {**known, classes: Field("int64")}
            source = class_numbers.numbered(source, classes, names, list(known) if known else None)
        n_workers = _n_workers(num_workers, source)
        where = os.path.realpath(paths.local(path))
        open_writer = functools.partial(
            Writer, overwrite=overwrite, shard_size=shard_size, dictionary_size=dictionary_size,
             check_images=check_images, part=part or 0, damaged=damaged, columns=columns,
            note=_note(dataset) if note is None else note,
            names=class_numbers.names_of(source) if names is None else names)
        n_palettes = _pack(source, where, schema, open_writer, n_workers, context, progress)
        _say_absent(source)
    finally:
        importers.close(source, dataset)
    if n_palettes:
        s, have = ("", "has") if n_palettes == 1 else ("s", "have")
        warnings.warn(PALETTES.format(n=n_palettes, s=s, have=have), stacklevel=3)  # points at the caller of pack
    made = Dataset(where)
    if part is None:
        _warn_of_length(source, len(made))
    return made


def _warn_of_length(source: Any, n: int) -> None:
    """Warn if the len of an iterable differs from its number of samples: it may have ended early."""
    if is_map_style(source):
        return
    try:
        promised = len(source)
    except Exception:  # most iterables have no len, and PyTorch's may raise any exception
        return
    if n != promised:
        s, why = "" if n == 1 else "s", "it may have ended early" if n < promised else "its len is wrong, or samples came twice"
        warnings.warn(f"penstock.pack: the {type(source).__name__} gave {n:,} sample{s}, and its len is {promised:,}: {why}",
                      stacklevel=4)  # points at the caller of pack


def _read_as(foreign: Any) -> Foreign:
    """Return foreign=, of which packing takes two members. Raises SettingsError for others."""
    found = given("foreign", foreign, Foreign)
    switch("by_content", found.by_content)
    for member in dataclasses.fields(Foreign):
        value = getattr(found, member.name)
        if member.name not in ("fields", "by_content") and value != member.default:
            advice = " (give penstock.pack damaged=)" if member.name == "damaged" else ""
            raise SettingsError(f"foreign: value has {member.name}={value!r}; must have fields and by_content alone for packing"
                                + advice)
    return found


def _say_absent(source: Any) -> None:
    """Print the number of records that lack a field, for each field."""
    for name, field in source.fields.items() if isinstance(source, Dataset) else ():
        if field.n_absent:
            s, have = ("", "has") if field.n_absent == 1 else ("s", "have")
            said = "an empty value" if field.field.is_list or None in (field.field.shape or ()) else "its default"
            say(f"{field.n_absent:,} sample{s} {have} no field {name}: packed with {said}")


def _note(dataset: Any) -> str:
    return f"penstock.pack of {kind_of(dataset)}, penstock {__version__}"


def _check_context(context: str) -> None:
    if not isinstance(context, str) or context not in multiprocessing.get_all_start_methods():
        raise SettingsError(f"context: value is {context!r}; must be one of "
                            + ", ".join(multiprocessing.get_all_start_methods()))


def _pack(source: Any, where: str, schema: Schema | None, open_writer: functools.partial[Writer],
          n_workers: int, context: str, progress: bool) -> int:
    # This raises all errors that do not depend on the samples, before the first sample is asked for.
    open_writer(where, {"x": "uint8"} if schema is None else schema).abort()
    fields, samples = _schema_and_rest(source, schema)
    write = functools.partial(open_writer, schema=fields)
    shown = Progress("packing", "samples", len(source) if is_map_style(source) else None, progress)
    if n_workers == 0:
        if is_map_style(source):
            samples = ((i, _taken(source, i)) for i in range(len(source)))
        return _pack_here(samples, functools.partial(write, where, n_threads=n_cores()), shown)
    return _pack_parallel(source, where, write, n_workers, context, shown)
