# SPDX-License-Identifier: Apache-2.0
"""Exceptions for the library's errors. The message is the library's; after some errors of the system, advice follows."""
from __future__ import annotations

import errno
import os
import re
from ctypes import byref, sizeof

from . import _c


class PenstockError(Exception):
    """Any error of the library. An attribute that does not apply is None.

    code: name of the result, such as "PSTK_EBADMSG".
    native: error code of the kernel, libjpeg or CUDA; 0: none.
    stage: the stage of the data path, enum pstk_stage.
    sample_id: id of the sample.
    shard: name of the shard file.
    record: number of the record in the shard.
    offset, length: the bytes in the shard.
    epoch, position: the epoch, and the position in it.
    """

    def __init__(self, message: str, error: _c.Error | None = None) -> None:
        super().__init__(message)
        self.code = "" if error is None else _c.lib.pstk_error_name(error.code).decode()
        self.native = 0 if error is None else int(error.native)
        self.stage = 0 if error is None else int(error.stage)
        self.sample_id = _number(error, "sample_id")
        self.record = _number(error, "record")
        self.offset = _number(error, "offset")
        self.length = _number(error, "length") if self.offset is not None else None
        self.epoch = _number(error, "epoch")
        self.position = _number(error, "position")
        self.shard = error.shard.decode(errors="replace") or None if error is not None else None


class CorruptRecordError(PenstockError):
    """The data is damaged. The attributes shard, record, offset and length say where."""


class SettingsError(PenstockError, ValueError):
    """A setting is wrong or does not fit the data set; the message names it.

    Raised at open. The error of a limit that a sample exceeds (max_pixels, bytes_per_batch) comes with its batch.
    record_stream raises it for the 65th further stream of a batch.
    """


class DataSetNotFoundError(PenstockError, FileNotFoundError):
    """There is no data set at this path."""


class DataSetExistsError(PenstockError, FileExistsError):
    """There is a data set at this path; pass overwrite=True, or choose another path."""


class DataSetBusyError(PenstockError):
    """Another process is writing a data set, or an export, at this path."""


class UnsupportedError(PenstockError):
    """This build or this machine lacks a feature: a device, a codec, a newer setting."""


class OutOfMemoryError(PenstockError, MemoryError):
    """The host or the device has too little memory. The message names the setting that lowers the need."""


class OutOfSlotsError(PenstockError):
    """All slots are held by batches that are still referenced."""


class TimedOutError(PenstockError, TimeoutError):
    """A wait took longer than its limit: for a batch, for other processes that open their loaders, or for a process
    that builds the same index."""


class ForkedError(PenstockError):
    """The loader was opened before fork. Open one in the child, or start the child by spawn."""


class FunctionError(PenstockError):
    """A function of yours failed.

    A function of penstock.python raised an exception, or returned another shape or dtype than its output's, or its
    process died, took too long, or could not be started. Or a function of penstock.ops.Call returned a result other
    than 0, which is `native`, or wrote past the end of its memory.

    A batch of a function with batched=True fails as a whole, also with bad_sample="replace". The next step raises the
    same error; loader.seek(error.epoch, position), with the position that the message names, goes past it.
    """


class InterruptedLoaderError(PenstockError):
    """A wait was ended by interrupt(), or by close() in another thread."""


_CLASSES: dict[int, type[PenstockError]] = {
    _c.EBADMSG: CorruptRecordError,
    _c.EINVAL: SettingsError,
    _c.EFBIG: SettingsError,
    _c.ENODATA: SettingsError,
    _c.ENOENT: DataSetNotFoundError,
    _c.EEXIST: DataSetExistsError,
    _c.EBUSY: DataSetBusyError,
    _c.ENOTSUP: UnsupportedError,
    _c.ENOMEM: OutOfMemoryError,
    _c.ENOBUFS: OutOfSlotsError,
    _c.ETIMEDOUT: TimedOutError,
    _c.EPERM: ForkedError,
    _c.ECANCELED: FunctionError,
    _c.EINTR: InterruptedLoaderError,
}

# Advice by result and errno. errno 0: the error did not come from the system.
_ADVICE = {
    (_c.ENOSPC, errno.ENOSPC): "free some space there, or write to another disk",
    (_c.ENOSPC, errno.EDQUOT): "free some of the quota, or write to another disk",
    (_c.EFBIG, errno.EMFILE): "raise the limit of open files (ulimit -n)",
    (_c.ETIMEDOUT, 0): "loader.stats() shows which stage is slow",
    (_c.EFBIG, errno.ENFILE): "raise the machine's limit of open files (sysctl fs.file-max)",
}


def _number(error: _c.Error | None, member: str) -> int | None:
    if error is None:
        return None
    value = int(getattr(error, member))
    return None if value == _c.NONE else value


def new() -> _c.Error:
    """Return an empty struct for the error of a call."""
    error = _c.Error()
    _c.lib.pstk_error_init(byref(error), sizeof(error))
    return error


_said: dict[str, str] = {}  # for each path that the library was given: the path that the user gave


def say(path: str, given: str) -> None:
    """Replace, in messages about `path`, that path by `given`. `given` is a table; `path` is its copy as JSON lines in
    the cache, which its user does not know."""
    _said[path] = given


def _of_table(message: str, given: str) -> str:
    """Reword a message about a line of JSON so that it is about the table: it names the row, counted from 0 as pandas
    does, and quotes the value without JSON's quotes."""
    def row(found: re.Match[str]) -> str:
        return f"{found[1]}row {int(found[2]) - 1} (counted from 0)"
    message = re.sub(f"({re.escape(given)}, )line (\\d+) \\(byte \\d+\\)", row, message)
    message = message.replace(f"pandas.read_json('{given}', lines=True)", f"'{given}'")
    message = re.sub(r"(, which has it in )line (\d+)", row, message)
    return re.sub(r"""(: column \S+ is )'"(.*?)"'""", r"\1'\2'", message)


def of(error: _c.Error, code: int | None = None) -> PenstockError:
    """Return the exception for `error`. code: the result of the call, if the call left the error empty."""
    if error.code == 0 and code is not None:
        error.code = code
    message = error.message.decode(errors="replace") or _c.lib.pstk_strerror(error.code).decode()
    message = re.sub(r"\bfields=(\{[^{}]*\})", r"foreign=penstock.Foreign(fields=\1)", message)
    for path, given in list(_said.items()):  # a copy, because another thread may open a loader
        if path in message and os.path.exists(path):  # if the copy was removed, the message names the copy: the table is fine
            message = _of_table(message.replace(path, given), given)
            error.offset, error.length = _c.NONE, 0  # these count bytes of the lines, not of the table
    advice = _ADVICE.get((error.code, error.native))
    if advice is not None and (error.code, error.stage) != (_c.ETIMEDOUT, _c.STAGE_OPEN):  # at open there is no loader yet
        message += ": " + advice
    kind = _CLASSES.get(error.code, PenstockError)
    if error.code == _c.EFBIG and error.native:  # a limit of the system
        kind = PenstockError
    made = kind(message, error)
    if isinstance(made, OSError):
        made.errno = -error.code if -error.code in errno.errorcode else None
    return made


def check(result: int, error: _c.Error) -> int:
    """Return the result of a call that succeeded; raise its error if it failed."""
    if result < 0:
        raise of(error, result)
    return result
