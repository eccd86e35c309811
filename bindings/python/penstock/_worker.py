# SPDX-License-Identifier: Apache-2.0
"""A worker process of penstock.python. It calls functions to make rows, one request after the other, until its socket
ends.

It is run as a program, and imports no module of this package: only NumPy, and the modules of the functions.
penstock/processes.h has the protocol.
"""
from __future__ import annotations

import os
import sys

if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
    del sys.path[0]  # the package's modules must not hide others of the same name

import ctypes
import mmap
import pickle
import runpy
import signal
import socket
import struct
import time
import traceback
import types
from typing import Any

SOCKET, MEMORY, JOB = 3, 4, 5
REQUEST = struct.Struct("=6I8Q3Q2Q3Q2Q")  # as struct pstk_request
RESULT = struct.Struct("=i")              # as struct pstk_answer, which the text follows
DONE, FAILED = RESULT.pack(0), RESULT.pack(-22)
TEXT = 590                                # bytes of an error's text
GUARD = 1 << 16
SLOW = 3.0                                # seconds to start after which a warning is printed
PR_SET_PDEATHSIG = 1


class CannotStart(BaseException):
    """Raised if the process cannot start. Its text is reported without a traceback. As a BaseException it passes each
    `except Exception` of a module."""


def live_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    os.closerange(JOB + 1, 1 << 16)


def read_job() -> dict[str, Any]:
    with mmap.mmap(JOB, 0, prot=mmap.PROT_READ) as content:
        return dict(pickle.loads(content))


def import_main(main: tuple[str, str]) -> None:
    """Import the parent's script as multiprocessing does: its __name__ is "__mp_main__"."""
    import multiprocessing  # sets sys.modules["__mp_main__"], so not at the top
    kind, name = main
    if kind == "name":
        content = runpy.run_module(name, run_name="__mp_main__", alter_sys=True)
    else:
        content = runpy.run_path(name, run_name="__mp_main__")
    module = types.ModuleType("__mp_main__")
    module.__dict__.update(content)
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module


