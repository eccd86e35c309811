# SPDX-License-Identifier: Apache-2.0
"""A contact sheet: one picture of the images that a training loop will get.

The command `penstock show` cannot draw it. The command knows only data sets, and uses square crops of its own without
labels. But a loader has any operations and a position, a Dataset has images of all sizes, and a batch has rows in
memory.
"""
from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any

from . import _c, outputs_follow, recipes, roles
from ._optional import needed
from .arguments import is_whole, items
from .batch import BatchInfo
from .dataset import Dataset
from .errors import SettingsError
from .hints import explained, kind_of, near_or_all
from .loader import Loader
from .mosaic import Mosaic
from .ops.crop import RandomIoUCrop, RandomResizedCrop
from .ops.geometry import Letterbox, RandomFlip
from .ops.op import Op
from .ops.values import Normalize
from .outputs import Output, image, ragged, scalar
from .packing.values import as_numpy, is_array
from .packing.writer import count
from .ranks import Ranks
from .topics import Device, GlobalBatch, Memory, Order

__all__ = ["show"]

GAP = 4  # pixels between two pictures
LINE = 14  # height of a line of text, pixels
DEFAULT_SIDE = 224
MAX_PICTURES = 4096
IMAGE_ID = "image_id"  # field of packs of COCO: the number of an image, never of a class
_PATH = (str, bytes, os.PathLike)
LABEL = " label"  # name of an output that a loader's own outputs hardly have
CHANNELS = {"nhwc": 3, "nchw": 1}  # axis of the channels, by layout
BOX_CLASSES = " classes of boxes"
COLOURS = (  # colours of boxes, by class, as in the command
    (229, 57, 53), (30, 136, 229), (67, 160, 71), (251, 140, 0), (142, 36, 170), (0, 172, 193), (216, 27, 96),
    (124, 179, 66), (121, 85, 72), (253, 216, 53), (57, 73, 171), (0, 137, 123))


@dataclasses.dataclass
class _Picture:
    pixels: Any  # NumPy uint8 [height, width, 3]
    text: str


# ---- the canvas ------------------------------------------------------------------------------------------


def _fitted(picture: Any, side: tuple[int, int]) -> Any:
    """Return the picture, shrunk to the tile if it is larger; it is never enlarged."""
    made = picture.copy()
    made.thumbnail((side[1], side[0]))
    return made


