# SPDX-License-Identifier: Apache-2.0
"""Outputs that follow an image: its geometric operations are applied to them, too."""
from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

from . import _c
from .arguments import number, switch
from .elsewhere import BOX_FORMS
from .errors import SettingsError
from .hints import explained, near
from .outputs import Output, dtype_code, field_name, whole

__all__ = ["boxes", "keypoints", "mask", "per_box", "polygons"]


# Arguments that have another name in pstk_follow_output.
_MEMBER_OF = {"follows": "image", "form": "box_format"}


def _named(maker: str, argument: str, name: str | None, what: str) -> list[tuple[str, Any, str]]:
    """Return the member for an argument that names another output; [] for None, the only one. Raises SettingsError."""
    if name is None:
        return []
    if not isinstance(name, str) or not name or "\0" in name:
        raise SettingsError(f"{maker}.{argument}: value is {name!r}; must be the name of {what}, or None for the only one")
    return [(_MEMBER_OF.get(argument, argument), name, f"{argument}={name!r}")]


def _follows(maker: str, follows: str | None) -> list[tuple[str, Any, str]]:
    return _named(maker, "follows", follows, "an image output")


@explained("penstock.mask", {"ops": "a mask follows the operations of its image",
                             "fill": "write ignore, the class of pixels that the image lacks"})
def mask(field: str, *, ignore: int = 255, dtype: Any = None, follows: str | None = None) -> Output:
    """Masks of a mask field: [B, H, W], the class numbers of the image's pixels. Resizes and warps copy the nearest
    pixel, whatever the filters of the image are; operations on colours and erasing do nothing.

    ignore: class of pixels that the image lacks, for example where a crop pads. Loss functions ignore it.
    dtype: a type that holds the classes; None: uint8. Masks of 16 bits need uint16 or more. To copy int64 to a device
        takes eight times as long as to copy uint8 and call .long() there.
    follows: name of the image output; None: the only one of the mask's image.

    If a mask has another size than its image, its sample is bad.
    """
    field = field_name(field, "mask")
    code = dtype_code("uint8" if dtype is None else dtype, "mask")
    if isinstance(ignore, int) and ignore < 0:
        raise SettingsError(f"mask.ignore: value is {ignore}; must be at least 0, as masks have no negative classes (write "
                            "255, and ignore_index=255 of the loss function)")
    ignore = whole("mask", "ignore", ignore, 255 if code == _c.U8 else 65535)
    return Output(field, _c.OUTPUT_MASK, code,
                  following=(("fill", ignore, f"ignore={ignore}"), *_follows("mask", follows)))


def _choice(name: str, value: Any, choices: Mapping[str, int], maker: str = "boxes") -> tuple[str, Any, str]:
    if not isinstance(value, str) or value not in choices or value == "none":
        known = ", ".join(choice for choice in choices if choice != "none")
        raise SettingsError(f"{maker}.{name}: value is {value!r}; must be one of {known}"
                            + (f" ({BOX_FORMS[str(value)]})" if str(value) in BOX_FORMS and name == "form"
                               else near(str(value), choices)))
    return _MEMBER_OF.get(name, name), choices[value], f"{name}={value!r}"


def _least(name: str, value: Any, most: float) -> list[tuple[str, Any, str]]:
    found = number(f"boxes.{name}", value, 0, most)
    return [(name, found, f"{name}={value!r}")] if found else []


def _where(given: Any) -> list[tuple[str, Any, str]]:
    if given is None:
        return []
    if not isinstance(given, str) or "\0" in given:
        raise TypeError(f"boxes.where: value is {given!r}; must be a text as 'iscrowd == 0', or None for all boxes")
    return [("where", given, f"where={given!r}")]


def _added(given: Any) -> list[tuple[str, Any, str]]:
    try:
        added = operator.index(given)
    except TypeError:
        raise TypeError(f"per_box.add: value is {given!r}; must be a whole number") from None
    if not -2**63 <= added < 2**63:
        raise SettingsError(f"per_box.add: value is {added}; must be from -2**63 to 2**63 - 1")
    return [("add", added, f"add={added}")] if added else []


@explained("penstock.boxes", {"ops": "boxes follow the operations of their image",
                              "format": "write form", "min_size": "write min_side",
                              "labels": "labels are an output of their own: penstock.per_box('labels')"})
