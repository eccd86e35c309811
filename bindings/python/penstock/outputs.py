# SPDX-License-Identifier: Apache-2.0
"""Outputs: descriptions of the tensors of every batch: outputs={"x": image("jpg", [...]), "y": scalar("cls")}.

Python functions run in processes of their own, because the interpreter's lock would let only one run at a time:
penstock.python (processes.py).
"""
from __future__ import annotations

import importlib
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from ctypes import POINTER, c_uint32, cast
from dataclasses import dataclass, field as member, replace
from types import FunctionType, MethodType
from typing import Any, Union

from . import _c
from .arguments import items, switch, text
from .catalog import Catalog, FieldInfo
from .dtypes import DTYPES, DTYPE_NAMES, ambiguous, parse
from .elsewhere import IMAGE_KEYWORDS
from .errors import SettingsError
from .hints import explained, near, near_or_all, refused_by_base
from .ops.lists import operations
from .ops.op import Op
from .ops.values import Normalize, ToFloat
from .packing.schema import LIST_KINDS, Field
from .sealed import Sealed
from .sizes import Ops, lists_of

__all__ = ["Output", "image", "ragged", "scalar", "tensor"]

# By layout: the order in memory, and whether the batch shows an NHWC tensor as [B, C, H, W].
LAYOUTS = {**{name: (code, False) for name, code in _c.NAMES["layout"].items()},
           "channels_last": (_c.NHWC, True)}

KINDS = {_c.OUTPUT_IMAGE: "image", _c.OUTPUT_SCALAR: "scalar", _c.OUTPUT_TENSOR: "tensor",
         _c.OUTPUT_BYTES: "ragged", _c.OUTPUT_RAGGED: "ragged", _c.OUTPUT_MASK: "mask",
         _c.OUTPUT_BOXES: "boxes", _c.OUTPUT_PER_BOX: "per_box", _c.OUTPUT_KEYPOINTS: "keypoints",
         _c.OUTPUT_POLYGONS: "polygons"}
RAGGED_KINDS = (_c.OUTPUT_BYTES, _c.OUTPUT_RAGGED, _c.OUTPUT_BOXES, _c.OUTPUT_PER_BOX,
                _c.OUTPUT_KEYPOINTS, _c.OUTPUT_POLYGONS)


def dtype_code(dtype: Any, what: str) -> int:
    """Return the enum pstk_dtype of any library's dtype; 0, the library's choice, for None. Raises SettingsError."""
    if dtype is None:
        return 0
    name = parse(dtype)
    if name is None:
        raise SettingsError(f"{what}.dtype: value is {dtype!r}; must be one of {', '.join(DTYPES)}"
                            + (ambiguous(dtype) or near(dtype, DTYPES)))
    return DTYPES[name].code


