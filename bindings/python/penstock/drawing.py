# SPDX-License-Identifier: Apache-2.0
"""Draw the operations of a list for one sample, as a loader does."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from ctypes import byref, c_void_p, cast, sizeof
from dataclasses import dataclass, field as member, replace
from typing import TYPE_CHECKING, Any, SupportsIndex

from . import _c, errors, functional
from .arguments import FILTERS, whole
from .hints import refused_by_base
from .ops.lists import operations
from .ops.op import Op
from .sealed import Sealed

if TYPE_CHECKING:
    from .functional import Array

__all__ = ["FixedOp", "draw"]

_WITHOUT_REFERENCE = ("call", "mix")  # functions that have no argument `reference`


@refused_by_base
@dataclass(frozen=True, repr=False)
class FixedOp(Sealed):
    """One operation without random choices: a function of penstock.functional, and its arguments after the image.

    `op(array)` applies it; `op(array, reference="tensor")` gives the pixels of outputs with that reference. Most have
    the name and the arguments of a function of torchvision.transforms.functional.

    name: name of the function.
    arguments: its arguments after the image.
    kept: the objects that arguments of a `call` point to, else None.
    """

    name: str
    arguments: tuple[Any, ...] = ()
    kept: Any = member(default=None, compare=False, repr=False)  # keeps alive the objects that arguments of a call point to

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.arguments))})"

    def __call__(self, img: Array, *, kernels: str = "auto", reference: str = "pil") -> Array:
        """Return the changed image; see penstock.functional."""
        if self.name == "mix" and reference == "tensor":
            raise errors.UnsupportedError("mix.reference: value is 'tensor'; must be 'pil', because penstock has no other")
        named = {} if self.name in _WITHOUT_REFERENCE else {"reference": reference}
        found: Array = getattr(functional, self.name)(img, *self.arguments, kernels=kernels, **named)
        return found


# ---- from the library's structs --------------------------------------------------------------------------


_PAD_NAMES = {code: name for name, code in _c.NAMES["pad_mode"].items()}
_FILTER_NAMES = {code: name for name, code in FILTERS.items()}


def _size(op: _c.Op) -> tuple[int, int]:
    return op.height, op.width


def _filter(op: _c.Op) -> str:
    """Return the filter of a resize."""
    return _FILTER_NAMES[op.filter or _c.FILTER_BILINEAR]


def _resize_shorter(op: _c.Op) -> tuple[Any, ...]:
    longest = int(op.params.resize_shorter.longest)
    return (op.width, _filter(op), longest) if longest else (op.width, _filter(op))


def _numbers(n: int) -> Callable[[_c.Op], tuple[float, ...]]:
    return lambda op: tuple(op.params.values[:n])


def _whole(n: int) -> Callable[[_c.Op], tuple[int, ...]]:
    return lambda op: tuple(int(value) for value in op.params.values[:n])


def _warped(op: _c.Op) -> tuple[str, tuple[int, ...]]:
    """Return the filter and the fill of a warp."""
    return _FILTER_NAMES[op.filter or _c.FILTER_NEAREST], tuple(op.fill)


def _rotate(op: _c.Op) -> tuple[Any, ...]:
    turn, (interpolation, fill) = op.params.rotate, _warped(op)
    return turn.angle, interpolation, bool(turn.expand), tuple(turn.center) if turn.has_center else None, fill


def _call(op: _c.Op) -> tuple[Any, ...]:
    """Return the function, its random bits, the bytes of its scratch and its first argument."""
    scratch, words = int(op.params.call.scratch_size), [int(word) for word in op.params.call.random]
    function = cast(cast(op.function, c_void_p).value or 0, _c.PixelsFn)
    return function, (words[0] | words[1] << 32, words[2] | words[3] << 32), scratch, op.user


# For each kind of operation: the function, and how its arguments after the image are read.
_FIXED: dict[int, tuple[str, Callable[[_c.Op], tuple[Any, ...]]]] = {
    _c.OP_RESIZE: ("resize", lambda op: (_size(op), _filter(op))),
    _c.OP_RESIZE_SHORTER: ("resize", _resize_shorter),
    _c.DRAWN_RESIZED_CROP: ("resized_crop", lambda op: (*_whole(4)(op), _size(op), _filter(op))),
    _c.OP_CENTER_CROP: ("center_crop", lambda op: (_size(op),)),
    _c.OP_FLIP_HORIZONTAL: ("hflip", _numbers(0)),
    _c.OP_FLIP_VERTICAL: ("vflip", _numbers(0)),
    _c.OP_CROP: ("crop", lambda op: (*_whole(2)(op), *_size(op), tuple(op.fill))),
    _c.DRAWN_IOU_CROP: ("crop", lambda op: (*_whole(2)(op), *_size(op), tuple(op.fill))),
    _c.OP_PAD: ("pad", lambda op: (_whole(4)(op), tuple(op.fill), _PAD_NAMES[int(op.params.pad.mode)])),
    _c.OP_GRAYSCALE: ("rgb_to_grayscale", lambda op: (op.channels,)),
    _c.OP_BRIGHTNESS: ("adjust_brightness", _numbers(1)),
    _c.OP_CONTRAST: ("adjust_contrast", _numbers(1)),
    _c.OP_SATURATION: ("adjust_saturation", _numbers(1)),
    _c.OP_SHARPNESS: ("adjust_sharpness", _numbers(1)),
    _c.OP_HUE: ("adjust_hue", _numbers(1)),
    _c.OP_GAMMA: ("adjust_gamma", _numbers(2)),
    _c.OP_INVERT: ("invert", _numbers(0)),
    _c.OP_POSTERIZE: ("posterize", _whole(1)),
    _c.OP_SOLARIZE: ("solarize", _numbers(1)),
    _c.OP_SOLARIZE_ADD: ("solarize_add", _whole(2)),
    _c.OP_AUTOCONTRAST: ("autocontrast", _numbers(0)),
    _c.OP_EQUALIZE: ("equalize", _numbers(0)),
    _c.OP_PERMUTE_CHANNELS: ("permute_channels", lambda op: (_whole(3)(op),)),
    _c.OP_AFFINE: ("transform", lambda op: (_numbers(6)(op), *_warped(op))),
    _c.OP_PERSPECTIVE: ("transform", lambda op: (_numbers(8)(op), *_warped(op))),
    _c.OP_ROTATE: ("rotate", _rotate),
    _c.OP_GAUSSIAN_BLUR: ("gaussian_blur", lambda op: (_whole(2)(op), tuple(op.params.gaussian_blur.sigma))),
    _c.OP_BOX_BLUR: ("box_blur", _numbers(1)),
    _c.OP_JPEG: ("jpeg", _whole(1)),
    _c.OP_CALL: ("call", _call),
}


_MIX_NAMES = {code: name for name, code in _c.NAMES["chain_mode"].items()}


def _mix(op: _c.Op) -> FixedOp:
    """Return a mix of chains. The chains are among the operation's children."""
    chains: list[list[FixedOp]] = []
    weights = []
    for child in op.children[:op.n_children]:
        if child.kind == _c.DRAWN_MIX_CHAIN:
            chains.append([])
            weights.append(child.params.mix_chain.weight)
        else:
            chains[-1].append(_fixed(child))
    mode = _MIX_NAMES[int(op.params.mix.mode)]
    return FixedOp("mix", (tuple(map(tuple, chains)), tuple(weights), op.params.mix.weight, mode))


