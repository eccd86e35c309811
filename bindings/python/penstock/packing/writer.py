# SPDX-License-Identifier: Apache-2.0
"""Write a data set, one record after the other."""
from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import operator
import os
import re
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from .. import _c, errors, lists, paths
from ..arguments import is_whole, items, switch, text
from ..closing import ClosedAtEnd
from ..catalog import ColumnInfo
from ..dataset import Dataset
from ..elsewhere import WRITER_ATTRIBUTES
from ..errors import SettingsError
from ..escapes import escaped
from ..hints import Hints, explained, explains, level_outside, near_or_all
from ..sealed import Sealed
from .odd_boxes import OddBoxes
from .schema import LIST_KINDS, Field, Schema, schema_of
from .task import Task, pack_id_of
from .values import FieldError, Pixels, encoder, has_palette

__all__ = ["Field", "FieldError", "Writer", "merge"]


class _Value(ctypes.Structure):
    """struct pstk_value. Its data takes Python's bytes, or an address."""
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_uint64), ("damaged", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32)]


def count(name: str, value: Any, low: int = 0, high: int = 2**63) -> int:
    """Return a whole number within bounds. Raises SettingsError, which names the setting."""
    found = operator.index(value) if is_whole(value) else low - 1
    if not low <= found <= high:
        raise SettingsError(f"{name}: value is {value!r}; must be a whole number from {low} to {high}")
    return found


def accepts_damaged(value: Any) -> bool:
    """Return whether the setting `damaged` is "accept". Raises SettingsError."""
    if not isinstance(value, str) or value not in ("refuse", "accept"):
        raise SettingsError(f"damaged: value is {value!r}; must be 'refuse' or 'accept'")
    return bool(value == "accept")



def _abandon_at_end(writer: Writer) -> None:
    """Abort an open writer at exit, while the interpreter can still remove its files."""
    if writer._handle and writer._owner == os.getpid():
        writer._abandon()


_open_writers: ClosedAtEnd[Writer] = ClosedAtEnd(_abandon_at_end)


