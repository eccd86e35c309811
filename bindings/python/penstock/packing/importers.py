# SPDX-License-Identifier: Apache-2.0
"""Open files and data sets of other libraries as map-style data sets of dicts, for penstock.pack: .npy, .npz, .pt,
HDF5, Parquet, Hugging Face. Rows are read when they are asked for; a process made by fork opens the file again. The
command packs all other formats that penstock reads in place. A folder that has none of them is a folder of images."""
from __future__ import annotations

import bisect
import contextlib
import ctypes
import dataclasses
import functools
import glob
import itertools
import json
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .. import _c, errors, paths
from .._optional import is_a, needed
from ..errors import SettingsError
from ..foreign import parquet_of
from ..hints import level_outside
from ..tables import is_of_images
from .arrow import number_of
from .folder import ImageFolder, InPlace
from .values import is_array

__all__ = ["Columns", "HDF5File", "HuggingFaceDataset", "ParquetFiles", "close", "from_numpy", "from_torch",
           "opened"]

MAX_FILES = 1 << 20  # most files of a pattern with braces, as in src/format/listing.c
BLOCK_SIZE = 4 << 20  # bytes of rows that are read at a time, where single rows are slow to read


def field_names(columns: Sequence[Any]) -> dict[Any, str]:
    """Return a field's name for each column. Characters that a field's name cannot have become _. Raises SettingsError."""
    names = {column: re.sub(r"[^A-Za-z0-9_.-]", "_", str(column))[:63] or "_" for column in columns}
    if len(set(names.values())) != len(names):
        raise SettingsError(f"columns: names are {', '.join(map(str, columns))}; must differ also where _ "
                            "replaces characters other than letters, digits, _ . - (rename some)")
    return names


def _common_length(lengths: Mapping[Any, int], where: str) -> int:
    if not lengths:
        raise SettingsError(f"{where}: value has no arrays; must have at least 1")
    if len(set(lengths.values())) != 1:
        found = ", ".join(f"{name}: {n}" for name, n in lengths.items())
        raise SettingsError(f"{where}: the arrays have different lengths ({found}); must have one length, "
                            "since a record takes a row of each")
    return next(iter(lengths.values()))


def _by_position(column: Any) -> Any:
    """Return a Series of pandas as an array of numbers or a list, because [i] of a Series looks up its index. Other
    values are returned as they are. Whole numbers with nulls become float64 with NaN, as pandas reads such columns of
    files."""
    if not is_a(column, "pandas", "Series"):
        return column
    numbers = getattr(column.dtype, "numpy_dtype", column.dtype)  # the dtype in pandas' Int64, Float32, ...
    if not is_a(numbers, "numpy", "dtype") or numbers.kind not in "biuf":
        return list(column)
    if numbers is column.dtype:
        return column.to_numpy()
    if not column.hasnans:
        return column.to_numpy(numbers)
    if numbers.kind == "b":
        return list(column)
    if numbers.kind not in "iu":
        return column.to_numpy(numbers, na_value=math.nan)
    known = column.dropna()
    _check_whole(str(column.name), (int(known.min()), int(known.max())) if len(known) else ())
    return column.to_numpy("float64", na_value=math.nan)


def _check_whole(name: str, values: Iterable[int]) -> None:
    """Raise SettingsError for whole numbers that float64, the dtype of their column, may not hold."""
    for value in values:
        if abs(value) > 2**53:
            raise SettingsError(f"column {name}: value is {value}, and the column would be float64, which holds whole "
                                "numbers up to 2^53 only; must have no nulls, and one dtype in all files")


class Columns:
    """Arrays, tensors or lists of one length, or columns of pandas, as a map-style source. Sample i is row i of each."""

    def __init__(self, columns: Mapping[str, Any], where: str = "the dict") -> None:
        names = field_names(list(columns.keys()))
        columns = {name: _by_position(column) for name, column in columns.items()}
        self._columns = {names[name]: column for name, column in columns.items()}
        for name, column in columns.items():
            has_rows = hasattr(column, "__len__") and getattr(column, "shape", None) != ()
            if not has_rows or isinstance(column, (str, bytes)):
                raise SettingsError(f"{where}: {name} is of type {type(column).__name__}, without rows; must "
                                    "have rows (leave it out)")
            if str(getattr(column, "dtype", "")) == "object":
                raise SettingsError(f"{where}: {name} is an array of Python objects; must be of numbers or "
                                    "text")
        self._n = _common_length({name: len(column) for name, column in columns.items()}, where)

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {name: _plain(column[index]) for name, column in self._columns.items()}


