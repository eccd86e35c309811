# SPDX-License-Identifier: Apache-2.0
"""A recipe is a list of the operations that a well-known training script uses. Print it, change it, and give it to an
output.

    from penstock import image, ops, recipes, scalar

    recipe = recipes.torchvision("resnet50-v2")
    recipe.insert(2, ops.RandomGrayscale(0.1))
    outputs = {"x": image("jpg", recipe), "y": scalar("cls")}

A recipe is a plain list. Where one image gives several views, it is a dict of lists, which `views` turns into outputs.
Every list ends with Normalize, or with erasing after it. The random choices have the probabilities of the script; the
random numbers themselves differ.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from .arguments import probability, whole
from .errors import SettingsError
from .hints import kind_of, near_or_all
from .ops.colour import ColorJitter, RandomGrayscale, RandomPhotometricDistort, RandomSolarize
from .ops.crop import CenterCrop, RandomCrop, RandomIoUCrop, RandomResizedCrop
from .ops.geometry import PadToSize, RandomFlip, RandomResize, RandomVerticalFlip, RandomZoomOut, Resize, ResizeLongest
from .ops.op import Op
from .ops.policy import AutoAugment, RandAugment, TrivialAugmentWide
from .ops.random import RandomApply
from .ops.timm import rand_augment_timm
from .ops.values import IMAGENET_MEAN, IMAGENET_STD, Normalize, RandomErasing
from .ops.warp import GaussianBlur
from .views import views

__all__ = ["clip", "dino", "find", "mae", "names", "segmentation", "ssd", "timm", "torchvision", "views"]

CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)

Ops = list[Op]


# ---- torchvision -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reference:
    """The settings of torchvision's references/classification/train.py for one model."""

    train_crop: int = 224
    policy: str = ""
    erase: float = 0.0
    interpolation: str = "bilinear"
    resize: int = 256
    crop: int = 224


# Commands in references/classification/README.md have these settings.
_REFERENCES = {
    "resnet50-v1": _Reference(),
    "resnet50-v2": _Reference(176, "ta_wide", 0.1, resize=232),
    "mobilenet-v3-large": _Reference(policy="imagenet", erase=0.2),
    "efficientnet-v2-s": _Reference(300, "ta_wide", 0.1, resize=384, crop=384),
    "efficientnet-v2-m": _Reference(384, "ta_wide", 0.1, resize=480, crop=480),
    "vit-b-16": _Reference(policy="ra"),
    "vit-b-32": _Reference(policy="imagenet"),
    "swin-t": _Reference(policy="ta_wide", erase=0.25, interpolation="bicubic", resize=224),
}


def _policy(name: str, interpolation: str) -> Op:
    if name == "ta_wide":
        return TrivialAugmentWide(interpolation=interpolation)
    if name == "ra":
        return RandAugment(interpolation=interpolation)
    return AutoAugment(name, interpolation=interpolation)


def torchvision(name: str = "resnet50-v2", *, train: bool = True) -> Ops:
    """Return torchvision's presets of references/classification for a model.

    name: "resnet50-v1" (the oldest preset, of most models), "resnet50-v2", "mobilenet-v3-large", "efficientnet-v2-s",
        "efficientnet-v2-m", "vit-b-16", "vit-b-32", "swin-t".
    train: False for evaluation.

    Raises SettingsError for another name.
    """
    if not isinstance(name, str) or name not in _REFERENCES:
        raise SettingsError(f"torchvision.name: value is {name!r}; must be the name of a reference"
                            + near_or_all(str(name), _REFERENCES))
    its = _REFERENCES[name]
    if not train:
        return [Resize(its.resize, interpolation=its.interpolation), CenterCrop(its.crop), Normalize()]
    ops: Ops = [RandomResizedCrop(its.train_crop, interpolation=its.interpolation), RandomFlip()]
    if its.policy:
        ops.append(_policy(its.policy, its.interpolation))
    ops.append(Normalize())
    if its.erase > 0:
        ops.append(RandomErasing(its.erase))
    return ops


# ---- timm --------------------------------------------------------------------------------------------------


def _timm_evaluation(size: tuple[int, int], crop_pct: Optional[float], crop_mode: str, interpolation: str) -> Ops:
    scaled = tuple(math.floor(side / (crop_pct or 0.875)) for side in size)
    if crop_mode == "squash":
        return [Resize(scaled, interpolation=interpolation), CenterCrop(size)]
    if crop_mode != "center":
        raise SettingsError(f"timm.crop_mode: value is {crop_mode!r}; must be center or squash")
    if scaled[0] != scaled[1]:
        raise SettingsError("timm.input_size: must be square for crop_mode='center'; or use crop_mode='squash'")
    return [Resize(scaled[0], interpolation=interpolation), CenterCrop(size)]


