# SPDX-License-Identifier: Apache-2.0
"""MixUp, CutMix and soft targets: what a loader does to each batch once all its rows are made.

    penstock.Loader("train", batch_size=256, mix=penstock.MixUp(0.2, num_classes=1000), outputs={
        "x": penstock.image("jpg", [ops.RandomResizedCrop(224), ops.Normalize()], layout="nchw"), "y": "cls"})

Every row is mixed with a partner, another valid row of the batch. The images are float32, float16 or bfloat16. In the
batch, "y" is float32 of [B, num_classes]. MixUp, CutMix and MixUpCutMix take these arguments by name; OneHot takes the
first, label and label_smoothing:

num_classes: number of classes. Labels are from 0 to num_classes - 1; another one makes its sample bad.
image, label: names of the outputs; None: the only image output and the only scalar output.
p: probability that a batch is mixed at all; with mode="elem" a row, with mode="pair" a pair. Default: 1.
label_smoothing: from 0, below 1, as timm applies it; 0 with targets="pairs". Default: 0.
mode: "batch": one lambda and one box for all rows; "elem": each row has its own; "pair": the two rows of a pair have
    the same, which needs pairing="flip". Default: "batch".
pairing: "roll": row i is mixed with row i - 1, as in torchvision; "flip": with the i-th row from the end, as in timm.
    Default: "roll".
targets: "dense", as above; "pairs": the labels stay, and batches also have "y_partner", the labels of the partners, and
    "y_lambda", the weights of the rows' own labels, float32. Default: "dense".

For a given lambda and box, images and targets are those of torchvision.transforms.v2 on a CPU, bit for bit; with
pairing="flip", those of timm. The partners are rows of this process's batch, so they change with batch_size and world;
a row's crop and its other random choices do not. On a device, mixed images are copied from the host as floats, which
are two or four times as many bytes as those of images that are not mixed.
"""
from __future__ import annotations

from collections.abc import Mapping
from ctypes import byref, pointer, sizeof
from typing import Any, NamedTuple, Optional

from . import _c, errors
from .arguments import number, probability, text, whole
from .elsewhere import MIX_KEYWORDS
from .errors import SettingsError
from .hints import explains, near
from .outputs import Output
from .sealed import Sealed

__all__ = ["CutMix", "MixUp", "MixUpCutMix", "MixedRow", "OneHot", "draw_mix"]

MODES = _c.NAMES["mix_mode"]
PAIRINGS = _c.NAMES["mix_pairing"]
TARGETS = _c.NAMES["mix_targets"]
KINDS = {code: name for name, code in _c.NAMES["mix_kind"].items()}
MAX_ALPHA = 1e6  # the library's limit
MAX_SIDE = 65535


class BatchMix(Sealed):
    """The base of the values of a loader's argument `mix`."""

    def __init__(self, shown: dict[str, Any], members: dict[str, Any], names: dict[str, Optional[str]]) -> None:
        """Keep the arguments.

        shown: arguments for the repr.
        members: members of the C struct.
        names: names of outputs, by members of the struct.
        """
        self._shown, self._members, self._names = shown, members, names
        for name, value in names.items():
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{type(self).__name__}.{name}: value is {value!r}; must be the name of an output, or "
                                "None")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._shown.items())})"

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and (self._members, self._names) == (other._members, other._names)

    def __hash__(self) -> int:
        return hash((*self._members.items(), *self._names.items()))

    def kinds(self) -> dict[str, int]:
        """Return the kinds of the outputs that the mix needs, by members of the struct."""
        raise NotImplementedError

    def names(self, outputs: Mapping[str, Output]) -> dict[str, Optional[str]]:
        """Return the names of the outputs, by members of the struct. Raises SettingsError if a name was not given and
        does not follow."""
        found = dict(self._names)
        for name, kind in self.kinds().items():
            known = [key for key, output in outputs.items() if output.kind == kind]
            if found[name] is None and len(known) == 1:
                found[name] = known[0]
            if found[name] is None:
                one, many = ("a scalar", "scalars") if name == "label" else ("an image", "images")
                has = f"the outputs {', '.join(map(repr, known))} are {many}" if known else f"no output is {one}"
                if name == "label" and not known:
                    raise SettingsError(f"mix: value is penstock.{type(self).__name__}, but {has}; must have one label "
                                        "for each image (add an output, penstock.scalar(field))")
                raise SettingsError(f"mix.{name}: value is None, but {has}"
                                    f"; must be the name of an output (give {name}=)")
        return found

    def added(self, outputs: Mapping[str, Output]) -> dict[str, Output]:
        """Return, described as outputs, the tensors that batches have in addition to the outputs."""
        return {}

    def fill(self, settings: _c.Settings, outputs: Mapping[str, Output]) -> None:
        """Set the mix in the settings of a loader with these outputs."""
        raise NotImplementedError