def boxes(field: str, *, where: str | None = None, form: str = "xyxy", coordinates: str = "pixels", clip: bool = True,
          min_side: float = 0, min_area: float = 0, min_visible: float = 0, follows: str | None = None,
          bytes_per_batch: int = 0) -> Output:
    """Boxes of a boxes field, as a penstock.Ragged of float32: [boxes, 4]. After each operation that moves pixels, a
    box becomes the bounding box of its corners, clipped to the image, as in torchvision.transforms.v2.

    where: a condition such as "iscrowd == 0": only boxes whose number in another field fits are handed out. It has the
        name of a field with one number for each box, one of == != < <= > >=, and a whole number. per_box, keypoints,
        polygons and RandomIoUCrop leave out the other boxes, too. None: all boxes.
    form: "xyxy", "xywh" or "cxcywh". The field may have another form.
    coordinates: "pixels", or "unit" for fractions of the width and height of the image as it is handed out. The field
        may have others.
    clip: False: boxes may reach outside of the image.
    min_side, min_area: smallest side, and smallest area, that a box has after clipping, in pixels; smaller boxes are
        dropped.
    min_visible: smallest part of its area that a box has after clipping, 0 to 1; other boxes are dropped. A box is
        dropped in any case if nothing of it is left. Stats.n_dropped_boxes counts the dropped boxes, without those that
        `where` leaves out. penstock.per_box drops their labels.
    follows: name of the image output; None: the only one of the boxes' image.
    bytes_per_batch: as in penstock.ragged.

    If a number of a box is not finite, or its right is left of its left, its sample is bad.
    """
    clip = switch("boxes.clip", clip)
    following = [*_where(where), _choice("form", form, _c.NAMES["box_format"]), _choice("coordinates", coordinates, _c.NAMES["coordinates"]),
                 *([] if clip else [("keep_outside", 1, "clip=False")]), *_least("min_side", min_side, 2**32 - 1),
                 *_least("min_area", min_area, 2**63), *_least("min_visible", min_visible, 1), *_follows("boxes", follows)]
    return Output(field_name(field, "boxes"), _c.OUTPUT_BOXES, following=tuple(following),
                  bytes_per_batch=whole("boxes", "bytes_per_batch", bytes_per_batch, 2**64 - 1))


@explained("penstock.per_box", {"offset": "write add"})
def per_box(field: str, boxes: str | None = None, *, add: int = 0, bytes_per_batch: int = 0) -> Output:
    """Items that belong to boxes: labels, areas. The items of dropped boxes are left out.

    field: an array field whose only variable dimension is the first, with an item for each box. Or a field whose rows
        fields of lengths (`splits`) assign to boxes: the runs of objects' masks, the number of corners of each polygon.
        The result is a penstock.Ragged of its dtype.
    boxes: name of the output of boxes; None: the only one.
    add: a whole number that is added to all items: 1 for detectors that keep class 0 for the background. The field must
        have whole numbers; if their dtype cannot hold a sum, the sample is bad.
    bytes_per_batch: as in penstock.ragged.
    """
    return Output(field_name(field, "per_box"), _c.OUTPUT_PER_BOX,
                  following=(*_named("per_box", "boxes", boxes, "an output of boxes"), *_added(add)),
                  bytes_per_batch=whole("per_box", "bytes_per_batch", bytes_per_batch, 2**64 - 1))


def _of_boxes(maker: str, boxes: Any) -> list[tuple[str, Any, str]]:
    if boxes is True:
        raise TypeError(f"{maker}.boxes: value is True; must be the name of an output of boxes, None for the only one, "
                        "or False for none")
    if boxes is False:
        return [("boxes", "", "boxes=False")]
    return _named(maker, "boxes", boxes, "an output of boxes")


def _flip_pairs(given: Any) -> list[tuple[str, Any, str]]:
    """Return the pairs as one tuple of whole numbers; [] for none. The library checks that the points exist. Raises
    TypeError and SettingsError."""
    wanted = "must be pairs of numbers of points, as [(1, 2), (3, 4)]"
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Mapping)):
        raise TypeError(f"keypoints.flip_pairs: value is {given!r}; {wanted}")
    try:
        pairs = list(given)
    except TypeError:  # an array of NumPy's without a dimension
        raise TypeError(f"keypoints.flip_pairs: value is {given!r}; {wanted}") from None
    numbers = []
    for pair in pairs:
        try:
            first, second = pair
        except (TypeError, ValueError):
            raise SettingsError(f"keypoints.flip_pairs: value has {pair!r}; {wanted}") from None
        numbers += [whole("keypoints", "flip_pairs", number, 2**32 - 1) for number in (first, second)]
    shown = [tuple(numbers[i:i + 2]) for i in range(0, len(numbers), 2)]
    return [("flip_pairs", tuple(numbers), f"flip_pairs={shown!r}")] if numbers else []


