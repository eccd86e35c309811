# SPDX-License-Identifier: Apache-2.0
"""Check a loader's keyword arguments by name, and make pstk_settings of them."""
from __future__ import annotations

import importlib.util
import keyword
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from ctypes import POINTER, byref, cast, c_int32, c_uint32, c_uint64, pointer, sizeof
from typing import TYPE_CHECKING, Any

from . import _c, paths
from .arguments import integer as whole, number as real, switch as switch
from .elsewhere import LOADER_KEYWORDS
from .errors import SettingsError
from .hints import explained, near
from .outputs import Output

if TYPE_CHECKING:
    from .mix import BatchMix
    from .subset import Members
    from .topics import Topics

CHOICES: dict[str, dict[str, int]] = {
    **{setting: _c.NAMES[setting] for setting in ("order", "last_batch", "bad_sample", "io", "kernels")},
    "reader": _c.NAMES["reader_kind"],
}
_LARGEST: dict[Any, int] = {c_uint32: 2**32 - 1, c_uint64: 2**64 - 1, c_int32: 2**31 - 1}
_MIN = {"batch_size": 1, "global_batch_size": 1, "max_batch_size": 1, "world": 1, "local_world": 1}  # others: 0
_MAX = {"ways": _c.MAX_WAYS, "block": _c.MAX_BLOCK, "window": _c.MAX_WINDOW, "epoch": 2**63 - 1}  # others: the type's limit
_SAID = {"n_device_slots": "Device.n_slots", "measure_device": "Device.measure"}  # members that have other names in Python
_SWITCHES = ("report_crops", "pin_threads", "measure_device", "nvtx")
# Settings whose member of pstk_settings has another name or lies in a sub-struct.
_MEMBER_OF = {"order": "order.kind", "device": "device.kind", "device_index": "device.index", "n_device_slots": "device.n_slots",
              "measure_device": "device.measure"}


def _members() -> dict[str, tuple[str, Any]]:
    """Return, by the name of a setting, the path of its member in pstk_settings, and the member's type."""
    types: dict[str, Any] = {}
    for name, kind, *_ in _c.Settings._fields_:
        types[name] = kind
        types.update({f"{name}.{member}": of for member, of, *_ in getattr(kind, "_fields_", ())})
    paths = {path.rpartition(".")[2]: path for path in types if not path.startswith("device.")} | _MEMBER_OF
    return {name: (path, types[path]) for name, path in paths.items()}


_MEMBERS = _members()


def put(settings: _c.Settings, name: str, value: Any) -> None:
    """Set the member of a setting."""
    part, _, member = _MEMBERS[name][0].rpartition(".")
    setattr(getattr(settings, part) if part else settings, member, value)


FRAMEWORKS = ("auto", "torch", "numpy", "jax", "cupy", "dlpack")
FORMS = ("dict", "tuple", "dataclass")

suggesting = explained("penstock.Loader", LOADER_KEYWORDS)


def integer(name: str, value: Any) -> int:
    """Return a whole number that fits the C setting of that name. Raises TypeError, SettingsError."""
    said = _SAID.get(name, name)
    if name in _SWITCHES:
        return int(switch(said, value))
    most = _MAX.get(name, _LARGEST.get(_MEMBERS.get(name, ("", c_uint64))[1], 2**64 - 1))
    return whole(said, value, _MIN.get(name, 0), most, ", or 'auto'" if name == "rank" else "")


def _check_ranks(numbers: Mapping[str, int]) -> None:
    for rank, world in (("rank", "world"), ("local_rank", "local_world")):
        if numbers[rank] >= numbers[world]:
            raise SettingsError(f"{rank}: value is {numbers[rank]}, and {world} is {numbers[world]}; must be from 0 "
                                f"to {numbers[world] - 1} (give penstock.Ranks {world}=, the number of processes)")


def choice(name: str, value: Any) -> int:
    """Return the C number of a word. Raises SettingsError."""
    return CHOICES[name][_one_of(name, value, CHOICES[name])]


