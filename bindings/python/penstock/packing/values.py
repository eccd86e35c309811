# SPDX-License-Identifier: Apache-2.0
"""Encode Python values as the bytes that fields store. A value that its field cannot hold raises FieldError."""
from __future__ import annotations

import dataclasses
import operator
import math
import os
import struct
import sys
from collections.abc import Callable
from typing import Any, Union

from .. import _c, errors, lists
from .._optional import is_a
from ..arguments import unmasked
from ..dtypes import DTYPES
from .schema import LIST_KINDS, Field

__all__ = ["FieldError"]


class FieldError(errors.PenstockError, TypeError, ValueError):
    """The field cannot hold a value, because of its type, range or shape. Nothing of the record was written.

    field: name of the field.
    """

    def __init__(self, field: str, what: str) -> None:
        super().__init__(f"field {field}: {what}")
        self.field = field

    def __reduce__(self) -> tuple[Any, ...]:
        return _field_error, (str(self), self.field)


def _field_error(message: str, field: str) -> FieldError:
    made = FieldError(field, "")
    made.args = (message,)
    return made


@dataclasses.dataclass(frozen=True)
class Pixels:
    """A decoded image, gray, RGB or RGBA: rows without padding, of samples of 8 or 16 bits (little-endian)."""
    data: Encoded
    height: int
    width: int
    channels: int
    bit_depth: int


# Bytes, or a C-contiguous NumPy array with the bytes to store.
Encoded = Union[bytes, Any]
Encoder = Callable[[Any], Any]


def is_image_file(data: Any) -> bool:
    """Return whether the bytes begin as a JPEG or PNG file does."""
    return bytes(data[:3]) == b"\xff\xd8\xff" or bytes(data[:8]) == b"\x89PNG\r\n\x1a\n"


def is_pil_image(value: Any) -> bool:
    """Return whether the value is an image of Pillow's."""
    return is_a(value, "PIL.Image", "Image")


def is_tensor(value: Any) -> bool:
    """Return whether the value is a tensor of torch's."""
    return is_a(value, "torch", "Tensor")


def is_array(value: Any) -> bool:
    """Return whether the value is an array or tensor of NumPy, torch, JAX, CuPy ..., of any number of dimensions."""
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def is_null(value: Any) -> bool:
    """Return whether the value is a null: None, NaN, pandas' NA or NaT, or a masked NumPy array without dimensions."""
    if isinstance(value, float):
        return value != value
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # by name: their module is private to pandas
        return True
    ma = sys.modules.get("numpy.ma")
    return ma is not None and isinstance(value, ma.MaskedArray) and value.shape == () and bool(ma.is_masked(value))


def null_advice(name: str, fill: str | None) -> str:
    """Return what to do about a null. fill: a value that may replace it, as code; None: not known."""
    ways = [f"frame.fillna({{{name!r}: {fill}}})"] if fill else []
    ways += [f"frame.dropna(subset=[{name!r}])", f"frame.drop(columns={name!r})"]
    return f" (of a table, pack {', '.join(ways[:-1])} or {ways[-1]})"


def _what(value: Any) -> str:
    """Return the beginning of a message that refuses the value."""
    if is_null(value):
        return f"value is a null ({value})"
    what = f"value is of type {type(value).__name__}"
    if is_array(value) and hasattr(value, "shape"):
        what += f" ({getattr(value, 'dtype', '?')}, shape {tuple(value.shape)})"
    return what


def plain_text(value: Any) -> Any:
    """Return the bytes or the str in an array without dimensions. Other values are returned as they are."""
    if getattr(getattr(value, "dtype", None), "kind", "") in ("S", "U") and value.shape == ():
        return value.item()
    return value


def as_numpy(value: Any) -> Any:
    """Return the value as a NumPy array. torch's bfloat16, which NumPy lacks, becomes float32, exactly."""
    import numpy
    if is_tensor(value):
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
    elif is_a(value, "cupy", "ndarray"):
        value = value.get()
    return numpy.asarray(unmasked("array", value))


# ---- numbers ---------------------------------------------------------------------------------------


