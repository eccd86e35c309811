# SPDX-License-Identifier: Apache-2.0
"""Rows that a Python function of yours makes, in worker processes, while your loop computes: penstock.python.

    import augment  # a module of yours
    outputs={"image": penstock.python(augment.tokens, "jpg", shape=(196,), dtype="int64")}

Each process runs _worker.py. Outputs of a loader that ask for the same number of processes share them.
"""
from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from ctypes import c_char_p, c_void_p, cast, pointer, sizeof
from dataclasses import dataclass, field as member, replace
from functools import partial
from typing import Any

from . import _c
from .dtypes import DTYPE_NAMES
from .elsewhere import PYTHON_KEYWORDS
from .errors import SettingsError
from .hints import explained, refused_by_base
from .outputs import Output, dtype_code, field_name, whole
from .texts import listed

__all__ = ["PythonOutput", "python"]

_WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_worker.py")
# The processes use all cores. A library that starts a thread for each core in each of them would slow all down.
_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_INSIDE = "PENSTOCK_PROCESS"  # variable that is set in worker processes
_START_TIMEOUT = 300  # seconds
_SLACK_NS = 5 * 10**9  # additional wait of the library: a process that is late reports where, unless it hangs


@refused_by_base
@dataclass(frozen=True, repr=False)
class PythonOutput(Output):
    """An output of penstock.python."""

    function: Callable[..., Any] | None = None
    shape: tuple[int, ...] = ()
    batched: bool = False
    processes: int = 0
    timeout_ns: int = 0
    start_timeout_ns: int = 0
    pickled: bytes = member(default=b"", compare=False)

    def _maker(self) -> Callable[..., Any]:
        return python

    def __repr__(self) -> str:
        parts = [getattr(self.function, "__qualname__", repr(self.function)), repr(self.field),
                 f"shape={self.shape}", f"dtype={DTYPE_NAMES[self.dtype]!r}"]
        if self.ops:
            parts.insert(2, "[" + ", ".join(map(repr, self.ops)) + "]")
        if self.batched:
            parts.append("batched=True")
        if self.processes:
            parts.append(f"processes={self.processes}")
        if self.timeout_ns:
            parts.append(f"timeout={self.timeout_ns / 1e9:g}")
        if self.start_timeout_ns != _START_TIMEOUT * 10**9:
            parts.append(f"start_timeout={self.start_timeout_ns / 1e9:g}" if self.start_timeout_ns else
                         "start_timeout=None")
        return f"python({', '.join(parts)})"

    def to_c(self, name: str) -> _c.Output:
        output = super().to_c(name)
        for d, n in enumerate(self.shape):
            output.callback.shape[d] = n
        output.callback.n_dims, output.callback.batched = len(self.shape), int(self.batched)
        output.callback.timeout_ns = self.timeout_ns
        return output

    def of_image(self) -> PythonOutput:
        """Return a copy for a field of images: its function gets decoded pixels."""
        return self if self.channels else replace(self, channels=3)


Numbered = tuple[int, str, PythonOutput]  # (number among the outputs, name, output)


def add_processes(outputs: Mapping[str, Output], array: Any) -> None:
    """Set the processes in the array of outputs for the library. Outputs that ask for the same number of processes
    share them."""
    pools: dict[int, list[Numbered]] = {}
    for number, (name, output) in enumerate(outputs.items()):
        if isinstance(output, PythonOutput):
            pools.setdefault(output.processes, []).append((number, name, output))
    for n_processes, members in pools.items():
        shared = pointer(_processes(n_processes, members))
        for number, _, _ in members:
            array[number].callback.processes = shared


def _processes(n_processes: int, members: Sequence[Numbered]) -> _c.Processes:
    if os.environ.get(_INSIDE):
        raise UnguardedError(_unguarded())
    limits = [output.start_timeout_ns for _, _, output in members]
    limit = 0 if 0 in limits else max(limits)
    job = _job(members, limit / 1e9)
    return _c.Processes(
        size=sizeof(_c.Processes), n_processes=n_processes, arguments=listed(_arguments()),
        environment=listed(_environment()), job=cast(c_char_p(job), c_void_p), job_size=len(job),
        start_timeout_ns=limit + _SLACK_NS if limit else 0)