@refused_by_base
@dataclass(frozen=True)
class Output(Sealed):
    """One tensor of every batch. The functions image, scalar, tensor, ragged, mask, boxes, per_box, keypoints, polygons
    and python make it.

    field: name of a field of the data set.
    kind: enum pstk_output_kind.
    dtype: enum pstk_dtype; 0: the field's.

    The other members are arguments of these functions.
    """

    field: str
    kind: int
    dtype: int = 0
    layout: str = "nhwc"
    ops: tuple[Op, ...] = ()
    random_group: int = 0
    exif_orientation: bool = False
    bytes_per_batch: int = member(default=0)
    channels: int = member(default=0)
    reference: str = "pil"
    list_kind: int = member(default=0)  # enum pstk_field_kind of a list field; else 0
    size_ops: tuple[tuple[Op, ...], ...] = ()  # a list of operations for each size, `ops` being the first; (): one size
    sizes: tuple[Any, ...] = ()  # as they were given
    every: int = 0
    following: tuple[tuple[str, Any, str], ...] = ()  # for outputs that follow: member of pstk_follow_output, value,
    # and the argument as text

    def _maker(self) -> Callable[..., Any]:
        return getattr(importlib.import_module(__package__), KINDS[self.kind]) if self.kind in KINDS else Output

    def __repr__(self) -> str:
        parts = [repr(self.field)]
        if self.ops:
            parts.append("[" + ", ".join(map(repr, self.ops)) + "]")
        if self.dtype:
            parts.append(f"dtype={DTYPE_NAMES[self.dtype]!r}")
        for name, default in (("layout", "nhwc"), ("random_group", 0), ("exif_orientation", False),
                              ("bytes_per_batch", 0)):
            if getattr(self, name) != default:
                parts.append(f"{name}={getattr(self, name)!r}")
        if self.channels not in (0, 3):
            parts.append(f"channels={self.channels}")
        if self.sizes:
            parts.append(f"sizes={list(self.sizes)!r}")
            parts.append(f"every={self.every}")
        if self.reference != "pil":
            parts.append(f"reference={self.reference!r}")
        parts += [given for _, _, given in self.following]
        return f"{KINDS[self.kind]}({', '.join(parts)})"

    def of_image(self) -> Output:
        """Return the output for a field of images; only outputs of Python functions differ there."""
        return self

    def to_c(self, name: str) -> _c.Output:
        """Return the struct for the library, with the output's name."""
        output = _c.Output(
            name=text("outputs", name), field=text(f"outputs.{name}.field", self.field), kind=self.kind, dtype=self.dtype,
            ragged=_c.RaggedOutput(bytes_per_batch=self.bytes_per_batch), image=_c.ImageOutput(
                layout=LAYOUTS[self.layout][0], channels=self.channels, reference=_c.NAMES["reference"][self.reference],
                random_group=self.random_group, exif_orientation=int(self.exif_orientation),
                n_sizes=len(self.size_ops), every=self.every))
        for name_of, value, _ in self.following:
            if isinstance(value, tuple):  # pairs of numbers of points
                output.follow.n_flip_pairs = len(value) // 2
                value = cast((c_uint32 * len(value))(*value), POINTER(c_uint32))
            setattr(output.follow, name_of, text(f"outputs.{name}.{name_of}", value) if isinstance(value, str) else value)
        if self.size_ops:
            lists = (_c.OpList * len(self.size_ops))(*map(_c_list, self.size_ops))
            output.image.size_ops = cast(lists, POINTER(_c.OpList))
        else:
            listed = _c_list(self.ops)
            output.image.ops, output.image.n_ops = listed.ops, listed.n_ops
        return output

    def of_one_size(self) -> Output:
        """Return a copy with the first of its sizes for all batches."""
        return replace(self, size_ops=(), sizes=(), every=0)


def _c_list(ops: Sequence[Op]) -> _c.OpList:
    made = (_c.Op * len(ops))(*(op.to_c() for op in ops))
    return _c.OpList(ops=cast(made, POINTER(_c.Op)) if ops else None, n_ops=len(ops))


def field_name(field: str, maker: str) -> str:
    if not isinstance(field, str):
        raise TypeError(f"{maker}.field: value is {field!r}; must be the name of a field of the data set")
    return field


