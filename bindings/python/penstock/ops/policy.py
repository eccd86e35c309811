# SPDX-License-Identifier: Apache-2.0
"""torchvision's policies: operations that are drawn from a set, with magnitudes from tables. The pixels are those that
torchvision gives for PIL images."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import _c
from ..arguments import number, switch, whole
from ..elsewhere import OP_KEYWORDS
from ..hints import explains, near_or_all
from .op import Op
from .warp import Fill, check_warp, warp

__all__ = ["AugMix", "AutoAugment", "RandAugment", "TrivialAugmentWide"]

MAX_OPS = 32
MAX_BINS = 256
MAX_CHAINS = MAX_CHAIN = 16
ALPHAS = 0.01, 100
POLICIES = {"imagenet": _c.AUTO_AUGMENT_IMAGENET, "cifar10": _c.AUTO_AUGMENT_CIFAR10, "svhn": _c.AUTO_AUGMENT_SVHN}


def chain_depth(what: str, given: Any) -> int:
    """Return the number of operations of a chain; -1 for any negative number, which means a random number of them.
    Raises TypeError and ValueError."""
    depth = whole(what, given, -MAX_CHAIN, MAX_CHAIN)
    if depth == 0:
        raise ValueError(f"{what}: value is 0; must be from 1 to {MAX_CHAIN}, or -1")
    return max(depth, -1)


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class TrivialAugmentWide(Op):
    """Apply one of 14 operations, with a random magnitude.

    num_magnitude_bins: number of magnitudes to draw from.
    interpolation: "nearest", "bilinear" or "bicubic", for operations that move pixels.
    fill: value of pixels from outside; None: 0.
    """

    num_magnitude_bins: int = 31
    interpolation: Any = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_magnitude_bins",
                           whole("TrivialAugmentWide.num_magnitude_bins", self.num_magnitude_bins, 2, MAX_BINS))
        check_warp(self)

    def to_c(self) -> _c.Op:
        return warp(_c.OP_TRIVIAL_AUGMENT_WIDE, [self.num_magnitude_bins],
                    self.interpolation, self.fill)  # type: ignore[arg-type]


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class RandAugment(Op):
    """Apply num_ops of the operations of TrivialAugmentWide, all with one magnitude.

    num_ops: number of operations.
    magnitude: number of a bin, from 0. The default, 9 of 31, is torchvision's, and 0.3 of the greatest magnitude;
        timm's m9 is 0.9 of timm's greatest.
    num_magnitude_bins: number of bins.
    interpolation, fill: as in TrivialAugmentWide.
    """

    num_ops: int = 2
    magnitude: int = 9
    num_magnitude_bins: int = 31
    interpolation: Any = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_ops", whole("RandAugment.num_ops", self.num_ops, 1, MAX_OPS))
        bins = whole("RandAugment.num_magnitude_bins", self.num_magnitude_bins, 2, MAX_BINS)
        object.__setattr__(self, "num_magnitude_bins", bins)
        object.__setattr__(self, "magnitude", whole("RandAugment.magnitude", self.magnitude, 0, bins - 1))
        check_warp(self)

    def to_c(self) -> _c.Op:
        return warp(_c.OP_RAND_AUGMENT, [self.num_ops, self.magnitude, self.num_magnitude_bins],
                    self.interpolation, self.fill)  # type: ignore[arg-type]


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class AutoAugment(Op):
    """Apply one of 25 pairs of operations that were learned on a data set.

    policy: "imagenet", "cifar10" or "svhn", or a member of torchvision's AutoAugmentPolicy.
    interpolation, fill: as in TrivialAugmentWide.
    """

    policy: Any = "imagenet"
    interpolation: Any = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        name = getattr(self.policy, "value", self.policy)
        if not isinstance(name, str) or name not in POLICIES:
            raise ValueError(f"AutoAugment.policy: value is {self.policy!r}; must be imagenet, cifar10 or svhn"
                             + (near_or_all(name, POLICIES) if isinstance(name, str) else ""))
        object.__setattr__(self, "policy", name)
        check_warp(self)

    def to_c(self) -> _c.Op:
        return warp(_c.OP_AUTO_AUGMENT, [POLICIES[self.policy]],
                    self.interpolation, self.fill)  # type: ignore[arg-type]


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class AugMix(Op):
    """Apply mixture_width chains of operations, each to the image itself, and mix their results with the image, by
    random weights.

    severity: 1 to 10: magnitudes come from as many of 10 bins.
    mixture_width: number of chains.
    chain_depth: number of operations of a chain; -1: 1 to 3, drawn.
    alpha: parameter of the distributions of the weights.
    all_ops: whether brightness, colour, contrast and sharpness are among the operations.
    interpolation, fill: as in TrivialAugmentWide.

    The mix is torchvision's, in float32. The operations work as on PIL images. torchvision's AugMix first makes tensors
    of PIL images, and tensors get other pixels.
    """

    severity: int = 3
    mixture_width: int = 3
    chain_depth: int = -1
    alpha: float = 1.0
    all_ops: bool = True
    interpolation: Any = "bilinear"
    fill: Fill = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "severity", whole("AugMix.severity", self.severity, 1, 10))
        object.__setattr__(self, "mixture_width", whole("AugMix.mixture_width", self.mixture_width, 1, MAX_CHAINS))
        object.__setattr__(self, "chain_depth", chain_depth("AugMix.chain_depth", self.chain_depth))
        object.__setattr__(self, "alpha", number("AugMix.alpha", self.alpha, *ALPHAS))
        object.__setattr__(self, "all_ops", switch("AugMix.all_ops", self.all_ops))
        check_warp(self)

    def to_c(self) -> _c.Op:
        return warp(_c.OP_AUG_MIX,
                    [self.severity, self.mixture_width, max(self.chain_depth, 0), self.alpha, self.all_ops],
                    self.interpolation, self.fill)  # type: ignore[arg-type]