def limit_start(seconds: float) -> None:
    """Raise CannotStart after some seconds, in whatever code then runs. seconds: 0 removes the limit."""
    def late(number: int, frame: Any) -> None:
        raise CannotStart(f"importing takes longer than the start_timeout of {seconds:g} s")
    signal.signal(signal.SIGALRM, late if seconds else signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def unpickled(function: bytes) -> Any:
    try:
        return pickle.loads(function)
    except AttributeError as error:
        if "'__mp_main__'" not in str(error):
            raise
        name = str(error).partition(" attribute ")[2].partition(" ")[0] or "the function"
        raise CannotStart(f"{name} is not in the script where a process imports it (move it above "
                          "`if __name__ == \"__main__\":`, or into a module)") from None


def load_function(output: dict[str, Any], is_shared: bool) -> Any:
    try:
        return unpickled(output["function"])
    except BaseException as error:
        if is_shared:
            error.penstock_output = output["name"]  # type: ignore[attr-defined]
        raise


def load(job: dict[str, Any]) -> list[Any]:
    """Import the modules of the job's functions, and return the functions. torch and OpenCV then use one thread in this
    process."""
    begin = time.monotonic()
    sys.path[:], sys.argv[:] = job["path"], job["argv"]
    limit_start(job["start_timeout"])
    if job["main"] is not None:
        import_main(job["main"])
    functions = [load_function(output, len(job["outputs"]) > 1) for output in job["outputs"]]
    limit_start(0)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    if "cv2" in sys.modules:
        sys.modules["cv2"].setNumThreads(1)
    took = time.monotonic() - begin
    if took > SLOW and is_first():
        names = ", ".join(repr(output["name"]) for output in job["outputs"])
        print(f"penstock: each process of output {names} takes {took:.1f} s to import the modules of its functions "
              "and what those import; modules with nothing but the functions may need less", file=sys.stderr,
              flush=True)
    return functions


def is_first() -> bool:
    """Return whether this process is the first one to ask, among all that have this job, later ones included. They
    share the offset of one open file: whatever one process has read, no other can read."""
    return bool(os.read(JOB, os.fstat(JOB).st_size))


def shortened(text: str, most: int) -> str:
    """Return the text, or as many of its first words as fit with " ..." after them."""
    return text if len(text) <= most else (text[:most - 4].rpartition(" ")[0] or text[:most - 4]) + " ..."


def text_of(error: BaseException, most: int = 300) -> str:
    """Describe an error in one line: its class and text, and the places where it was raised. most: characters."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if frame.filename != __file__ and not frame.filename.startswith("<frozen")]
    if getattr(error, "is_unguarded", False):
        return str(error)
    try:
        said = str(error) if isinstance(error, CannotStart) else " ".join(f"{type(error).__name__}: {error}".split())
    except Exception:  # raised by the error's own __str__
        said = type(error).__name__
    if not frames:
        return said
    places = [f"{os.path.basename(frame.filename)}, line {frame.lineno}, in {frame.name}: {frame.line}"[:120]
              for frame in (frames if len(frames) == 1 else (frames[0], frames[-1]))]
    where = "; there ".join(places)
    return f"{shortened(said, max(300, most - len(where) - 3))} ({where})"


def map_memory(row_pages: int) -> tuple[Any, Any]:
    """Map the data and the rows, with inaccessible pages before and after each. Return both as arrays of bytes."""
    size = os.fstat(MEMORY).st_size
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)

    def mapped(at: int | None, length: int, protection: int, flags: int, file: int, offset: int) -> int:
        found = libc.mmap(at, length, protection, flags, file, offset)
        if found in (None, ctypes.c_void_p(-1).value):
            raise OSError(ctypes.get_errno(), "mmap")
        return int(found)

    shared, fixed, reserved = mmap.MAP_SHARED, 0x10, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000
    base = mapped(None, size + 3 * GUARD, 0, reserved, -1, 0)
    writable = mmap.PROT_READ | mmap.PROT_WRITE
    data = mapped(base + GUARD, row_pages, writable, shared | fixed, MEMORY, 0)
    row = mapped(base + 2 * GUARD + row_pages, size - row_pages, writable, shared | fixed, MEMORY, row_pages)
    return ((ctypes.c_uint8 * row_pages).from_address(data),
            (ctypes.c_uint8 * (size - row_pages)).from_address(row))


def dtypes_of(names: dict[int, str]) -> dict[int, Any]:
    """Return NumPy's dtypes by their codes. Without ml_dtypes, bfloat16 is uint16, its bits."""
    import numpy
    try:
        import ml_dtypes
        bfloat16: Any = ml_dtypes.bfloat16
    except ImportError:
        bfloat16 = numpy.uint16
    return {code: numpy.dtype(bfloat16 if name == "bfloat16" else name) for code, name in names.items()}


class Output:
    """One output of the job: its function, and an array for the rows of a call."""

    def __init__(self, function: Any, shape: tuple[int, ...], dtype: Any, batched: bool) -> None:
        self.function, self.shape, self.dtype, self.batched = function, shape, dtype, batched
        self.rows: Any = None  # array in the shared memory; a batched function gets a new one when the number of rows changes


class Maker:
    """The maker of rows: reads a request, calls the function, and copies its result to the shared memory."""

    def __init__(self, job: dict[str, Any]) -> None:
        import numpy
        functions = load(job)
        self.ndarray, self.copy = numpy.ndarray, numpy.copyto
        self.dtypes = dtypes_of(job["dtypes"])
        codes = {name: code for code, name in job["dtypes"].items()}
        self.outputs = {output["number"]: Output(function, output["shape"], self.dtypes[codes[output["dtype"]]],
                                                 output["batched"])
                        for function, output in zip(functions, job["outputs"])}
        self.rng = numpy.random.Generator(numpy.random.Philox(key=0))
        self.bits = self.rng.bit_generator
        self.state = self.bits.state
        self.data: Any = None

    def rows_of(self, output: Output, n_rows: int, row_pages: int, row_offset: int) -> Any:
        """Return the array for the rows of a call. It lies in memory that all requests share."""
        if self.data is None:
            self.data, self.memory = map_memory(row_pages)
        shape = (n_rows, *output.shape) if output.batched else output.shape
        output.rows = self.ndarray(shape, output.dtype, self.memory, row_offset - row_pages)
        return output.rows

    def seed(self, low: int, high: int) -> None:
        """Reset rng to the state of a fresh Generator(Philox(key=high << 64 | low)), which takes much less time than
        making one."""
        key = self.state["state"]["key"]
        key[0], key[1] = low, high
        self.bits.state = self.state

    def check(self, result: Any, rows: Any) -> None:
        if not isinstance(result, self.ndarray):
            raise TypeError(f"the function returned a value of class {type(result).__name__}; must be an ndarray of "
                            f"shape {rows.shape} and dtype {rows.dtype} (numpy.asarray makes one)")
        if result.shape != rows.shape or result.dtype != rows.dtype:
            raise ValueError(f"the function returned an array of shape {result.shape} and dtype {result.dtype}; must "
                             f"be of shape {rows.shape} and dtype {rows.dtype}")
        ma = sys.modules.get("numpy.ma")
        if ma is not None and isinstance(result, ma.MaskedArray) and ma.is_masked(result):
            raise ValueError(f"the function returned an array that masks {int(ma.count_masked(result))} of {result.size} values; "
                             "must have none masked (return array.filled(VALUE))")

    def make(self, request: bytearray) -> None:
        (_, number, dtype, n_dims, _, _, *rest) = REQUEST.unpack_from(request)
        *_, random_0, random_1, row_pages, row_offset, _, data_offset, data_size = rest
        shape, dtype, output = tuple(rest[:n_dims]), self.dtypes[dtype], self.outputs[number]
        rows = output.rows
        if rows is None or (output.batched and len(rows) != shape[0]):
            rows = self.rows_of(output, shape[0] if output.batched else 1, row_pages, row_offset)
        n_bytes = dtype.itemsize
        for n in shape:
            n_bytes *= n
        array = self.ndarray(shape, dtype, self.data, data_offset + data_size - n_bytes)
        self.seed(random_0, random_1)
        result = output.function(array, self.rng)
        if type(result) is not self.ndarray or result.shape != rows.shape or result.dtype != rows.dtype:
            self.check(result, rows)
        self.copy(rows, result)


def failed(error: BaseException) -> bytes:
    return FAILED + text_of(error).encode(errors="replace")[:TEXT]


def cannot_start(error: BaseException) -> bytes:
    output = getattr(error, "penstock_output", None)
    begin = "" if output is None else f"that of output {output!r}: "
    return FAILED + (begin + text_of(error, TEXT - len(begin))).encode(errors="replace")[:TEXT]


def main() -> None:
    job = read_job()
    live_with(job["parent"])
    asked = socket.socket(fileno=SOCKET)
    try:
        maker = Maker(job)
    except (Exception, CannotStart) as error:
        if not isinstance(error, CannotStart) and not getattr(error, "is_unguarded", False) and is_first():
            traceback.print_exc()
        asked.send(cannot_start(error))
        return
    asked.send(DONE)
    request = bytearray(REQUEST.size)
    while asked.recv_into(request) == REQUEST.size:
        try:
            maker.make(request)
        except Exception as error:
            asked.send(failed(error))
        else:
            asked.send(DONE)


def run() -> None:
    """Run main, and end the process by os._exit: if the socket closed before that, the parent would find no exit
    status."""
    status = 1
    try:
        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    run()
