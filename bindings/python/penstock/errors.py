# SPDX-License-Identifier: Apache-2.0
"""Exceptions for the library's errors. The message is the library's; for some errors of the system, advice
follows."""
from __future__ import annotations

import errno
import os
import re
from ctypes import byref, sizeof

from . import _c


class PenstockError(Exception):
    """Any error of the library.

    code: the name of the result ("PSTK_EBADMSG"). native: the error code of kernel, libjpeg or CUDA, or 0.
    stage: the place on the data path (enum pstk_stage). The others are None where they do not apply:
    sample_id, shard (file name), record (number in the shard), offset and length (bytes of the shard), epoch,
    position.
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
    """Damaged data, at shard, record, offset and length."""


class SettingsError(PenstockError, ValueError):
    """A setting is wrong or does not fit the data set; the message names it. Raised at open, except for a
    limit that a sample exceeds (max_pixels, bytes_per_batch): that error comes with its batch. Raised by record_stream for
    the 65th further stream of a batch."""


class DataSetNotFoundError(PenstockError, FileNotFoundError):
    """No data set at this path."""


class DataSetExistsError(PenstockError, FileExistsError):
    """A data set exists at this path; pass overwrite=True, or choose another path."""


class DataSetBusyError(PenstockError):
    """Another writer is writing this data set."""


class UnsupportedError(PenstockError):
    """This build or machine lacks something: a device, a codec, a newer setting."""


class OutOfMemoryError(PenstockError, MemoryError):
    """Host or device have too little memory; the message names the setting that lowers the need."""


class OutOfSlotsError(PenstockError):
    """Batches that are still referenced hold every slot."""


class TimedOutError(PenstockError, TimeoutError):
    """No batch came within the timeout."""


class ForkedError(PenstockError):
    """The loader was opened before fork: open one in the child, or start the child by spawn."""


class FunctionError(PenstockError):
    """A function of yours failed. One of penstock.python raised an exception, or returned another shape or dtype than
    its output's, or its process died or took too long, or could not be started. One of penstock.ops.Call returned a result
    other than 0, which is `native`, or wrote past the end.

    A batch of a function with batched=True fails as a whole, also with bad_sample="replace". The next step gives the
    same error; loader.seek(error.epoch, position), with the position that the message names, goes past it."""


class InterruptedLoaderError(PenstockError):
    """interrupt() ended a wait."""


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

# Advice for results, by result and errno; 0: the system had no part in it.
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
    """Return an error for a call to fill in."""
    error = _c.Error()
    _c.lib.pstk_error_init(byref(error), sizeof(error))
    return error


_said: dict[str, str] = {}  # by a path that the library was given, what its user gave


def say(path: str, given: str) -> None:
    """Name `given`, a table, and its rows in the messages that name `path`, its JSON lines in the cache, of which its
    user knows nothing."""
    _said[path] = given


def _of_table(message: str, given: str) -> str:
    """A message about a line of JSON that names the row, as pandas counts, and the value without JSON's quotes; and that reads
    the table itself."""
    def row(found: re.Match[str]) -> str:
        return f"{found[1]}row {int(found[2]) - 1} (counted from 0)"
    message = re.sub(f"({re.escape(given)}, )line (\\d+) \\(byte \\d+\\)", row, message)
    message = message.replace(f"pandas.read_json('{given}', lines=True)", f"'{given}'")
    message = re.sub(r"(, which has it in )line (\d+)", row, message)
    return re.sub(r"""(: column \S+ is )'"(.*?)"'""", r"\1'\2'", message)


def of(error: _c.Error, code: int | None = None) -> PenstockError:
    """Return the exception for `error`. code: the result of the call, for an error that it left empty."""
    if error.code == 0 and code is not None:
        error.code = code
    message = error.message.decode(errors="replace") or _c.lib.pstk_strerror(error.code).decode()
    message = re.sub(r"\bfields=(\{[^{}]*\})", r"foreign=penstock.Foreign(fields=\1)", message)
    for path, given in list(_said.items()):  # another thread may open a loader
        if path in message and os.path.exists(path):  # a copy that was removed is named itself: the table is there
            message = _of_table(message.replace(path, given), given)
            error.offset, error.length = _c.NONE, 0  # bytes of the lines
    advice = _ADVICE.get((error.code, error.native))
    if advice is not None and (error.code, error.stage) != (_c.ETIMEDOUT, _c.STAGE_OPEN):  # there is no loader yet
        message += ": " + advice
    kind = _CLASSES.get(error.code, PenstockError)
    if error.code == _c.EFBIG and error.native:  # the system's limit
        kind = PenstockError
    made = kind(message, error)
    if isinstance(made, OSError):
        made.errno = -error.code if -error.code in errno.errorcode else None
    return made


def check(result: int, error: _c.Error) -> int:
    """Return the result of a call; raise if it is an error."""
    if result < 0:
        raise of(error, result)
    return result
