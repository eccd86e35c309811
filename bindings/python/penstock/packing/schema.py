# SPDX-License-Identifier: Apache-2.0
"""What the records of a data set have: named fields, each of one kind.

A schema is a dict {name: field}, in the order in which records store them. A field is a Field, or in short

    "image"                 an image: a JPEG or PNG file, or pixels
    "bytes", "utf8"         bytes, text
    "int64", "float32" ...  one number of that type (NumPy's names; also "bfloat16")
    ("uint16", (1024,))     an array of fixed shape
    ("int32", (None, 4))    an array; None: this dimension differs from record to record
"""
from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, Union

from .. import _c
from ..dtypes import DTYPES, DTYPE_NAMES, ambiguous, dtype_name, parse
from ..errors import SettingsError
from ..hints import near

__all__ = ["Field", "FieldLike", "Schema", "schema_of"]

# Those without a dtype; messages list images first.
PLAIN_KINDS = {"image": _c.FIELD_IMAGE, **{name: code for name, code in _c.NAMES["field_kind"].items()
                                           if code not in (_c.FIELD_SCALAR, _c.FIELD_NDARRAY)}}
CODECS = _c.NAMES["codec"]
# What others call them.
_OTHERS = {
    **dict.fromkeys(("str", "string", "text", "txt", "json"), "utf8"),
    **dict.fromkeys(("jpg", "jpeg", "png", "img", "pil", "rgb_image"), "image"),
    **dict.fromkeys(("binary", "blob", "raw", "bytearray"), "bytes"),
}
_PYTHON_TYPES: dict[Any, str] = {bool: "uint8", str: "utf8", bytes: "bytes"}  # in addition to those of dtypes
_NUMPY_TEXTS = {"S": "bytes", "U": "utf8"}  # by numpy.dtype's kind
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,63}\Z")


def name_by_code(names: Mapping[str, int], code: int) -> str:
    """The name that stands for this number of the C library."""
    for name, value in names.items():
        if value == code:
            return name
    return f"unknown ({code})"


def _kind_name(kind: Any) -> str:
    """"image", "bytes", "utf8" or the name of a dtype."""
    try:
        if kind in _PYTHON_TYPES:
            return _PYTHON_TYPES[kind]
    except TypeError:  # not hashable, so no type
        pass
    if getattr(kind, "kind", "") in _NUMPY_TEXTS and hasattr(kind, "itemsize"):
        return _NUMPY_TEXTS[kind.kind]
    name = dtype_name(kind)
    if name in PLAIN_KINDS:
        return name
    if name in ("bool", "bool_"):  # there is no such dtype
        return "uint8"
    found = parse(kind)
    if found is None:
        other = _OTHERS.get(name.lower())
        known = [*PLAIN_KINDS, *DTYPES]
        hint = f" (write {other!r})" if other else ambiguous(kind) or near(name, known)
        raise SettingsError(f"kind: value is {kind!r}; must be one of {', '.join(known)}{hint}")
    return found