def _job(members: Sequence[Numbered], start_timeout: float) -> bytes:
    return pickle.dumps({
        "parent": os.getpid(), "main": _main_of(output.pickled for _, _, output in members),
        "path": [entry or os.getcwd() for entry in sys.path], "argv": sys.argv, "start_timeout": start_timeout,
        "outputs": [{"number": number, "name": name, "function": output.pickled, "shape": output.shape,
                     "dtype": DTYPE_NAMES[output.dtype], "batched": output.batched}
                    for number, name, output in members],
        "dtypes": {code: dtype_name for code, dtype_name in DTYPE_NAMES.items()}})


class UnguardedError(SettingsError):
    """A worker process imports the script for a function, and would run the whole script."""

    is_unguarded = True  # _worker.py looks for it


def _unguarded() -> str:
    script = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "the script"
    return (f"{script} opens its loader also where a process imports it for its functions; must not (put what "
            "the script does under `if __name__ == \"__main__\":`, or the functions into a module of their own)")


def _arguments() -> list[bytes]:
    if not sys.executable:
        raise SettingsError("penstock.python needs sys.executable, the path of Python, to start processes; it is empty "
                            "here (set it)")
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [os.fsencode(text) for text in (sys.executable, *flags, "-u", _WORKER)]


def _environment() -> list[bytes]:
    found = {**dict.fromkeys(map(os.fsencode, _ONE_THREAD), b"1"), **os.environb, os.fsencode(_INSIDE): b"1"}
    return [name + b"=" + value for name, value in found.items()]


def _main_of(pickled: Iterable[bytes]) -> tuple[str, str] | None:
    """Return ("name" or "path", the running script) if a function is defined in it, so that a process can import it;
    else None."""
    main = sys.modules.get("__main__")
    if main is None or not any(b"__main__" in function for function in pickled):
        return None
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name and not spec.name.endswith("__main__"):
        return "name", spec.name
    path = getattr(main, "__file__", None)
    return None if path is None else ("path", os.path.abspath(path))


# ---- functions -------------------------------------------------------------------------------------------------------

_IMPORTABLE = ("must be a function that other processes can import: one that a module or a script has at its top "
               "level, functools.partial of one, or an object of such a class or its method")


def _refused(function: Any, why: str, advice: str) -> SettingsError:
    return SettingsError(f"python.function: value is {function!r}, {why}; {_IMPORTABLE} ({advice})")


def _check_place(function: Any) -> None:
    """Raise SettingsError for a function that other processes cannot import by a name."""
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    inner = getattr(inner, "__func__", inner)
    name = getattr(inner, "__qualname__", type(inner).__qualname__)
    module = getattr(inner, "__module__", None) or type(inner).__module__
    if "<lambda>" in name:
        raise _refused(function, "a lambda", "write it with def, in a module")
    if "<locals>" in name:
        raise _refused(function, f"which is made inside of {name.split('.<locals>')[0]}()",
                       "move it to the top level of a module; functools.partial gives it arguments")
    main = sys.modules.get("__main__")
    if module == "__main__" and not os.path.exists(getattr(main, "__file__", None) or ""):
        raise _refused(function, "which is written in an interactive session or a notebook",
                       "write it to a file, in a notebook by %%writefile augment.py, and import that")


def _pickled(function: Any) -> bytes:
    _check_place(function)
    try:
        return pickle.dumps(function)
    except pickle.PicklingError as error:
        raise _refused(function, f"which other processes cannot find by its name: {error}",
                       "give each function in it a name of its own at the top level of a module; functools.wraps gives "
                       "a function the name of another") from None
    except Exception as error:  # of any class, because objects pickle themselves
        raise _refused(function, f"which cannot be pickled: {type(error).__name__}: {error}",
                       "keep what cannot be pickled out of it, or make it at the first call") from None


def _shape(value: Any) -> tuple[int, ...]:
    found = (value,) if not isinstance(value, Sequence) else tuple(value)
    if len(found) > 8:
        raise SettingsError(f"python.shape: value has {len(found)} dimensions; must have at most 8")
    shape = tuple(whole("python", f"shape[{d}]", n, 2**40) for d, n in enumerate(found))
    if 0 in shape:
        raise SettingsError(f"python.shape: value is {shape}; must have sizes of at least 1")
    return shape


