# SPDX-License-Identifier: Apache-2.0
"""Draw statistics as a figure of matplotlib."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _optional

if TYPE_CHECKING:
    from .stats import StageStats

__all__ = ["of_stages"]

# colours of the page of `penstock bench --report`; they also differ in lightness
_PARTS = (("busy_ns", "busy", "#2a6fbb"), ("starved_ns", "starved", "#d97706"), ("blocked_ns", "blocked", "#9aa4af"))


def _shares(stage: StageStats, part: str) -> float:
    """Return a part of a stage's time in percent. If no time was counted it is NaN, which is not drawn."""
    whole = stage.busy_ns + stage.starved_ns + stage.blocked_ns
    return 100 * float(getattr(stage, part)) / whole if whole else float("nan")


def of_stages(stages: Mapping[str, StageStats], title: str, axes: Any = None) -> Any:
    """Draw a bar of each stage's time, in percent, and return the figure. axes: axes of matplotlib; None: a new figure
    that pyplot does not keep, so that a notebook shows it once."""
    _optional.needed("matplotlib", "stats().plot()")
    if axes is None:
        from matplotlib import pyplot
        figure, axes = pyplot.subplots(figsize=(7, 0.6 * len(stages) + 1.3), layout="constrained")
        pyplot.close(figure)
    names = [f"{name} ({stage.n_threads} thread{'s' * (stage.n_threads != 1)})" for name, stage in stages.items()]
    left = [0.0] * len(stages)
    for part, label, colour in _PARTS:
        widths = [_shares(stage, part) for stage in stages.values()]
        axes.barh(names, widths, left=left, label=label, color=colour)
        left = [a + b for a, b in zip(left, widths)]
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of its time since the first batch was asked for")
    axes.set_title(title, fontsize="medium")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.12), ncols=len(_PARTS), frameon=False)
    return axes.figure