@contextlib.contextmanager
def _reading(path: str, kind: str, hint: str = "") -> Iterator[None]:
    """Return a context manager that turns exceptions of other packages about a file into a CorruptRecordError that
    names the file. Errors of the system and of penstock pass."""
    try:
        yield
    except (errors.PenstockError, MemoryError):
        raise
    except Exception as error:  # from the package, zipfile or pickle
        if isinstance(error, OSError) and error.errno:
            raise
        why = "it is empty" if os.path.isfile(path) and not os.path.getsize(path) else \
            f"{type(error).__name__}: {error}"
        raise errors.CorruptRecordError(f"{path}: cannot be read as {kind}: {why}; make or copy it anew{hint}") from error


# ---- .npy, .npz, .pt --------------------------------------------------------------------------------


def from_numpy(path: str) -> Columns:
    """Open an .npy file (mapped, field "data") or an .npz file (its arrays, in memory)."""
    numpy = needed("numpy", "reading .npy and .npz files")
    hint = ", without arrays of Python objects, which cannot be read without running what is in them"
    with _reading(path, "a file of NumPy's", hint):
        loaded = numpy.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(loaded, numpy.ndarray):
            return Columns({"data": loaded}, path)
        with loaded:
            return Columns({name: loaded[name] for name in loaded.files}, path)


def from_torch(path: str) -> Any:
    """Open a .pt file: a dict or tuple of tensors of one length, a tensor (field "data"), or a list of samples. No code
    in it is run (weights_only)."""
    torch = needed("torch", "reading .pt files")
    with _reading(path, "a file of PyTorch's, by torch.load(weights_only=True)"):
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    if isinstance(loaded, torch.Tensor):
        return Columns({"data": loaded}, path)
    if isinstance(loaded, Mapping):
        return Columns(loaded, path)
    if isinstance(loaded, (tuple, list)) and loaded and all(isinstance(x, torch.Tensor) for x in loaded):
        if isinstance(loaded, tuple):
            return Columns({str(i): tensor for i, tensor in enumerate(loaded)}, path)
    if isinstance(loaded, list):
        return loaded
    raise SettingsError(f"{path}: value is of type {type(loaded).__name__}; must be tensors of one length, "
                        "or a list of samples")


# ---- files that are opened again in each process ----------------------------------------------------


