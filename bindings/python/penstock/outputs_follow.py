# SPDX-License-Identifier: Apache-2.0
"""Outputs that follow an image: what its operations do to a sample's pixels, they do to these, too."""
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


# Arguments whose member of pstk_follow_output has another name.
_MEMBER_OF = {"follows": "image", "form": "box_format"}


def _named(maker: str, argument: str, name: str | None, what: str) -> list[tuple[str, Any, str]]:
    """Return the member for an argument that names another output; nothing for the only one."""
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
    pixel, whatever the filters of the image are; colours and erasing do nothing.

    ignore: the class of pixels that the image lacks, as where a crop pads; loss functions ignore it.
    dtype: one that holds the classes; None is uint8. Masks of 16 bits need uint16 or more. To copy int64 to a
    device takes eight times as long as to copy uint8 and call .long() there.
    follows: the name of the image output; None: the only one of the mask's image.

    A mask of another size than its image is an error of its sample.
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
    box is the bounding box of its corners, clipped to the image, as in torchvision.transforms.v2.

    where: "iscrowd == 0": hand out only boxes whose number in another field fits. A field with one number for each box,
    one of == != < <= > >=, and a whole number. What goes with boxes (per_box, keypoints, polygons, RandomIoUCrop) goes
    without those left out. None: all boxes.
    form: "xyxy", "xywh" or "cxcywh". coordinates: "pixels", or "unit" for fractions of the width and height of the
    image as it is handed out. The field has its own of both.
    clip: False: hand boxes out that reach outside of the image.
    min_side, min_area: drop boxes that are smaller, once clipped, in pixels. min_visible: drop boxes of whose area
    less is left, a fraction from 0 to 1. Boxes of which nothing is left are dropped in any case; Stats.n_dropped_boxes
    counts all of these, and none that `where` leaves out. Their labels go with them: penstock.per_box.
    follows: the name of the image output; None: the only one of the boxes' image.
    bytes_per_batch: as of penstock.ragged.

    A box that is not finite, or whose right is left of its left, is an error of its sample.
    """
    clip = switch("boxes.clip", clip)
    following = [*_where(where), _choice("form", form, _c.NAMES["box_format"]), _choice("coordinates", coordinates, _c.NAMES["coordinates"]),
                 *([] if clip else [("keep_outside", 1, "clip=False")]), *_least("min_side", min_side, 2**32 - 1),
                 *_least("min_area", min_area, 2**63), *_least("min_visible", min_visible, 1), *_follows("boxes", follows)]
    return Output(field_name(field, "boxes"), _c.OUTPUT_BOXES, following=tuple(following),
                  bytes_per_batch=whole("boxes", "bytes_per_batch", bytes_per_batch, 2**64 - 1))


@explained("penstock.per_box", {"offset": "write add"})
def per_box(field: str, boxes: str | None = None, *, add: int = 0, bytes_per_batch: int = 0) -> Output:
    """What goes with boxes, an item for each: labels, areas. An array field whose only variable dimension is the
    first, as a penstock.Ragged of its dtype, without the items of boxes that were dropped. Or items that fields of
    lengths (`splits`) give to those: the runs of objects' masks, the number of corners of each polygon.

    boxes: the name of the output of boxes; None: the only one.
    add: a whole number that is added to all items: 1 for detectors that keep class 0 for the background. The numbers of
    the field are whole; a sum that their dtype cannot hold is an error of its sample.
    bytes_per_batch: as of penstock.ragged.
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
    """The pairs as one tuple of whole numbers; nothing for none. The library checks that the points exist."""
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

    A point that is outside of the image after any operation gets visibility 0, and a point with visibility 0 is
    (0, 0). Outside is x < 0, x > width, y < 0 or y > height. Points of a field without visibilities have 2.

    flip_pairs: pairs of numbers of points, [(1, 2), (3, 4)] for left and right eye and ear. The two change places
    where the operations mirror the image: by a flip, horizontal or vertical, but not by two of them, which turn it.
    keep_outside: True: points outside keep their visibility and their place.
    coordinates: "pixels", or "unit" for fractions of the width and height of the image as it is handed out.
    origin: what (0, 0) is, in the field and in the result: "corner", the outer corner of the top left pixel, or
    "center", its centre: for keypoints that are numbers of pixels, as COCO's.
    boxes: the name of the output of boxes with whose boxes the rows are dropped. None: the only one that follows the
    same image, unless the two fields have different `rows`. False: none.
    follows: the name of the image output; None: the only one of the points' image.
    bytes_per_batch: as of penstock.ragged.

    A point that is not finite is an error of its sample, unless its visibility is 0.
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
    """The corners of polygons of a polygons field, as a penstock.Ragged of float32: [corners, 2], polygon after polygon.
    They move with the pixels of their image, and are never clipped: each polygon keeps its corners, also those outside.

    The field's numbers of corners are an output of their own: penstock.per_box("polygon_points") where boxes are
    dropped, else its bare name. Corners at the horizon of a perspective or beyond, outside of the image, are NaN.

    coordinates: "pixels", or "unit" for fractions of the width and height of the image as it is handed out.
    boxes: the name of the output of boxes with whose boxes polygons are dropped; fields of lengths (`splits`) must lead
    from them to the corners. None: the only one that follows the same image and has such fields. False: none.
    follows: the name of the image output; None: the only one of the polygons' image.
    bytes_per_batch: as of penstock.ragged.

    A corner that is not finite is an error of its sample.
    """
    following = [_choice("coordinates", coordinates, _c.NAMES["coordinates"], "polygons"), *_of_boxes("polygons", boxes),
                 *_follows("polygons", follows)]
    return Output(field_name(field, "polygons"), _c.OUTPUT_POLYGONS, following=tuple(following),
                  bytes_per_batch=whole("polygons", "bytes_per_batch", bytes_per_batch, 2**64 - 1))