def _fixed(op: _c.Op) -> FixedOp:
    if op.kind == _c.DRAWN_MIX:
        return _mix(op)
    name, arguments = _FIXED[op.kind]
    return FixedOp(name, arguments(op))


def _listed(drawn: Any) -> Iterator[FixedOp]:
    """Yield the drawn operations. Children follow their parent in the array, and are part of it."""
    i = 0
    while i < len(drawn):
        if drawn[i].kind != _c.OP_ERASE:
            yield _fixed(drawn[i])
        i += 1 + drawn[i].n_children


def draw(ops: Iterable[Op], shape: Sequence[SupportsIndex], *, seed: int = 0, epoch: int = 0, sample_id: int = 0,
         random_group: int = 0) -> list[FixedOp]:
    """Return the operations that a loader with this seed and list applies to one sample, in their order. Normalize and
    RandomErasing are left out: their results are not bytes.

    ops: operations, as for penstock.image.
    shape: shape of the decoded image, (height, width, channels).
    seed, epoch, sample_id: those of the loader and the sample.
    random_group: that of the output.

    Equal arguments give equal lists. Applied one after the other, the operations give the loader's pixels:

        for op in penstock.draw(ops, pixels.shape, seed=7, epoch=0, sample_id=12):
            pixels = op(pixels)

    For an output with reference="tensor" write op(pixels, reference="tensor").
    """
    listed = operations("draw.ops", ops)
    given = (_c.Op * len(listed))(*(op.to_c() for op in listed))
    key = _c.Draw(size=sizeof(_c.Draw))
    for name, value, most in (("random_group", random_group, 2**32 - 1), ("seed", seed, 2**64 - 1),
                              ("epoch", epoch, 2**64 - 1), ("sample_id", sample_id, 2**64 - 1)):
        setattr(key, name, whole(f"draw.{name}", value, 0, most))
    image, error = functional.shape_of("draw", shape), errors.new()

    def call(drawn: Any, capacity: int) -> int:
        n = _c.lib.pstk_ops_draw(given, len(given), byref(image), byref(key), drawn, capacity, byref(error))
        return errors.check(n, error)
    drawn = (_c.Op * call(None, 0))()
    call(drawn, len(drawn))
    return [replace(op, kept=listed) if op.name == "call" else op for op in _listed(drawn)]