def _dimension(value: Any) -> int | None:
    if value is None or value in (0, -1):
        return None
    if isinstance(value, int) and 0 < value < 2**63:
        return value
    raise SettingsError(f"shape: a dimension is {value!r}; must be a positive whole number, or None where it "
                        "differs from record to record")


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of a schema.

    kind: "image", "bytes", "utf8", or a dtype: its name, a NumPy or torch dtype, int, float.
    shape: of an array; None in it: this dimension differs from record to record. Without it a dtype is a
        scalar.
    codec: how values are stored. "planes" (images, the default for them): re-encodes JPEG coefficients,
        without loss, in a code that decodes several times faster; pixels and PNGs are kept as they are.
        "zstd", with a dictionary where values are small. "none".
    level: of zstd (0: 3); planes: 1 stores the few JPEGs that cannot be given back byte for byte as they
        came.

    Raises SettingsError.
    """
    kind: Any
    shape: Sequence[int | None] | None = None
    codec: str | None = None
    level: int = 0

    def __post_init__(self) -> None:
        kind = _kind_name(self.kind)
        put = object.__setattr__  # frozen for all but this
        put(self, "kind", kind)
        if self.shape is not None:
            put(self, "shape", self._checked_shape())
        codec = ("planes" if kind == "image" else "none") if self.codec is None else self.codec
        if not isinstance(codec, str) or codec not in CODECS:
            raise SettingsError(f"codec: value is {codec!r}; must be one of {', '.join(CODECS)}"
                                + near(codec, CODECS))
        if self.is_scalar and codec != "none":
            raise SettingsError(f"codec: value is {codec!r}; must be 'none' for a scalar ({kind})")
        if codec == "planes" and kind != "image":
            raise SettingsError(f"codec: value is 'planes'; must be 'zstd' or 'none' for a field of {kind}")
        put(self, "codec", codec)
        if not isinstance(self.level, int) or not -2**31 <= self.level < 2**31:
            raise SettingsError(f"level: value is {self.level!r}; must be a whole number, such as 3")

    def _checked_shape(self) -> tuple[int | None, ...]:
        if self.kind in PLAIN_KINDS:
            raise SettingsError(f"shape: value is {self.shape!r}; must be None for a field of {self.kind}")
        given = (self.shape,) if isinstance(self.shape, int) else self.shape
        shape = tuple(_dimension(n) for n in given or ())
        if not 1 <= len(shape) <= _c.MAX_DIMS:
            raise SettingsError(f"shape: value is {self.shape!r}; must have 1 to {_c.MAX_DIMS} dimensions "
                                "(for a scalar leave it out)")
        return shape

    @property
    def is_scalar(self) -> bool:
        """One number."""
        return self.kind in DTYPES and self.shape is None

    @property
    def is_array(self) -> bool:
        """Numbers in a shape."""
        return self.shape is not None

    def __repr__(self) -> str:
        parts = [repr(self.kind)]
        if self.shape is not None:
            parts.append(f"shape={self.shape}")
        if self.codec != ("planes" if self.kind == "image" else "none"):
            parts.append(f"codec={self.codec!r}")
        if self.level:
            parts.append(f"level={self.level}")
        return f"Field({', '.join(parts)})"

    def to_c(self, name: str) -> _c.Field:
        """The struct of the C library."""
        made = _c.Field(name=name.encode(), codec=CODECS[str(self.codec)], codec_level=self.level)
        if self.kind in PLAIN_KINDS:
            made.kind = PLAIN_KINDS[self.kind]
            return made
        made.dtype = DTYPES[self.kind].code
        made.kind = _c.FIELD_SCALAR
        if self.shape is not None:
            made.kind, made.n_dims = _c.FIELD_NDARRAY, len(self.shape)
            for i, n in enumerate(self.shape):
                made.shape[i] = n or 0
        return made

    @staticmethod
    def of_c(given: _c.Field) -> Field:
        """The field that a struct of the C library describes."""
        codec = name_by_code(CODECS, given.codec)
        if given.kind not in (_c.FIELD_SCALAR, _c.FIELD_NDARRAY):
            return Field(name_by_code(PLAIN_KINDS, given.kind), None, codec, given.codec_level)
        shape = [given.shape[i] or None for i in range(given.n_dims)]
        dtype = DTYPE_NAMES.get(given.dtype, f"unknown ({given.dtype})")
        return Field(dtype, shape if given.kind == _c.FIELD_NDARRAY else None, codec, given.codec_level)


FieldLike = Union[Field, str, type, tuple[Any, Any], Any]
Schema = Mapping[str, FieldLike]


def _field_of(value: FieldLike) -> Field:
    if isinstance(value, Field):
        return value
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise SettingsError(f"value is {value!r}; must be (dtype, shape), such as ('uint16', (1024,))")
        return Field(value[0], value[1])
    return Field(value)


def schema_of(given: Any) -> dict[str, Field]:
    """Check a schema and write it out: {name: Field}. Raises SettingsError, which names the field."""
    if not isinstance(given, Mapping):
        raise SettingsError(f"schema: value is of type {type(given).__name__}; must be a dict, such as "
                            "{'image': 'image', 'cls': 'int64'}")
    if not 1 <= len(given) <= _c.MAX_FIELDS:
        raise SettingsError(f"schema: value has {len(given)} fields; must have 1 to {_c.MAX_FIELDS}")
    made = {}
    for name, value in given.items():
        if not isinstance(name, str) or not _NAME.match(name):
            raise SettingsError(f"schema: value has a field named {name!r}; must have names of 1 to 63 "
                                "letters, digits, _ . -")
        try:
            made[name] = _field_of(value)
        except SettingsError as error:
            raise SettingsError(f"field {name}: {error}") from None
    return made