class _PerProcess:
    """The result of `make` in this process. A child of fork calls `make` again, and does not use the parent's file."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None
        self._owner = 0

    def get(self) -> Any:
        if self._owner != os.getpid():
            self._made, self._owner = self._make(), os.getpid()
        return self._made

    def close(self) -> None:
        """Close the result. It is made again when it is needed."""
        made, owner, self._made, self._owner = self._made, self._owner, None, 0
        if owner == os.getpid() and hasattr(made, "close"):
            made.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"_make": self._make, "_made": None, "_owner": 0}


class _Block:
    """Rows [start, stop) of a column that were read together."""

    def __init__(self) -> None:
        self.start = self.stop = 0
        self.rows: Any = None


class HDF5File:
    """The data sets of an HDF5 file as a map-style source. A data set in a group is called group.name. Needs h5py.

    The data sets must have one length; single values are left out. Text comes as str.
    """

    def __init__(self, path: str) -> None:
        # It is not a method of this object: a cycle of references would keep the file open until a collection.
        self._file = _PerProcess(functools.partial(_opened_hdf5, path))
        found: dict[str, Any] = {}

        def visit(name: str, item: Any) -> None:
            if getattr(item, "shape", ()):
                found[name] = item

        self._file.get().visititems(visit)
        self._n = _common_length({name: len(item) for name, item in found.items()}, path)
        names = field_names([name.replace("/", ".") for name in found])
        self._names = {name: names[name.replace("/", ".")] for name in found}
        self._is_text = {name: item.dtype.kind in "OS" and _is_text(item) for name, item in found.items()}
        self._rows_read = {name: self._block_rows(item) for name, item in found.items()}
        self._blocks = _PerProcess(functools.partial(_no_blocks, list(self._names)))

    def close(self) -> None:
        """Close the file. It is opened again when a row is asked for."""
        self._blocks.close()
        self._file.close()

    @staticmethod
    def _block_rows(item: Any) -> int:
        """Return the rows to read at a time: whole chunks, because they are decompressed as a whole, and about
        BLOCK_SIZE."""
        row_size = max(item.dtype.itemsize * item.size // max(len(item), 1), 1)
        rows = int(max(BLOCK_SIZE // row_size, 1))
        chunk = item.chunks[0] if item.chunks else 1
        return int(max(rows // chunk, 1) * chunk)

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {field: self._row(name, index) for name, field in self._names.items()}

    def _row(self, name: str, index: int) -> Any:
        block = self._blocks.get()[name]
        if not block.start <= index < block.stop:
            item = self._file.get()[name]
            step = self._rows_read[name]
            block.start = index // step * step
            block.stop = min(block.start + step, self._n)
            block.rows = (item.asstr() if self._is_text[name] else item)[block.start:block.stop]
        return block.rows[index - block.start]


def _opened_hdf5(path: str) -> Any:
    h5py = needed("h5py", "reading HDF5 files")
    with _reading(path, "HDF5"):
        return h5py.File(path, "r")


def _no_blocks(names: Sequence[str]) -> dict[str, _Block]:
    return {name: _Block() for name in names}


def _is_text(item: Any) -> bool:
    h5py = needed("h5py", "reading HDF5 files")
    return h5py.check_string_dtype(item.dtype) is not None


# ---- Parquet ----------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """Return the file's bytes for an image in Hugging Face's form, {"bytes": ..., "path": ...}, also within lists and
    within the arrays that pandas makes of lists. Other values are returned as they are."""
    is_several = isinstance(value, list) or str(getattr(value, "dtype", "")) == "object"
    if is_several and len(value) and isinstance(value[0], dict):
        return [_plain(item) for item in value]
    if isinstance(value, dict) and set(value) == {"bytes", "path"}:
        if value["bytes"] is not None or value["path"] is None:
            return value["bytes"]
        with open(value["path"], "rb") as file:
            return file.read()
    return value


def _has_null(file: Any, name: str) -> bool:
    """Return whether a column of a Parquet file has a null. Row groups whose statistics rule it out are not read."""
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        statistics = [group.column(i).statistics for i in range(group.num_columns) if group.column(i).path_in_schema == name]
        if any(one is None or not one.has_null_count or one.null_count for one in statistics) \
                and file.read_row_group(number, columns=[name]).column(0).null_count:
            return True
    return False


def _typed(name: str, value: Any, dtype: str | None) -> Any:
    """Return numbers in the dtype of their column, as in a DataFrame: a null is NaN."""
    if dtype is None or (value is None and not dtype.startswith("float")):
        return value
    if dtype == "float64":
        each = value if isinstance(value, list) else [value]
        _check_whole(name, (one for one in each if isinstance(one, int)))
    import numpy
    try:
        return numpy.asarray(math.nan if value is None else value, dtype)[()]
    except (TypeError, ValueError):  # raised for lists of different lengths, and for a null among whole numbers
        return value


def _classes_of(metadata: Mapping[bytes, bytes] | None) -> list[str] | None:
    """Return the class names in the metadata of Hugging Face's `datasets`, if exactly one column has some; else None."""
    try:
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"].values()
    except (KeyError, ValueError, TypeError, AttributeError):
        return None
    found = [one["names"] for one in features if isinstance(one, dict) and one.get("_type") == "ClassLabel" and "names" in one]
    return found[0] if len(found) == 1 else None


