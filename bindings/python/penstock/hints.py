# SPDX-License-Identifier: Apache-2.0
"""Attributes that objects of other loaders have and ours lack, explained where they are asked for."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from .keywords import near
from .settings import FORMER

__all__ = ["Hints", "OF_BATCHES", "OF_LOADERS"]

_AT_OPEN = "it is given when the loader is opened, and print(loader) shows it"
_N_BATCHES = "`len(loader)` is the number of batches of an epoch"
_N_SAMPLES = "`loader.n_samples` is the number of samples of the data set"
_NO_SAMPLER = ("there is none: shuffle= and rank= are given when the loader is opened, and "
               "`loader.set_epoch(0)` is its own")
_NOT_COMPOSED = ("a loader is not composed of others: outputs= says what is done when it is opened, and each "
                 "`iter(loader)` is an epoch")
_STATE = "`loader.state_dict()` and `loader.load_state_dict(state)`"

# Code in backticks is run by the tests.
OF_LOADERS = {
    **{name: hint for name, hint in FORMER.items() if name != "dataset"},
    **dict.fromkeys(("sampler", "batch_sampler"), _NO_SAMPLER),
    **dict.fromkeys(("num_batches", "n_batches", "steps_per_epoch", "epoch_size"), _N_BATCHES),
    **dict.fromkeys(("num_samples", "total_samples", "size", "total_size"), _N_SAMPLES),
    **dict.fromkeys(("shuffle", "order", "seed", "last", "device", "framework", "form"), _AT_OPEN),
    **dict.fromkeys(("rank", "world", "world_size"), "`loader.ranks.rank` and `loader.ranks.world`"),
    **dict.fromkeys(("to", "cuda"), "open it with device='cuda', and its batches lie there"),
    **dict.fromkeys(("reset", "next_epoch"), "each `iter(loader)` begins the next epoch; `loader.seek(0)` "
                    "goes to any"),
    "next": "`next(iter(loader))`, or batches = iter(loader) and next(batches)",
    **dict.fromkeys(("classes", "names"), "`penstock.Dataset(loader.path).names`"),
    **dict.fromkeys(("state", "get_state", "set_state", "save_checkpoint"), _STATE),
    **dict.fromkeys(("shutdown", "stop"), "loader.close() ends it"),
    **dict.fromkeys(("map", "repeat", "with_epoch"), _NOT_COMPOSED),
}
OF_BATCHES = {
    **dict.fromkeys(("cuda", "pin_memory"), "open the loader with device='cuda', and batches lie on the GPU"),
    "numpy": "open the loader with framework='numpy'",
    **dict.fromkeys(("shape", "dtype", "size"), "a batch has several tensors; each has its own"),
    **dict.fromkeys(("ids", "indices"), "batch.sample_ids has the numbers of its samples"),
}


class Hints:
    """The base of what explains an attribute that it lacks."""

    _hints: ClassVar[Mapping[str, str]] = {}

    def _hint(self, name: str) -> str:
        """": what to do instead", or ""."""
        found = self._hints.get(name)
        return f": {found}" if found else near(name, [known for known in dir(type(self)) if known[0] != "_"])

    if not TYPE_CHECKING:  # else every name would pass for an attribute

        def __getattr__(self, name: str) -> Any:
            property_of = getattr(type(self), name, None)
            if isinstance(property_of, property):  # it raised an AttributeError of its own
                return property_of.__get__(self)
            hint = "" if name.startswith("_") else self._hint(name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")
