# SPDX-License-Identifier: Apache-2.0
"""Watch a loader while a run goes on: numbers, the GPU, alerts.

    from penstock import monitor

    with penstock.Monitor(loader, sinks=[monitor.JSONLines("run.jsonl")], alerts=True) as watching:
        for batch in loader.epoch(0):
            step(batch)

A Monitor reads all figures in a thread of its own. The training loop never waits for it.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .alerts import (Alert, GpuIdle, NearMemoryLimit, NoBatch, Replacements, SilentRank, Slow, SlowReads, Starved,
                         Straggler, Throttled, defaults)
    from .callbacks import lightning_callback, transformers_callback
    from .flops import PEAKS, peak_flops
    from .gpu import GpuReading
    from .monitor import Monitor
    from .prometheus import Prometheus, TextFile
    from .ranks import RankView
    from .reading import Reading
    from .sinks import JSONLines, TensorBoard
    from .webhook import Webhook

_NAMES_OF = {
    "alerts": ("Alert", "GpuIdle", "NearMemoryLimit", "NoBatch", "Replacements", "SilentRank", "Slow", "SlowReads", "Starved",
               "Straggler", "Throttled", "defaults"),
    "callbacks": ("lightning_callback", "transformers_callback"),
    "flops": ("PEAKS", "peak_flops"),
    "gpu": ("GpuReading",),
    "monitor": ("Monitor",),
    "prometheus": ("Prometheus", "TextFile"),
    "ranks": ("RankView",),
    "reading": ("Reading",),
    "sinks": ("JSONLines", "TensorBoard"),
    "webhook": ("Webhook",),
}
_LATER = {name: module for module, names in _NAMES_OF.items() for name in names}

__all__ = ["Alert", "GpuIdle", "GpuReading", "JSONLines", "Monitor", "NearMemoryLimit", "NoBatch", "PEAKS", "Prometheus",
           "RankView", "Reading", "Replacements", "SilentRank", "Slow", "SlowReads", "Starved", "Straggler", "TensorBoard",
           "TextFile", "Throttled", "Webhook", "defaults", "lightning_callback", "peak_flops", "transformers_callback"]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        from ..hints import near
        raise AttributeError(f"module 'penstock.monitor' has no attribute '{name}'{near(name, __all__)}")
    value = getattr(importlib.import_module("." + _LATER[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
