# SPDX-License-Identifier: Apache-2.0
"""Types of elements, by the names that NumPy and PyTorch give them."""
from __future__ import annotations

import dataclasses
from typing import Any

from . import _c

__all__ = ["DTYPES", "DTYPE_NAMES", "Dtype", "ambiguous", "dtype_name", "parse"]


@dataclasses.dataclass(frozen=True)
class Dtype:
    """One type of elements.

    code: its enum pstk_dtype.
    size: bytes of one element.
    format: its format in the module `struct`; "": it has none.
    precision: bits of the significand of a floating-point type, which holds every whole number up to 2**precision; else
        0.
    """
    code: int
    size: int
    format: str
    precision: int = 0


# bfloat16 has no format: it is the upper half of a float32.
DTYPES = {
    "uint8": Dtype(_c.U8, 1, "B"),
    "int8": Dtype(_c.I8, 1, "b"),
    "uint16": Dtype(_c.U16, 2, "H"),
    "int16": Dtype(_c.I16, 2, "h"),
    "uint32": Dtype(_c.U32, 4, "I"),
    "int32": Dtype(_c.I32, 4, "i"),
    "uint64": Dtype(_c.U64, 8, "Q"),
    "int64": Dtype(_c.I64, 8, "q"),
    "float16": Dtype(_c.F16, 2, "e", 11),
    "bfloat16": Dtype(_c.BF16, 2, "", 8),
    "float32": Dtype(_c.F32, 4, "f", 24),
    "float64": Dtype(_c.F64, 8, "d", 53),
}
DTYPE_NAMES = {dtype.code: name for name, dtype in DTYPES.items()}

_ALIASES = {"half": "float16", "double": "float64"}
_AMBIGUOUS = {"float": "'float32' or 'float64'", "int": "'int32' or 'int64'", "long": "'int64'"}


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype: "float16", torch.float16, numpy.float16, numpy.dtype("float16"), jax.numpy.float16.
    Other values give their text."""
    inner = getattr(dtype, "dtype", None)  # jax.numpy's types have a dtype there, NumPy's a descriptor
    for owner, member in ((dtype, "name"), (inner, "name"), (dtype, "__name__")):
        found = getattr(owner, member, None)
        if isinstance(found, str):
            return found
    return str(dtype).rpartition(".")[2]  # of "torch.float32"


def parse(dtype: Any) -> str | None:
    """Return the name in DTYPES of any library's dtype, of int (int64) or float (float64), or of a C name ("u8",
    "bf16"). None: the value is none of these."""
    if dtype is int:
        return "int64"
    if dtype is float:
        return "float64"
    name = dtype_name(dtype)
    if name in DTYPES:
        return name
    code = int(_c.lib.pstk_dtype_parse(name.encode(errors="replace")))
    return DTYPE_NAMES.get(code) or _ALIASES.get(name)


def ambiguous(dtype: Any) -> str:
    """Return advice for a name that is not a dtype because its size differs between libraries; else ""."""
    name = dtype_name(dtype)
    if name not in _AMBIGUOUS:
        return ""
    return f" (write {_AMBIGUOUS[name]}: NumPy and PyTorch differ in the size of {name})"