class ParquetFiles:
    """The rows of Parquet files as a map-style source, in the order of the files. Needs pyarrow. One row group at a
    time is in memory.

    Numbers keep their dtype; a column of whole numbers with a null is float64, with NaN, as pandas reads it.

    classes: class names of Hugging Face's only ClassLabel, if `datasets` wrote the first file; else None.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = list(paths)
        self._files = _PerProcess(dict)
        self._group = _PerProcess(list)
        self._places: list[tuple[int, int]] = []  # (file, row group)
        sizes = []
        columns = None
        self.classes: list[str] | None = None
        self._dtypes: dict[str, str | None] = {}
        needed("numpy", "reading Parquet files")
        for i, path in enumerate(self._paths):
            file = self._file(i)
            if columns is not None and file.schema_arrow.names != columns:
                raise SettingsError(f"{path}: columns are {', '.join(file.schema_arrow.names)}; must be "
                                    f"those of {self._paths[0]}: {', '.join(columns)}")
            if columns is None:
                self.classes = _classes_of(file.schema_arrow.metadata)
            columns = file.schema_arrow.names
            self._note_dtypes(file)
            for group in range(file.num_row_groups):
                self._places.append((i, group))
                sizes.append(file.metadata.row_group(group).num_rows)
        self._names = field_names(columns or [])
        self._ends = list(itertools.accumulate(sizes))

    def _note_dtypes(self, file: Any) -> None:
        for column in file.schema_arrow:
            dtype = number_of(column.type)
            if dtype == str(column.type) and _has_null(file, column.name):
                dtype = "float64"
            had = self._dtypes.setdefault(column.name, dtype)
            if had != dtype and had is not None and dtype is not None:
                import numpy
                self._dtypes[column.name] = numpy.promote_types(had, dtype).name

    def _file(self, i: int) -> Any:
        files = self._files.get()
        if i not in files:
            parquet = needed("pyarrow.parquet", "reading Parquet files", "pyarrow")
            files.clear()  # only one file stays open
            with _reading(self._paths[i], "Parquet"):
                files[i] = parquet.ParquetFile(self._paths[i])
        return files[i]

    def close(self) -> None:
        """Close the open file. It is opened again when a row is asked for."""
        self._group.close()
        self._files.close()

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, index: int) -> dict[str, Any]:
        if not 0 <= index < len(self):
            raise IndexError(index)
        place = bisect.bisect_right(self._ends, index)
        row = index - (self._ends[place - 1] if place else 0)
        group = self._group.get()
        if not group or group[0] != place:
            file, number = self._places[place]
            group[:] = [place, self._file(file).read_row_group(number)]
        return {field: _typed(name, _plain(group[1].column(name)[row].as_py()), self._dtypes[name])
                for name, field in self._names.items()}


# ---- Hugging Face -----------------------------------------------------------------------------------


class HuggingFaceDataset:
    """A `datasets.Dataset` as a map-style source. Images are the bytes of their files, not decoded. If it has a
    transform, samples are the transform's results, with its columns and with decoded images. classes: names of the only
    ClassLabel of its samples."""

    def __init__(self, dataset: Any) -> None:
        module = needed("datasets", "reading Hugging Face data sets")
        self._dataset, self._names = dataset, field_names(list(dataset.features))
        self._labels = {name: list(f.names) for name, f in dataset.features.items() if isinstance(f, module.ClassLabel)}
        self._has_transform = dataset.format["type"] == "custom"
        if self._has_transform:
            return
        for name, feature in dataset.features.items():
            if isinstance(feature, module.Image):
                if feature.mode is not None:
                    warnings.warn(f"column {name}: Image(mode={feature.mode!r}) is not applied, because the images' files are packed "
                                  "as they are (give channels= to the output of the loader)", stacklevel=level_outside())
                dataset = dataset.cast_column(name, module.Image(decode=False))
            elif isinstance(getattr(feature, "feature", None), module.Image):  # a list of images
                files = dataclasses.replace(feature, feature=module.Image(decode=False))
                dataset = dataset.cast_column(name, files)
            elif isinstance(feature, list) and len(feature) == 1 and isinstance(feature[0], module.Image):
                dataset = dataset.cast_column(name, [module.Image(decode=False)])
        self._dataset = dataset

    @property
    def classes(self) -> list[str] | None:
        labels = list(self._labels)
        if self._has_transform and len(self):
            try:
                labels = [name for name in labels if name in self._dataset[0]]
                if len(labels) == 1 and self._changes(labels[0]):
                    warnings.warn(f"the transform of the data set changes {labels[0]}: its class names may not fit, and none are "
                                  "kept (give names= for the new labels)", stacklevel=level_outside())
                    return None
            except Exception:  # an exception of the transform; packing the sample reports it
                labels = []
        return self._labels[labels[0]] if len(labels) == 1 else None

    def _changes(self, name: str) -> bool:
        """Return whether the transform changes labels, from 16 samples."""
        plain, n = self._dataset.with_format(None), len(self)
        return any(_plain(self._dataset[i][name]) != plain[i][name] for i in {k * (n - 1) // 15 for k in range(16)})

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: int) -> dict[str, Any]:
        row = self._dataset[index]
        names = field_names(list(row)) if self._has_transform else self._names
        return {names[name]: _plain(value) for name, value in row.items()}


def _hugging_face_from_disk(path: str) -> Any:
    loaded = needed("datasets", "reading what save_to_disk made").load_from_disk(path)
    if isinstance(loaded, dict):
        loaded = _only_split(loaded, path, os.path.join(path.replace("{", "{{").replace("}", "}}"), "{}"))
    return HuggingFaceDataset(loaded)


def _only_split(splits: Mapping[str, Any], where: str, written: str) -> Any:
    """Return the only split of a dict of splits. Raises SettingsError if there are several. written: how to write one
    of them, with {}."""
    if len(splits) != 1:
        one = f" (pack one of them: {', '.join(written.format(name) for name in splits)})" if splits else ""
        raise SettingsError(f"{where}: value has {len(splits)} splits; must have 1{one}")
    return next(iter(splits.values()))


# ---- by suffix --------------------------------------------------------------------------------------

_SUFFIXES: dict[str, Callable[[str], Any]] = {
    ".npy": from_numpy, ".npz": from_numpy, ".pt": from_torch, ".pth": from_torch, ".h5": HDF5File,
    ".hdf5": HDF5File, ".parquet": lambda path: ParquetFiles([path])}


def _is_table(path: str) -> bool:
    """Return whether the path is a Parquet table that lists images, or a folder with one."""
    table = parquet_of(path)
    return table is not None and is_of_images(table)


def _check_rivals(path: str, tables: list[str], known: str | None) -> None:
    """Raise SettingsError for Parquet tables in a folder that is also a data set of another format. Images at its top
    do not count if there are at most as many as tables."""
    n_images = sum(name.lower().endswith((".jpg", ".jpeg", ".png")) for name in os.listdir(path))
    if known is None or known == "folder" and 0 < n_images <= len(tables):
        return
    way = (f"give {tables[0]}, or move it elsewhere to pack the rest" if len(tables) == 1 else
           f"give {os.path.join(path, '*.parquet')}, or move one of the two elsewhere")
    raise SettingsError(f"path: value is {path}, which has Parquet tables, and is a data set of the format {known} "
                        f"without them; must be of one format ({way})")


def _names(path: str) -> tuple[list[str], list[str]]:
    """Return the sorted names of Parquet files and of folders in a folder, except those that begin with a dot."""
    try:
        entries = sorted((entry for entry in os.scandir(path) if not entry.name.startswith(".")), key=lambda entry: entry.name)
    except OSError:
        return [], []
    tables = [entry.name for entry in entries if entry.name.lower().endswith(".parquet")]
    return tables, [entry.name for entry in entries if not entry.name.lower().endswith(".parquet") and entry.is_dir()]


def _say_left_out(names: list[str], where: str, why: str) -> None:
    if names:
        s, are, the = ("", "is", "") if len(names) == 1 else ("s", "are", "the first ")
        warnings.warn(f"{len(names):,} file{s} {where} {are} left out, {the}{names[0]}: {why}", stacklevel=level_outside())


def _warn_of_left_out(path: str) -> None:
    """Warn of Parquet files of a folder that are not packed, in the words of src/format/left_out.c."""
    tables, folders = _names(path)
    nested = [os.path.join(folder, name) for folder in folders[:64] for name in _names(os.path.join(path, folder))[0]]
    _say_left_out([name for name in tables if not name.endswith(".parquet")], f"in {path}",
                  "readers expect its suffix in lower case (rename it)")
    _say_left_out(nested, f"in the folders below {path}", "only files directly in the folder are read (move them there, or pack its subfolder "
                  f"{os.path.dirname(nested[0])} alone)" if nested else "")


def _opened_folder(path: str) -> Any:
    def has(name: str) -> bool:
        return os.path.exists(os.path.join(path, name))

    if has("state.json") or has("dataset_dict.json"):
        return _hugging_face_from_disk(path)
    from ..dataset import Dataset
    if _is_table(path):
        return Dataset(path)
    files = sorted(glob.glob(os.path.join(glob.escape(path), "*.parquet")))
    try:
        found = _format_of(path)
    except SettingsError:
        if not files or not has("metadata.parquet"):
            raise
        found = "folder"  # a folder with a table that lists no images, which the library cannot know
    if found == "pstk":
        return Dataset(path)
    if files:
        _check_rivals(path, files, found)
        _warn_of_left_out(path)
        return ParquetFiles(files)
    return InPlace(path) if _is_read_in_place(found) else ImageFolder(path)


def _format_of(path: str) -> str | None:
    """Return the name of the format that the library finds at a path or a pattern; None: no format. Raises if it cannot
    decide, because reading the path in another way might give other labels."""
    error = errors.new()
    found = _c.lib.pstk_find_format(os.fsencode(path), ctypes.byref(error))
    if found is None and error.code not in (_c.ENOENT, _c.ENOTSUP):  # these mean that no format knows the path
        raise errors.of(error, error.code)
    return None if found is None else str(found, "ascii")


def _is_read_in_place(found: str | None) -> bool:
    """Return whether penstock reads data of this format in place, record by record."""
    return found is not None and found not in ("pstk", "folder")


def _refusal(path: str) -> errors.PenstockError:
    """Return the library's error for a path of no format."""
    error = errors.new()
    _c.lib.pstk_find_format(os.fsencode(path), ctypes.byref(error))
    return errors.of(error)


