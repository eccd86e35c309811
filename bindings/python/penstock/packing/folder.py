# SPDX-License-Identifier: Apache-2.0
"""Pack a folder of images, or data in a format that penstock reads in place, by the command `penstock pack`. The
command decides which files are images, which class each has, and which files are left out. So it and penstock.pack make
the same data set, byte for byte."""
from __future__ import annotations

import dataclasses
import os
import re
import signal
import struct
import subprocess
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from ..__main__ import command
from ..dtypes import DTYPES
from ..errors import DataSetExistsError, SettingsError
from ..topics import Foreign
from .samples import PackError
from .schema import Field
from .task import Task
from .writer import Writer, accepts_damaged, count

__all__ = ["ImageFolder"]

USAGE = 2  # exit status for a wrong setting, path or permission
MIN_SHARD_SIZE, MAX_SHARD_SIZE = 1 << 16, 1 << 43  # bytes, limits of the option --shard-size
MAX_THREADS = 1024  # limit of the option --threads
SAID, PROGRESS, WARNING = "penstock: ", "penstock: packing: ", "penstock: warning: "  # beginnings of lines of the command
# The command's advice names its options; these are the arguments for them.
_KEYWORDS = {"--skip-bad": "skip_bad=True", "--threads": "num_workers", "--overwrite": "overwrite=True",
             "--damaged accept": "damaged='accept'", "--by-content": "foreign=penstock.Foreign(by_content=True)",
             "--field": "foreign=penstock.Foreign(fields={...})"}
_FIELD = re.compile(r"--field ('?)([\w.-]+)=(\w+)(?:\[([\d*,]+)\])?(?:=([^\s;']+))?\1")


@dataclasses.dataclass(frozen=True)
class ImageFolder:
    """A folder of images, flat or with a folder for each class."""
    path: str

    has = "a folder of images, whose fields are jpg, cls and key"  # for messages


@dataclasses.dataclass(frozen=True)
class InPlace(ImageFolder):
    """Data in another format that penstock reads in place: tar archives, TFRecords, MDS, ..."""

    has = "data in a format that is read in place, whose fields are those that penstock.Dataset(path) has"


def refuse_given(source: ImageFolder, given: Mapping[str, Any]) -> None:
    """Raise SettingsError for settings of samples that the command has no option for. given: {setting: value; None: not
    given}."""
    for name, value in given.items():
        if value is not None:
            raise SettingsError(f"{name}: value is {value!r}; must be left out for {source.has} (to choose, pack samples: "
                                "penstock.pack([{...}, ...], path))")


def _default_text(name: str, field: Field, stored: bytes) -> str:
    """Return a default as text for the command."""
    if field.is_array or (b"\0" in stored and not field.is_scalar):
        raise SettingsError(f"fields: value has a default for {name!r} that is an array or has a 0 byte; must be a number "
                            "or text (for others pack a data set: penstock.pack(penstock.Dataset(path, foreign=...), path))")
    if field.is_scalar and field.kind in ("float16", "bfloat16", "float64"):
        raise SettingsError(f"fields: value has the type {field.kind!r} for {name!r}; must be 'float32' with a default (floats of TFRecords are)")
    return str(struct.unpack("<" + DTYPES[field.kind].format, stored)[0]) if field.is_scalar else os.fsdecode(stored)


def _field_options(foreign: Foreign) -> list[str]:
    """Return fields as options of the command. Raises SettingsError."""
    from ..foreign import Opening
    given = Opening(foreign)
    made = [f"--field={name}={suffixes}" for name, suffixes in given.first_of.items()]
    for name, field in given.fields.items():
        if field.meaning or field.rows or field.splits or field.of:
            raise SettingsError(f"fields: value has {field!r} for {name!r}; must be a kind, or a dtype with or without a "
                                "shape (for others pack samples with a schema)")
        shape = "" if field.shape is None else f"[{','.join('*' if n is None else str(n) for n in field.shape)}]"
        default = f"={_default_text(name, field, given.defaults[name])}" if name in given.defaults else ""
        made.append(f"--field={name}={field.kind}{shape}{default}")
    return made


