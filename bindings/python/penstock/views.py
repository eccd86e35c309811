# SPDX-License-Identifier: Apache-2.0
"""Outputs with several views of one image. They have one field, and share its decoding."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

from . import _c
from .arguments import whole
from .errors import SettingsError
from .ops.geometry import CornerCrop, RandomFlip, RandomVerticalFlip
from .ops.lists import operations
from .ops.op import Op, Size
from .outputs import Output, image

__all__ = ["five_crop", "ten_crop", "views"]


def views(field: str, recipe: Union[Mapping[str, Iterable[Op]], Sequence[Iterable[Op]]], *, random_group: int = 0,
          **arguments: Any) -> dict[str, Output]:
    """Return outputs that show one image in several ways. The image is decoded once for all of them.

        outputs={**penstock.recipes.views("jpg", penstock.recipes.dino()), "y": penstock.scalar("cls")}

    field: as in penstock.image.
    recipe: lists of operations by the names of the outputs; or a sequence of lists, whose outputs are "view_0",
        "view_1", and so on: [ops] * 4 gives repeated augmentation.
    random_group: the first view's; every further view has the next one, and so makes its own random choices. For views
        with the same choices, as one crop in two sizes, make the outputs by penstock.image with one random_group.
    arguments: further arguments of penstock.image.
    """
    if not isinstance(recipe, Mapping):
        if not isinstance(recipe, Sequence) or any(isinstance(ops, Op) for ops in recipe):
            raise SettingsError("views.recipe: must be a dict of lists of operations, or a list of lists: [ops] * 4, or "
                                "penstock.recipes.dino()")
        recipe = {f"view_{i}": ops for i, ops in enumerate(recipe)}
    random_group = whole("views.random_group", random_group, 0, 2**32 - 1 - len(recipe))
    return {name: image(field, ops, random_group=random_group + i, **arguments)
            for i, (name, ops) in enumerate(recipe.items())}


def _five(what: str, prefix: str, field: str, size: Size, ops: tuple[Iterable[Op], Iterable[Op]],
          arguments: dict[str, Any]) -> dict[str, Output]:
    before, after = operations(f"{what}.before", ops[0]), operations(f"{what}.after", ops[1])
    return {f"{prefix}_{corner}": image(field, [*before, CornerCrop(size, corner), *after], **arguments)
            for corner in _c.NAMES["corner"]}


def five_crop(field: str, size: Size, before: Iterable[Op] = (), after: Iterable[Op] = (), *, name: str | None = None,
              **image_arguments: Any) -> dict[str, Output]:
    """Return outputs of the four corners of an image and of its middle: torchvision's FiveCrop, each part as a tensor
    of its own.

        outputs={**ops.five_crop("jpg", 224, [ops.Resize(256)], [ops.Normalize()]), "label": penstock.scalar("cls")}

    Returns {name_top_left, name_top_right, name_bottom_left, name_bottom_right, name_center}, in torchvision's order.
    `torch.stack` of the five makes one tensor of them. All share one decode.

    field: as in penstock.image.
    size: size of the parts, int or (height, width).
    before: operations on the image.
    after: operations on each part.
    name: beginning of the names; None: the field's.
    image_arguments: further arguments of penstock.image.

    Random operations in `before` make the same choices for all parts, and so do those in `after`.
    """
    return _five("five_crop", field if name is None else name, field, size, (before, after), image_arguments)


def ten_crop(field: str, size: Size, vertical_flip: bool = False, before: Iterable[Op] = (),
             after: Iterable[Op] = (), *, name: str | None = None, **image_arguments: Any) -> dict[str, Output]:
    """Return outputs of the five parts of an image, then of those of the mirrored image: torchvision's TenCrop.

    Returns those of five_crop, then {name_flipped_top_left, name_flipped_top_right, name_flipped_bottom_left,
    name_flipped_bottom_right, name_flipped_center}, in torchvision's order.

    vertical_flip: True: exchange top and bottom, not left and right.
    field, size, before, after, name, image_arguments: as in five_crop.

    Random operations in `before` make the same choices for all ten parts. Those in `after` make one choice for the
    first five, and another for the others.
    """
    flip = RandomVerticalFlip(1) if vertical_flip else RandomFlip(1)
    first, prefix = tuple(operations("ten_crop.before", before)), field if name is None else name
    return {**_five("ten_crop", prefix, field, size, (first, after), image_arguments),
            **_five("ten_crop", f"{prefix}_flipped", field, size, ((*first, flip), after), image_arguments)}