def _bfloat16(value: float) -> bytes:
    """Return a float as bfloat16: rounded to the nearest, ties to even, as hardware does."""
    bits = int.from_bytes(struct.pack("<f", value), "little")
    if value != value:
        return b"\xc0\x7f"
    if bits & 0x7fffffff >= 0x7f7f8000 and not math.isinf(value):
        raise OverflowError("rounds to infinity")
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).to_bytes(2, "little")


def _number(value: Any) -> Any:
    """Return the number in a 0-dimensional array or tensor. Other values are returned as they are."""
    if isinstance(value, (int, float)):
        return value
    if is_array(value) and hasattr(value, "item") and tuple(getattr(value, "shape", (0,))) == ():
        return value.item()
    return value


def _has_shape(value: Any) -> bool:
    """Return whether the value is an array or tensor of at least one dimension."""
    return tuple(getattr(value, "shape", ())) != ()


def _refused(name: str, field: Field, value: Any) -> FieldError:
    """Return the error for a value of a field of single numbers that is no number."""
    advice = null_advice(name, "0") if is_null(value) else ""
    if _has_shape(value):
        advice = " (give x.item() or x[0], or declare an array field, " \
                 f"({field.kind!r}, {tuple(value.shape)}))"
    number = "number" if DTYPES[field.kind].precision else "whole number"
    return FieldError(name, f"{_what(value)}; must be one {number} for {field.kind}{advice}")


def _single(name: str, field: Field, value: Any) -> Any:
    """Return a value that may be a number. Raises FieldError for text, and for an array of one element, which other
    libraries accept as a number."""
    if isinstance(value, (int, float)):
        return value
    number = _number(value)
    if isinstance(number, (str, bytes)) or _has_shape(number) or is_null(value):
        raise _refused(name, field, value)
    return number


