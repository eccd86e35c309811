# SPDX-License-Identifier: Apache-2.0
"""Operations on images: torchvision's names, argument forms and defaults, and Pillow's pixels.

    from penstock import ops

    penstock.image("jpg", [ops.RandomResizedCrop(224), ops.RandomFlip(), ops.Normalize()])

An operation is a value: frozen and comparable. The library's workers apply the list that you give to `penstock.image`.
Sizes are (height, width) in pixels; an int means both.

Operations that resize take `interpolation`, the filter: "nearest", "box", "bilinear", "hamming", "bicubic" or
"lanczos", with the pixels of Pillow's Image.resize; or "random": bilinear or bicubic, drawn for each image, as in timm.
Members of torchvision's InterpolationMode and of PIL.Image.Resampling, or their values, are taken, too.

This module has the operations of such a list, functions that make one, and torchvision's five_crop and ten_crop, which
make several images of one and return outputs. MixUp, CutMix and Mosaic, which mix the rows of a batch, are in penstock;
a loader takes them as mix=. Whole lists are in penstock.recipes, functions on arrays in penstock.functional.

Wrong arguments raise TypeError or ValueError.
"""
from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..views import five_crop, ten_crop
    from .call import *  # noqa: F403
    from .colour import *  # noqa: F403
    from .crop import *  # noqa: F403
    from .geometry import *  # noqa: F403
    from .jpeg import *  # noqa: F403
    from .op import Op
    from .policy import *  # noqa: F403
    from .random import *  # noqa: F403
    from .timm import *  # noqa: F403
    from .values import *  # noqa: F403
    from .warp import *  # noqa: F403

# Names by their module, which is loaded at the first use of one of them.
_NAMES_OF = {
    ".call": ("Call",),
    ".colour": ("ColorJitter", "Grayscale", "RandomAdjustSharpness", "RandomAutocontrast", "RandomChannelPermutation",
                "RandomEqualize", "RandomGrayscale", "RandomInvert", "RandomPhotometricDistort", "RandomPosterize", "RandomSolarize"),
    ".crop": ("CenterCrop", "RandomCrop", "RandomIoUCrop", "RandomResizedCrop"),
    ".geometry": ("CornerCrop", "Letterbox", "Pad", "PadToSize", "RandomFlip", "RandomHorizontalFlip", "RandomResize",
                  "RandomShortestSize", "RandomVerticalFlip", "RandomZoomOut", "Resize", "ResizeLongest", "ScaleJitter"),
    ".jpeg": ("JPEG",),
    ".op": ("Op",),
    ".policy": ("AugMix", "AutoAugment", "RandAugment", "TrivialAugmentWide"),
    ".random": ("RandomApply", "RandomChoice", "RandomOrder"),
    ".timm": ("TimmAugMix", "TimmAutoAugment", "TimmRandAugment", "rand_augment_timm"),
    ".values": ("IMAGENET_MEAN", "IMAGENET_STD", "Normalize", "RandomErasing", "ToFloat"),
    ".warp": ("GaussianBlur", "RandomAffine", "RandomBoxBlur", "RandomPerspective", "RandomRotation"),
    "..views": ("five_crop", "ten_crop"),
}
_LATER = {name: module for module, names in _NAMES_OF.items() for name in names}

__all__ = ["AugMix", "AutoAugment", "Call", "CenterCrop", "ColorJitter", "CornerCrop", "GaussianBlur", "Grayscale", "IMAGENET_MEAN",
           "IMAGENET_STD", "JPEG", "Letterbox", "Normalize", "Op", "Pad", "PadToSize", "RandAugment", "RandomAdjustSharpness",
           "RandomAffine", "RandomApply", "RandomAutocontrast", "RandomBoxBlur", "RandomChannelPermutation", "RandomChoice",
           "RandomCrop", "RandomEqualize", "RandomErasing", "RandomFlip", "RandomGrayscale", "RandomHorizontalFlip", "RandomInvert",
           "RandomIoUCrop", "RandomOrder", "RandomPerspective", "RandomPhotometricDistort", "RandomPosterize", "RandomResize",
           "RandomResizedCrop", "RandomRotation", "RandomShortestSize", "RandomSolarize", "RandomVerticalFlip", "RandomZoomOut",
           "Resize", "ResizeLongest", "ScaleJitter", "TimmAugMix", "TimmAutoAugment", "TimmRandAugment", "ToFloat",
           "TrivialAugmentWide", "five_crop", "rand_augment_timm", "ten_crop"]


if not TYPE_CHECKING:  # without this guard mypy would accept every name

    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            from ..hints import missing
            raise missing(__name__, name, sys._getframe(1))
        value = getattr(importlib.import_module(_LATER[name], __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
