# SPDX-License-Identifier: Apache-2.0
"""Outputs that follow an image: what its operations do to a sample's pixels, they do to these, too."""
from __future__ import annotations

from typing import Any

from . import _c
from .errors import SettingsError
from .hints import explained
from .outputs import Output, dtype_code, field_name, whole

__all__ = ["mask"]


def _follows(maker: str, follows: str | None) -> str:
    """Return the name of the image output; "" for the only one."""
    if follows is not None and (not isinstance(follows, str) or not follows or "\0" in follows):
        raise SettingsError(f"{maker}.follows: value is {follows!r}; must be the name of an image output, or None "
                            "for the only one")
    return follows or ""


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
    most = 255 if code == _c.U8 else 65535
    return Output(field, _c.OUTPUT_MASK, code, fill=whole("mask", "ignore", ignore, most),
                  follows=_follows("mask", follows))