def _sheet(pictures: Sequence[_Picture], columns: int | None, side: tuple[int, int] | None) -> Any:
    """Return the sheet as a PIL image. side: (height, width) of a tile; None: that of the largest picture."""
    module, draw = (needed(name, "a contact sheet", "pillow") for name in ("PIL.Image", "PIL.ImageDraw"))
    if not pictures:
        raise SettingsError("there is nothing to show")
    height, width = side or tuple(max(p.pixels.shape[axis] for p in pictures) for axis in (0, 1))
    line = LINE if any(p.text for p in pictures) else 0
    if columns is None:
        columns = 1
        while columns * columns < len(pictures):
            columns += 1
    columns = min(columns, len(pictures))
    rows = -(-len(pictures) // columns)
    sheet = module.new("RGB", (columns * (width + GAP) - GAP, rows * (height + line + GAP) - GAP), "white")
    pen = draw.Draw(sheet)
    for i, picture in enumerate(pictures):
        tile = _fitted(module.fromarray(picture.pixels), (height, width))
        left, top = i % columns * (width + GAP), i // columns * (height + line + GAP)
        sheet.paste(tile, (left + (width - tile.width) // 2, top + (height - tile.height) // 2))
        if picture.text:
            pen.text((left + 2, top + height), _fitting(pen, picture.text, width), fill="black")
    return sheet


def _fitting(pen: Any, text: str, width: float) -> str:
    """Return as much of a text as fits, with characters that the built-in font has."""
    text = text.encode("latin-1", "replace").decode("latin-1")
    while len(text) > 1 and pen.textlength(text) > width:
        text = text[:-1]
    return text


# ---- pictures --------------------------------------------------------------------------------------------


def _visible(values: Any, nhwc: bool) -> Any:
    """Return images of a batch, of any dtype, as uint8 [B, H, W, 3]. Floats are stretched to the range they have. nhwc:
    whether the last axis has the channels; else the second has."""
    import numpy
    array = as_numpy(values)
    if not nhwc:
        array = array.transpose(0, 2, 3, 1)
    if array.shape[-1] == 1:
        array = numpy.repeat(array, 3, axis=3)
    array = array[..., :3]  # without alpha
    if array.dtype.name == "uint8":
        return numpy.ascontiguousarray(array)
    array = array.astype("float32")
    low, high = float(array.min()), float(array.max())
    stretched = (array - low) * (255.0 / max(high - low, 1e-12))
    return numpy.ascontiguousarray((stretched + 0.5).clip(0, 255).astype("uint8"))


def _label_text(value: int, names: Sequence[str]) -> str:
    return names[value] if 0 <= value < len(names) else str(value)


def _label_names(dataset: Dataset, label: str | None) -> Sequence[str]:
    """Return the class names for this field's values; () for image_id, whose numbers are no classes."""
    return () if label == IMAGE_ID else dataset.names


def _tensors(batch: Any) -> dict[str, Any] | None:
    """Return {name: tensor} of a batch in any form, with numbers as names for a tuple; None: it is no batch."""
    if isinstance(batch, Mapping):
        return dict(batch)
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        return {member.name: getattr(batch, member.name) for member in dataclasses.fields(batch)}
    if isinstance(batch, (tuple, list)):
        return {str(i): tensor for i, tensor in enumerate(batch)}
    return None


def _axes(shape: Sequence[int]) -> list[str]:
    """Return the layouts that images of this shape may have."""
    return [name for name, axis in CHANNELS.items() if shape[axis] in (1, 3, 4)]


def _is_nhwc(batch: Any, name: str, shape: Sequence[int], layout: str | None) -> bool:
    """Return whether images are NHWC: by the output or the caller, or by the shape if it fits only one layout. Raises
    SettingsError."""
    fits = _axes(shape)
    info = getattr(batch, "info", None)
    key = int(name) if isinstance(batch, tuple) else name
    declared = info.image_is_nhwc(key) if isinstance(info, BatchInfo) else None
    if layout is None and declared is not None:
        layout = "nhwc" if declared else "nchw"
        if layout in fits:
            return declared
        layout = None  # the tensor was replaced by another one
    if layout is not None and layout not in fits:
        raise SettingsError(f"layout={layout!r}: {name!r} has the shape {tuple(shape)}, whose axis "
                            f"{CHANNELS[layout]} must have 1, 3 or 4 channels")
    if layout is None and len(fits) > 1:
        raise SettingsError(f"{name!r} has the shape {tuple(shape)}, which may be NHWC or NCHW: say "
                            "layout='nhwc' or 'nchw'")
    return (layout or fits[0]) == "nhwc"


def _of_batch(batch: Any, field: str | None, n: int, layout: str | None) -> list[_Picture]:
    found = {name: value for name, value in (_tensors(batch) or {}).items()
             if is_array(value) and len(value.shape) == 4 and _axes(value.shape)}
    if not found or (field is not None and field not in found):
        what, must = ("source: value is a batch", "have images, a tensor of 4 axes with 1, 3 or 4 channels") if not found else \
            (f"field: value is {field!r}", "be the name of a tensor of images" + near_or_all(field, found))
        raise SettingsError(f"{what}; must {must}")
    name = field or next(iter(found))
    n = min(n, int(getattr(batch, "n_valid", n)))
    nhwc = _is_nhwc(batch, name, found[name].shape, layout)
    return [_Picture(row, "") for row in _visible(found[name][:n], nhwc)]


def _field_of(dataset: Dataset, role: int, what: str, wished: str | None) -> str | None:
    """The field that has a role, or the one that is wished, which must fit it; None: no field is known to have it."""
    schema = dataset.schema
    if wished is not None and roles.find(schema, role, name=wished) is None:
        raise SettingsError(f"{dataset.path} has no {what} field {wished!r}"
                            + near_or_all(wished, (name for name in schema if roles.find(schema, role, name=name))))
    return wished or roles.find(schema, role)


def _image_field(dataset: Dataset, wished: str | None) -> str:
    found = _field_of(dataset, _c.ROLE_IMAGE, "image", wished)
    if found is None:
        raise SettingsError(f"{dataset.path} has no image field: there is nothing to show")
    return found


def _label_field(dataset: Dataset, wished: str | None) -> str | None:
    """Return the field whose value is written under each picture, as in the command. None: there is none."""
    return _field_of(dataset, _c.ROLE_LABEL, "integer", wished)


def _of_dataset(dataset: Dataset, field: str | None, label: str | None,
                ids: Sequence[int]) -> Iterator[_Picture]:
    """Return whole images with their labels."""
    name, label = _image_field(dataset, field), _label_field(dataset, label)
    names = _label_names(dataset, label)
    for i in ids:
        yield _Picture(dataset._picture(i, name),
                       f"{i}" + (f" {_label_text(dataset.get(i, label), names)}" if label else ""))


# ---- outputs that follow an image -------------------------------------------------------------------------


_MAKERS: dict[str, Callable[..., Output]] = {
    "boxes": outputs_follow.boxes, "mask": outputs_follow.mask, "keypoints": outputs_follow.keypoints,
    "polygons": outputs_follow.polygons}
_ROLES = {"boxes": _c.ROLE_BOXES, "mask": _c.ROLE_MASK, "keypoints": _c.ROLE_KEYPOINTS, "polygons": _c.ROLE_POLYGONS}
_KINDS = {_c.OUTPUT_BOXES: "boxes", _c.OUTPUT_MASK: "mask", _c.OUTPUT_KEYPOINTS: "keypoints",
          _c.OUTPUT_POLYGONS: "polygons"}


def _following(dataset: Dataset, field: str) -> dict[str, str]:
    """Return, by kind, the data set's first field that follows the image; under "corners" the field with the number of
    corners of each polygon; under "classes" the field with the classes of the boxes."""
    schema = dataset.schema
    found = {kind: roles.find(schema, role, field) for kind, role in _ROLES.items()}
    for kind, role, of in (("corners", _c.ROLE_CORNERS, "polygons"), ("classes", _c.ROLE_BOX_CLASSES, "boxes")):
        found[kind] = None if found[of] is None else roles.find(schema, role, found[of])
    return {kind: name for kind, name in found.items() if name is not None}


def _names(following: Mapping[str, str], view: str) -> dict[str, str]:
    """Return the names of _following_outputs, by kind."""
    return {kind: "corners" if kind == "corners" else f"{view} {kind}" for kind in following}


def _check_boxes(dataset: Dataset, field: str, ops: Iterable[Op], has_boxes: bool) -> None:
    if not has_boxes and any(isinstance(op, RandomIoUCrop) for op in ops):
        raise SettingsError(f"{dataset.path} has no field of boxes of {field!r}, which RandomIoUCrop crops by (choose "
                            "another recipe, or operations without it)")


def _following_outputs(following: Mapping[str, str], view: str) -> dict[str, Output]:
    """Return outputs of these fields, by "view kind". All polygons are read, with their numbers of corners in
    "corners"."""
    made: dict[str, Output] = {
        f"{view} {kind}": make(following[kind], follows=view, **({"boxes": False} if kind == "polygons" else {}))
        for kind, make in _MAKERS.items() if kind in following}
    if "corners" in following:
        made["corners"] = ragged(following["corners"])
    if "classes" in following:
        made[f"{view} classes"] = outputs_follow.per_box(following["classes"], boxes=f"{view} boxes")
    return made


def _draw_boxes(picture: Any, boxes: Sequence[Sequence[float]], classes: Sequence[int], names: Sequence[str]) -> None:
    """Draw boxes in the colour of their class, and then their names, so that no box crosses a name. Boxes without
    classes are red."""
    pen = needed("PIL.ImageDraw", "a contact sheet", "pillow").Draw(picture)
    if len(classes) != len(boxes):
        classes = ()
    for i, box in enumerate(boxes):
        pen.rectangle(box, outline=COLOURS[classes[i] % len(COLOURS)] if classes else (255, 0, 0), width=2)
    for box, number in zip(boxes, classes):
        colour = COLOURS[number % len(COLOURS)]
        text = _fitting(pen, _label_text(number, names), picture.width // 2)
        width = int(pen.textlength(text)) + 4
        left = max(0, min(int(box[0]), picture.width - width))
        top = int(box[1]) - LINE if box[1] >= LINE else max(0, int(box[1]))
        pen.rectangle((left, top, left + width - 1, top + LINE - 1), fill=colour)
        is_light = 299 * colour[0] + 587 * colour[1] + 114 * colour[2] > 150000  # of 255000
        pen.text((left + 2, top + 1), text, fill="black" if is_light else "white")


def _draw_shapes(picture: Any, shapes: Mapping[str, Any], names: Sequence[str]) -> None:
    """Draw outlines of polygons in yellow, boxes, and points in green, hidden ones in blue."""
    import numpy
    pen = needed("PIL.ImageDraw", "a contact sheet", "pillow").Draw(picture)
    corners = as_numpy(shapes.get("polygons", numpy.zeros((0, 2))))
    lengths = as_numpy(shapes.get("corners", numpy.array([len(corners)])))
    for polygon in numpy.split(corners, numpy.cumsum(lengths)[:-1]):
        if len(polygon) > 1 and numpy.isfinite(polygon).all():
            pen.polygon([tuple(corner) for corner in polygon.tolist()], outline=(255, 255, 0))
    _draw_boxes(picture, as_numpy(shapes.get("boxes", numpy.zeros((0, 4)))).tolist(),
                as_numpy(shapes.get("classes", numpy.zeros(0, "int64"))).tolist(), names)
    for x, y, visibility in as_numpy(shapes.get("keypoints", numpy.zeros((0, 1, 3)))).reshape(-1, 3).tolist():
        if visibility:
            pen.ellipse([x - 2, y - 2, x + 2, y + 2], fill=(0, 255, 0) if visibility == 2 else (0, 96, 255))


def _drawn_in(pixels: Any, shapes: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the picture with its mask and shapes. Classes of a mask are colours, except class 0 and the ignored one.

    names: class names of the boxes.
    """
    import numpy
    mask = shapes.get("mask")
    if mask is not None:
        classes = as_numpy(mask).astype("int64")[..., None]
        colours = (classes * (67, 131, 197) + (90, 30, 150)) % 256
        shown = numpy.where((classes == 0) | (classes == 255), pixels, (pixels.astype("int64") + colours) // 2)
        pixels = shown.astype("uint8")
    if not set(shapes) - {"mask", "corners", "classes"}:
        return pixels
    picture = needed("PIL.Image", "a contact sheet", "pillow").fromarray(numpy.ascontiguousarray(pixels))
    _draw_shapes(picture, shapes, names)
    return as_numpy(picture)


# ---- loaders ----------------------------------------------------------------------------------------------


def _unnormalised(rows: Any, ops: Sequence[Op]) -> Any:
    """Undo a Normalize of these operations: return uint8 for float32 [B, H, W, C]."""
    import numpy
    array = as_numpy(rows)
    for op in ops:
        if isinstance(op, Normalize):
            array = array * numpy.asarray(op.std, "float32") + numpy.asarray(op.mean, "float32")
    return (array * 255.0 + 0.5).clip(0, 255).astype("uint8")


@dataclasses.dataclass
class _Plan:
    """The outputs of a second loader. image, label: their names. shapes: names of the outputs that are drawn, by kind."""

    outputs: dict[str, Output]
    image: str
    shapes: dict[str, str]
    label: str | None
    label_names: Sequence[str]
    classes: Sequence[str]


def _of_rows(batch: Any, plan: _Plan) -> Iterator[_Picture]:
    pixels = batch[plan.image]
    if plan.outputs[plan.image].dtype != _c.U8:
        pixels = _unnormalised(pixels, plan.outputs[plan.image].ops)
    pixels = _visible(pixels, nhwc=True)
    for row, sample_id in enumerate(batch.sample_ids):
        label = f" {_label_text(int(batch[plan.label][row]), plan.label_names)}" if plan.label else ""
        shapes = {kind: batch[name][row] for kind, name in plan.shapes.items()}
        yield _Picture(_drawn_in(pixels[row].copy(), shapes, plan.classes), f"{sample_id}{label}")


def _plan(dataset: Dataset, name: str, shown: Output, label: str | None, following: Mapping[str, Output],
          shapes: dict[str, str]) -> _Plan:
    """Return the plan for an image in a dtype and layout that can be shown, with the outputs that follow it, and its
    label."""
    _check_boxes(dataset, shown.field, shown.ops, any(its.kind == _c.OUTPUT_BOXES for its in following.values()))
    dtype = _c.U8 if shown.dtype in (0, _c.U8) else _c.F32
    outputs = {name: dataclasses.replace(shown.of_one_size(), dtype=dtype, layout="nhwc"), **following}
    label = _label_field(dataset, label)
    if label is not None:
        outputs[LABEL] = scalar(label)
    return _Plan(outputs, name, shapes, None if label is None else LABEL, _label_names(dataset, label), dataset.names)


def _of_ids(path: str, shown: Output, label: str | None, ids: Sequence[int], seed: int,
            epoch: int) -> Iterator[_Picture]:
    """Return these samples of an epoch, as a loader augments them."""
    with Dataset(path) as dataset:
        fields = _following(dataset, shown.field)
        plan = _plan(dataset, "image", shown, label, _following_outputs(fields, "image"), _names(fields, "image"))
    with Loader(path, batch_size=1, outputs=plan.outputs, framework="numpy", last_batch="short",
                order=Order("sequential", epoch=epoch, position=ids[0]), ranks=Ranks(0, 1), seed=seed,
                device=Device(copy=True)) as loader:
        for i in ids:
            loader.seek(epoch, i)
            yield from _of_rows(next(iter(loader)), plan)


def _member(output: Output, name: str) -> Any:
    return next((value for member, value, _ in output.following if member == name), None)


def _in_pixels(output: Output) -> Output:
    """Return a copy with the form and coordinates that are drawn, and with room for any batch."""
    drawn = {"box_format": _c.NAMES["box_format"]["xyxy"], "coordinates": _c.NAMES["coordinates"]["pixels"]}
    following = tuple((member, drawn.get(member, value), given) for member, value, given in output.following)
    return dataclasses.replace(output, following=following, bytes_per_batch=0)


def _corners_output(dataset: Dataset, outputs: Mapping[str, Output], field: str, boxes: Sequence[str]) -> str | None:
    """Return the loader's output with the number of corners of each polygon; "": the field has one polygon; None: there
    is no such output."""
    lengths = roles.find(dataset.schema, _c.ROLE_CORNERS, field)
    if lengths is None:
        return ""
    for name, output in outputs.items():
        known = output.kind != _c.OUTPUT_PER_BOX or (_member(output, "boxes") or "".join(boxes[:1])) in boxes
        if output.field == lengths and known:
            return name
    return None


def _following_of(loader: Loader, dataset: Dataset, image_name: str) -> tuple[dict[str, Output], dict[str, str]]:
    """Return the loader's outputs that follow its image, and the names of the first of each kind, which are drawn."""
    field, found = loader.outputs[image_name].field, {}
    for name, output in loader.outputs.items():
        if output.kind in _KINDS:
            followed = _member(output, "image")
            if followed == image_name or (followed is None and dataset.schema[output.field].of in (None, field)):
                found[name] = _in_pixels(output)
    shapes: dict[str, str] = {}
    for name, output in found.items():
        shapes.setdefault(_KINDS[output.kind], name)
    if "polygons" in shapes:
        boxes = [name for name, output in found.items() if output.kind == _c.OUTPUT_BOXES]
        corners = _corners_output(dataset, loader.outputs, found[shapes["polygons"]].field, boxes)
        if corners:
            shapes["corners"], found[corners] = corners, _in_pixels(loader.outputs[corners])
        elif corners is None:
            del shapes["polygons"]
    classes = roles.find(dataset.schema, _c.ROLE_BOX_CLASSES, found[shapes["boxes"]].field) if "boxes" in shapes else None
    if classes is not None:
        shapes["classes"], found[BOX_CLASSES] = BOX_CLASSES, outputs_follow.per_box(classes, boxes=shapes["boxes"])
    return found, shapes


def _rows_and_mosaic(loader: Loader, name: str, n: int) -> dict[str, Any]:
    """Return the arguments of a loader that reads n pictures. If rows make mosaics, it reads whole batches."""
    mosaic = loader._mix
    if not isinstance(mosaic, Mosaic) or mosaic.names(loader.outputs)["image"] != name:
        return {"batch_size": min(n, loader.n_samples)}
    rows = loader._rows.settings
    if rows["global_batch_size"]:
        return {"batch_size": GlobalBatch(rows["global_batch_size"], bool(rows["uneven"])), "mix": mosaic}
    return {"batch_size": rows["batch_size"], "mix": mosaic}


def _of_loader(loader: Loader, field: str | None, label: str | None, n: int) -> Iterator[_Picture]:
    """Return the next samples of a loader. A second loader reads them, so that the first does not move."""
    found = {name: output for name, output in loader.outputs.items() if output.kind == _c.OUTPUT_IMAGE}
    if not found or (field is not None and field not in found):
        raise SettingsError("the loader has no image output" + (f" {field!r}" if field else "")
                            + (near_or_all(field, found) if found else " (penstock.show(loader.dataset) shows the images "
                               "of the data set)"))
    epoch, position = loader.cursor
    n_left = loader.n_batches_left
    if not n_left:
        epoch, position, n_left = epoch + 1, 0, len(loader)
    ranks, said = loader.ranks, loader.state_dict()
    n = min(n, n_left * loader.batch_size)  # last_batch="drop" leaves out the others
    name = field or next(iter(found))
    with Dataset(loader.path) as dataset:
        plan = _plan(dataset, name, found[name], label, *_following_of(loader, dataset, name))
    with Loader(loader.path, **_rows_and_mosaic(loader, name, n), outputs=plan.outputs, framework="numpy",
                order=Order(said["order"], epoch=epoch, position=position), last_batch="short",
                ranks=ranks._replace(compare=False), seed=said["seed"], device=Device(copy=True), n_threads=1,
                memory=Memory(n_slots=2)) as reader:
        yield from itertools.islice((picture for batch in reader for picture in _of_rows(batch, plan)), n)


# ---- recipes ---------------------------------------------------------------------------------------------


def _of_recipe(path: str, name: str, field: str, sample_id: int, n: int, seed: int) -> Iterator[_Picture]:
    """Return the whole image, then n draws: every view of epoch 0, of epoch 1, and so on, with the shapes that follow."""
    recipe: dict[str, list[Op]] = {**recipes.find(name), "whole image": [Letterbox(DEFAULT_SIDE, fill=255)]}
    outputs = recipes.views(field, recipe, dtype="float32")
    with Dataset(path) as dataset:
        following, names = _following(dataset, field), dataset.names
        for ops in recipe.values():
            _check_boxes(dataset, field, ops, "boxes" in following)
    for view in recipe:
        outputs.update(_following_outputs(following, view))
    views = list(recipe)[:-1]
    with Loader(path, batch_size=1, outputs=outputs, framework="numpy", order="sequential", last_batch="short",
                ranks=Ranks(0, 1), seed=seed, device=Device(copy=True), n_threads=1, memory=Memory(n_slots=2)) as loader:
        def picture(batch: Any, view: str, text: str) -> _Picture:
            pixels = _unnormalised(batch[view], recipe[view])[0]
            shapes = {kind: batch[key][0] for kind, key in _names(following, view).items()}
            return _Picture(_drawn_in(pixels, shapes, names), text)

        def drawn(epoch: int) -> Any:
            loader.seek(epoch, sample_id)
            return next(iter(loader))
        batch = drawn(0)
        yield picture(batch, "whole image", f"sample {sample_id}")
        for i in range(n):
            epoch, view = i // len(views), views[i % len(views)]
            if epoch > 0 and view == views[0]:
                batch = drawn(epoch)
            yield picture(batch, view, f"epoch {epoch}" + (f" {view}" if len(views) > 1 else ""))


# ---- show ------------------------------------------------------------------------------------------------


def _checked_ids(ids: Sequence[int] | None, n: int, n_samples: int) -> list[int]:
    if ids is None:
        return list(range(min(n, n_samples)))
    found = [count("ids", i, 0, n_samples - 1) for i in items("ids", ids, "a list of numbers of samples")]
    if not found:
        raise SettingsError("ids: value is empty; must have 1 or more numbers of samples")
    return found


def _check_recipe(recipe: Any, ids: Any) -> None:
    if not isinstance(recipe, str):
        raise TypeError(f"recipe: value is {kind_of(recipe)}; must be the name of a recipe, of "
                        "penstock.recipes.names() (give a list of operations as ops=)")
    if isinstance(ids, Sized) and len(ids) > 1:
        raise SettingsError(f"ids: value has {len(ids)} samples; must have one with recipe=, which shows several "
                            "augmentations of one sample (call show for each)")


def _check_arguments(source: Any, **given: Any) -> None:
    """Raise TypeError or SettingsError for arguments of a wrong type, or that do not apply to this source."""
    is_path, is_batch = isinstance(source, _PATH), not isinstance(source, (*_PATH, Dataset, Loader))
    for name in ("field", "label"):
        may_count = is_batch and name == "field" and is_whole(given[name])  # a tuple's output has a number
        if given[name] is not None and not isinstance(given[name], str) and not may_count:
            raise TypeError(f"{name}: value is {given[name]!r}; must be the name of a field")
    layout, ids, recipe = given["layout"], given["ids"], given["recipe"]
    if layout is not None:
        if not isinstance(layout, str) or layout not in CHANNELS:
            raise SettingsError(f"layout: value is {layout!r}; must be 'nhwc' or 'nchw'")
        if not is_batch:
            raise SettingsError(f"layout: value is {layout!r}; must be None, except for a batch (a data set and a loader have theirs)")
    if ids is not None and (is_batch or isinstance(source, Loader)):
        raise SettingsError(f"ids: value is {ids!r}; must be None, except for a path or a Dataset (a loader shows what it delivers next)")
    if given["ops"] is not None and not is_path:
        raise SettingsError("ops: value is a list of operations; must be None, except for the path of a data set (a loader and a "
                            "batch show what their outputs made; of a Dataset give dataset.path)")
    if given["label"] is not None and is_batch:
        raise SettingsError(f"label: value is {given['label']!r}; must be None for a batch, whose values have no names")
    if recipe is not None:
        if given["ops"] is not None or not is_path:
            raise SettingsError(f"recipe: value is {recipe!r}; must be None, except for the path of a data set without ops=")
        _check_recipe(recipe, ids)


@explained("penstock.show", {"nrow": "columns= is the number of pictures in a row",
                             "transform": "ops= are operations of penstock's, for a path"})
def show(source: Any, n: int = 16, *, ids: Sequence[int] | None = None, field: str | None = None,
         label: str | None = None, ops: Sequence[Op] | None = None, seed: int = 0, epoch: int = 0,
         columns: int | None = None, layout: str | None = None, recipe: str | None = None) -> Any:
    """Draw a contact sheet, and return it as a PIL image. A notebook shows it; .save("sheet.png") keeps it.

    source: a Loader, a path, a Dataset or a batch; see below.
    n: number of pictures, at most.
    ids: these samples instead (a path or Dataset).
    field: image field, or output of a Loader or batch (of a tuple its number); None: the first, or the field `jpg` of a
        data set.
    label: integer field whose value is written under each picture after the sample's id, as a class name if the data
        set has names; None: `cls`, `label`, `class`, `target`, `class_id`, `label_id`, `category_id`, `target_id`, or
        the only one whose name does not end in "id". Numbers of image_id get no name.
    ops, seed, epoch: for a path: a loader's; ops=None: RandomResizedCrop(224), RandomFlip().
    columns: pictures in a row; None: about as many as there are rows.
    layout: "nhwc" or "nchw", for a batch that no loader of penstock made and whose shape fits both; None: the layout of
        the loader's output, or the only one that fits.
    recipe: a name of penstock.recipes.names(), for a path: the whole image of one sample (ids=[7]; None: the first),
        then n - 1 of its augmentations, as they follow from epoch to epoch, with its masks, boxes, keypoints and
        polygons.

    A Loader: the samples after the batch that it handed out last; at the end of an epoch, those of the next. These are the
    samples with which a pass goes on, and load_state_dict(state_dict()) too. (A new `for` after one that was left early
    begins the next epoch instead.) They are augmented as they will be, with Normalize undone. A second loader reads them,
    so the first does not move.

    A path of a data set: its first samples, as a loader augments them.

    In both cases the first boxes, masks, keypoints and polygons that follow the image are drawn: a loader's outputs, or
    the data set's fields. Boxes have the colour of their class, with its name, if the data set's field `labels` has it,
    or the only field of whole numbers that belongs to the boxes. Mosaics are shown, but nothing else of mix=; of sizes=
    the first.

    A Dataset: whole images. A batch, be it dict, tuple or dataclass: its images; floats are stretched to the range that
    they have.

    Needs Pillow and NumPy. Raises MissingPackageError, SettingsError, TypeError, and errors of reading.
    """
    needed("numpy", "a contact sheet")
    needed("PIL.Image", "a contact sheet", "pillow")
    n = count("n", n, 1, MAX_PICTURES)
    if columns is not None:
        count("columns", columns, 1, MAX_PICTURES)
    _check_arguments(source, ids=ids, field=field, label=label, ops=ops, layout=layout, recipe=recipe)
    if isinstance(source, Loader):
        return _sheet(list(_of_loader(source, field, label, n)), columns, None)
    if isinstance(source, Dataset):
        found = _of_dataset(source, field, label, _checked_ids(ids, n, len(source)))
        return _sheet(list(found), columns, (DEFAULT_SIDE, DEFAULT_SIDE))
    if isinstance(source, _PATH):
        path = os.fsdecode(source)
        with Dataset(path) as dataset:
            name, wanted = _image_field(dataset, field), _checked_ids(ids, n, len(dataset))
        if recipe is not None:
            return _sheet(list(_of_recipe(path, recipe, name, wanted[0], n - 1, seed)), columns,
                          (DEFAULT_SIDE, DEFAULT_SIDE))
        if ops is None:
            ops = [RandomResizedCrop(DEFAULT_SIDE), RandomFlip()]
        return _sheet(list(_of_ids(path, image(name, ops), label, wanted, seed, epoch)), columns, None)
    if _tensors(source) is not None:
        return _sheet(_of_batch(source, None if field is None else str(field), n, layout), columns, None)
    raise TypeError(f"source: value is {kind_of(source)}; must be a Loader, a Dataset, the path of a data set, or a batch")