def _timm_policy(name: str, mean: Sequence[float], interpolation: str) -> Op:
    return rand_augment_timm(name, img_mean=tuple(min(255, round(255 * value)) for value in mean),
                             interpolation=interpolation)


def _timm_erasing(p: float, mode: str, count: int) -> Op:
    values: dict[str, Union[float, str]] = {"const": 0, "rand": "channel", "pixel": "random"}
    if mode not in values:
        raise SettingsError(f"timm.re_mode: value is {mode!r}; must be const, rand or pixel")
    return RandomErasing(p, (0.02, 1 / 3), (0.3, 1 / 0.3), values[mode], (1, whole("timm.re_count", count, 1, 32)))


def timm(input_size: Union[int, Sequence[int]] = 224, is_training: bool = False, no_aug: bool = False,
         scale: Sequence[float] = (0.08, 1.0), ratio: Sequence[float] = (3 / 4, 4 / 3), hflip: float = 0.5,
         vflip: float = 0.0, color_jitter: Union[float, Sequence[float], None] = 0.4,
         color_jitter_prob: Optional[float] = None, grayscale_prob: float = 0.0, gaussian_blur_prob: float = 0.0,
         auto_augment: Optional[str] = None, interpolation: str = "bilinear", mean: Sequence[float] = IMAGENET_MEAN,
         std: Sequence[float] = IMAGENET_STD, re_prob: float = 0.0, re_mode: str = "const", re_count: int = 1,
         crop_pct: Optional[float] = None, crop_mode: str = "center") -> Ops:
    """Return the operations of timm.data.create_transform, with its names and defaults of arguments.

    input_size: pixels, an int, (height, width) or (channels, height, width).
    interpolation: a filter; also "random", the default of timm's training script.
    auto_augment: "rand-m9-mstd0.5-inc1" and so on, see penstock.ops.rand_augment_timm.
    re_prob, re_mode, re_count: probability, mode ("const", "rand" or "pixel") and number of boxes of erasing.
    """
    if isinstance(input_size, int):
        input_size = (input_size, input_size)
    given = tuple(input_size)[-2:] if isinstance(input_size, (list, tuple)) else ()
    if len(given) != 2:
        raise SettingsError(f"timm.input_size: value is {input_size!r}; must be an int, (height, width) or (channels, "
                            "height, width)")
    hflip, vflip, re_prob = (probability(f"timm.{name}", value) for name, value in
                             (("hflip", hflip), ("vflip", vflip), ("re_prob", re_prob)))
    size = (whole("timm.input_size", given[0], 1, 2**31), whole("timm.input_size", given[1], 1, 2**31))
    normalize = Normalize(tuple(mean), tuple(std))
    smooth = "bilinear" if interpolation == "random" else interpolation
    if not is_training:
        return [*_timm_evaluation(size, crop_pct, crop_mode, smooth), normalize]
    if no_aug:
        return [Resize(size[0] if size[0] == size[1] else size, interpolation=smooth), CenterCrop(size), normalize]
    ops: Ops = [RandomResizedCrop(size, scale, ratio, interpolation=interpolation)]
    if hflip > 0:
        ops.append(RandomFlip(hflip))
    if vflip > 0:
        ops.append(RandomVerticalFlip(vflip))
    if auto_augment:
        ops.append(_timm_policy(auto_augment, mean, interpolation))
    if color_jitter is not None and (not auto_augment or "3a" in auto_augment):
        factors = (color_jitter,) * 3 if isinstance(color_jitter, (int, float)) else tuple(color_jitter)
        jitter = ColorJitter(*factors)
        ops.append(jitter if color_jitter_prob is None else RandomApply([jitter], color_jitter_prob))
    if grayscale_prob > 0:
        ops.append(RandomGrayscale(grayscale_prob))
    if gaussian_blur_prob > 0:
        ops.append(RandomApply([GaussianBlur(23)], gaussian_blur_prob))
    ops.append(normalize)
    if re_prob > 0:
        ops.append(_timm_erasing(re_prob, re_mode, re_count))
    return ops


# ---- self-supervised ---------------------------------------------------------------------------------------