def whole(maker: str, name: str, value: Any, most: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{maker}.{name}: value is {value!r}; must be a whole number") from None
    if not 0 <= number <= most:
        raise SettingsError(f"{maker}.{name}: value is {number}; must be from 0 to {most}")
    return number


@explained("penstock.image", IMAGE_KEYWORDS)
def image(field: str, ops: Ops, *, dtype: Any = None, layout: str = "nhwc",
          random_group: int = 0, exif_orientation: bool = False, channels: int = 3,
          sizes: Iterable[Any] | None = None, every: int | None = None, reference: str = "pil") -> Output:
    """Decoded images of an image field: [B, H, W, C] of uint8, or of float16, bfloat16 or float32.

    uint8 elements are 0 to 255. Floats are 0 to 1, as those of ToTensor, or the result of a Normalize at the end of
    ops.

    field: name of the field.
    ops: operations in their order; they must fix the size.
    dtype: None: float32 if ops have Normalize or ToFloat, else uint8.
    layout: "nhwc" [B, H, W, C]; "nchw" [B, C, H, W]; "channels_last" [B, C, H, W] whose memory is NHWC, as PyTorch's
        channels_last.
    random_group: outputs of one group have the same random choices: two pictures of a sample get the same crop and
        flip.
    exif_orientation: turn JPEGs and PNGs upright first, by the orientation in their Exif, or else XMP, as Pillow's
        ImageOps.exif_transpose does.
    channels: channels of the decoded image, by Pillow's convert: 3, RGB; 1, gray ("L"); 4, RGBA, with alpha 255 if a
        file has none.
    sizes: for multi-scale training: a list of ints or (height, width). All rows of a batch have one of them, and so
        have the masks and boxes that follow. The only operation of ops that has a size gets that of the batch; or ops
        is a function of the size that returns the list.
    every: number of consecutive batches with the same size; None: 1. Then a size is drawn again, each with the same
        probability, by seed, epoch and number of the batch: all ranks have the same size in a step. Outputs with sizes
        share the draw, and must have equally many sizes and the same `every`.
    reference: "pil": the operations give torchvision's pixels of PIL images. "tensor": colours, GaussianBlur and warps
        give those of torchvision.transforms.v2 of uint8 tensors; resizes stay Pillow's.

    Do not use it for masks: bilinear resizing mixes class ids, and a palette's numbers become its colours. Pack masks
    in a field of kind mask, and write penstock.mask.

    Raises TypeError, SettingsError.
    """
    field = field_name(field, "image")
    given, size_ops = ((), ()) if sizes is None else lists_of(ops, sizes)
    if sizes is None and isinstance(ops, (FunctionType, MethodType)):
        raise TypeError(f"image.ops: value is {ops!r}; must be a list of operations, because a function gets a size of sizes "
                        "(give sizes=[...])")
    if sizes is None and every is not None:
        raise SettingsError(f"image.every: value is {every!r}; must be None without sizes")
    every = 1 if every is None else whole("image", "every", every, 2**32 - 1)
    if every == 0:
        raise SettingsError("image.every: value is 0; must be at least 1, batches in a row of the same size")
    found = size_ops[0] if size_ops else operations("image.ops", ops)
    if not isinstance(layout, str) or layout not in LAYOUTS:
        raise SettingsError(f"image.layout: value is {layout!r}; must be one of {', '.join(LAYOUTS)}"
                            + near(str(layout).lower(), LAYOUTS))
    exif_orientation = switch("image.exif_orientation", exif_orientation)
    if getattr(channels, "shape", ()) or isinstance(channels, bool) or channels not in (1, 3, 4):
        raise SettingsError(f"image.channels: value is {channels!r}; must be 1 (gray), 3 (RGB) or 4 (RGBA)")
    if not isinstance(reference, str) or reference not in _c.NAMES["reference"]:
        raise SettingsError(f"image.reference: value is {reference!r}; must be the name of a reference"
                            + near_or_all(reference, _c.NAMES["reference"]))
    if dtype is None:
        dtype = "float32" if any(isinstance(op, (Normalize, ToFloat)) for op in sum(size_ops, found)) else "uint8"
    return Output(field, _c.OUTPUT_IMAGE, dtype_code(dtype, "image"), layout, found,
                  whole("image", "random_group", random_group, 2**32 - 1), exif_orientation,
                  channels=int(channels), reference=reference, size_ops=size_ops, sizes=given,
                  every=every if size_ops else 0)


@explained("penstock.scalar", {})
def scalar(field: str, dtype: Any = None) -> Output:
    """A scalar field: [B].

    dtype: a type that can hold every value of the field's dtype; None: the field's. It may be a smaller type for whole
        numbers, such as int32 for an int64 field, if all values fit: the field's side column, which is read at open,
        must prove it.
    """
    return Output(field_name(field, "scalar"), _c.OUTPUT_SCALAR, dtype_code(dtype, "scalar"))


@explained("penstock.tensor", {})
def tensor(field: str, dtype: Any = None) -> Output:
    """An array field of fixed shape: [B, *shape].

    dtype: a type that can hold every value of the field's dtype; None: the field's.
    """
    return Output(field_name(field, "tensor"), _c.OUTPUT_TENSOR, dtype_code(dtype, "tensor"))


@explained("penstock.ragged", {})
def ragged(field: str, bytes_per_batch: int = 0) -> Output:
    """Values of varying length, end to end, as a penstock.Ragged with data and offsets [B + 1].

    For an array field whose only variable dimension is the first, data is [items, shape...] of its dtype (token ids:
    [items]; boxes: [items, 4]). For text, bytes, images and other arrays it is [bytes] of uint8, as stored. An array
    with several variable dimensions begins with its shape, a uint64 for each dimension. For a list field, data has the
    bytes of lists as stored, and tolist() gives lists of their items.

    bytes_per_batch: bytes of values in each slot; 0: batch_size times the largest value of the field.
    """
    size = whole("ragged", "bytes_per_batch", bytes_per_batch, 2**64 - 1)
    return Output(field_name(field, "ragged"), _c.OUTPUT_BYTES, bytes_per_batch=size)


Outputs = Union[Mapping[str, Union[Output, str]], Sequence[Union[Output, str]], None]


def _by_kind(info: FieldInfo) -> Output:
    name, field = info.name, info.field
    if field.is_scalar:
        return scalar(name)
    if _is_fixed(info):
        return tensor(name)
    if field.kind == "image":
        raise SettingsError(
            f"outputs: value is '{name}', an image field; must have operations that give all images one size "
            f"(write outputs={{'{name}': penstock.image('{name}', [penstock.ops.RandomResizedCrop(224)]), ...}})")
    return ragged(name)


def _field(catalog: Catalog, name: str) -> FieldInfo:
    for field in catalog.fields:
        if field.name == name:
            return field
    names = [f.name for f in catalog.fields]
    raise SettingsError(f"outputs: value is '{name}'; must be a field of the data set: {', '.join(names)}"
                        + near(name, names))


def _is_fixed(info: FieldInfo) -> bool:
    return info.field.is_array and all(info.field.shape or ())


# By kind of output: the kind of field that it needs, as it is packed.
_PACKED_BY = {"boxes": "penstock.Boxes(...)", "keypoints": "penstock.Keypoints(k, ...)",
              "polygons": "penstock.Polygons(...)"}


def _check_kind(output: Output, info: FieldInfo) -> None:
    """Raise SettingsError for an output that does not fit the field's kind. The message names the output that does."""
    name, field = info.name, info.field
    kinds = {"scalar": field.is_scalar, "tensor": _is_fixed(info), "image": field.kind == "image",
             "mask": field.kind == "mask", "ragged": not field.is_scalar,
             **{what: field.meaning == what for what in ("boxes", "keypoints", "polygons")}}
    asked = KINDS.get(output.kind, "")
    if kinds.get(asked, True):  # outputs of C callbacks take any field
        return
    meaning = field.meaning if field.meaning in kinds else None
    has = meaning or next(kind for kind, fits in kinds.items() if fits)
    if field.is_array and not meaning:
        what = f"an array of shape {field.shape}" + ("" if _is_fixed(info) else " (None: variable)")
    else:
        what = f"one number ({field.kind})" if field.is_scalar else f"of kind {(meaning or field.kind)!r}"
    more = ", [...]" if has == "image" else ""
    raise SettingsError(f"outputs: value is penstock.{asked}('{name}'), but field '{name}' is {what}; must be "
                        f"penstock.{has}('{name}'{more}){_what_else(asked, field)}")


def _what_else(asked: str, field: Field) -> str:
    """Return further advice for the output that was asked for; "": there is none."""
    if asked in _PACKED_BY and field.is_array and field.meaning is None:
        return f", or the field must be packed as {_PACKED_BY[asked]}, and then follows its image"
    if field.is_list and asked in ("image", "mask"):
        return ": loaders hand lists out as stored, and penstock.Dataset decodes them"
    return ""


def _one(catalog: Catalog, value: Output | str) -> Output:
    """Return the given output; for the name of a field, the output that fits its kind. Raises TypeError and
    SettingsError."""
    if isinstance(value, Output):
        info = _field(catalog, value.field)
        _check_kind(value, info)
        shape = info.field.shape
        if info.field.is_list and value.kind == _c.OUTPUT_BYTES:
            return replace(value, list_kind=LIST_KINDS[info.field.kind])
        if info.field.kind == "image" and value.kind == _c.OUTPUT_CALLBACK:
            return value.of_image()
        if value.kind == _c.OUTPUT_BYTES and shape and shape[0] is None and None not in shape[1:]:
            return replace(value, kind=_c.OUTPUT_RAGGED)
        return value
    if isinstance(value, str):
        return _one(catalog, _by_kind(_field(catalog, value)))
    if isinstance(value, Mapping):
        raise TypeError("outputs: value is a dict; must be an output: write outputs={**penstock.ops.ten_crop(...)} for a "
                        "dict of outputs, and {**penstock.recipes.views(field, lists)} for a dict of lists of operations")
    raise TypeError(f"outputs: value is {str(value)[:200]!r}; must be an output (penstock.image, scalar, tensor, "
                    "ragged, mask, boxes, keypoints, polygons, python) or the name of a field")


def _output_name(name: str) -> str:
    if not isinstance(name, str) or not name or "\0" in name:
        raise SettingsError(f"outputs: name is {name!r}; must be text that is not empty and has no NUL")
    return name


_C_NAMES = {_c.lib.pstk_dtype_name(code).decode(): name for code, name in DTYPE_NAMES.items()}
# A C name of a dtype, but not in quotes, nor as a part of a name or path.
_C_DTYPE = re.compile(r"(?<![\w/'.-])(" + "|".join(_C_NAMES) + r")(?![\w/'-]|\.\w)")


def in_python(message: str, outputs: Mapping[str, Output]) -> str:
    """Translate a message of the library about one of these outputs, "outputs[0].ops[1] (normalize): ...", into
    Python's names. In one about `mix`, translate only dtypes. Return other messages unchanged."""
    if message.startswith("mosaic."):
        return "mix." + message.removeprefix("mosaic.")
    if message.startswith("mix."):
        return _C_DTYPE.sub(lambda found: _C_NAMES[found[1]], message)
    match = re.match(r"outputs\[(\d+)\](?:\.size_ops\[(\d+)\])?(?:\.ops\[(\d+)\](?: \([\w ]+\))?)?(?:\.(?=\w)|: ?| )",
                     message)
    if match is None:
        return message
    name, output = list(outputs.items())[int(match[1])]
    where, what = f"outputs[{name!r}]", message[match.end():]
    if match[2] is not None:
        where += f", size {output.sizes[int(match[2])]!r}"
    if match[3] is not None:
        number = int(match[3])
        ops = output.ops if match[2] is None else output.size_ops[int(match[2])]
        where += f", operation {number + 1} ({type(ops[number]).__name__})"
    what = what.removesuffix(f" (output '{name}')")
    what = re.sub(r"\boutputs\[(\d+)\]", lambda found: f"outputs[{list(outputs)[int(found[1])]!r}]", what)
    return f"{where}: {_C_DTYPE.sub(lambda found: _C_NAMES[found[1]], renamed(what))}"


def renamed(what: str) -> str:
    """Translate names of C members that differ in Python, and their values."""
    if what.startswith("filter: "):
        what = re.sub(r"\b(?:NEAREST|BILINEAR|BICUBIC)\b", lambda found: repr(found[0].lower()), what)
        return what.replace("filter", "interpolation", 1)
    return re.sub(r"^n_sizes: value is (\d+)", r"sizes: there are \1", what)


_MAKERS = {"mask": "mask", "boxes": "boxes", "keypoints": "keypoints", "polygons": "polygons"}


def _axes_above(catalog: Catalog, axis: str | None) -> set[str]:
    """Return the axis, and all axes whose rows have lists of its rows: for the corners of polygons, the axes of
    polygons and objects."""
    found: set[str] = set()
    while axis is not None and axis not in found:
        found.add(axis)
        axis = next((info.field.rows for info in catalog.fields if info.field.splits == axis), None)
    return found


def _refuse_still(given: Mapping[str, Output | str], found: Mapping[str, Output], catalog: Catalog) -> None:
    """Raise SettingsError for the bare name of a field whose stored values would not belong to the batch's images. Such
    a field lies in an image that an output may change, or its rows belong to boxes that an output may drop."""
    images = {output.field for output in found.values() if output.kind == _c.OUTPUT_IMAGE}
    boxes = {str(_field(catalog, output.field).field.rows): name for name, output in found.items()
             if output.kind == _c.OUTPUT_BOXES}
    for name, value in given.items():
        if not isinstance(value, str):
            continue
        field = _field(catalog, value).field
        what = field.meaning or field.kind
        stored = f"penstock.ragged({value!r}) for the stored values"
        if field.of in images:
            follow = f"penstock.{_MAKERS[what]}({value!r}) to follow it, or " if what in _MAKERS else ""
            raise SettingsError(f"outputs[{name!r}]: value is {value!r}, a field of kind {what} of image {field.of!r}, whose "
                                f"operations would not move its values; must be {follow}{stored}")
        for axis in sorted(_axes_above(catalog, field.rows) & boxes.keys()):
            drop = f"penstock.per_box({value!r}) without the items of dropped boxes, or " if field.is_array else ""
            raise SettingsError(f"outputs[{name!r}]: value is {value!r}, which has items for the boxes of output "
                                f"{boxes[axis]!r}, also for those that are dropped; must be {drop}{stored}")


def resolve(outputs: Outputs, catalog: Catalog) -> dict[str, Output]:
    """Return the outputs by their names. outputs: None: every field, as the output that fits its kind. Raises TypeError
    and SettingsError."""
    if outputs is None:
        outputs = [field.name for field in catalog.fields]
    if isinstance(outputs, Mapping):
        found = {_output_name(name): _one(catalog, value) for name, value in outputs.items()}
        given: Mapping[str, Output | str] = outputs
    else:
        if isinstance(outputs, (str, Output)):
            outputs = [outputs]
        if isinstance(outputs, Set) or not isinstance(outputs, Iterable):
            raise TypeError(f"outputs: value is {outputs!r}; must be {{name: output}} or a list of outputs")
        values = items("outputs", outputs, "{name: output} or a list of outputs")
        listed = [_one(catalog, value) for value in values]
        found = {output.field: output for output in listed}
        given = {output.field: value for output, value in zip(listed, values)}
        if len(found) < len(listed):
            raise SettingsError("outputs: value has two outputs of one field; must have a name for each "
                                "(write outputs={'a': ..., 'b': ...})")
    if not found:
        raise SettingsError("outputs: value is empty; must have at least 1 output")
    _refuse_still(given, found, catalog)
    return found
