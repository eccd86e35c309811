# SPDX-License-Identifier: Apache-2.0
"""The schema of a data set: the named fields of its records, each of one kind.

A schema is a dict {name: field}, in the order in which records store them. A field is a Field, or in short

    "image"                 an image: a JPEG or PNG file, or pixels
    "mask"                  class numbers of an image's pixels: a PNG file of one channel, or pixels
    "bytes", "utf8"         bytes, text
    "int64", "float32" ...  one number of that type (NumPy's names; also "bfloat16")
    ("uint16", (1024,))     an array of fixed shape
    ("int32", (None, 4))    an array; None: this dimension differs from record to record
    ["utf8"], list[str]     a list of texts; also ["bytes"], ["image"] and ["mask"]
    Boxes(), Keypoints(17), Polygons(), Rle()
                            what belongs to an image: arrays whose meaning the data set states
"""
from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any, Union, get_args, get_origin

from .. import _c
from ..arguments import is_whole, items, switch, text
from ..dtypes import DTYPES, DTYPE_NAMES, ambiguous, dtype_name, parse
from ..elsewhere import BOX_FORMS
from ..errors import SettingsError
from ..hints import explained, near

__all__ = ["Boxes", "Field", "FieldLike", "Keypoints", "Polygons", "Rle", "Schema", "schema_of"]

# Kinds of arrays with a meaning.
MEANINGS = {name: _c.NAMES["field_kind"][name] for name in ("boxes", "keypoints", "polygons", "rle")}
# Kinds without a dtype. Images come first, for messages.
PLAIN_KINDS = {"image": _c.FIELD_IMAGE, **{name: code for name, code in _c.NAMES["field_kind"].items()
                                           if code not in (_c.FIELD_SCALAR, _c.FIELD_NDARRAY, *MEANINGS.values())}}
LIST_KINDS = {name: code for name, code in PLAIN_KINDS.items() if name.endswith("_list")}
_CODEC_OF = {"image": "planes", "mask": "zstd"}  # default codecs; for other kinds "none"
_WITH_OF = (*MEANINGS, "mask", "mask_list")
_WORDS = {"form": {name: code for name, code in _c.NAMES["box_format"].items() if code},
          "coordinates": {name: code for name, code in _c.NAMES["coordinates"].items() if code}}
CODECS = _c.NAMES["codec"]
# Other libraries' names for kinds.
_OTHERS = {
    **dict.fromkeys(("str", "string", "text", "txt", "json"), "utf8"),
    **dict.fromkeys(("jpg", "jpeg", "png", "img", "pil", "rgb_image"), "image"),
    **dict.fromkeys(("binary", "blob", "raw", "bytearray"), "bytes"),
}
_CALLS = {"boxes": "Boxes()", "keypoints": "Keypoints(17)", "polygons": "Polygons()", "rle": "Rle()",
          "mask": "Mask()"}
_PYTHON_TYPES: dict[Any, str] = {bool: "uint8", str: "utf8", bytes: "bytes"}  # Python's types, in addition to those in dtypes
_NUMPY_TEXTS = {"S": "bytes", "U": "utf8"}  # by the kind of a numpy.dtype
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,63}\Z")


def name_by_code(names: Mapping[str, int], code: int) -> str:
    """Return the name for a number of the C library."""
    for name, value in names.items():
        if value == code:
            return name
    return f"unknown ({code})"


def _kind_name(kind: Any) -> str:
    """Return the name of a kind: "image", "bytes", "utf8" or the name of a dtype. Raises SettingsError."""
    try:
        if kind in _PYTHON_TYPES:
            return _PYTHON_TYPES[kind]
    except TypeError:  # an unhashable value is no type
        pass
    if getattr(kind, "kind", "") in _NUMPY_TEXTS and hasattr(kind, "itemsize"):
        return _NUMPY_TEXTS[kind.kind]
    name = dtype_name(kind)
    if name in PLAIN_KINDS:
        return name
    if name in ("bool", "bool_"):  # there is no dtype bool
        return "uint8"
    found = parse(kind)
    if found is None:
        other, call = _OTHERS.get(name.lower()), _CALLS.get(str(getattr(kind, "__name__", name)).lower())
        known = [*PLAIN_KINDS, *DTYPES]
        form = BOX_FORMS.get(name.lower())
        hint = f" (of boxes: {form})" if form else f" (write {other!r})" if other else f" (write penstock.{call})" if call else \
            ambiguous(kind) or near(name, known)
        raise SettingsError(f"kind: value is {kind!r}; must be one of {', '.join(known)}{hint}")
    return found