def _dino_view(size: int, scale: Sequence[float], *last: Op) -> Ops:
    return [RandomResizedCrop(size, scale, interpolation="bicubic"), RandomFlip(),
            RandomApply([ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8), RandomGrayscale(0.2), *last, Normalize()]


def dino(global_crops_scale: Sequence[float] = (0.32, 1.0), local_crops_scale: Sequence[float] = (0.05, 0.32),
         local_crops_number: int = 8, global_crops_size: int = 224, local_crops_size: int = 96) -> dict[str, Ops]:
    """Return the views of DataAugmentationDINO of DINOv2 and DINOv3, with its names of arguments: "global_0",
    "global_1", "local_0", and so on, for penstock.recipes.views.

    Both scripts hand GaussianBlur(p) to RandomApply as 1 - p: the first global view is never blurred, the second with
    probability 0.9, local ones with 0.5. These lists do the same.
    """
    def blur(p: float) -> Op:
        return RandomApply([GaussianBlur(9, (0.1, 2.0))], p)
    n_local = whole("dino.local_crops_number", local_crops_number, 0, 62)
    found = {"global_0": _dino_view(global_crops_size, global_crops_scale),
             "global_1": _dino_view(global_crops_size, global_crops_scale, blur(0.9),
                                    RandomSolarize(threshold=128, p=0.2))}
    for i in range(n_local):
        found[f"local_{i}"] = _dino_view(local_crops_size, local_crops_scale, blur(0.5))
    return found


def mae(input_size: int = 224, *, train: bool = True) -> Ops:
    """Return the operations of the pretraining of masked autoencoders (MAE, main_pretrain.py). train: False for
    evaluation."""
    if train:
        return [RandomResizedCrop(input_size, (0.2, 1.0), interpolation="bicubic"), RandomFlip(), Normalize()]
    resized = int(input_size / (224 / 256)) if input_size <= 224 else input_size
    return [Resize(resized, interpolation="bicubic"), CenterCrop(input_size), Normalize()]


def clip(image_size: int = 224, *, train: bool = True) -> Ops:
    """Return the operations of OpenCLIP's image_transform, with its defaults. train: False for evaluation, as in
    OpenAI's CLIP."""
    if train:
        return [RandomResizedCrop(image_size, (0.9, 1.0), interpolation="bicubic"), Normalize(CLIP_MEAN, CLIP_STD)]
    return [Resize(image_size, interpolation="bicubic"), CenterCrop(image_size), Normalize(CLIP_MEAN, CLIP_STD)]


# ---- detection and segmentation ----------------------------------------------------------------------------


def ssd(size: int = 300, *, train: bool = True) -> Ops:
    """Return the operations of torchvision's references/detection "ssd", and the resize to size x size of its model.
    Boxes must follow the image: `"boxes": penstock.boxes("boxes")`. train: False for evaluation."""
    last = [Resize((size, size)), Normalize()]
    if not train:
        return [*last]
    return [RandomPhotometricDistort(), RandomZoomOut(fill=(123, 117, 104)), RandomIoUCrop(), RandomFlip(), *last]


def segmentation(base_size: int = 520, crop_size: int = 480, *, train: bool = True) -> Ops:
    """Return the operations of torchvision's references/segmentation. Masks that follow are filled with their ignored
    class, as in the reference. train: False for evaluation, with images cut or padded to base_size x base_size, because
    images of a batch have one size."""
    if not train:
        return [ResizeLongest(base_size), PadToSize(base_size, base_size), Normalize()]
    return [RandomResize(base_size // 2, 2 * base_size), RandomFlip(),
            RandomCrop(crop_size, pad_if_needed=True), Normalize()]


# ---- by name -----------------------------------------------------------------------------------------------

_NAMED: dict[str, Callable[[], Union[Ops, dict[str, Ops]]]] = {
    **{name: lambda name=name: torchvision(name) for name in _REFERENCES},  # type: ignore[misc]
    "timm": lambda: timm(is_training=True, interpolation="random"),
    "timm-rand-m9": lambda: timm(is_training=True, interpolation="random", auto_augment="rand-m9-mstd0.5-inc1",
                                 re_prob=0.25, re_mode="pixel"),
    "dino": dino,
    "ssd": ssd,
    "mae": mae,
    "clip": clip,
    "segmentation": segmentation,
}


def names() -> list[str]:
    """Return the names that `find` and `penstock show --recipe` take."""
    return list(_NAMED)


def find(name: str) -> dict[str, Ops]:
    """Return a recipe for training by its name, as {name of a view: list}; a recipe with one view has "image". Raises
    TypeError, SettingsError."""
    if not isinstance(name, str):
        raise TypeError(f"recipe: value is {kind_of(name)}; must be the name of a recipe")
    if name not in _NAMED:
        raise SettingsError(f"recipe: value is {name!r}; must be the name of a recipe"
                            + near_or_all(name, _NAMED))
    found = _NAMED[name]()
    return found if isinstance(found, dict) else {"image": found}
