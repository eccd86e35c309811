# SPDX-License-Identifier: Apache-2.0
"""A loader's keyword arguments, checked by name and made pstk_settings."""
from __future__ import annotations

import importlib.util
import keyword
import operator
import os
import re
import sys
from collections.abc import Iterable, Mapping
from ctypes import POINTER, byref, cast, c_int32, c_uint32, c_uint64, sizeof
from typing import Any

from . import _c, paths
from .errors import SettingsError
from .keywords import explained, near
from .outputs import Output

CHOICES: dict[str, dict[str, int]] = {
    "order": {"full": _c.ORDER_FULL, "sequential": _c.ORDER_SEQUENTIAL},
    "last": {"drop": _c.LAST_DROP, "pad": _c.LAST_PAD, "short": _c.LAST_SHORT},
    "bad_sample": {"error": _c.BAD_ERROR, "substitute": _c.BAD_SUBSTITUTE},
    "reader": {"auto": _c.READER_AUTO, "io_uring": _c.READER_IO_URING, "threads": _c.READER_THREADS},
    "io": {"auto": _c.IO_AUTO, "direct": _c.IO_DIRECT, "buffered": _c.IO_BUFFERED},
    "variant": {"auto": _c.VARIANT_AUTO, "c": _c.VARIANT_C, "avx2": _c.VARIANT_AVX2,
                "avx512": _c.VARIANT_AVX512},
}
_LARGEST: dict[Any, int] = {c_uint32: 2**32 - 1, c_uint64: 2**64 - 1, c_int32: 2**31 - 1}
_LEAST = {"batch_size": 1, "world": 1, "local_world": 1}  # of all others 0
_SWITCHES = ("with_crops", "no_pinning", "timed", "trace")
_TYPES: dict[str, Any] = {name: kind for name, kind, *_ in _c.Settings._fields_}

FRAMEWORKS = ("auto", "torch", "numpy", "jax", "cupy", "dlpack")
FORMS = ("dict", "tuple", "dataclass")
# Words of PyTorch's DataLoader and of others, and what became of them.
_PART = ("it goes over the whole data set, each sample once an epoch; pack the samples that are meant, with "
         "data = penstock.Dataset(...): `penstock.pack(%s, path, schema=data.schema, names=data.names)`")
_CHOSEN = _PART % "(data[i] for i in ids)"
FORMER = {
    "num_workers": "its threads are as many as there are cores; n_threads= sets another number",
    "pin_memory": "device='cuda' hands out batches on the GPU, copied from page-locked memory",
    "drop_last": "last='drop' (the default), last='short' or last='pad'",
    "prefetch_factor": "it reads ahead by itself; n_slots= is the number of batches in memory",
    "persistent_workers": "its threads run until close()",
    "worker_init_fn": "there are no worker processes; seed= makes order and augmentation repeatable",
    "collate_fn": "outputs= says what a batch is made of, and form= how it is handed out",
    "sampler": "shuffle=, rank= and world= say which samples come, and in which order",
    "batch_sampler": "batch_size=, shuffle= and last= say what a batch is",
    "generator": "seed= makes order and augmentation repeatable",
    "multiprocessing_context": "there are no worker processes",
    # Of others.
    **dict.fromkeys(("transform", "transforms", "pipeline", "pipelines"),
                    "outputs= says what is done, {name: penstock.image(field, [op, op, ...])}"),
    **dict.fromkeys(("prefetch", "prefetch_batches", "batches_ahead", "predownload", "prefetch_queue_depth"),
                    "it reads ahead by itself; n_slots= is the number of batches in memory"),
    **dict.fromkeys(("cache", "os_cache", "cache_dir", "cache_limit"),
                    "the page cache holds what fits into memory; io='direct' goes past it"),
    **dict.fromkeys(("distributed", "num_replicas", "num_shards", "shard_id"),
                    "rank='auto' gives each process its part"),
    **dict.fromkeys(("workers", "num_threads"), "n_threads= is the number of its threads"),
    "dataset": "path=, the directory of a data set, comes first",
    **dict.fromkeys(("subset", "indices", "sample_ids", "ids"), _CHOSEN),
    "filter": _PART % "(sample for sample in data if wanted(sample))",
    "weights": _PART % "(data[i] for i in range(len(data)) for _ in range(times[i]))",
}


suggesting = explained("penstock.Loader", FORMER)


def switch(name: str, value: Any) -> bool:
    """True or False, NumPy's too."""
    try:
        known = value in (True, False)
    except (TypeError, ValueError):  # arrays of several
        known = False
    if not known:
        raise TypeError(f"{name}: is {value!r}, must be True or False")
    return bool(value)


def integer(name: str, value: Any) -> int:
    """A whole number that fits the C setting of that name."""
    if name in _SWITCHES:
        return int(switch(name, value))
    try:
        number = operator.index(value)
    except TypeError:
        auto = ", or 'auto'" if name == "rank" else ""
        raise TypeError(f"{name}: is {value!r}, must be a whole number{auto}") from None
    most = _LARGEST.get(_TYPES.get(name, c_uint64), 2**64 - 1)
    least = _LEAST.get(name, 0)
    if not least <= number <= most:
        raise SettingsError(f"{name}: is {number}, must be from {least} to {most}")
    return number