def _timeout_ns(name: str, value: float | None) -> int:
    if value is None:
        return 0
    if isinstance(value, (str, bytes, bool)) or not hasattr(value, "__float__"):
        raise TypeError(f"python.{name}: value is {value!r}; must be a number of seconds, or None for no limit")
    if not 0.001 <= float(value) <= 1e9:
        raise SettingsError(f"python.{name}: value is {value!r}; must be from 0.001 to 1e9 seconds, or None for no "
                            "limit")
    return int(float(value) * 1e9)


def _image_of(output: Output) -> dict[str, Any]:
    """Return the members of a penstock.image that a function's output takes over. Raises SettingsError."""
    if output.kind != _c.OUTPUT_IMAGE:
        raise SettingsError(f"python.field: value is {output!r}; must be a field's name or a penstock.image")
    if output.dtype != _c.U8 or output.layout not in ("nhwc", "channels_last"):
        raise SettingsError(f"python.field: value is {output!r}; must be an image of dtype 'uint8' and layout 'nhwc', "
                            "because the function gets such pixels (leave Normalize out, and normalise in the "
                            "function)")
    if output.size_ops:
        raise SettingsError(f"python.field: value is {output!r}; must be an image without sizes, because the rows of a "
                            "function have one shape")
    return {"ops": output.ops, "random_group": output.random_group, "channels": output.channels,
            "exif_orientation": output.exif_orientation, "reference": output.reference}


@explained("penstock.python", PYTHON_KEYWORDS)
def python(function: Callable[..., Any], field: str | Output, *, shape: Any, dtype: Any,
           batched: bool = False, processes: int | None = None, timeout: float | None = None,
           start_timeout: float | None = _START_TIMEOUT) -> PythonOutput:
    """Rows that a Python function makes: [B, *shape] of dtype. It runs in processes of its own, so that your loop does
    not wait for it.

    function(array, rng) returns an ndarray of this shape and dtype. `array` is a NumPy array that the function may
    change, and that is valid until it returns. For an image field it is uint8 [H, W, C], decoded, of any size; for an
    array or a scalar field the array; else uint8 [bytes]. `rng` is a numpy.random.Generator. Its numbers are the same
    for a sample in an epoch, whatever the number of processes, and for outputs of one random group.

    Processes import the function by its name: it must be at the top level of a module or a script. A script runs its
    loop under `if __name__ == "__main__":`. functools.partial of such a function, and objects of importable classes,
    are allowed; they are pickled once, when the output is made.

    field: a field of the data set; or penstock.image(field, ops): the function then gets the pixels after these
        operations, as uint8. They need not fix the size.
    shape, dtype: shape and dtype of one row.
    batched: True: function(arrays, rng) gets all rows of a batch at once, [n, ...], and returns [n, *shape]; n is below
        batch_size only in a short last batch. Then operations must fix the size of images, and arrays need a fixed
        shape. There is one `rng` for the batch: its numbers change with batch_size and the number of ranks.
    processes: number of processes; None: one for each core. Outputs with the same number share these processes.
    timeout: seconds for one sample, or one batch, after which its process is killed; None: no limit.
    start_timeout: seconds for a process to start and import; None: no limit.

    A sample is bad if the function raises or returns another shape or dtype, if its process dies, or if the time is over.
    The result is FunctionError, or another sample with bad_sample="replace". A batch as a whole always gives FunctionError.

    Raises TypeError, SettingsError.
    """
    if not callable(function):
        raise TypeError(f"python.function: value is {function!r}; must be a function of (array, rng)")
    taken = _image_of(field) if isinstance(field, Output) else {}
    name = field.field if isinstance(field, Output) else field_name(field, "python")
    if dtype is None:
        raise TypeError("python.dtype: value is None; must be the dtype of the rows")
    n = 0 if processes is None else whole("python", "processes", processes, 4096)
    if processes is not None and n == 0:
        raise SettingsError("python.processes: value is 0; must be at least 1, or None for the number of cores")
    if batched not in (True, False):
        raise TypeError(f"python.batched: value is {batched!r}; must be True or False")
    return PythonOutput(name, _c.OUTPUT_CALLBACK, dtype_code(dtype, "python"), function=function, shape=_shape(shape),
                        batched=bool(batched), processes=n, timeout_ns=_timeout_ns("timeout", timeout),
                        start_timeout_ns=_timeout_ns("start_timeout", start_timeout), pickled=_pickled(function),
                        **taken)
