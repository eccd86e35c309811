# SPDX-License-Identifier: Apache-2.0
"""What the library's errors become. The message is the library's own, and, where the system's word is all
that it has, what to do."""
from __future__ import annotations

import errno
from ctypes import byref, sizeof

from . import _c


class PenstockError(Exception):
    """Any error of the library.

    code: the name of its result ("PSTK_EBADMSG"); native: what kernel, libjpeg or CUDA said, or 0;
    stage: where on the data path (enum pstk_stage). The rest is None where it does not apply: sample_id,
    shard (file name), record (of the shard), offset and length (bytes of the shard), epoch, position.
    """

    def __init__(self, message: str, error: _c.Error | None = None) -> None:
        super().__init__(message)
        self.code = "" if error is None else _c.lib.pstk_error_name(error.code).decode()
        self.native = 0 if error is None else int(error.native)
        self.stage = 0 if error is None else int(error.stage)
        self.sample_id = _told(error, "sample_id")
        self.record = _told(error, "record")
        self.offset = _told(error, "offset")
        self.length = _told(error, "length") if self.offset is not None else None
        self.epoch = _told(error, "epoch")
        self.position = _told(error, "position")
        self.shard = error.shard.decode(errors="replace") or None if error is not None else None


class CorruptRecordError(PenstockError):
    """Damaged data: shard, record, offset and length say where."""


class SettingsError(PenstockError, ValueError):
    """A setting that is wrong or does not fit the data set; the message names it. At open, but for a limit
    that a sample is over, which is told in its turn: max_pixels, bytes_per_batch."""


class DataSetNotFoundError(PenstockError, FileNotFoundError):
    """No data set at this path."""


class DataSetExistsError(PenstockError, FileExistsError):
    """There is a data set at this path; say overwrite, or take another path."""


class DataSetBusyError(PenstockError):
    """Another writer has the data set."""


class UnsupportedError(PenstockError):
    """What this build or machine does not have: a device, a codec, a newer setting."""


class OutOfMemoryError(PenstockError, MemoryError):
    """Memory of the host or of a device; the message says which setting lowers the need."""


class OutOfSlotsError(PenstockError):
    """Every slot is held by batches that are still referenced."""


class TimedOutError(PenstockError, TimeoutError):
    """No batch within the timeout."""


class ForkedError(PenstockError):
    """The loader was opened before fork: open one in the child, or start the child by spawn."""


class InterruptedLoaderError(PenstockError):
    """A wait was ended by interrupt()."""


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
    _c.EINTR: InterruptedLoaderError,
}

# What to do where a result comes from the system, with its errno.
_ADVICE = {
    (_c.ENOSPC, errno.ENOSPC): "free some space there, or write to another disk",
    (_c.ENOSPC, errno.EDQUOT): "free some of the quota, or write to another disk",
    (_c.EFBIG, errno.EMFILE): "raise the limit of open files (ulimit -n)",
    (_c.EFBIG, errno.ENFILE): "raise the machine's limit of open files (sysctl fs.file-max)",
}


def _told(error: _c.Error | None, member: str) -> int | None:
    if error is None:
        return None
    value = int(getattr(error, member))
    return None if value == _c.NONE else value


def new() -> _c.Error:
    """An error for a call to fill in."""
    error = _c.Error()
    _c.lib.pstk_error_init(byref(error), sizeof(error))
    return error


def of(error: _c.Error, code: int | None = None) -> PenstockError:
    """The exception that says what `error` says; `code`: the call's result, where it left it empty."""
    if error.code == 0 and code is not None:
        error.code = code
    message = error.message.decode(errors="replace") or _c.lib.pstk_strerror(error.code).decode()
    advice = _ADVICE.get((error.code, error.native))
    if advice is not None:
        message += ": " + advice
    kind = _CLASSES.get(error.code, PenstockError)
    if error.code == _c.EFBIG and error.native:  # a limit of the system's
        kind = PenstockError
    made = kind(message, error)
    if isinstance(made, OSError):
        made.errno = -error.code if -error.code in errno.errorcode else None
    return made


def check(result: int, error: _c.Error) -> int:
    """Return what a call returned, raise where it is an error."""
    if result < 0:
        raise of(error, result)
    return result