def _alternatives(text: str) -> list[str]:
    """Return the alternatives of braces with this text in them; []: more than there may be files."""
    numbers = re.fullmatch(r"([0-9]{1,18})\.\.([0-9]{1,18})", text)
    if numbers is None:
        return text.split(",")
    wanted = range(int(numbers[1]), int(numbers[2]) + 1)
    return [str(i).zfill(len(numbers[1])) for i in wanted] if len(wanted) <= MAX_FILES else []


def _braced(pattern: str) -> list[str]:
    """Return the names of a pattern with braces, expanded as in src/format/listing.c; []: listing.c refuses it."""
    parts = [_alternatives(text) if i % 2 else [text] for i, text in enumerate(re.split(r"\{([^{}]*)\}", pattern))]
    return ["".join(name) for name in itertools.product(*parts)] if math.prod(map(len, parts)) <= MAX_FILES else []


def _matching(pattern: str) -> list[str]:
    """Return the Parquet files of a pattern; []: it is no such pattern, or a file is missing. Raises SettingsError."""
    if not pattern.lower().endswith(".parquet"):
        return []
    folder, last = os.path.split(pattern)
    if not os.path.isdir(folder or "."):  # braces in a folder's name are not expanded
        paths = _braced(pattern)
    elif "{" in last:
        paths = [os.path.join(folder, name) for name in _braced(last)]
    else:
        paths = sorted(glob.glob(os.path.join(glob.escape(folder), last)))
    if not all(map(os.path.isfile, paths)):
        return []
    for path in filter(is_of_images, paths):
        raise SettingsError(f"{path} lists images; must be packed by itself (pack one table at a time, and merge the data sets, or "
                            "write one table)")
    return paths