def _check_ranks(numbers: Mapping[str, int]) -> None:
    for rank, world in (("rank", "world"), ("local_rank", "local_world")):
        if numbers[rank] >= numbers[world]:
            raise SettingsError(f"{rank}: is {numbers[rank]}, but {world} is {numbers[world]}; must be from 0 "
                                f"to {numbers[world] - 1} (give {world}=, the number of processes)")


def choice(name: str, value: Any) -> int:
    """The number of a word."""
    return CHOICES[name][_one_of(name, value, CHOICES[name])]


def _one_of(name: str, value: Any, known: Iterable[str]) -> str:
    words = list(known)
    if not isinstance(value, str) or value not in words:
        raise SettingsError(f"{name}: is {value!r}, must be one of {', '.join(map(repr, words))}"
                            + near(value, words))
    return value


def callback(name: str, value: Any, bad_sample: str) -> Any:
    """What is called for each bad sample that was replaced, or None."""
    if value is not None and not callable(value):
        raise TypeError(f"{name}: is {value!r}, must be a function of (error, id)")
    if value is not None and bad_sample == "error":
        raise SettingsError(f"{name}: is called only for bad samples that are replaced: give "
                            "bad_sample='substitute' too")
    return value


def seconds(name: str, value: Any) -> float | None:
    """A time to wait; None: without end."""
    if value is None:
        return None
    if isinstance(value, (str, bytes, bool)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name}: is {value!r}, must be a number of seconds, or None to wait without end")
    if not float(value) > 0:  # nor NaN
        raise SettingsError(f"{name}: is {value!r}, must be above 0 seconds, or None to wait without end")
    return float(value)


def _is_imported(name: str) -> bool:
    return sys.modules.get(name) is not None


def _is_installed(name: str) -> bool:
    if name in sys.modules:
        return _is_imported(name)
    return importlib.util.find_spec(name) is not None


def framework(value: Any, on_device: bool) -> str:
    """Whose tensors; "auto" is PyTorch where it is imported; else on a device CuPy or JAX where that is
    imported, and PyTorch where it is installed; on the host NumPy where it is installed, else our own."""
    name = _one_of("framework", value, FRAMEWORKS)
    if name == "numpy" and on_device:
        raise SettingsError("framework: NumPy cannot see the memory of a device; take torch, cupy or jax, or "
                            "device='cpu'")
    if name != "auto":
        return name
    if _is_imported("torch"):
        return "torch"
    if not on_device:
        return "numpy" if _is_installed("numpy") else "dlpack"
    for other in ("cupy", "jax"):
        if _is_imported(other):
            return other
    if _is_installed("torch"):
        return "torch"
    raise SettingsError("framework: PyTorch is not installed, and neither CuPy nor JAX is imported, so "
                        "nothing says whose tensors batches on a GPU should have: say framework='torch', "
                        "'cupy' or 'jax', or 'dlpack' for penstock.Tensor, which any of them takes as it is")


def form(value: Any, names: Iterable[str]) -> Any:
    """What a batch is; names: of the outputs, which a dataclass has as attributes."""
    if isinstance(value, str) and value not in FORMS:
        raise SettingsError(f"form: is {value!r}; it must be 'dict', 'tuple', 'dataclass' or a dataclass"
                            + near(value, FORMS))
    wrong = [name for name in names if keyword.iskeyword(name)] if value == "dataclass" else []
    if wrong:
        raise SettingsError(f"form: '{wrong[0]}' is a word of Python's and cannot be an attribute; name the "
                            f"output otherwise, outputs={{'{wrong[0]}_': ...}}, or take form='dict'")
    return value


def order(shuffle: Any, value: Any) -> str:
    """The order's name, from either way to say it."""
    if shuffle is not None and shuffle not in (True, False):
        raise TypeError(f"shuffle: is {shuffle!r}, must be True or False")
    if value is not None:
        choice("order", value)
    said = None if shuffle is None else ("full" if shuffle else "sequential")
    if said is not None and value is not None and said != value:
        raise SettingsError(f"shuffle: is {shuffle!r}, but order is {value!r}; give one of them")
    return said or value or "full"


def device(value: Any) -> tuple[int, int | None]:
    """(enum pstk_device_kind, index or None) of "cpu", "cuda", "cuda:1" or a torch.device."""
    match = re.fullmatch(r"(cpu|host|cuda)(?::(\d{1,5}))?", str(value))
    if not match or (match[1] != "cuda" and match[2] not in (None, "0")):
        raise SettingsError(f"device: is {value!r}, must be 'cpu', 'cuda' or 'cuda:1'")
    if match[1] != "cuda":
        return _c.HOST, 0
    return _c.CUDA, None if match[2] is None else int(match[2])


def to_c(path: str | os.PathLike[str], outputs: Mapping[str, Output], numbers: Mapping[str, int],
         topology: str | os.PathLike[str] | None) -> _c.Settings:
    """The settings as the library takes them; they keep alive what they point to."""
    _check_ranks(numbers)
    settings = _c.Settings()
    _c.lib.pstk_settings_init(byref(settings), sizeof(settings))
    for name, number in numbers.items():
        setattr(settings, name, number)
    settings.path = os.fsencode(path)
    settings.topology = None if topology is None else os.fsencode(paths.local(topology))
    array = (_c.Output * len(outputs))(*(output.to_c(name) for name, output in outputs.items()))
    settings.outputs, settings.n_outputs = cast(array, POINTER(_c.Output)), len(array)
    return settings
