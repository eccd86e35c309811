# SPDX-License-Identifier: Apache-2.0
"""HTML tables that a notebook shows for a loader, a batch and a data set.

A table shows only values that Python already has: it reads no tensor, takes no batch and asks no device. So it also
works after close. Its size is limited: MAX_ROWS rows and four lines, each cell of at most MAX_TEXT characters.
"""
from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _c
from .dtypes import DTYPE_NAMES
from .outputs import KINDS, Output
from .packing.schema import Field
from .tensors import DL_CPU, Ragged, Tensor, counted_rows

if TYPE_CHECKING:
    from .batch import BatchInfo
    from .dataset import Dataset
    from .loader import Loader

__all__ = ["of_batch", "of_dataset", "of_loader"]

MAX_ROWS = 20
MAX_TEXT = 120
N_NAMES = 5  # class names shown


def _text(value: Any) -> str:
    """Return a value as text for HTML: cut, escaped, and with a replacement for characters that cannot be printed."""
    text = str(value)
    if len(text) > MAX_TEXT:
        text = text[:MAX_TEXT - 1] + "\u2026"
    return html.escape("".join(c if c.isprintable() else "\ufffd" for c in text))


def _row(cells: Iterable[Any], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{_text(cell)}</{tag}>" for cell in cells) + "</tr>"


def _page(title: str, lines: Sequence[str], head: Sequence[str], rows: Iterable[Sequence[Any]],
          n_rows: int) -> str:
    """Return the table. rows: an iterator of any length; only its first MAX_ROWS are shown. n_rows: number of all rows."""
    parts = [f"<b>{_text(title)}</b>", *(f"<br>{_text(line)}" for line in lines),
             "<table><thead>", _row(head, "th"), "</thead><tbody>",
             *map(_row, itertools.islice(rows, MAX_ROWS))]
    if n_rows > MAX_ROWS:
        parts.append(f'<tr><td colspan="{len(head)}">{_text(f"and {n_rows - MAX_ROWS:,} more")}</td></tr>')
    return "".join([*parts, "</tbody></table>"])


# ---- batches -----------------------------------------------------------------------------------------------


def _device(value: Any) -> Any:
    device = getattr(value, "device", "")
    if isinstance(value, Tensor):
        return "cpu" if device[0] == DL_CPU else f"cuda:{device[1]}"
    return device


def _cells(name: Any, value: Any) -> tuple[Any, ...]:
    """Return the cells of one tensor of a batch, or of any value that its user put there."""
    kind, data = type(value).__name__, value
    if isinstance(value, Ragged):
        kind, data = f"ragged, {counted_rows(value)}", value.data
    shape = getattr(data, "shape", None)
    dtype = str(getattr(data, "dtype", "")).replace("torch.", "")
    return name, kind, dtype, "" if shape is None else list(shape), _device(data)


def of_batch(title: str, parts: Mapping[Any, Any], info: BatchInfo | None) -> str:
    """Return the table of a batch. parts: its tensors by name or number."""
    lines = [] if info is None else [f"{info}; position {info.position:,}, next {info.next_position:,}"]
    if info is not None and info.replacements:
        lines.append(f"{len(info.replacements):,} bad samples were replaced")
    rows = itertools.starmap(_cells, parts.items())
    return _page(title, lines, ("name", "kind", "dtype", "shape", "device"), rows, len(parts))


# ---- loaders -----------------------------------------------------------------------------------------------


def _image_shape(output: Output) -> list[Any]:
    """Return the shape of one row: the size that the last operation with a size gives."""
    height: Any = "height"
    width: Any = "width"
    channels = output.channels
    for op in output.ops:
        size = getattr(op, "size", None)
        if size is not None:
            height, width = size if isinstance(size, Sequence) else ("height", "width")
        channels = getattr(op, "num_output_channels", channels)
    if output.size_ops:
        height, width = "height", "width"
    return [height, width, channels] if output.layout == "nhwc" else [channels, height, width]


def _shape(output: Output, field: Field, n_rows: int) -> list[Any]:
    """Return the shape of a batch's tensor, with names for sizes that differ from batch to batch."""
    if output.kind == _c.OUTPUT_IMAGE:
        return [n_rows, *_image_shape(output)]
    if output.kind == _c.OUTPUT_RAGGED:
        return ["items", *(field.shape or ())[1:]]
    return ["bytes"] if output.kind == _c.OUTPUT_BYTES else [n_rows, *(field.shape or ())]


def _dtype(output: Output, field: Field) -> str:
    if output.dtype:
        return DTYPE_NAMES[output.dtype]
    return "uint8" if output.kind == _c.OUTPUT_BYTES else str(field.kind)


def of_loader(loader: Loader, lines: Sequence[str], fields: Mapping[str, Field]) -> str:
    """Return the table of a loader. lines: its repr without outputs. fields: those of its data set."""
    rows = ((name, KINDS[output.kind], output.field, _dtype(output, fields[output.field]),
             "[" + ", ".join(map(str, _shape(output, fields[output.field], loader.batch_size))) + "]",
             ", ".join(type(op).__name__ for op in output.ops))
            for name, output in loader.outputs.items())
    head = ("output", "kind", "field", "dtype", "shape of a batch", "operations")
    return _page("penstock.Loader", lines, head, rows, len(loader.outputs))


# ---- data sets ---------------------------------------------------------------------------------------------


def of_dataset(dataset: Dataset, is_closed: bool) -> str:
    """Return the table of a data set. is_closed: whether it was closed; the table stays the same."""
    info, names, fields = dataset.info, dataset.names, dataset.fields
    of = "" if len(dataset) == info.n_samples else f" of {info.n_samples:,}"
    shards = f"{info.n_shards:,} shard{'s' * (info.n_shards != 1)}"
    lines = [dataset.path, f"{len(dataset):,}{of} records, {shards}, {info.bytes:,} bytes, format {info.format}"]
    if is_closed:
        lines.append("closed")
    if names:
        more = ", ..." if len(names) > N_NAMES else ""
        lines.append(f"{len(names):,} classes: " + ", ".join(names[:N_NAMES]) + more)
    rows = ((name, field.kind, "" if field.shape is None else field.shape, field.codec,
             f"{fields[name].stored_bytes:,}") for name, field in dataset.schema.items())
    return _page("penstock.Dataset", lines, ("field", "kind", "shape", "codec", "bytes stored"), rows,
                 len(fields))