def _is_exact(number: int, precision: int) -> bool:
    """Return whether a float type whose significand has `precision` bits holds this number exactly. The number is in
    its range."""
    return abs(number) <= 1 << precision or (abs(number) // (number & -number)).bit_length() <= precision


def _inexact(name: str, field: Field, number: int) -> FieldError:
    fitting = next((kind for kind in ("int64", "uint64") if _fits(kind, number)), None)
    advice = f"declare the field as {fitting!r}, or " if fitting else ""
    most = 1 << DTYPES[field.kind].precision
    return FieldError(name, f"value is {number}; must be a whole number that {field.kind} holds exactly, as "
                            f"it holds all up to {most} ({advice}where rounding is meant, give float(x) or "
                            "x.astype(float))")


def _fits(kind: str, number: int) -> bool:
    low, high = _limits(kind)
    return low <= number <= high


def _limits(kind: str) -> tuple[int, int]:
    """Return the least and the largest number of an integer type."""
    dtype = DTYPES[kind]
    signed = dtype.format.islower()
    return -(1 << 8 * dtype.size - 1) if signed else 0, (1 << 8 * dtype.size - signed) - 1


def _integer_encoder(name: str, field: Field) -> Encoder:
    dtype = DTYPES[field.kind]
    pack = struct.Struct("<" + dtype.format).pack
    low, high = _limits(field.kind)

    def encode(value: Any) -> bytes:
        try:
            number = operator.index(_single(name, field, value))
        except (TypeError, ValueError):
            raise _refused(name, field, value) from None
        if not low <= number <= high:
            raise FieldError(name, f"value is {number}; must be from {low} to {high} for {field.kind}")
        return pack(number)

    return encode


def _float_encoder(name: str, field: Field) -> Encoder:
    dtype = DTYPES[field.kind]
    pack = _bfloat16 if field.kind == "bfloat16" else struct.Struct("<" + dtype.format).pack
    precision = dtype.precision

    def encode(value: Any) -> bytes:
        number = _single(name, field, value)
        try:
            data = pack(float(number))
            whole = operator.index(number) if hasattr(number, "__index__") else 0
        except (OverflowError, struct.error):
            raise FieldError(name, f"value is {value}; must be in the range of {field.kind}") from None
        except (TypeError, ValueError):
            raise _refused(name, field, value) from None
        if not _is_exact(whole, precision):
            raise _inexact(name, field, whole)
        return data

    return encode


# ---- bytes and text --------------------------------------------------------------------------------


def _as_bytes(value: Any) -> bytes | None:
    """Return the bytes of a bytes-like value; None: it is none. An array of numbers is none, either."""
    value = plain_text(value)
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    is_uint8 = str(getattr(value, "dtype", "")) in ("uint8", "torch.uint8")
    if is_uint8 and is_array(value) and len(value.shape) == 1:
        return bytes(as_numpy(value).tobytes())
    return None


def _bytes_encoder(name: str, field: Field) -> Encoder:
    def encode(value: Any) -> bytes:
        data = _as_bytes(value)
        if data is None:
            advice = " (encode it, or declare the field as 'utf8')" if isinstance(value, str) else ""
            raise FieldError(name, f"{_what(value)}; must be bytes{advice}")
        return data

    return encode


def _text_encoder(name: str, field: Field) -> Encoder:
    def encode(value: Any) -> bytes:
        value = plain_text(value)
        if not isinstance(value, str):
            advice = null_advice(name, "''") if is_null(value) else ""
            raise FieldError(name, f"{_what(value)}; must be text{advice}")
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise FieldError(name, f"value is {value[:40]!r}; must be text that UTF-8 can hold "
                                   f"({error})") from None

    return encode


# ---- images ----------------------------------------------------------------------------------------


# Modes of Pillow's images with bytes, and the modes that hold their pixels without loss or, as for PNG files, in RGB.
# Alpha is kept, and so are the colours of transparent pixels.
_PIL_MODES = {"L": "L", "RGB": "RGB", "RGBA": "RGBA", "1": "L", "LA": "RGBA", "PA": "RGBA",
              **dict.fromkeys(("P", "RGBX", "CMYK", "YCbCr", "HSV"), "RGB")}


def _with_transparency(image: Any) -> Any:
    """Return a PIL image without an alpha channel, but with transparent colours in its file or palette, as RGBA; any
    other image as it is. Pillow keeps the transparent colour in `info` of the results of convert("RGB") and resize(),
    which have no `format`: there it means nothing."""
    palette = image.palette.mode if image.mode == "P" and image.palette else ""
    is_opened = image.mode in ("1", "L", "RGB") and image.format is not None
    has_colour = image.info.get("transparency") is not None and (is_opened or image.mode == "P")
    if not has_colour and not palette.endswith("A"):
        return image
    made = image.convert("RGBA")
    return image if made.getextrema()[3] == (255, 255) else made


def _pil_pixels(name: str, image: Any) -> Pixels:
    if image.mode not in _PIL_MODES:
        raise FieldError(name, f"value is a PIL image of mode {image.mode!r}, which Pillow clips or cannot "
                               "convert; must be of 8 bits (scale it to 0 to 255 and make it 'L' or 'RGB'; "
                               "or, to keep its numbers, declare an array field, such as ('uint16', (None, "
                               "None)), and give numpy.asarray(image))")
    image = _with_transparency(image)
    mode = _PIL_MODES[image.mode]
    made = image if image.mode == mode else image.convert(mode)
    return Pixels(made.tobytes(), made.height, made.width, len(made.getbands()), 8)


def _array_pixels(name: str, value: Any) -> Pixels:
    array = as_numpy(value)
    if array.dtype.name not in ("uint8", "uint16"):
        raise FieldError(name, f"{_what(value)}; must be pixels of uint8, 0 to 255, or of uint16")
    if is_tensor(value) and array.ndim == 3 and array.shape[0] in (1, 3, 4) and array.shape[2] != 3:
        array = array.transpose(1, 2, 0)  # torchvision's tensors are channels x height x width
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4):
        raise FieldError(name, f"{_what(value)}; must be pixels of height x width, or height x width x 1, 3 or 4 "
                               "(gray, RGB, RGBA)")
    import numpy
    height, width, channels = (int(n) for n in array.shape)
    stored = numpy.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return Pixels(stored, height, width, channels, 8 * stored.itemsize)


def _of_path(value: Any) -> str:
    """Return the advice on a value that is the path of a file."""
    if isinstance(value, os.PathLike):
        return " (give path.read_bytes())"
    return " (of the path of a file: pathlib.Path(path).read_bytes())" if isinstance(value, str) else ""


