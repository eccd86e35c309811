# SPDX-License-Identifier: Apache-2.0
"""timm's policies, and its strings for them: "rand-m9-mstd0.5-inc1". The pixels are those that timm gives for PIL
images.

Magnitude 10 is the greatest change of most operations; with `magnitude_max` more is possible. Policies have these
arguments in common:

interpolation: for operations that move pixels: "nearest", "bilinear", "bicubic", or "random": bilinear or bicubic,
    drawn.
fill: value of pixels from outside, a byte or one for each channel.
"""
from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .. import _c
from ..arguments import number, probability, switch, whole
from ..elsewhere import OP_KEYWORDS
from ..hints import explains, near_or_all
from .op import Op
from .policy import ALPHAS, MAX_CHAINS, chain_depth
from .warp import FILTERS, Fill, fill_of, warp_filter

__all__ = ["TimmAugMix", "TimmAutoAugment", "TimmRandAugment", "rand_augment_timm"]

MAX_OPS = 32
MAX_MAGNITUDE = 1000
GRAY = (128, 128, 128)
SETS = {"default": _c.TIMM_SET_DEFAULT, "increasing": _c.TIMM_SET_INCREASING, "weights": _c.TIMM_SET_WEIGHTS,
        "3a": _c.TIMM_SET_3A, "3aw": _c.TIMM_SET_3A_WEIGHTS}
POLICIES = _c.NAMES["timm_policy"]


def _check(op: Op) -> None:
    """Check `interpolation` and `fill` of a frozen operation. Stores a name and four bytes."""
    name, given = type(op).__name__, getattr(op, "interpolation")
    found = given if isinstance(given, str) and given == "random" else warp_filter(f"{name}.interpolation", given)
    object.__setattr__(op, "interpolation", found)
    object.__setattr__(op, "fill", fill_of(f"{name}.fill", getattr(op, "fill")))


def _named(what: str, given: Any, known: dict[str, int]) -> str:
    if not isinstance(given, str) or given not in known:
        raise ValueError(f"{what}: value is {given!r}; must be one of {', '.join(known)}"
                         + (near_or_all(given, known) if isinstance(given, str) else ""))
    return given


def _is_uniform(deviation: Any) -> bool:
    return isinstance(deviation, float) and deviation == math.inf


def _policy(op: Any, kind: int, params: Sequence[float]) -> _c.Op:
    """Return a policy as a struct for the library."""
    code = _c.FILTER_RANDOM if op.interpolation == "random" else FILTERS[op.interpolation]
    found = _c.Op(kind=kind, filter=code)
    found.params.values[:len(params)] = params
    found.fill[:] = op.fill
    return found


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class TimmRandAugment(Op):
    """Apply num_layers operations of a set, each with probability `prob`: timm's "rand-m#-n#-p#-mstd#-mmax#-inc#-t#".

    magnitude: mean of the magnitudes, 0 to 1000.
    num_layers: number of operations.
    prob: probability of each.
    magnitude_std: standard deviation of the magnitudes, which are normally distributed; math.inf: uniform from 0 to
        `magnitude`.
    magnitude_max: larger magnitudes are cut to this.
    transforms: the set: "default", "increasing" (inc1), "weights", "3a" or "3aw". The two sets with weights apply no
        operation twice.
    interpolation, fill: see above.
    """

    magnitude: float = 10
    num_layers: int = 2
    prob: float = 0.5
    magnitude_std: float = 0
    magnitude_max: float = 10
    transforms: str = "default"
    interpolation: Any = "random"
    fill: Fill = GRAY

    def __post_init__(self) -> None:
        for name, least in (("magnitude", 0), ("magnitude_max", 0)):
            object.__setattr__(self, name, number(f"TimmRandAugment.{name}", getattr(self, name), least,
                                                  MAX_MAGNITUDE))
        object.__setattr__(self, "num_layers", whole("TimmRandAugment.num_layers", self.num_layers, 1, MAX_OPS))
        object.__setattr__(self, "prob", probability("TimmRandAugment.prob", self.prob))
        if not _is_uniform(self.magnitude_std):
            object.__setattr__(self, "magnitude_std",
                               number("TimmRandAugment.magnitude_std", self.magnitude_std, 0, MAX_MAGNITUDE))
        _named("TimmRandAugment.transforms", self.transforms, SETS)
        _check(self)

    def to_c(self) -> _c.Op:
        is_uniform = self.magnitude_std == math.inf
        return _policy(self, _c.OP_TIMM_RAND_AUGMENT,
                       (self.num_layers, self.magnitude, self.prob, 0 if is_uniform else self.magnitude_std,
                        is_uniform, self.magnitude_max, SETS[self.transforms]))


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class TimmAutoAugment(Op):
    """Apply one of 25 pairs of operations: timm's "v0", "v0r", "original" and "originalr"; or one of three operations:
    "3a".

    policy: one of these names.
    magnitude_std: standard deviation of the magnitudes.
    interpolation, fill: see above.
    """

    policy: str = "v0"
    magnitude_std: float = 0
    interpolation: Any = "random"
    fill: Fill = GRAY

    def __post_init__(self) -> None:
        _named("TimmAutoAugment.policy", self.policy, POLICIES)
        object.__setattr__(self, "magnitude_std",
                           number("TimmAutoAugment.magnitude_std", self.magnitude_std, 0, MAX_MAGNITUDE))
        _check(self)

    def to_c(self) -> _c.Op:
        return _policy(self, _c.OP_TIMM_AUTO_AUGMENT, (POLICIES[self.policy], self.magnitude_std))


