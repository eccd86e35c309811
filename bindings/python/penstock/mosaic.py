# SPDX-License-Identifier: Apache-2.0
"""A mosaic is a picture made of four rows of a batch. A loader makes mosaics once all rows of the batch are made.

    penstock.Loader("train", batch_size=64, mix=penstock.Mosaic(), outputs={
        "x": penstock.image("jpg", [ops.ScaleJitter((640, 640), (0.5, 1.5)), ops.RandomCrop(640, pad_if_needed=True)]),
        "boxes": penstock.boxes("boxes"), "labels": penstock.per_box("labels")})

Each row meets three others of its batch at a point. The row itself is at the top left; the others are at the top right,
bottom left and bottom right. Each shows the part of it whose corner touches the point. With at least four valid rows
the others differ from each other and from the row itself; with fewer, each is any valid row.

- Masks and boxes that follow the image, and the items that belong to the boxes, are combined as well. Boxes are moved,
  clipped to their part, and dropped by the limits of penstock.boxes, which hold for the mosaic alone. With clip=False
  boxes are moved, and not clipped.
- All other outputs keep the values of the row itself, as batch.crops does.
- It is Darknet's mosaic (load_data_detection): rows have the size of the mosaic. Ultralytics pastes pictures on a
  canvas of twice the size, and cuts a random view out of it. Here operations such as ScaleJitter, RandomResizedCrop or
  RandomAffine change the scale of a row before.
- Pixels are copied, in any dtype and layout. On a device, images of floats come from the host as such. A slot holds the
  combined outputs twice, and has room for the boxes of four rows in each.
- The other rows are of this process's batch, so they change with batch_size and world.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import byref, pointer, sizeof
from typing import NamedTuple, Optional

from . import _c, errors
from .arguments import pair, probability, text
from .elsewhere import MOSAIC_KEYWORDS
from .hints import explains
from .mix import BatchMix, batch_key
from .outputs import Output

__all__ = ["Mosaic", "MosaicPart", "MosaicRow", "draw_mosaic"]


@explains(MOSAIC_KEYWORDS)
class Mosaic(BatchMix):
    """Make each row a picture of four rows of its batch, with their masks and boxes.

    image: name of the output; None: the only image output.
    p: probability that a row becomes a mosaic. Default: 1.
    center: smallest and largest position of the point where the parts meet, as fractions of width and height. Default:
        (0.25, 0.75).
    """

    def __init__(self, image: Optional[str] = None, *, p: float = 1.0,
                 center: Sequence[float] = (0.25, 0.75)) -> None:
        if not isinstance(center, Sequence):
            raise TypeError(f"Mosaic.center: value is {center!r}; must be two numbers in rising order, from 0 to 1")
        least, most = pair("Mosaic.center", center, 0, 1)
        super().__init__({"image": image, "p": p, "center": center},
                         {"probability": probability("Mosaic.p", p), "center_min": least, "center_max": most},
                         {"image": image})

    def kinds(self) -> dict[str, int]:
        """Return the kinds of the outputs that the mosaic needs, by members of the struct."""
        return {"image": _c.OUTPUT_IMAGE}

    def fill(self, settings: _c.Settings, outputs: Mapping[str, Output]) -> None:
        """Set the mosaic in the settings of a loader with these outputs."""
        settings.mosaic = pointer(self.to_c(self.names(outputs)["image"]))

    def to_c(self, image: Optional[str]) -> _c.Mosaic:
        """Return the struct for the library. image: name of the output."""
        mosaic = _c.Mosaic()
        _c.lib.pstk_mosaic_init(byref(mosaic), sizeof(mosaic))
        for member, value in self._members.items():
            setattr(mosaic, member, value)
        mosaic.image = None if image is None else text("Mosaic.image", image)
        return mosaic


# ---- draws -------------------------------------------------------------------------------------------------


class MosaicPart(NamedTuple):
    """The rectangle of one row that a mosaic shows, in pixels.

    row: number of the row in the batch.
    top, left: position in the mosaic.
    height, width: size; 0: nothing of the row is shown.
    from_top, from_left: position in the row.
    """

    row: int
    top: int
    left: int
    height: int
    width: int
    from_top: int
    from_left: int


class MosaicRow(NamedTuple):
    """What draw_mosaic returns for one row.

    center: x and y of the point where four parts meet, pixels; None: the row stays as it is, and is its only part.
    parts: top left (the row itself), top right, bottom left, bottom right.
    """

    center: Optional[tuple[int, int]]
    parts: tuple[MosaicPart, ...]


def _mosaic_row(row: _c.MosaicRow) -> MosaicRow:
    parts = tuple(MosaicPart(*(getattr(part, name) for name in MosaicPart._fields)) for part in row.parts[:row.n_parts])
    return MosaicRow((row.center_x, row.center_y) if row.n_parts > 1 else None, parts)


def draw_mosaic(mosaic: Mosaic, n_rows: int, height: int, width: int, *, seed: int = 0, epoch: int = 0,
                position: int = 0, rank: int = 0) -> list[MosaicRow]:
    """Return what a loader with this mosaic and seed does to the valid rows of a batch: a penstock.MosaicRow for each.

    n_rows: `n_valid` of the batch.
    height, width: size of its images, in pixels.
    seed: seed of the loader.
    epoch, position: those of the batch.
    rank: rank of the loader.

    Equal arguments give equal rows.
    """
    if not isinstance(mosaic, Mosaic):
        raise TypeError(f"draw_mosaic.mosaic: value is {mosaic!r}; must be penstock.Mosaic")
    key = batch_key("draw_mosaic", n_rows=n_rows, height=height, width=width, seed=seed, epoch=epoch,
                    position=position, rank=rank)
    error, rows = errors.new(), (_c.MosaicRow * max(key.n_rows, 1))()
    given = mosaic.to_c(None)
    errors.check(_c.lib.pstk_mosaic_draw(byref(given), byref(key), rows, byref(error)), error)
    return [_mosaic_row(row) for row in rows[:key.n_rows]]
