# SPDX-License-Identifier: Apache-2.0
"""Arguments that are members of a topic: what to write for them."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

__all__ = ["refusal", "spelling"]


class _Topic(NamedTuple):
    """maker: the class that has the members; "": the argument takes the value itself. members: {former argument: member}.
    positions: those that stand first, by position."""

    maker: str
    members: Mapping[str, str]
    positions: tuple[str, ...] = ()


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_FOREIGN = _Topic("Foreign", _same("fields", "cache_path", "cache_size", "root_path", "split_at", "by_content", "damaged"))

# By function: {argument: its topic}.
_TOPICS: dict[str, dict[str, _Topic]] = {
    "Loader": {
        "batch_size": _Topic("GlobalBatch", {"global_batch_size": "rows", "uneven": "uneven"}, ("global_batch_size",)),
        "device": _Topic("Device", {"n_device_slots": "n_slots", "stream": "stream", "copy": "copy", "measure_device": "measure"},
                         ("device",)),
        "order": _Topic("Order", {**_same("epoch", "position", "ways", "block", "window", "samples_per_epoch"), "strands": "ways"}, ("order",)),
        "ranks": _Topic("Ranks", {**_same("rank", "world", "local_rank", "local_world"), "compare_ranks": "compare"},
                        ("rank", "world", "local_rank", "local_world")),
        "memory": _Topic("Memory", _same("n_slots", "max_batch_size", "max_memory", "io_memory", "index_memory", "max_pixels",
                                         "max_record_size")),
        "reading": _Topic("Reading", _same("reader", "io", "queue_depth", "pin_threads", "kernels", "topology", "timeout")),
        "observe": _Topic("Observe", _same("report_crops", "nvtx", "trace_path", "trace_events", "monitor_path")),
        "foreign": _FOREIGN,
        "bad_sample": _Topic("", {"on_bad_sample": ""}),
    },
    "Dataset": {"foreign": _FOREIGN},
    "pack": {"foreign": _FOREIGN._replace(members=_same("fields", "by_content"))},
}


def _shown(value: Any) -> str:
    """A value as a program would write it, where that is short."""
    text = str(value.__name__) if callable(value) and hasattr(value, "__name__") else repr(value)
    return "..." if len(text) > 60 or text[:1] == "<" else text


def _call(topic: _Topic, keywords: Mapping[str, Any]) -> str:
    """The topic with the members that were given."""
    given = {name: _shown(value) for name, value in keywords.items() if name in topic.members or name in topic.positions}
    if not topic.maker:
        return next(iter(given.values()))
    if list(given.items()) == [("rank", "'auto'")]:
        return "'auto'"
    if topic.positions == ("device",):
        given = {"device": "'cpu'", **given}
    first = []
    for name in topic.positions:
        if name not in given:
            break
        first.append(given.pop(name))
    return f"penstock.{topic.maker}({', '.join([*first, *(f'{topic.members[name]}={value}' for name, value in given.items())])})"


def refusal(function: str, keywords: Mapping[str, Any]) -> Optional[str]:
    """Return the message for arguments that are members of a topic, with the values that were given; None: there are none."""
    said = []
    for argument, topic in _TOPICS.get(function, {}).items():
        wrong = [f"{name}={_shown(value)}" for name, value in keywords.items() if name in topic.members]
        if wrong:
            said.append(f"{' and '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} now in {argument}: "
                        f"{argument}={_call(topic, keywords)}")
    return f"{function}: {'; '.join(said)}" if said else None


def spelling(function: str, name: str, value: str = "...") -> Optional[str]:
    """Return how to give an argument that is a member of a topic; None: it is none."""
    for argument, topic in _TOPICS.get(function, {}).items():
        member = topic.members.get(name)
        if member is not None:
            return f"{argument}=penstock.{topic.maker}({member}={value})" if topic.maker else f"{argument}={value}"
    return None