@explains({})
class Writer(Hints, Sealed):
    """A writer of a data set. At the end of `with` it commits the data set; after an exception it aborts, and nothing
    stays.

        with penstock.Writer("train", {"image": "image", "cls": "int64"}) as w:
            w.add(image=jpeg, cls=3)

    Without `with`, call commit(). If a writer is forgotten, nothing of it stays, and one line on stderr has its path
    and its number of records. A process that a signal kills prints no line: multiprocessing.Pool kills its workers in
    this way at the end of its `with`.

    path: directory to make. Files have temporary names until commit; only then does the data set exist. Files that a
        killed writer left there are removed.
    schema: {name: field}, in the order of storage; see penstock.Field.
    overwrite: replace an existing data set there, at commit.
    shard_size: bytes of a shard file, which is closed before it gets larger; 0: 256 MiB.
    note: text for people, which `penstock info` shows.
    names: class names, kept in the data set.
    n_threads: number of threads that compress; the files do not depend on it. 0: one.
    dictionary_size: bytes of the zstd dictionary, which is trained on the first records; 0: 110 KiB; 1: no dictionary.
    check_images: True: decode every image file in full, also those of lists, so that damage is found now
        (CorruptRecordError), not in training. False: read only headers; damaged files are packed.
    damaged: treatment of JPEGs that Pillow loads only by guessing missing data. "refuse": check_images refuses them.
        "accept": they are kept as they came and marked, and loaders show them as Pillow does; every image file is
        decoded in full, whatever check_images is. If the fault of a PNG comes after its rows, a new file with these
        rows is stored, which n_remade_images counts. In lists of images all these files are refused.
    columns: True: make side columns of scalars, sizes, lengths, widths and heights, 1 to 8 bytes a record each.
    part, n_parts: the writer makes part number `part` of n_parts, in a directory of its own, for penstock.merge. If the
        number of parts is not known, `part` is a penstock.Task. A part may be empty.
    pack_id: with n_parts > 1: id of the pack; merging refuses parts with another id. Otherwise: the writer only commits
        parts, and takes none of another pack.

    Raises SettingsError, DataSetExistsError, DataSetBusyError (another writer is at work there). Any thread may add,
    one at a time; a child made by fork may not use the writer. A signal handler may read n_samples and abort; there add
    and commit raise SettingsError while the writer is in one of them.
    """

    _hints = WRITER_ATTRIBUTES
    path: str
    schema: dict[str, Field]

    def __init__(self, path: str | os.PathLike[str], schema: Schema, *, overwrite: bool = False,
                 shard_size: int = 0, note: str | None = None, names: Sequence[str] | None = None,
                 n_threads: int = 0, dictionary_size: int = 0, part: int | Task = 0,
                 n_parts: int = 1, check_images: bool = False, pack_id: str | None = None,
                 damaged: str = "refuse", columns: bool = True) -> None:
        # The library sets it to NULL at the end of commit and abort. It alone says whether the writer is open, since an
        # exception of a signal handler may come between any two steps here.
        self._handle = ctypes.c_void_p()
        self._owner = os.getpid()
        self._lock = threading.RLock()  # reentrant: a signal handler may run in the thread that holds it
        self._commit_error: _c.Error | None = None  # error of the commit that was begun, code 0: none; None: not begun
        self._fix(path=paths.local(path), schema=schema_of(schema))
        self._encoders = {name: encoder(name, field) for name, field in self.schema.items()}
        self._images = [(i, name) for i, name in enumerate(self.schema) if self.schema[name].kind == "image"]
        self._n_palette_images = 0
        self._odd_boxes = OddBoxes(self.schema)
        accept = accepts_damaged(damaged)
        check_images = switch("check_images", check_images)
        self._check_images = check_images and not accept  # with "accept" the library checks them
        self._check_items = check_images or accept  # the library does not check those of lists
        self._error = errors.new()
        self._values = (_Value * len(self.schema))()
        for i, _ in self._images:
            self._values[i].damaged = _c.DAMAGED_ACCEPT if accept else _c.DAMAGED_UNCHECKED
        self._values_pointer = ctypes.cast(self._values, ctypes.POINTER(_c.Value))
        settings = _c.WriterSettings()
        _c.lib.pstk_writer_settings_init(ctypes.byref(settings), ctypes.sizeof(settings))
        fields = (_c.Field * len(self.schema))(*(f.to_c(name) for name, f in self.schema.items()))
        settings.path, settings.fields, settings.n_fields = os.fsencode(self.path), fields, len(fields)
        settings.n_parts = count("n_parts", n_parts, 1, 2**32 - 1)
        if isinstance(part, Task):
            settings.pack_id, settings.task, settings.attempt = part.pack.encode(), part.key.encode(), part.attempt
        else:
            settings.part = count("part", part, 0, 2**32 - 1)
        if pack_id is not None:
            if isinstance(part, Task):
                raise SettingsError(f"pack_id: value is {pack_id!r}; must be left out with a Task, which has its own")
            settings.pack_id = pack_id_of("pack_id", pack_id).encode()
        settings.n_threads = count("n_threads", n_threads, 0, 1024)
        settings.shard_size = count("shard_size", shard_size)
        settings.dictionary_size = count("dictionary_size", dictionary_size, 0, 2**32 - 1)
        settings.overwrite = int(switch("overwrite", overwrite))
        settings.columns = int(not switch("columns", columns))
        if note is not None:
            settings.note = text("note", note)
        if names is not None:
            texts = [text("names", name) for name in items("names", names, "a list of class names")]
            settings.names, settings.n_names = (ctypes.c_char_p * len(texts))(*texts), len(texts)
        error = errors.new()
        try:
            _check_place(_c.lib.pstk_writer_open(ctypes.byref(self._handle), ctypes.byref(settings),
                                                 ctypes.byref(error)), error)
        except BaseException:
            self.abort()
            raise
        _open_writers.add(self)

    # ---- records ---------------------------------------------------------------------------------------

    def add(self, record: Mapping[str, Any] | None = None, /, **values: Any) -> None:
        """Append one record: a dict, or its values by name.

        image: the bytes of a JPEG or PNG file, which are kept. Or a PIL image, or a uint8 or uint16 array or tensor of
            height x width (gray) or height x width x 1, 3 or 4 (gray, RGB, RGBA; torch: also with the channels first),
            which are stored as pixels. Images of a loader have 8 bits: it takes the high bytes of uint16, but refuses
            gray uint16. PIL images with a palette, CMYK, YCbCr and HSV become RGB. Alpha is kept, also that of a file's
            transparent colour (PNG's tRNS, GIF) until the image is converted. A loader's RGB images leave alpha out: if
            there should be a background, paste the image on it first. Modes of more than 8 bits ("I", "I;16", "F") are
            refused.
        bytes, utf8: bytes-like; str.
        scalars: numbers of Python, NumPy or torch.
        arrays: NumPy, torch (any device), JAX, lists. Another type is taken only if no integer changes, and no float
            becomes an integer or infinite; floats are rounded to the field's type.
        lists: lists or tuples of such values. Items of lists of masks are the bytes of PNG files of one channel, PIL
            images of mode P, L or 1, or arrays of uint8, uint16 or bool of height x width.

        Raises FieldError (type, range, shape, or rows that differ from those of other fields) and CorruptRecordError
        (no image), which name the field. Then the record is not written, and others may follow.
        """
        given = {**record, **values} if record is not None else values
        encoded, pixels = self._encode(given)
        with self._turn("add"):
            handle = self._checked("add")
            for value, made in zip(self._values, encoded):
                if isinstance(made, bytes):
                    value.data, value.size = made, len(made)
                else:
                    value.data, value.size = made.ctypes.data, made.nbytes
            self._append(handle, pixels)
            self._odd_boxes.count(encoded)
            for i, name in self._images:
                if has_palette(given[name], encoded[i]):
                    self._n_palette_images += 1

    def _append(self, handle: ctypes.c_void_p, pixels: list[_c.Pixels]) -> None:
        error, n = self._error, len(self._values)
        described = (_c.Pixels * len(pixels))(*pixels) if pixels else None
        result = _c.lib.pstk_writer_add_pixels(handle, self._values_pointer, n, described, len(pixels),
                                               ctypes.byref(error))
        if result < 0:
            self._error = errors.new()
            made = errors.of(error, result)
            # EINVAL: each field holds its value, but rows or lengths of two fields do not match.
            match = re.search(r"record \d+, field ([\w.-]+): (.*)", str(made)) if result == _c.EINVAL else None
            raise FieldError(match[1], match[2]) if match else made

    def _encode(self, given: Mapping[str, Any]) -> tuple[list[Any], list[_c.Pixels]]:
        """Return the stored value of each field, in the order of the schema, and the descriptions of pixels."""
        if len(given) != len(self._encoders) or any(name not in given for name in self._encoders):
            self._refuse_names(given)
        encoded: list[Any] = []
        pixels = []
        for i, (name, encode) in enumerate(self._encoders.items()):
            made = encode(given[name])
            if self._check_images and self.schema[name].kind == "image" and isinstance(made, bytes):
                _check_image(name, made)
            if self._check_items and self.schema[name].kind == "image_list":
                _check_items(name, made)
            if isinstance(made, Pixels):
                if made.height < 1 or made.width < 1:
                    raise FieldError(name, f"value is an image of {made.height} x {made.width} pixels; must "
                                       "have at least 1 row and 1 column")
                pixels.append(_c.Pixels(size=ctypes.sizeof(_c.Pixels), field=i, height=made.height,
                                        width=made.width, channels=made.channels, bit_depth=made.bit_depth))
                made = made.data
            encoded.append(made)
        return encoded, pixels

    def _refuse_names(self, given: Mapping[str, Any]) -> None:
        for name in given:
            if name not in self._encoders:
                raise FieldError(str(name), "there is no such field" + near_or_all(name, self._encoders))
        missing = [name for name in self._encoders if name not in given]
        raise FieldError(missing[0], "the record has no value; must have one for every field: "
                         + ", ".join(self._encoders))

    @property
    def n_palette_images(self) -> int:
        """Number of added images that have a palette, as masks often do."""
        return self._n_palette_images

    @property
    def n_remade_images(self) -> int:
        """Number of added PNG files that were damaged after their rows, and are stored as new files with these rows."""
        with self._own("n_remade_images"):
            return int(_c.lib.pstk_writer_n_remade(self._checked("n_remade_images")))

    @property
    def n_samples(self) -> int:
        """Number of added records."""
        with self._own("n_samples"):
            return int(_c.lib.pstk_writer_n_samples(self._checked("n_samples")))

    # ---- the end ---------------------------------------------------------------------------------------

    @property
    def _state(self) -> str:
        if self._handle:
            return "open"
        if self._commit_error is None:
            return "aborted"
        return "closed after a commit that failed" if self._commit_error.code else "committed"

    def _own(self, what: str) -> Any:
        """Return the lock. In a child made by fork it raises ForkedError, because nobody there would release it."""
        if os.getpid() != self._owner:
            raise errors.ForkedError(f"{what}: this writer of {self.path} was opened before fork; open one "
                                     "in the child, as a part of its own (part, n_parts), and merge")
        return self._lock

    def _turn(self, what: str) -> Any:
        """Return the lock. Raises SettingsError if this thread holds it, as in a signal handler."""
        lock = self._own(what)
        if lock._is_owned():
            raise SettingsError(f"{what}: a signal handler may neither add nor commit while the writer works: "
                                "set a flag in the handler, and check it where you add")
        return lock

    def _checked(self, what: str) -> ctypes.c_void_p:
        if not self._handle:
            raise SettingsError(f"{what}: this writer of {self.path} is {self._state}; open another")
        return self._handle

    def commit(self) -> None:
        """Write the rest and commit: when this returns, the data set exists.

        Raises PenstockError. Then the data set does not exist, unless the message says that it is whole: the error came
        after the commit, at a last sync or the removal of a replaced data set. After KeyboardInterrupt the data set
        exists if the writer's repr says "committed".
        """
        self._commit("commit", _c.lib.pstk_writer_commit)
        self._odd_boxes.warn(str(self.path))

    def commit_parts(self, parts: Sequence[str | os.PathLike[str]]) -> None:
        """Commit parts, joined as by penstock.merge, in place of records of its own, of which there may be none. So a
        program that packs in parts holds the path of the data set until it is complete. The parts have this writer's
        schema and class names; the note is this writer's, or else that of part 0. Raises SettingsError and
        PenstockError, as commit does."""
        names = [os.fsencode(paths.local(part)) for part in parts]
        self._commit("commit_parts", _c.lib.pstk_writer_commit_parts,
                     (ctypes.c_char_p * len(names))(*names), len(names))
        self._odd_boxes.warn(str(self.path))

    def _commit(self, what: str, function: Any, *arguments: Any) -> None:
        with self._turn(what):
            handle = self._checked(what)
            self._commit_error = error = errors.new()
            errors.check(function(ctypes.byref(handle), *arguments, ctypes.byref(error)), error)

    def abort(self) -> None:
        """Remove the files that were written. After commit, or in a child made by fork, it does nothing."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            if self._handle:
                self._commit_error = None
                _c.lib.pstk_writer_abort(ctypes.byref(self._handle))

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if kind is None:
            if self._handle:
                self.commit()
        elif issubclass(kind, (Exception, KeyboardInterrupt)):  # Python reports these
            self.abort()
        else:  # SystemExit, GeneratorExit: Python does not
            self._abandon(f"{kind.__name__} left `with` of the writer of {{}}", "leave `with` first")

    def __del__(self, _getpid: Any = os.getpid) -> None:
        # It is a default argument, as globals may be gone when the interpreter ends; _abandon_at_end ran before.
        if getattr(self, "_handle", None) and _getpid() == self._owner:
            self._abandon()

    def _abandon(self, why: str = "the writer of {} was neither committed nor used with `with`",
                 advice: str = "call commit(), or write `with penstock.Writer(...) as w:`") -> None:
        """Abort, and print a line on what is lost: no exception reports it, and Python hides a ResourceWarning."""
        with self._own("abort"):
            n = int(_c.lib.pstk_writer_n_samples(self._handle)) if self._handle else 0
            self.abort()
        if n and sys.stderr is not None:
            lost = "1 record is" if n == 1 else f"{n:,} records are"
            with contextlib.suppress(OSError, ValueError):  # stderr may be closed
                print(f"penstock: {why.format(escaped(self.path))}: its {lost} lost ({advice})", file=sys.stderr, flush=True)

    def _another(self, name: str) -> str:
        return f"open another Writer with {name}=..."

    def __repr__(self) -> str:
        return f"penstock.Writer({self.path!r}, {self.schema}): {self._state}"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a Writer cannot be pickled: open one in each process, as a part of its own (part, "
                        "n_parts), and merge")


def _check_items(name: str, data: bytes) -> None:
    """Raise CorruptRecordError for a damaged file in a list of images, where none can be marked as damaged."""
    for i, item in enumerate(lists.read(LIST_KINDS["image_list"], data)):
        if isinstance(item, bytes):
            _check_image(f"{name}: item {i}", item, can_accept=False)


def _check_image(name: str, data: bytes, can_accept: bool = True) -> None:
    error, damaged = errors.new(), ctypes.c_uint32()
    result = _c.lib.pstk_image_check_damaged(data, len(data), 0, ctypes.byref(damaged), ctypes.byref(error))
    if result < 0:
        made = errors.of(error, result)
        advice = "" if not damaged else \
            "; its rows are whole, and Pillow loads it: damaged='accept' packs them as a new PNG file" \
            if damaged.value == _c.DAMAGE_REMADE and can_accept else \
            "; its rows are whole, and Pillow loads it: save it again with Pillow" if damaged.value == _c.DAMAGE_REMADE else \
            "; Pillow loads it by guessing: damaged='accept' packs it as Pillow shows it" if can_accept else \
            "; Pillow loads it by guessing, but an image of a list cannot be marked as damaged: repair it, or leave it out"
        made.args = (f"field {name}: {made}{advice}",)
        raise made


def _check_place(result: int, error: _c.Error) -> None:
    """Check the result of a call that makes a data set. The message then says in Python how to replace an existing one."""
    try:
        errors.check(result, error)
    except errors.DataSetExistsError as exists:
        exists.args = (str(exists).replace("set overwrite to", "set overwrite=True to"),)
        raise


@explained("penstock.merge", {})
def merge(parts: Sequence[str | os.PathLike[str]], path: str | os.PathLike[str], *,
          overwrite: bool = False, pack_id: str | None = None) -> None:
    """Join parts into the data set `path`: all parts 0 .. n_parts - 1 of one pack, with one schema. Or join the parts
    of tasks (penstock.Task), in the order in which they are given.

    Shards are hard-linked, or copied if linking is refused; sample ids are those of a single pack. The parts stay, and
    may be removed afterwards. Side columns that are not alike in all parts are left out, with a warning.

    overwrite: replace an existing data set there, in the last step; other files there stay.
    pack_id: refuse parts that are not of this pack.

    Two attempts at one task are refused. Raises SettingsError, DataSetExistsError, PenstockError.
    """
    names, where = [os.fsencode(paths.local(part)) for part in items("parts", parts, "a list of paths")], os.fsencode(paths.local(path))
    settings = _c.MergeSettings(size=ctypes.sizeof(_c.MergeSettings), n_parts=len(names), out=where,
                                parts=(ctypes.c_char_p * len(names))(*names), overwrite=int(switch("overwrite", overwrite)))
    if pack_id is not None:
        settings.pack_id = pack_id_of("pack_id", pack_id).encode()
    error = errors.new()
    _check_place(_c.lib.pstk_merge(ctypes.byref(settings), ctypes.byref(error)), error)
    lost = _lost_columns(list(map(os.fsdecode, names)), os.fsdecode(where))
    if lost:
        warnings.warn("penstock.merge: " + "; ".join(lost), stacklevel=level_outside())


def _lost_columns(parts: Sequence[str], path: str) -> list[str]:
    """Return a sentence for each side column of the parts that the merged data set lacks, with the reason. A part
    without samples has no columns."""
    seen: dict[str, dict[ColumnInfo, str]] = {}
    for part in parts:
        with contextlib.suppress(errors.PenstockError), Dataset(part) as data:
            for name, column in data.columns.items():
                seen.setdefault(name, {}).setdefault(dataclasses.replace(column, bytes=0), part)
    try:
        with Dataset(path) as merged:
            columns = set(merged.columns)
    except errors.PenstockError:  # without samples there are no columns
        return []
    return [f"column {name} is left out: {_why_lost(list(kinds.items()))}" for name, kinds in seen.items() if name not in columns]


def _why_lost(kinds: list[tuple[ColumnInfo, str]]) -> str:
    """Return why a column was lost. kinds: its different kinds, each with the first part that has it."""
    (first, one), (second, other) = kinds[0], kinds[-1]
    if first == second:
        return f"not all parts have it, and {one} does"
    if first.dtype != second.dtype:
        return f"its dtype is {first.dtype} in {one} and {second.dtype} in {other}; must be the same in all parts"
    return f"it is {_made_of(first)} in {one} and {_made_of(second)} in {other}; must be the same in all parts"


def _made_of(column: ColumnInfo) -> str:
    return f"the {column.fact} of field {column.field}" if column.fact else "a column that was added"