class Mix(BatchMix):
    """The base of mixes of rows in pairs, or of their labels alone."""

    def __init__(self, *, num_classes: int, label: Optional[str] = None, label_smoothing: float = 0.0,
                 **others: Any) -> None:
        """Keep the arguments. others: members of pstk_mix, and image=."""
        kind = type(self).__name__
        names = {"label": label, "image": others.pop("image", None)}
        smoothing = number(f"{kind}.label_smoothing", label_smoothing, 0, 1)
        if smoothing == 1:
            raise ValueError(f"{kind}.label_smoothing: value is {label_smoothing!r}; must be below 1")
        super().__init__({"num_classes": num_classes, "label": label, "label_smoothing": label_smoothing},
                         {"n_classes": whole(f"{kind}.num_classes", num_classes, 1, 2**32 - 1),
                          "smoothing": smoothing, **others}, names)

    @property
    def has_images(self) -> bool:
        """Whether images are mixed, not only labels."""
        return bool(self._members.get("mixup_alpha") or self._members.get("cutmix_alpha"))

    def kinds(self) -> dict[str, int]:
        """Return the kinds of the outputs that the mix needs, by members of the struct."""
        return {"label": _c.OUTPUT_SCALAR, **({"image": _c.OUTPUT_IMAGE} if self.has_images else {})}

    def added(self, outputs: Mapping[str, Output]) -> dict[str, Output]:
        """Return, described as outputs, the tensors that batches have in addition to the outputs."""
        label = self.names(outputs)["label"]
        if self._members.get("targets") != TARGETS["pairs"] or label is None or label not in outputs:
            return {}
        of = outputs[label]
        return {f"{label}_partner": of, f"{label}_lambda": Output(of.field, of.kind, _c.F32)}

    def fill(self, settings: _c.Settings, outputs: Mapping[str, Output]) -> None:
        """Set the mix in the settings of a loader with these outputs."""
        settings.mix = pointer(self.to_c(self.names(outputs)))

    def to_c(self, names: Mapping[str, Optional[str]]) -> _c.Mix:
        """Return the struct for the library. names: of the outputs, by members."""
        mix = _c.Mix()
        _c.lib.pstk_mix_init(byref(mix), sizeof(mix))
        for member, value in self._members.items():
            setattr(mix, member, value)
        for member, name in names.items():
            setattr(mix, member, None if name is None else text(f"{type(self).__name__}.{member}", name))
        return mix