def _list_kind(item: Any) -> str:
    """Return the kind of a list, "utf8_list", ..., by the kind of its items. Raises SettingsError."""
    name = item if isinstance(item, str) and item + "_list" in LIST_KINDS else _kind_name(item)
    if name + "_list" not in LIST_KINDS:
        known = ", ".join(kind.removesuffix("_list") for kind in LIST_KINDS)
        raise SettingsError(f"kind: value is a list of {name}; must be a list of {known} (for numbers declare an "
                            f"array, such as ({name!r}, (None,)))")
    return name + "_list"


def _dimension(value: Any) -> int | None:
    if value is None:
        return None
    found = operator.index(value) if is_whole(value) else -2
    if found in (0, -1):
        return None
    if 0 < found < 2**63:
        return found
    raise SettingsError(f"shape: a dimension is {value!r}; must be a positive whole number, or None where it "
                        "differs from record to record")


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of a schema.

    kind: "image", "mask", "bytes", "utf8", or a dtype: its name, a NumPy or torch dtype, int, float. Lists are
        ["utf8"], ["bytes"], ["image"] and ["mask"], or by name "utf8_list" and so on; or list[str], list[bytes].
    shape: shape of an array; None in it: this dimension differs from record to record. A dtype without a shape is a
        scalar.
    codec: way in which values are stored. "planes" (only images, their default): JPEG coefficients are encoded again,
        without loss, in a code that decodes several times faster; pixels and PNGs are kept as they are. "zstd" (default
        of masks): with a dictionary if values are small. "none": the default of all others.
    level: of zstd: 0: 3. Of planes: 1: store the few JPEGs that cannot be given back byte for byte as they came.
    rows: name of an axis, for lists, and for arrays whose only variable dimension is the first. In a record, all fields
        of one axis have equally many rows: boxes, labels and masks of its objects.
    splits: name of an axis, for arrays of integers of shape (None,). Their values are lengths that split the rows of
        that axis, and add up to their number: how many of the points belong to each polygon.
    of: name of the image field to which masks, boxes, keypoints, polygons and runs belong; None: the only image field.
    meaning, form, coordinates: for arrays with a meaning; see penstock.Boxes, Keypoints, Polygons and Rle.

    Raises SettingsError.
    """
    kind: Any
    shape: Sequence[int | None] | None = None
    codec: str | None = None
    level: int = 0
    rows: str | None = None
    splits: str | None = None
    of: str | None = None
    meaning: str | None = None
    form: str | None = None
    coordinates: str | None = None

    def __post_init__(self) -> None:
        item = self.kind if isinstance(self.kind, list) and len(self.kind) == 1 else \
            get_args(self.kind) if get_origin(self.kind) is list else ()
        kind = _list_kind(item[0]) if item else _kind_name(self.kind)
        put = object.__setattr__  # the object is frozen for all other code
        put(self, "kind", kind)
        if self.shape is not None:
            put(self, "shape", self._checked_shape())
        codec = _CODEC_OF.get(kind, "none") if self.codec is None else self.codec
        if not isinstance(codec, str) or codec not in CODECS:
            raise SettingsError(f"codec: value is {codec!r}; must be one of {', '.join(CODECS)}"
                                + near(codec, CODECS))
        if self.is_scalar and codec != "none":
            raise SettingsError(f"codec: value is {codec!r}; must be 'none' for a scalar ({kind})")
        if codec == "planes" and kind != "image":
            raise SettingsError(f"codec: value is 'planes'; must be 'zstd' or 'none' for a field of {kind}")
        put(self, "codec", codec)
        if not is_whole(self.level) or not -2**31 <= self.level < 2**31:
            raise SettingsError(f"level: value is {self.level!r}; must be a whole number, such as 3")
        put(self, "level", operator.index(self.level))
        self._check_attributes()

    def _check_attributes(self) -> None:
        for name in ("rows", "splits", "of"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and _NAME.match(value)):
                raise SettingsError(f"{name}: value is {value!r}; must be 1 to 63 letters, digits, _ . -")
        if self.meaning is not None and (not isinstance(self.meaning, str) or self.meaning not in MEANINGS):
            raise SettingsError(f"meaning: value is {self.meaning!r}; must be one of {', '.join(MEANINGS)}, or None"
                                + near(str(self.meaning), MEANINGS))
        if self.of is not None and not self.needs_image:
            raise SettingsError(f"of: value is {self.of!r}; must be None for a field of {self.kind}")
        needed = {"form": self.meaning == "boxes", "coordinates": self.meaning in ("boxes", "keypoints", "polygons")}
        for name, known in _WORDS.items():
            value = getattr(self, name)
            if value is None and not needed[name]:
                continue
            if not needed[name]:
                raise SettingsError(f"{name}: value is {value!r}; must be None for a field of "
                                    f"{self.meaning or self.kind}")
            if not isinstance(value, str) or value not in known:
                raise SettingsError(f"{name}: value is {value!r}; must be one of {', '.join(known)}"
                                    + (f" ({BOX_FORMS[str(value)]})" if str(value) in BOX_FORMS and name == "form"
                                       else near(str(value), known)))

    def _checked_shape(self) -> tuple[int | None, ...]:
        if self.kind in PLAIN_KINDS:
            raise SettingsError(f"shape: value is {self.shape!r}; must be None for a field of {self.kind}")
        given = [self.shape] if is_whole(self.shape) else items("shape", self.shape, "a whole number, or a list of whole numbers and None")
        shape = tuple(_dimension(n) for n in given)
        if not 1 <= len(shape) <= _c.MAX_DIMS:
            raise SettingsError(f"shape: value is {self.shape!r}; must have 1 to {_c.MAX_DIMS} dimensions "
                                "(for a scalar leave it out)")
        return shape

    @property
    def is_scalar(self) -> bool:
        """Whether a value is one number."""
        return self.kind in DTYPES and self.shape is None

    @property
    def is_array(self) -> bool:
        """Whether a value is an array of numbers."""
        return self.shape is not None

    @property
    def is_list(self) -> bool:
        """Whether a value is a list of any number of texts, bytes, images or masks."""
        return self.kind in LIST_KINDS

    @property
    def needs_image(self) -> bool:
        """Whether the field belongs to an image field."""
        return (self.meaning or self.kind) in _WITH_OF

    def __repr__(self) -> str:
        parts = [repr(self.kind)]
        if self.shape is not None:
            parts.append(f"shape={self.shape}")
        if self.codec != _CODEC_OF.get(self.kind, "none"):
            parts.append(f"codec={self.codec!r}")
        if self.level:
            parts.append(f"level={self.level}")
        parts += [f"{name}={getattr(self, name)!r}" for name in _ATTRIBUTES if getattr(self, name) is not None]
        return f"Field({', '.join(parts)})"

    def to_c(self, name: str) -> _c.Field:
        """Return the field as a struct for the C library."""
        made = _c.Field(name=text("fields", name), codec=CODECS[str(self.codec)], codec_level=self.level)
        made.rows, made.splits, made.of = (text(f"fields.{name}", value or "") for value in (self.rows, self.splits, self.of))
        made.box_format = _WORDS["form"].get(str(self.form), 0)
        made.coordinates = _WORDS["coordinates"].get(str(self.coordinates), 0)
        if self.kind in PLAIN_KINDS:
            made.kind = PLAIN_KINDS[self.kind]
            return made
        made.dtype = DTYPES[self.kind].code
        made.kind = _c.FIELD_SCALAR
        if self.shape is not None:
            made.kind, made.n_dims = MEANINGS.get(str(self.meaning), _c.FIELD_NDARRAY), len(self.shape)
            for i, n in enumerate(self.shape):
                made.shape[i] = n or 0
        return made

    @staticmethod
    def of_c(given: _c.Field) -> Field:
        """Return the field that a struct of the C library describes."""
        codec = name_by_code(CODECS, given.codec)
        names: Any = {name: getattr(given, name).decode() or None for name in ("rows", "splits", "of")}
        if given.kind in PLAIN_KINDS.values():
            return Field(name_by_code(PLAIN_KINDS, given.kind), None, codec, given.codec_level, **names)
        if given.kind in MEANINGS.values():
            names["meaning"] = name_by_code(MEANINGS, given.kind)
        for name, known in _WORDS.items():
            code = given.box_format if name == "form" else given.coordinates
            names[name] = name_by_code(known, code) if code else None
        shape = [given.shape[i] or None for i in range(given.n_dims)]
        dtype = DTYPE_NAMES.get(given.dtype, f"unknown ({given.dtype})")
        return Field(dtype, None if given.kind == _c.FIELD_SCALAR else shape, codec, given.codec_level, **names)


_ATTRIBUTES = ("rows", "splits", "of", "meaning", "form", "coordinates")


@explained("penstock.Boxes", {"format": "it is form"})
def Boxes(dtype: Any = "float32", *, form: str = "xyxy", coordinates: str = "pixels", of: str | None = None,
          rows: str | None = None, codec: str | None = None, level: int = 0) -> Field:
    """Return a field of boxes in an image: arrays [n, 4].

    form: "xyxy" (left, top, right, bottom), "xywh" (left, top, width, height) or "cxcywh" (centre, width, height).
    coordinates: "pixels", or "unit": fractions of the image's width and height. (0, 0) is the outer corner of the top
        left pixel, before any EXIF orientation; pixel centres lie at .5.
    dtype, of, rows, codec, level: see penstock.Field.
    """
    return Field(dtype, (None, 4), codec, level, rows=rows, of=of, meaning="boxes", form=form, coordinates=coordinates)


@explained("penstock.Keypoints", {"flip_pairs": "give it to the output, penstock.keypoints(field, flip_pairs=...)",
                                  "num_keypoints": "it is n"})
def Keypoints(n: int, dtype: Any = "float32", *, visibility: bool = True, coordinates: str = "pixels",
              of: str | None = None, rows: str | None = None, codec: str | None = None, level: int = 0) -> Field:
    """Return a field of n keypoints of each object: arrays [objects, n, 3] of x, y and visibility (0 absent, 1 hidden,
    2 visible), as in COCO.

    visibility: False: arrays [objects, n, 2] of x and y.
    coordinates: as in penstock.Boxes.
    dtype, of, rows, codec, level: see penstock.Field.
    """
    if not is_whole(n) or operator.index(n) < 1:
        raise SettingsError(f"Keypoints.n: value is {n!r}; must be the number of points of each object, at least 1")
    return Field(dtype, (None, operator.index(n), 3 if switch("Keypoints.visibility", visibility) else 2), codec, level, rows=rows, of=of, meaning="keypoints",
                 coordinates=coordinates)


def Polygons(dtype: Any = "float32", *, coordinates: str = "pixels", of: str | None = None, rows: str | None = None,
             codec: str | None = None, level: int = 0) -> Field:
    """Return a field of polygons: arrays [points, 2] of x and y, polygon after polygon. A field with `splits` says how
    many points each polygon has: {"points": Polygons(rows="points"), "n_points": Field("uint32", (None,),
    splits="points")}.

    coordinates: as in penstock.Boxes.
    dtype, of, rows, codec, level: see penstock.Field.
    """
    return Field(dtype, (None, 2), codec, level, rows=rows, of=of, meaning="polygons", coordinates=coordinates)


def Rle(*, of: str | None = None, rows: str | None = None, codec: str | None = "zstd", level: int = 0) -> Field:
    """Return a field of masks as runs, COCO's uncompressed counts: arrays [runs] of uint32. Runs are of 0 and of 1 in
    turn, 0 first, down the columns of the image, and add up to its pixels. A field with `splits` says how many runs
    each mask has; without one the runs are one mask.

    of, rows, codec, level: see penstock.Field.
    """
    return Field("uint32", (None,), codec, level, rows=rows, of=of, meaning="rle")


def Mask(*, of: str | None = None, codec: str | None = "zstd", level: int = 0) -> Field:
    """Return a field of masks: a class number for each pixel of the image, in the image's size. A mask is a PNG file
    (gray or with a palette, whose numbers it keeps), a PIL image of mode P, L, 1 or I;16, or an array of uint8, uint16
    or bool of height x width.

    of, codec, level: see penstock.Field.
    """
    return Field("mask", None, codec, level, of=of)


FieldLike = Union[Field, str, type, tuple[Any, Any], Any]
Schema = Mapping[str, FieldLike]


def _field_of(value: FieldLike) -> Field:
    if isinstance(value, Field):
        return value
    if isinstance(value, list) and len(value) == 1:
        return Field(_list_kind(value[0]))
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise SettingsError(f"value is {value!r}; must be (dtype, shape), such as ('uint16', (1024,))")
        return Field(value[0], value[1])
    return Field(value)


def of_some(schema: Mapping[str, Field]) -> dict[str, Field]:
    """Return some fields of a schema as a schema of their own. A field that belongs to a missing image becomes a plain
    array, or images; lengths that split a missing axis split none."""
    axes = {field.rows for field in schema.values()}
    made = {}
    for name, field in schema.items():
        if field.of is not None and field.of not in schema:
            kind = {"mask": "image", "mask_list": "image_list"}.get(field.kind, field.kind)
            field = dataclasses.replace(field, kind=kind, of=None, meaning=None, form=None, coordinates=None)
        made[name] = field if field.splits in axes else dataclasses.replace(field, splits=None)
    return made


def schema_of(given: Any) -> dict[str, Field]:
    """Check a schema, and return it as {name: Field}. Raises SettingsError, which names the field."""
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
    images = [name for name, field in made.items() if field.kind == "image"]
    for name, field in made.items():
        if not field.needs_image:
            continue
        if field.of is None and len(images) == 1:
            made[name] = dataclasses.replace(field, of=images[0])
        elif field.of not in images:
            raise SettingsError(f"field {name}: of: value is {field.of!r}; must be the name of an image field"
                                + (f": {', '.join(images)}" if images else ", which this schema lacks"))
    return made