@explained("penstock.keypoints", {"ops": "keypoints follow the operations of their image",
                                  "clip": "write keep_outside=True to keep points that leave the image",
                                  "num_keypoints": "the field says how many points there are",
                                  "labels": "labels are an output of their own: penstock.per_box('labels')"})
def keypoints(field: str, *, flip_pairs: Iterable[tuple[int, int]] = (), keep_outside: bool = False,
              coordinates: str = "pixels", origin: str = "corner", boxes: str | bool | None = None,
              follows: str | None = None, bytes_per_batch: int = 0) -> Output:
    """Keypoints of a keypoints field, as a penstock.Ragged of float32: [rows, k, 3], x, y and visibility of the k
    points of each row. They move with the pixels of their image.

    A point that is outside of the image after any operation gets visibility 0, and a point with visibility 0 is (0, 0).
    Outside is x < 0, x > width, y < 0 or y > height. Points of a field without visibilities have 2.

    flip_pairs: pairs of numbers of points, [(1, 2), (3, 4)] for left and right eye and ear. The two are exchanged if
        the operations mirror the image. A horizontal or a vertical flip does; both together turn it.
    keep_outside: True: points outside keep their visibility and their place.
    coordinates: "pixels", or "unit" for fractions of the width and height of the image as it is handed out.
    origin: position of (0, 0), in the field and in the result: "corner", the outer corner of the top left pixel; or
        "center", its centre, for keypoints that are numbers of pixels, as COCO's are.
    boxes: name of the output of boxes: the rows of its dropped boxes are dropped. None: the only one that follows the
        same image, unless the two fields have different `rows`. False: none.
    follows: name of the image output; None: the only one of the points' image.
    bytes_per_batch: as in penstock.ragged.

    If a point is not finite, its sample is bad, unless the visibility is 0.
    """
    keep_outside = switch("keypoints.keep_outside", keep_outside)
    if not isinstance(origin, str) or origin not in ("corner", "center"):
        raise SettingsError(f"keypoints.origin: value is {origin!r}; must be corner or center"
                            + near(str(origin), ("corner", "center")))
    following = [*_flip_pairs(flip_pairs), *([("keep_outside", 1, "keep_outside=True")] if keep_outside else []),
                 _choice("coordinates", coordinates, _c.NAMES["coordinates"], "keypoints"),
                 *([("at_centers", 1, "origin='center'")] if origin == "center" else []),
                 *_of_boxes("keypoints", boxes), *_follows("keypoints", follows)]
    return Output(field_name(field, "keypoints"), _c.OUTPUT_KEYPOINTS, following=tuple(following),
                  bytes_per_batch=whole("keypoints", "bytes_per_batch", bytes_per_batch, 2**64 - 1))


@explained("penstock.polygons", {"ops": "polygons follow the operations of their image",
                                 "clip": "polygons are not clipped: penstock.masks.polygon_mask takes them as they are"})
def polygons(field: str, *, coordinates: str = "pixels", boxes: str | bool | None = None, follows: str | None = None,
             bytes_per_batch: int = 0) -> Output:
    """The corners of polygons of a polygons field, as a penstock.Ragged of float32: [corners, 2], polygon after
    polygon. They move with the pixels of their image, and are never clipped: each polygon keeps its corners, also those
    outside.

    The number of corners of each polygon is an output of its own: penstock.per_box("polygon_points") if boxes are
    dropped, else the bare name of that field. Corners at the horizon of a perspective or beyond, outside of the image,
    are NaN.

    coordinates: "pixels", or "unit" for fractions of the width and height of the image as it is handed out.
    boxes: name of the output of boxes: the polygons of its dropped boxes are dropped. Fields of lengths (`splits`) must
        lead from the boxes to the corners. None: the only one that follows the same image and has such fields. False:
        none.
    follows: name of the image output; None: the only one of the polygons' image.
    bytes_per_batch: as in penstock.ragged.

    If a corner is not finite, its sample is bad.
    """
    following = [_choice("coordinates", coordinates, _c.NAMES["coordinates"], "polygons"), *_of_boxes("polygons", boxes),
                 *_follows("polygons", follows)]
    return Output(field_name(field, "polygons"), _c.OUTPUT_POLYGONS, following=tuple(following),
                  bytes_per_batch=whole("polygons", "bytes_per_batch", bytes_per_batch, 2**64 - 1))