class _Images(Mix):
    """The base of mixes that mix images."""

    def __init__(self, alphas: Mapping[str, float], num_classes: int, image: Optional[str], label: Optional[str],
                 p: float, label_smoothing: float, mode: str, pairing: str, targets: str,
                 switch_prob: float = 0.5) -> None:
        """Check the arguments. alphas: by members of pstk_mix."""
        kind = type(self).__name__
        words = {}
        for name, value, known in (("mode", mode, MODES), ("pairing", pairing, PAIRINGS), ("targets", targets, TARGETS)):
            if not isinstance(value, str) or value not in known:
                raise ValueError(f"{kind}.{name}: value is {value!r}; must be one of {', '.join(map(repr, known))}"
                                 + near(value, known))
            words[name] = known[value]
        if mode == "pair" and pairing != "flip":
            raise ValueError(f"{kind}.pairing: value is {pairing!r}; must be 'flip' with mode='pair', because rows are "
                             "each other's partners only then")
        if targets == "pairs" and label_smoothing:
            raise ValueError(f"{kind}.label_smoothing: value is {label_smoothing!r}; must be 0 with targets='pairs' "
                             "(give it to the loss)")
        super().__init__(num_classes=num_classes, label=label, label_smoothing=label_smoothing, image=image,
                         probability=probability(f"{kind}.p", p),
                         switch_probability=probability(f"{kind}.switch_prob", switch_prob),
                         **alphas, **words)
        self._shown.update(image=image, p=p, mode=mode, pairing=pairing, targets=targets)

    @classmethod
    def _alpha(cls, name: str, value: float) -> float:
        found = number(f"{cls.__name__}.{name}", value, 0, MAX_ALPHA)
        if found == 0:
            raise ValueError(f"{cls.__name__}.{name}: value is {value!r}; must be above 0")
        return found


@explains(MIX_KEYWORDS)
class MixUp(_Images):
    """Mix each image with its partner's, lambda * own + (1 - lambda) * other, and mix their labels in the same way.

    alpha: lambda is drawn from Beta(alpha, alpha); above 0, at most 1e6.

    The other arguments are described above.
    """

    def __init__(self, alpha: float = 1.0, *, num_classes: int, image: Optional[str] = None,
                 label: Optional[str] = None, p: float = 1.0, label_smoothing: float = 0.0, mode: str = "batch",
                 pairing: str = "roll", targets: str = "dense") -> None:
        super().__init__({"mixup_alpha": self._alpha("alpha", alpha)}, num_classes, image, label, p, label_smoothing,
                         mode, pairing, targets)
        self._shown = {"alpha": alpha, **self._shown}


@explains(MIX_KEYWORDS)
class CutMix(_Images):
    """Put a box of the partner's image into each image. Labels are mixed by the areas.

    alpha: the share of the area that stays is drawn from Beta(alpha, alpha), before the box is clipped; above 0, at
        most 1e6.

    The other arguments are described above.
    """

    def __init__(self, alpha: float = 1.0, *, num_classes: int, image: Optional[str] = None,
                 label: Optional[str] = None, p: float = 1.0, label_smoothing: float = 0.0, mode: str = "batch",
                 pairing: str = "roll", targets: str = "dense") -> None:
        super().__init__({"cutmix_alpha": self._alpha("alpha", alpha)}, num_classes, image, label, p, label_smoothing,
                         mode, pairing, targets)
        self._shown = {"alpha": alpha, **self._shown}


@explains(MIX_KEYWORDS)
class MixUpCutMix(_Images):
    """Apply CutMix with probability switch_prob, else MixUp: torchvision's RandomChoice([MixUp(), CutMix()]), timm's
    Mixup.

    mixup_alpha, cutmix_alpha: alpha of MixUp and of CutMix.
    switch_prob: probability of CutMix. Default: 0.5.

    The other arguments are described above.
    """

    def __init__(self, mixup_alpha: float = 1.0, cutmix_alpha: float = 1.0, *, num_classes: int,
                 switch_prob: float = 0.5, image: Optional[str] = None, label: Optional[str] = None, p: float = 1.0,
                 label_smoothing: float = 0.0, mode: str = "batch", pairing: str = "roll",
                 targets: str = "dense") -> None:
        alphas = {"mixup_alpha": self._alpha("mixup_alpha", mixup_alpha),
                  "cutmix_alpha": self._alpha("cutmix_alpha", cutmix_alpha)}
        super().__init__(alphas, num_classes, image, label, p, label_smoothing, mode, pairing, targets, switch_prob)
        self._shown = {"mixup_alpha": mixup_alpha, "cutmix_alpha": cutmix_alpha, "switch_prob": switch_prob,
                       **self._shown}


