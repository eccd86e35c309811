# SPDX-License-Identifier: Apache-2.0
"""JPEG: the loss of a JPEG file, as an operation on images."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

from .. import _c
from ..arguments import whole
from ..elsewhere import JPEG_KEYWORDS
from ..hints import explains
from .op import Op

__all__ = ["JPEG"]

MAX_QUALITY = 100


def _qualities(value: Any) -> Union[int, tuple[int, int]]:
    """Return the quality, or the least and the greatest. Raises TypeError and ValueError."""
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        return whole("JPEG.quality", value, 1, MAX_QUALITY)
    must = (f"JPEG.quality: value is {value!r}; must be a whole number from 1 to {MAX_QUALITY}, or two in rising "
            "order, the least and the greatest")
    if len(value) != 2:
        raise ValueError(must)
    least, most = (whole("JPEG.quality", each, 1, MAX_QUALITY) for each in value)
    if least > most:
        raise ValueError(must)
    return least, most


@explains(JPEG_KEYWORDS)
@dataclass(frozen=True)
class JPEG(Op):
    """Save the image as a JPEG file and read it again. Only the loss is computed, no file is made. Images have 1 or 3
    channels. For a probability write RandomApply([JPEG(50)], p).

    quality: 1 to 100; or (least, greatest), from which a whole number is drawn for each sample.

    The pixels are Pillow's, and those of torchvision.transforms.v2.JPEG.
    """

    quality: Union[int, Sequence[int]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "quality", _qualities(self.quality))

    def to_c(self) -> _c.Op:
        op: _c.Op = (_c.lib.pstk_jpeg(self.quality) if isinstance(self.quality, int)
                     else _c.lib.pstk_random_jpeg(*self.quality))
        return op
