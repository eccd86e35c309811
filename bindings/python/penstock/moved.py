# SPDX-License-Identifier: Apache-2.0
"""Arguments that are members of a topic: explain what to write for them."""
from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

__all__ = ["refusal", "spelling"]


class _Topic(NamedTuple):
    """A topic.

    maker: the class that has the members; "": the argument takes the value itself.
    members: {former argument: member}.
    positions: members that may be given by position.
    """

    maker: str
    members: Mapping[str, str]
    positions: tuple[str, ...] = ()


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_FOREIGN = _Topic("Foreign", _same("fields", "cache_path", "cache_size", "root_path", "split_at", "by_content", "damaged"))

# By function: {argument: its topic}.
_TOPICS: dict[str, dict[str, _Topic]] = {
    "Loader": {
        "batch_size": _Topic("GlobalBatch", {"global_batch_size": "rows", "uneven": "uneven"}, ("rows",)),
        "device": _Topic("Device", {"n_device_slots": "n_slots", "stream": "stream", "copy": "copy", "measure_device": "measure"},
                         ("device",)),
        "order": _Topic("Order", {**_same("epoch", "position", "ways", "block", "window", "samples_per_epoch"), "strands": "ways"}, ("kind",)),
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
    """Return a value as a program would write it, or "..." for a long one."""
    text = str(value.__name__) if callable(value) and hasattr(value, "__name__") else repr(value)
    return "..." if len(text) > 60 or text[:1] == "<" or inspect.ismethod(value) else text


_NEUTRAL = {"uneven": False, "copy": False, "measure_device": False, "compare_ranks": True}  # None is neutral for all arguments


def _is_neutral(name: str, value: Any) -> bool:
    """Return whether a value means the same as leaving the argument out. Some programs pass such values always."""
    return value is None or name in _NEUTRAL and value is _NEUTRAL[name]


def _own(argument: str, topic: _Topic, value: Any) -> dict[str, Any]:
    """Return the members of the value that the argument itself was given."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):  # the value is a topic
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)
                if getattr(value, field.name) != field.default}
    if value is None or argument == "batch_size":
        return {}
    return {topic.positions[0]: value} if topic.positions else {}


def _call(argument: str, topic: _Topic, moved: Mapping[str, Any], keywords: Mapping[str, Any]) -> str:
    """Return the code of a topic with the members that were given. moved: members by former arguments."""
    if not topic.maker:
        return _shown(next(iter(moved.values()))) + ("" if keywords.get("bad_sample") == "replace" else ", which replaces bad samples")
    given = keywords.get(argument)
    if topic.maker == "Ranks" and isinstance(given, tuple):
        return f"RANKS._replace({', '.join(f'{name}={_shown(value)}' for name, value in moved.items())}), where RANKS is what is given now"
    members = {**_own(argument, topic, given), **moved}
    if members == {"rank": "auto"}:
        return "'auto'"
    missing = {"device": "'cpu'", "rows": "ROWS"}
    first = []
    for name in topic.positions:
        if name not in members and name not in missing:
            break
        first.append(_shown(members.pop(name)) if name in members else missing[name])
    return f"penstock.{topic.maker}({', '.join([*first, *(f'{name}={_shown(value)}' for name, value in members.items())])})"


def refusal(function: str, keywords: Mapping[str, Any]) -> Optional[str]:
    """Return the message for arguments that are members of a topic, with the given values; None: there are none."""
    if function == "Dataset" and not isinstance(keywords.get("fields"), Mapping):  # a list of names is still an argument
        keywords = {name: value for name, value in keywords.items() if name != "fields"}
    said = []
    for argument, topic in _TOPICS.get(function, {}).items():
        wrong = {name: value for name, value in keywords.items() if name in topic.members}
        if not wrong:
            continue
        moved = {topic.members[name]: value for name, value in wrong.items()
                 if not _is_neutral(name, value)}
        one = len(wrong) == 1
        must = f"{argument}={_call(argument, topic, moved, keywords)}" if moved else f"leave {'it' if one else 'them'} out"
        said.append(f"{' and '.join(f'{name}={_shown(value)}' for name, value in wrong.items())} {'is' if one else 'are'} now in "
                    f"{argument}: {must}")
    return f"{function}: {'; '.join(said)}" if said else None


def spelling(function: str, name: str, value: str = "...") -> Optional[str]:
    """Return how to give an argument that is a member of a topic; None: it is no member."""
    for argument, topic in _TOPICS.get(function, {}).items():
        member = topic.members.get(name)
        if member is not None:
            return f"{argument}=penstock.{topic.maker}({member}={value})" if topic.maker else f"{argument}={value}"
    return None