@explains(MIX_KEYWORDS)
class OneHot(Mix):
    """Make one-hot vectors of the labels, float32 of [B, num_classes], with label_smoothing. Images stay as they are."""

    def __init__(self, num_classes: int, label_smoothing: float = 0.0, *, label: Optional[str] = None) -> None:
        super().__init__(num_classes=num_classes, label=label, label_smoothing=label_smoothing)


def checked(mix: Any) -> BatchMix:
    """Return a loader's argument `mix`. Raises TypeError for other values."""
    if isinstance(mix, BatchMix):
        return mix
    advice = ""
    if isinstance(mix, type) and issubclass(mix, BatchMix):
        advice = " (write it with brackets" + (" and num_classes=)" if issubclass(mix, Mix) else ")")
    elif isinstance(mix, (list, tuple)):
        has_mosaic = any(isinstance(each, BatchMix) and not isinstance(each, Mix) for each in mix)
        advice = " (only one; mosaics cannot be mixed further)" if has_mosaic else \
            " (only one; for one of MixUp and CutMix by chance, write MixUpCutMix)"
    raise TypeError(f"mix: value is {mix!r}; must be penstock.MixUp, CutMix, MixUpCutMix, OneHot or Mosaic{advice}")


def checked_pairs(mix: Any) -> Mix:
    """Return the argument `mix` of draw_mix. Raises TypeError for other values."""
    found = checked(mix)
    if not isinstance(found, Mix):
        raise TypeError(f"draw_mix.mix: value is {mix!r}; must be penstock.MixUp, CutMix, MixUpCutMix or OneHot (give "
                        "a Mosaic to draw_mosaic)")
    return found


# ---- draws -------------------------------------------------------------------------------------------------


class MixedRow(NamedTuple):
    """What draw_mix returns for one row.

    kind: "mixup", "cutmix" or "none".
    partner: number of the other row.
    lam: weight of the row's own label, and for "mixup" of its image; 1 for "none".
    box: top, left, height and width of the box that "cutmix" takes of the partner, in pixels; else None.
    """

    kind: str
    partner: int
    lam: float
    box: Optional[tuple[int, int, int, int]] = None


def _mixed_row(row: _c.MixedRow) -> MixedRow:
    box = (row.top, row.left, row.height, row.width) if row.kind == _c.MIX_CUTMIX else None
    return MixedRow(KINDS[row.kind], row.partner, row.lam, box)


_MAX_OF_KEY = {"n_rows": 2**30, "height": MAX_SIDE, "width": MAX_SIDE, "rank": 2**32 - 1}


def batch_key(what: str, **members: int) -> _c.MixKey:
    """Return the struct that names a batch for a draw. what: the function as users know it."""
    key = _c.MixKey(size=sizeof(_c.MixKey))
    for name, value in members.items():
        least = 1 if name in ("height", "width") else 0
        setattr(key, name, whole(f"{what}.{name}", value, least, _MAX_OF_KEY.get(name, 2**64 - 1)))
    return key


def draw_mix(mix: Mix, n_rows: int, height: int = 1, width: int = 1, *, seed: int = 0, epoch: int = 0,
             position: int = 0, rank: int = 0) -> list[MixedRow]:
    """Return what a loader with this mix and seed does to the valid rows of a batch: a penstock.MixedRow for each.

    n_rows: `n_valid` of the batch.
    height, width: size of its images, in pixels.
    seed: seed of the loader.
    epoch, position: those of the batch.
    rank: rank of the loader.

    Equal arguments give equal rows.
    """
    key = batch_key("draw_mix", n_rows=n_rows, height=height, width=width, seed=seed, epoch=epoch, position=position,
                    rank=rank)
    error, rows = errors.new(), (_c.MixedRow * max(key.n_rows, 1))()
    given = checked_pairs(mix).to_c({})
    errors.check(_c.lib.pstk_mix_draw(byref(given), byref(key), rows, byref(error)), error)
    return [_mixed_row(row) for row in rows[:key.n_rows]]