def _line(source: ImageFolder, where: str, *, skip_bad: bool, overwrite: bool, shard_size: int,
          num_workers: int | None, damaged: str, part: Task | None, foreign: Foreign, columns: bool) -> list[str]:
    made = [command(), "pack"] + ["--skip-bad"] * bool(skip_bad) + ["--overwrite"] * bool(overwrite)
    made += ["--by-content"] * foreign.by_content + ["--no-columns"] * (not columns) + _field_options(foreign)
    if shard_size:
        made.append(f"--shard-size={count('shard_size', shard_size, MIN_SHARD_SIZE, MAX_SHARD_SIZE)}")
    if num_workers is not None:
        made.append(f"--threads={max(count('num_workers', num_workers, 0, MAX_THREADS), 1)}")
    if part is not None:
        made += [f"--task={part.key}", f"--pack-id={part.pack}", f"--attempt={part.attempt}"]
    if accepts_damaged(damaged):
        made.append("--damaged=accept")
    return [*made, "--", source.path, where]


def _print(line: str) -> None:
    if sys.stderr is not None:
        print(line, file=sys.stderr, flush=True)


def _run(line: list[str], progress: bool) -> tuple[int, list[str]]:
    """Run the command. Returns its exit status, and its output without progress."""
    said = []
    # The command gets a session of its own: Ctrl-C reaches only this process, which ends the command once.
    with subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          encoding="utf-8", errors="replace", start_new_session=True) as process:
        try:
            for text in process.stderr or ():
                text = text.rstrip("\n")
                if not text.startswith(PROGRESS):
                    said.append(text)
                elif progress:
                    _print(text)
            process.wait()
        except BaseException:
            process.send_signal(signal.SIGTERM)  # the command removes its files then
            if process.stderr:
                process.stderr.close()  # else the command would wait for a reader
            process.wait()
            raise
    return process.returncode, said


def _as_fields(option: re.Match[str]) -> str:
    """Return the argument for an option of the command."""
    _, name, kind, sizes, default = option.groups()
    shape = "()" if sizes is None else f"({', '.join('None' if n == '*' else n for n in sizes.split(','))},)"
    field = f'"{kind}"' if sizes is None and default is None else f'("{kind}", {shape}' + (")" if default is None else f", {default})")
    return f'foreign=penstock.Foreign(fields={{"{name}": {field}}})'


def _text(said: list[str]) -> str:
    text = "\n".join(line[len(SAID):] if line.startswith(SAID) else line for line in said)
    text = _FIELD.sub(_as_fields, text)
    for option, keyword in _KEYWORDS.items():
        text = text.replace(option, keyword)
    return text


def _refuse(status: int, said: list[str]) -> None:
    text = _text(said)
    if status < 0:
        text += f"the command penstock pack was killed by signal {-status} ({signal.Signals(-status).name}), and " \
                "so nothing was packed"
    raise SettingsError(text) if status == USAGE else PackError(text)


def pack(source: ImageFolder, where: str, *, skip_bad: bool, overwrite: bool, shard_size: int,
         num_workers: int | None, progress: bool, damaged: str, part: Task | None = None,
         foreign: Foreign, columns: bool = True) -> None:
    """Pack the source into the data set `where`. Lines of the command on stderr are printed there; its warnings become
    Python's. Raises PackError, SettingsError, DataSetExistsError, DataSetBusyError."""
    line = _line(source, where, skip_bad=skip_bad, overwrite=overwrite, shard_size=shard_size, num_workers=num_workers,
                 damaged=damaged, part=part, foreign=foreign, columns=columns)
    # A writer refuses the path first, so that the exceptions are those of the whole package.
    there: DataSetExistsError | None = None
    try:
        Writer(where, {"jpg": "image"}, overwrite=overwrite).abort()
    except DataSetExistsError as error:
        if part is None:
            raise
        there = error  # a finished part is no error: the command compares its inputs
    status, said = _run(line, progress)
    if status == USAGE and there is not None:
        raise DataSetExistsError(_text(said))
    if status:
        _refuse(status, said)
    for text in said:
        if text.startswith(WARNING):
            warnings.warn(text[len(WARNING):], stacklevel=4)  # points at the caller of penstock.pack
        else:
            _print(text)