def _image_encoder(name: str, field: Field) -> Encoder:
    def encode(value: Any) -> Encoded | Pixels:
        data = _as_bytes(value)
        if data is not None:
            return data
        if is_pil_image(value):
            return _pil_pixels(name, value)
        if is_array(value):
            return _array_pixels(name, value)
        raise FieldError(name, f"{_what(value)}; must be the bytes of a JPEG or PNG file, a PIL image, or a "
                               f"uint8 array of height x width x 3{_of_path(value)}")

    return encode


def has_palette(value: Any, encoded: Any) -> bool:
    """Return whether the value is an image with a palette: a PIL image of mode P, or such a PNG file."""
    if is_pil_image(value):
        return value.mode in ("P", "PA")
    return isinstance(encoded, bytes) and bool(_c.lib.pstk_image_is_palette(encoded, len(encoded)))


def _mask_encoder(name: str, field: Field) -> Encoder:
    """Return the encoder of a mask: it takes numbers of classes, never colours."""
    def encode(value: Any) -> Encoded | Pixels:
        data = _as_bytes(value)
        if data is not None:
            return data
        array = as_numpy(value) if is_pil_image(value) or is_array(value) else None
        if array is not None and array.dtype.name == "bool":
            array = array.astype("u1")
        if array is None or array.ndim != 2 or array.dtype.name not in ("uint8", "uint16"):
            raise FieldError(name, f"{_what(value)}; must be a mask: the bytes of a PNG file of one channel, a PIL image "
                                   "of mode P, L, 1 or I;16, or an array of uint8, uint16 or bool of height x width"
                                   + _of_path(value))
        return _array_pixels(name, array)

    return encode


# ---- lists -----------------------------------------------------------------------------------------


_ITEM_MAKERS = {"utf8_list": _text_encoder, "bytes_list": _bytes_encoder, "image_list": _image_encoder,
                "mask_list": _mask_encoder}


def _list_encoder(name: str, field: Field) -> Encoder:
    encode_item, kind = _ITEM_MAKERS[field.kind](name, field), LIST_KINDS[field.kind]

    def encode(value: Any) -> bytes:
        values = value.tolist() if getattr(getattr(value, "dtype", None), "kind", "") in _LISTED else value
        if not isinstance(values, (list, tuple)):
            hint = " (of an array [n, ...]: list(array))" if is_array(value) else ""
            raise FieldError(name, f"{_what(value)}; must be a list{hint}")
        items = []
        for i, each in enumerate(values):
            try:
                made = encode_item(each)
            except FieldError as error:
                raise FieldError(name, f"item {i}: " + str(error).removeprefix(f"field {name}: ")) from None
            items.append((made.data, made) if isinstance(made, Pixels) else (made, None))
        try:
            return lists.build(kind, items)
        except errors.PenstockError as error:
            error.args = (f"field {name}: {error}",)
            raise

    return encode


_LISTED = ("U", "S", "O")  # kinds of numpy.dtype: arrays of texts, bytes and objects


# ---- arrays ----------------------------------------------------------------------------------------


def _cast_integers(name: str, field: Field, array: Any, dtype: Any) -> Any:
    import numpy
    limits = numpy.iinfo(dtype)
    if array.size:
        low, high = int(array.min()), int(array.max())
        if low < limits.min or high > limits.max:
            raise FieldError(name, f"value is an array of numbers from {low} to {high}; must be of numbers "
                                   f"from {limits.min} to {limits.max} for {field.kind}")
    return array.astype(dtype)


def _check_integers(name: str, field: Field, array: Any) -> None:
    """Raise FieldError unless the field's float type holds these integers exactly."""
    import numpy
    precision = DTYPES[field.kind].precision
    if not array.size or array.dtype.itemsize * 8 <= precision:
        return
    most = 1 << precision
    if -most <= int(array.min()) and int(array.max()) <= most:
        return
    sizes = (numpy.abs(array.astype("i8")) if array.dtype.kind == "i" else array).astype("u8")
    odd = sizes // numpy.maximum(sizes & (~sizes + numpy.uint64(1)), 1)  # without the zero bits at the end
    wrong = (odd >> numpy.uint64(precision)).astype(bool)
    if wrong.any():
        raise _inexact(name, field, int(array[wrong][0]))


