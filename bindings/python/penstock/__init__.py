# SPDX-License-Identifier: Apache-2.0
"""penstock: a data loader that reads packed samples and hands out batches of tensors.

    import penstock
    from penstock import ops

    loader = penstock.Loader("train", batch_size=256, device="cuda", outputs={
        "image": penstock.image("jpg", [ops.RandomResizedCrop(224), ops.RandomFlip(), ops.Normalize()], dtype="float16"),
        "label": penstock.scalar("cls")})
    for epoch in range(90):
        for batch in loader.epoch(epoch):
            step(batch["image"], batch["label"])

Operations on images are in penstock.ops, lists of operations of well-known scripts in penstock.recipes, and all else is
in penstock itself.

The package needs only the standard library. It uses NumPy, PyTorch, JAX and CuPy where they are installed, and imports
them when a loader needs them.
"""
from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from . import ops
from ._library import MissingLibraryError
from ._version import __version__
from .batch import Batch, BatchInfo, Crop, TupleBatch
from .errors import (CorruptRecordError, DataSetBusyError, DataSetExistsError, DataSetNotFoundError,
                     ForkedError, FunctionError, InterruptedLoaderError, OutOfMemoryError, OutOfSlotsError, PenstockError,
                     SettingsError, TimedOutError, UnsupportedError)
from .loader import Loader
from .micro import MicroBatches
from .outputs import Output, image, ragged, scalar, tensor
from .ranks import Ranks
from .stats import Stats
from .streams import record_stream
from .tensors import Ragged, Tensor

if TYPE_CHECKING:
    from . import dask, forecast, functional, masks, metrics, monitor, ray, recipes, spark, trace
    from ._optional import MissingPackageError
    from .budget import Budget
    from .dataset import ColumnInfo, Dataset
    from .drawing import FixedOp, draw
    from .exporting import Exported, export
    from .installed import get_include, get_library
    from .mix import CutMix, MixedRow, MixUp, MixUpCutMix, OneHot, draw_mix
    from .mixture import DataSetStats, Mixture
    from .monitor import Monitor
    from .mosaic import Mosaic, MosaicPart, MosaicRow, draw_mosaic
    from .outputs_follow import boxes, keypoints, mask, per_box, polygons
    from .packing.columns import add_column, remove_column
    from .packing.pack import PackError, SchemaError, pack
    from .packing.task import Task
    from .packing.schema import Boxes, Keypoints, Mask, Polygons, Rle
    from .packing.writer import Field, FieldError, Writer, merge
    from .processes import python
    from .sheet import show
    from .subset import Balanced, Fold, Fraction, Ids, Range, Weighted, Where
    from .topics import Device, Foreign, GlobalBatch, Memory, Observe, Order, Reading

# Names by their module. A module is loaded at the first use of one of its names: a training loop needs few of them.
_NAMES_OF = {
    "_optional": ("MissingPackageError",),
    "budget": ("Budget",),
    "dataset": ("ColumnInfo", "Dataset"),
    "drawing": ("FixedOp", "draw"),
    "exporting": ("Exported", "export"),
    "installed": ("get_include", "get_library"),
    "mix": ("CutMix", "MixUp", "MixUpCutMix", "MixedRow", "OneHot", "draw_mix"),
    "mixture": ("DataSetStats", "Mixture"),
    "monitor": ("Monitor",),
    "mosaic": ("Mosaic", "MosaicPart", "MosaicRow", "draw_mosaic"),
    "outputs_follow": ("boxes", "keypoints", "mask", "per_box", "polygons"),
    "packing.columns": ("add_column", "remove_column"),
    "packing.pack": ("PackError", "SchemaError", "pack"),
    "packing.schema": ("Boxes", "Keypoints", "Mask", "Polygons", "Rle"),
    "packing.task": ("Task",),
    "packing.writer": ("Field", "FieldError", "Writer", "merge"),
    "processes": ("python",),
    "sheet": ("show",),
    "subset": ("Balanced", "Fold", "Fraction", "Ids", "Range", "Weighted", "Where"),
    "topics": ("Device", "Foreign", "GlobalBatch", "Memory", "Observe", "Order", "Reading"),
}
_LATER = {name: module for module, names in _NAMES_OF.items() for name in names}
_MODULES = ("functional", "masks", "monitor", "recipes", "trace")
# Names that are not in __all__: `from penstock import *` must not hide a package named dask or ray, or a common word of
# the program.
_UNLISTED = ("dask", "forecast", "metrics", "ray", "spark")

__all__ = ["Balanced", "Batch", "BatchInfo", "Boxes", "Budget", "ColumnInfo", "CorruptRecordError", "Crop", "CutMix",
           "DataSetBusyError", "DataSetExistsError", "DataSetNotFoundError", "DataSetStats", "Dataset", "Device", "Exported",
           "Field", "FieldError", "FixedOp", "Fold", "Foreign", "ForkedError", "Fraction", "FunctionError", "GlobalBatch", "Ids",
           "InterruptedLoaderError", "Keypoints", "Loader", "Mask", "Memory", "MicroBatches", "MissingLibraryError",
           "MissingPackageError", "MixUp", "MixUpCutMix", "MixedRow", "Mixture", "Monitor", "Mosaic", "MosaicPart", "MosaicRow",
           "Observe", "OneHot", "Order", "OutOfMemoryError", "OutOfSlotsError", "Output", "PackError", "PenstockError",
           "Polygons", "Ragged", "Range", "Ranks", "Reading", "Rle", "SchemaError", "SettingsError", "Stats", "Task", "Tensor",
           "TimedOutError", "TupleBatch", "UnsupportedError", "Weighted", "Where", "Writer", "__version__", "add_column", "boxes",
           "draw", "draw_mix", "draw_mosaic", "export", "functional", "get_include", "get_library", "image", "keypoints", "mask",
           "masks", "merge", "monitor", "ops", "pack", "per_box", "polygons", "python", "ragged", "recipes", "record_stream",
           "remove_column", "scalar", "show", "tensor", "trace"]


if not TYPE_CHECKING:  # without this guard mypy would accept every name

    def __getattr__(name: str) -> Any:
        if name in _MODULES or name in _UNLISTED:
            return importlib.import_module("." + name, __name__)
        if name not in _LATER:
            from .hints import missing
            raise missing(__name__, name, sys._getframe(1))
        value = getattr(importlib.import_module("." + _LATER[name], __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