@explains(OP_KEYWORDS)
@dataclass(frozen=True)
class TimmAugMix(Op):
    """Apply `width` chains of operations, each to the image itself, and mix their results with the image. The weights
    are random. It is timm's "augmix-m#-w#-d#-a#-b#-mstd#".

    magnitude, magnitude_std: as in TimmRandAugment.
    width: number of chains.
    depth: number of operations of a chain; -1: 1 to 3, drawn.
    alpha: parameter of the distributions of the weights.
    blended: blend the image with one chain after the other.
    interpolation, fill: see above.
    """

    magnitude: float = 3
    width: int = 3
    depth: int = -1
    alpha: float = 1.0
    blended: bool = False
    magnitude_std: float = math.inf
    interpolation: Any = "random"
    fill: Fill = GRAY

    def __post_init__(self) -> None:
        object.__setattr__(self, "magnitude", number("TimmAugMix.magnitude", self.magnitude, 0, MAX_MAGNITUDE))
        object.__setattr__(self, "width", whole("TimmAugMix.width", self.width, 1, MAX_CHAINS))
        object.__setattr__(self, "depth", chain_depth("TimmAugMix.depth", self.depth))
        object.__setattr__(self, "alpha", number("TimmAugMix.alpha", self.alpha, *ALPHAS))
        object.__setattr__(self, "blended", switch("TimmAugMix.blended", self.blended))
        if not _is_uniform(self.magnitude_std):
            object.__setattr__(self, "magnitude_std",
                               number("TimmAugMix.magnitude_std", self.magnitude_std, 0, MAX_MAGNITUDE))
        _check(self)

    def to_c(self) -> _c.Op:
        is_uniform = self.magnitude_std == math.inf
        return _policy(self, _c.OP_TIMM_AUG_MIX,
                       (self.magnitude, self.width, max(self.depth, 0), self.alpha, self.blended,
                        0 if is_uniform else self.magnitude_std, is_uniform))


# ---- strings -----------------------------------------------------------------------------------------------


def _sections(config: str, keys: dict[str, Callable[[str], Any]]) -> dict[str, Any]:
    """Return the values of a string's sections after the first. keys: by the name of a section, the function that reads
    its value. Raises ValueError."""
    found: dict[str, Any] = {}
    for section in config.split("-")[1:]:
        match = re.fullmatch(r"(t)(\w+)|([a-z]+)(\d.*)", section)
        key, text = (match[1] or match[3], match[2] or match[4]) if match else (section, "")
        must = (f"rand_augment_timm.config: value is {config!r}, with a section {section!r}; must have sections "
                f"{', '.join(keys)}, each once and with its value after it")
        if key not in keys or key in found:
            raise ValueError(must + ("; timm dropped w, write tweights" if key == "w" else ""))
        try:
            found[key] = keys[key](text)
        except ValueError:
            raise ValueError(must) from None
    return found


def _rand(config: str, options: dict[str, Any]) -> Op:
    found = _sections(config, {"m": int, "n": int, "p": float, "mstd": float, "mmax": int, "inc": int, "t": str})
    std, chosen = found.get("mstd", 0), found.get("t")
    if chosen is not None:
        _named("rand_augment_timm.config: section t", chosen, dict.fromkeys(("weights", "3a", "3aw"), 0))
    return TimmRandAugment(found.get("m", 10), found.get("n", 2), found.get("p", 0.5), math.inf if std > 100 else std,
                           found.get("mmax", 0) or 10,
                           chosen or ("increasing" if found.get("inc") else "default"), **options)


def _augmix(config: str, options: dict[str, Any]) -> Op:
    found = _sections(config, {"m": int, "w": int, "d": int, "a": float, "b": int, "mstd": float})
    return TimmAugMix(found.get("m", 3), found.get("w", 3), found.get("d", 0) or -1, found.get("a", 1.0),
                      bool(found.get("b")), found.get("mstd", math.inf), **options)


def rand_augment_timm(config: str, *, img_mean: Optional[Sequence[int]] = GRAY,
                      interpolation: Any = "random") -> Op:
    """Return the operation that timm makes of a string for its argument `auto_augment`.

    config: "rand-m9-n2-p0.5-mstd0.5-mmax10-inc1-tweights" or "augmix-m3-w3-d2-a1-b1-mstd0.5"; sections after the first
        are optional and come in any order. Or "v0", "v0r", "original", "originalr" or "3a", optionally with "-mstd0.5".
    img_mean: the fill, a byte for each channel. timm's training script passes the mean of Normalize times 255;
        ImageNet's is (124, 116, 104).
    interpolation: as in timm's policies.

    Raises TypeError and ValueError.
    """
    if not isinstance(config, str):
        raise TypeError(f"rand_augment_timm.config: value is {config!r}; must be a string such as 'rand-m9-mstd0.5'")
    options = {"interpolation": interpolation, "fill": img_mean}
    name = config.split("-")[0]
    if name == "rand":
        return _rand(config, options)
    if name == "augmix":
        return _augmix(config, options)
    _named("rand_augment_timm.config", name, {"rand": 0, "augmix": 0, **POLICIES})
    return TimmAutoAugment(name, _sections(config, {"mstd": float}).get("mstd", 0), **options)