def _check_listed(name: str, field: Field, values: Any) -> None:
    """Raise FieldError unless the integers of a list with floats stay exact: NumPy makes floats of all."""
    for value in values:
        if value.__class__ is float:
            continue
        if isinstance(value, (list, tuple)):
            _check_listed(name, field, value)
        elif getattr(value, "shape", ()) != ():
            array = as_numpy(value)
            if array.dtype.kind in "iu":
                _check_integers(name, field, array)
        elif hasattr(_number(value), "__index__"):
            number = operator.index(_number(value))
            if not _is_exact(number, DTYPES[field.kind].precision):
                raise _inexact(name, field, number)


def _check_whole_numbers(name: str, field: Field, value: Any, array: Any) -> None:
    """Raise FieldError unless the field holds exactly the integers of a value, of which NumPy made the array."""
    if array.dtype.kind in "iu":
        _check_integers(name, field, array)
    elif isinstance(value, (list, tuple)):
        _check_listed(name, field, value)


def _out_of_range(name: str, field: Field) -> FieldError:
    return FieldError(name, f"value has numbers that {field.kind} makes infinite; must be in its range")


def _cast_floats(name: str, field: Field, array: Any, dtype: Any) -> Any:
    import numpy
    with numpy.errstate(over="ignore"):
        made = array.astype(dtype)
    # A number too large for the type would become infinite in silence.
    if not numpy.array_equal(numpy.isinf(made), numpy.isinf(array)):
        raise _out_of_range(name, field)
    return made


def _to_bfloat16(name: str, field: Field, array: Any) -> Any:
    """Return the upper halves of float32, rounded to the nearest, ties to even, as uint16."""
    import numpy
    bits = numpy.ascontiguousarray(_cast_floats(name, field, array, numpy.dtype("<f4"))).view(numpy.uint32)
    if ((bits & 0x7fffffff >= 0x7f7f8000) & (bits & 0x7fffffff < 0x7f800000)).any():
        raise _out_of_range(name, field)
    rounded = (bits + (0x7fff + (bits >> 16 & 1)).astype(numpy.uint32)) >> 16
    return numpy.where(bits & 0x7fffffff > 0x7f800000, 0x7fc0, rounded).astype("<u2")


def _cast(name: str, field: Field, array: Any) -> Any:
    """Return the array in the field's dtype. Integers stay exact, also as floats; floats may be rounded. Raises
    FieldError."""
    import numpy
    kind = array.dtype.kind
    if field.kind == "bfloat16" and array.dtype.name == "bfloat16":
        return array.view("<u2")
    if array.dtype.name == "bfloat16":  # of ml_dtypes, which is no kind of NumPy's
        array, kind = array.astype("<f4"), "f"
    if field.kind == "bfloat16" and kind in "fiub":
        return _to_bfloat16(name, field, array)
    dtype = numpy.dtype(field.kind).newbyteorder("<") if field.kind != "bfloat16" else None
    if dtype is None or kind not in "biuf" or (kind == "f" and dtype.kind != "f"):
        raise FieldError(name, f"value is an array of {array.dtype}; must be of {field.kind} (convert it "
                               "first, if that is meant)")
    if array.dtype == dtype:
        return array
    return _cast_floats(name, field, array, dtype) if dtype.kind == "f" else \
        _cast_integers(name, field, array, dtype)


def _rows_hint(field: Field, shape: tuple[int, ...]) -> str:
    """Return how to make one row of each box, person, corner or run, as the field needs."""
    row = tuple(n or 0 for n in (field.shape or ())[1:])
    if not shape:
        return "give a list or an array of numbers" + \
            (": COCO's counts, where they are a list and not compressed" if field.meaning == "rle" else "")
    if math.prod(shape) % math.prod(row) == 0:
        return f"where the numbers are in this order: numpy.reshape(value, {(-1, *row)})"
    return f"each row has {' x '.join(str(n) for n in row)} numbers"


