# SPDX-License-Identifier: Apache-2.0
"""Operations that look at the boxes of an image: torchvision's of transforms.v2."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from . import _c
from .arguments import number, numbers, whole
from .elsewhere import OP_KEYWORDS
from .hints import explains
from .ops import Op

__all__ = ["RandomIoUCrop"]

MAX_RATIO = 65535
MAX_OPTIONS = 7


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandomIoUCrop(Op):
    """The crop of SSD: torchvision.transforms.v2.RandomIoUCrop. An IoU is drawn of sampler_options. Then parts of the
    image are drawn, at most `trials`, until one has the centre of a box in it that overlaps the part by that IoU; else
    another IoU is drawn. An option of 1 leaves the image as it is, and so do 100 options of which none finds a part.

    min_scale, max_scale: of width and of height. min_aspect_ratio, max_aspect_ratio: width / height.
    sampler_options: 1 to 7 numbers from 0 to 1; None is (0, 0.1, 0.3, 0.5, 0.7, 0.9, 1).

    The image needs an output of boxes that follows it, penstock.boxes. Boxes whose centres are outside of the part
    are dropped. A resize to one size must come later in the list.
    """

    min_scale: float = 0.3
    max_scale: float = 1.0
    min_aspect_ratio: float = 0.5
    max_aspect_ratio: float = 2.0
    sampler_options: Optional[Sequence[float]] = None
    trials: int = 40

    def __post_init__(self) -> None:
        for name, least, most in (("min_scale", 0, 1), ("max_scale", 0, 1),
                                  ("min_aspect_ratio", 1 / MAX_RATIO, MAX_RATIO),
                                  ("max_aspect_ratio", 1 / MAX_RATIO, MAX_RATIO)):
            object.__setattr__(self, name, number(f"RandomIoUCrop.{name}", getattr(self, name), least, most))
        for least_of, most_of in (("min_scale", "max_scale"), ("min_aspect_ratio", "max_aspect_ratio")):
            if not 0 < getattr(self, least_of) <= getattr(self, most_of):
                raise ValueError(f"RandomIoUCrop.{least_of}: value is {getattr(self, least_of)!r}; must be above 0, and "
                                 f"at most {most_of}, {getattr(self, most_of)!r}")
        object.__setattr__(self, "trials", whole("RandomIoUCrop.trials", self.trials, 1, 1000))
        if self.sampler_options is None:
            return
        options = numbers("RandomIoUCrop.sampler_options", self.sampler_options, tuple(range(1, MAX_OPTIONS + 1)), 0, 1,
                          f"from 1 to {MAX_OPTIONS} numbers from 0 to 1")
        object.__setattr__(self, "sampler_options", options)

    def to_c(self) -> _c.Op:
        op = _c.Op(kind=_c.OP_RANDOM_IOU_CROP)
        options = (0, 0.1, 0.3, 0.5, 0.7, 0.9, 1) if self.sampler_options is None else self.sampler_options
        op.params[:5] = (self.min_scale, self.max_scale, self.min_aspect_ratio, self.max_aspect_ratio, self.trials)
        op.params[5:] = (*options, *(-1,) * (MAX_OPTIONS - len(options)))
        return op