def _one_of(name: str, value: Any, known: Iterable[str]) -> str:
    words = list(known)
    if not isinstance(value, str) or value not in words:
        raise SettingsError(f"{name}: value is {value!r}; must be one of {', '.join(map(repr, words))}"
                            + near(value, words))
    return value


def bad_sample(value: Any) -> tuple[str, Any]:
    """Return the word for the library, and the function to call for each bad sample that was replaced, or None."""
    if callable(value):
        return "replace", value
    if not isinstance(value, str):
        raise TypeError(f"bad_sample: value is {value!r}; must be 'error', 'replace', or a function of (error, id)")
    choice("bad_sample", value)
    return value, None


def seconds(name: str, value: Any) -> float | None:
    """Return a time to wait in seconds; None: no limit. Raises TypeError, SettingsError."""
    if value is None:
        return None
    try:
        found = real(name, value, 0, math.inf)
    except TypeError:
        raise TypeError(f"{name}: value is {value!r}; must be a number of seconds, or None for no limit") from None
    except ValueError:
        found = 0
    if not found:
        raise SettingsError(f"{name}: value is {value!r}; must be above 0 seconds, or None for no limit")
    return found


def _is_imported(name: str) -> bool:
    return sys.modules.get(name) is not None


def _is_installed(name: str) -> bool:
    if name in sys.modules:
        return _is_imported(name)
    return importlib.util.find_spec(name) is not None


def framework(value: Any, on_device: bool) -> str:
    """Return the framework of the tensors. "auto" on a device is PyTorch if it is imported, else CuPy or JAX if that is
    imported, else PyTorch if it is installed. On the host it stays "auto" until the first batch: see host_framework.
    Raises SettingsError, MissingPackageError."""
    name = _one_of("framework", value, FRAMEWORKS)
    if name == "numpy" and on_device:
        raise SettingsError("framework: value is 'numpy'; must be 'torch', 'cupy' or 'jax' on a device: NumPy cannot "
                            "see its memory (or give device='cpu')")
    if name != "auto" or not on_device:
        return name
    if _is_imported("torch"):
        return "torch"
    for other in ("cupy", "jax"):
        if _is_imported(other):
            return other
    if _is_installed("torch"):
        return "torch"
    raise SettingsError("framework: value is 'auto', but PyTorch is not installed, and neither CuPy nor JAX is "
                        "imported; must be 'torch', 'cupy' or 'jax', or 'dlpack' for penstock.Tensor, which any of "
                        "them takes")


NOT_TORCH = ("framework: value is 'auto', and PyTorch is installed but was not imported before the first batch: batches are "
             "NumPy arrays (give framework=\"torch\" or framework=\"numpy\")")


_said: set[str] = set()  # warnings that were given, once a process


def is_first_unsure() -> bool:
    """Return whether NOT_TORCH must be said now: once a process, because it is about the program, not about one loader."""
    is_first = NOT_TORCH not in _said
    _said.add(NOT_TORCH)
    return is_first


def host_framework() -> tuple[str, bool]:
    """Return the framework that "auto" means on the host at the first batch, and whether the program may have meant
    PyTorch, which is installed but not imported."""
    if _is_imported("torch"):
        return "torch", False
    if _is_installed("numpy"):
        return "numpy", _is_installed("torch")
    return "dlpack", False


def form(value: Any, names: Iterable[str]) -> Any:
    """Return the form of batches. names: names of the outputs, which a dataclass has as attributes. Raises
    SettingsError."""
    if not isinstance(value, type) and not (isinstance(value, str) and value in FORMS):
        raise SettingsError(f"form: value is {value!r}; must be 'dict', 'tuple', 'dataclass' or a dataclass"
                            + near(str(value), FORMS))
    wrong = [name for name in names if keyword.iskeyword(name)] if isinstance(value, str) and value == "dataclass" else []
    if wrong:
        raise SettingsError(f"form: value is 'dataclass', but the output '{wrong[0]}' has the name of a Python "
                            f"keyword, which cannot be an attribute (rename it, outputs={{'{wrong[0]}_': ...}}, or "
                            "give form='dict')")
    return value