def _opened_path(path: str) -> Any:
    if os.path.isdir(path):
        return _opened_folder(path)
    if _is_table(path):  # the images are packed, as Dataset reads them, not only the rows
        from ..dataset import Dataset
        return Dataset(path)
    if os.path.splitext(path)[1].lower() not in _SUFFIXES and _is_read_in_place(_format_of(path)):
        return InPlace(path)
    if not os.path.exists(path):
        if set(path) & set("*?{"):
            files = _matching(path)
            if not files:  # the library's error says which patterns are allowed
                raise _refusal(path)
            return ParquetFiles(files)
        raise FileNotFoundError(2, "there is no such file to pack", path)
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in _SUFFIXES:
        known = _refusal(path)
        if "must be a directory with" not in str(known):  # the error is about this file, not only the list of formats
            raise known
        raise SettingsError(f"{path}: suffix is {suffix or 'empty'}; must be one of {', '.join(_SUFFIXES)}, or that of a "
                            "format that penstock.Dataset opens")
    return _SUFFIXES[suffix](path)


def _refuse_file_names(source: Any) -> None:
    """Raise SettingsError for a list, an array or a column of names of files: pack takes one path, and would pack the
    names as text."""
    names = list(source[:8])
    first = names[0] if names else None
    if not isinstance(first, str) or not all(isinstance(name, str) and os.path.isfile(name) for name in names):
        return
    first = str(first)  # a str of Python, not of NumPy
    suffix = os.path.splitext(first)[1].lower()
    pattern = os.path.join(os.path.dirname(first), "*" + suffix)
    if suffix in (".jpg", ".jpeg", ".png"):
        must = "the path of their folder, or dicts such as {'image': BYTES}"
    elif suffix == ".parquet" or suffix not in _SUFFIXES and _is_read_in_place(_format_of(pattern)):
        must = f"a path, or a pattern of paths such as {pattern!r}"
    elif suffix in _SUFFIXES or _is_read_in_place(_format_of(first)):
        must = "one path (pack each file, and join what was packed with penstock.merge)"
    else:
        return
    raise SettingsError(f"dataset: value is a list of {len(source):,} names of files, the first {first}, which would be packed as "
                        f"text; must be {must}; names to be packed are dicts ({{'path': NAME}})")