def _check_shape(name: str, field: Field, shape: tuple[int, ...]) -> None:
    wanted = field.shape or ()
    if len(shape) == len(wanted) and all(w in (None, n) for w, n in zip(wanted, shape)):
        return
    what = f"value is of shape {shape}; must be of shape {tuple(wanted)}"
    if field.meaning is not None:
        raise FieldError(name, f"{what} ({_rows_hint(field, shape)})")
    if len(shape) != len(wanted):
        raise FieldError(name, f"{what} (all records have the same number of dimensions)")
    free = tuple(n if n == w else None for n, w in zip(shape, wanted))
    raise FieldError(name, f"{what} (where dimensions differ from record to record, declare "
                           f"({field.kind!r}, {free}))")


def _array_encoder(name: str, field: Field) -> Encoder:
    shape = field.shape or ()
    is_shaped = sum(n is None for n in shape) > 1  # the shape is then stored before the elements
    as_it_is: list[Any] = []  # once NumPy is loaded [numpy.ndarray, dtype], for arrays that are stored as they are

    def encode(value: Any) -> Encoded:
        if as_it_is and value.__class__ is as_it_is[0] and value.shape == shape \
                and value.dtype == as_it_is[1] and value.flags.c_contiguous:
            return value
        return encode_any(value)

    def encode_any(value: Any) -> Encoded:
        try:
            import numpy
        except ImportError:
            return _plain_array(name, field, value, is_shaped)
        if field.kind != "bfloat16":
            as_it_is[:] = [numpy.ndarray, numpy.dtype(field.kind).newbyteorder("<")]
        try:
            array = as_numpy(value)
        except (TypeError, ValueError) as error:
            raise FieldError(name, f"{_what(value)}; must be an array or a list of numbers "
                                   f"({error})") from None
        if array.size == 0 and isinstance(value, (list, tuple)):
            array = array.astype(DTYPES[field.kind].format or "f4")  # an empty list has no type
            if array.shape == (0,) and shape[0] is None and None not in shape[1:]:
                array = array.reshape(0, *shape[1:])
        _check_shape(name, field, tuple(array.shape))
        stored = numpy.ascontiguousarray(_cast(name, field, array))
        if DTYPES[field.kind].precision:
            _check_whole_numbers(name, field, value, array)
        return struct.pack(f"<{array.ndim}Q", *array.shape) + stored.tobytes() if is_shaped else stored

    return encode


def _plain_array(name: str, field: Field, value: Any, is_shaped: bool) -> bytes:
    """Return the bytes of an array without NumPy: flat lists of numbers, and objects that show their memory in the
    field's own type. Raises FieldError."""
    dtype = DTYPES[field.kind]
    if isinstance(value, (list, tuple)) and dtype.format:
        _check_shape(name, field, (len(value),))
        try:
            data = struct.pack(f"<{len(value)}{dtype.format}", *value)
        except (struct.error, OverflowError, TypeError) as error:
            raise FieldError(name, f"{_what(value)}; must be of numbers for {field.kind} ({error})") from None
        if dtype.precision:
            _check_listed(name, field, value)
        return data
    try:
        view = memoryview(value)
    except TypeError:
        view = None
    if view is None or view.itemsize != dtype.size or sys.byteorder != "little" or not view.c_contiguous \
            or view.format.lstrip("<=@").replace("l", "q").replace("L", "Q") != dtype.format:
        raise FieldError(name, f"{_what(value)}; must be a flat list or an array.array of {field.kind}, as "
                               "NumPy is not installed (pip install numpy)")
    _check_shape(name, field, tuple(view.shape or ()))
    head = struct.pack(f"<{view.ndim}Q", *(view.shape or ())) if is_shaped else b""
    return head + view.tobytes()


def encoder(name: str, field: Field) -> Encoder:
    """Return the function that encodes a value of a field: it returns bytes, a NumPy array, or Pixels."""
    if field.is_array:
        return _array_encoder(name, field)
    if field.is_scalar:
        return (_float_encoder if "float" in field.kind else _integer_encoder)(name, field)
    if field.is_list:
        return _list_encoder(name, field)
    makers = {"image": _image_encoder, "mask": _mask_encoder, "bytes": _bytes_encoder, "utf8": _text_encoder}
    return makers[field.kind](name, field)