def order(shuffle: Any, value: Any) -> str:
    """Return the name of the order, by shuffle= or the kind of order=. Raises TypeError, SettingsError."""
    shuffle = None if shuffle is None else switch("shuffle", shuffle)
    if value is not None:
        choice("order", value)
    shuffled = None if shuffle is None else ("full" if shuffle else "sequential")
    if shuffle and value == "windowed":
        return "windowed"
    if shuffled is not None and value is not None and shuffled != value:
        raise SettingsError(f"shuffle: value is {shuffle!r}, and order is {value!r}; must agree (give one of them)")
    return shuffled or value or "full"


def device(value: Any) -> tuple[int, int | None]:
    """Return (enum pstk_device_kind, index or None) for "cpu", "cuda", "cuda:1" or a torch.device."""
    match = re.fullmatch(r"(cpu|host|cuda)(?::(\d{1,5}))?", str(value))
    if not match or (match[1] != "cuda" and match[2] not in (None, "0")):
        raise SettingsError(f"device: value is {value!r}; must be 'cpu', 'cuda' or 'cuda:1'")
    if match[1] != "cuda":
        return _c.HOST, 0
    return _c.CUDA, None if match[2] is None else int(match[2])


def numbers(rows: Mapping[str, int], given: Topics, words: Mapping[str, str], more: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers of pstk_settings by the names of its members. This is the only function that makes members of
    topics. rows, more: numbers that follow from several arguments, or from an argument without a topic."""
    order, memory, reading, observe, device = given
    found = {**rows, **{name: integer(name, value) for name, value in {
        **more, "epoch": order.epoch, "position": order.position, "ways": order.ways, "block": order.block,
        "window": order.window, "n_slots": memory.n_slots,
        "io_memory": memory.io_memory, "index_memory": memory.index_memory, "max_pixels": memory.max_pixels,
        "max_record_size": memory.max_record_size, "queue_depth": reading.queue_depth, "pin_threads": reading.pin_threads,
        "n_device_slots": device.n_slots, "measure_device": device.measure, "report_crops": observe.report_crops,
        "nvtx": observe.nvtx, "trace_events": observe.trace_events}.items()}}
    found.update({name: choice(name, value) for name, value in {
        **words, "reader": reading.reader, "io": reading.io, "kernels": reading.kernels}.items()})
    return found


def _texts(given: Topics) -> dict[str, bytes | None]:
    """Return the texts of pstk_settings by the names of its members."""
    from . import status_files, trace
    topology, path = given.reading.topology, given.observe.trace_path
    return {"topology": None if topology is None else os.fsencode(paths.local(topology, "topology")),
            "trace_path": None if path is None else trace.path_of(path),
            "monitor_path": status_files.path_of(given.observe.monitor_path)}


def to_c(path: str | os.PathLike[str], outputs: Mapping[str, Output], numbers: Mapping[str, int],
         given: Topics, mix: BatchMix | None = None,
         members: Members | None = None) -> _c.Settings:
    """Return the settings as a struct for the library. It keeps alive the objects that it points to."""
    _check_ranks(numbers)
    settings = _c.Settings()
    _c.lib.pstk_settings_init(byref(settings), sizeof(settings))
    for name, value in {**numbers, **_texts(given)}.items():
        put(settings, name, value)
    settings.path = os.fsencode(path)
    array = (_c.Output * len(outputs))(*(output.to_c(name) for name, output in outputs.items()))
    if any(output.kind == _c.OUTPUT_CALLBACK for output in outputs.values()):
        from .processes import add_processes
        add_processes(outputs, array)
    settings.outputs, settings.n_outputs = cast(array, POINTER(_c.Output)), len(array)
    if mix is not None:
        mix.fill(settings, outputs)
    if members is not None:
        members.fill(settings)
    return settings