def opened(source: Any, *, has_schema: bool = False) -> Any:
    """Open a source of pack. A path, a dict of columns, or a data set of Hugging Face's becomes a map-style source;
    other sources are returned as they are. An ImageFolder has no samples: the command packs it. has_schema: whether the
    caller has named the fields. Raises TypeError, SettingsError, CorruptRecordError, FileNotFoundError."""
    if isinstance(source, (str, os.PathLike)):
        return _opened_path(paths.local(source))
    if isinstance(source, (list, tuple)) or is_array(source) and len(getattr(source, "shape", ())) == 1:  # a Series is a list, too
        _refuse_file_names(source)
    if is_a(source, "datasets", "DatasetDict", "IterableDatasetDict"):
        source = _only_split(source, f"the {type(source).__name__}", "dataset['{}']")
    if is_a(source, "datasets", "Dataset"):
        return HuggingFaceDataset(source)
    if is_a(source, "pandas", "DataFrame"):
        if not source.columns.is_unique:
            raise SettingsError("the DataFrame: value has several columns of one name; must have different "
                                "names (rename them)")
        named = [name for name in source.index.names if name is not None and name not in source.columns]
        if named and not has_schema:
            warnings.warn(f"penstock.pack: the index of the DataFrame ({', '.join(map(str, named))}) is not a column and is left out "
                          "(pack frame.reset_index() to have it, or frame.reset_index(drop=True) not to)", stacklevel=level_outside())
        return Columns(dict(source.items()), "the DataFrame")
    if isinstance(source, Mapping):
        if not all(is_array(v) or isinstance(v, (list, tuple)) for v in source.values()):
            raise TypeError("the dict: a value is not a column; must be arrays, tensors or lists of one length, "
                            "as a dict is packed as columns")
        return Columns(source)
    return _by_position(source)


def close(source: Any, given: Any) -> None:
    """Close the files of a source that `opened` made of `given`."""
    if source is not given and hasattr(source, "close"):
        source.close()
