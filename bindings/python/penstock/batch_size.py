# SPDX-License-Identifier: Apache-2.0
"""The number of rows of a batch: rows of this process, or rows of all processes together, which are then divided. They
are given at open, by a number or a schedule, and may be changed between two batches."""
from __future__ import annotations

import operator
import warnings
from collections.abc import Mapping
from ctypes import POINTER, cast
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from . import _c, agreement
from .errors import SettingsError
from .hints import level_outside
from .settings import integer, switch

if TYPE_CHECKING:
    from .budget import Budget, Costed
    from .catalog import Catalog
    from .loader import Loader

__all__ = ["BatchSize", "Rows", "change", "of", "restored", "warn_of_dropped"]

Rows = Union[int, Mapping[int, int], "Budget"]  # batch sizes: a number; by the first step that has each; or by cost


class BatchSize(NamedTuple):
    """The rows of a loader's batches.

    own: rows of this process's batches; the most where they vary.
    world_wide: rows of all processes together.
    most: rows of this process that the slots have room for.
    settings: values for the library's settings.
    schedule: (first step, rows) of each change in the run; () for none. The other members are then those of the first
        steps.
    budget: the penstock.Budget that decides the rows; None: none. Once the loader is open, the other members have its
        most rows.
    """

    own: int
    world_wide: int
    most: int
    settings: dict[str, int]
    schedule: tuple[tuple[int, int], ...] = ()
    budget: Any = None  # a penstock.Budget

    @property
    def is_fixed(self) -> bool:
        """Whether a schedule or a budget decides the sizes, so that they cannot be set."""
        return bool(self.schedule) or self.budget is not None

    def costed(self, path: str, catalog: Catalog, order: str, mixture: Any) -> Costed | None:
        """Return the budget with the costs of a data set's samples; None: there is no budget."""
        if self.budget is None:
            return None
        from .budget import Costed
        return Costed(self.budget, path, catalog, order, mixture)

    def opened(self, loader: Any, world: int) -> BatchSize:
        """Return a copy with the rows of an open loader. loader: a pointer."""
        most = int(_c.lib.pstk_max_rows(loader))
        return self._replace(own=most, world_wide=most * world, most=most)

    def steps(self) -> Any:
        """Return the schedule as an array for the library."""
        return (_c.BatchStep * len(self.schedule))(*(_c.BatchStep(from_, rows) for from_, rows in self.schedule))

    def schedule_to(self, settings: _c.Settings | _c.OrderSettings) -> Any:
        """Set the schedule in the settings. Returns the array that they point to, which the caller keeps."""
        array = self.steps()
        order = settings.order if isinstance(settings, _c.Settings) else settings
        order.n_batch_steps = len(array)
        if array:
            order.batch_schedule = cast(array, POINTER(_c.BatchStep))
        return array

    @property
    def state(self) -> dict[str, Any]:
        """The schedule as a state has it: [step, rows] of each size, the first one included, and the name of the
        setting that the rows are of; {} without a schedule."""
        return {"batch_schedule": [[0, self.given], *map(list, self.schedule)],
                "batch_schedule_of": self.name} if self.schedule else {}

    @property
    def name(self) -> str:
        """The name of the setting that was given: "batch_size" or "global_batch_size"."""
        return "global_batch_size" if self.settings["global_batch_size"] else "batch_size"

    @property
    def given(self) -> int:
        """The value of that setting."""
        return self.settings[self.name]

    def changed(self, rows: int, world: int) -> BatchSize:
        """Return a copy with this number of rows, of the same setting. Raises SettingsError if the slots have no room
        for them."""
        found = of(**{"batch_size": None, "global_batch_size": None, self.name: rows},
                   uneven=bool(self.settings["uneven"]), max_batch_size=None, world=world)
        if found.own > self.most:
            most = self.most * (world if self.name == "global_batch_size" else 1)
            raise SettingsError(f"{self.name}: value is {rows}; must be at most {most}, what slots have room for (open the "
                                f"loader with memory=penstock.Memory(max_batch_size={found.own}))")
        return found._replace(most=self.most)

    def for_order(self) -> dict[str, int]:
        """Return members of struct pstk_order_settings, by name."""
        rows = self.settings["global_batch_size"]
        return {"batch_size": 0 if rows else self.own, "global_batch_size": rows}


def _divided(rows: int, uneven: bool, world: int) -> BatchSize:
    if rows < max(world, 1):
        raise SettingsError(f"global_batch_size: value is {rows}, and world is {world}; must be at least world, so that "
                            "each process has a row")
    rest = rows % world
    if rest and not uneven:
        raise SettingsError(
            f"global_batch_size: value is {rows}, and world is {world}; must be a multiple of it, as {rows - rest} and "
            f"{rows - rest + world} are (or give uneven=True: some processes then have one row more than others)")
    own = -(-rows // world)
    return BatchSize(own, rows, own, {"batch_size": 1, "global_batch_size": rows, "uneven": int(uneven)})


def of(batch_size: Any, global_batch_size: Any, uneven: Any, max_batch_size: Any, world: int) -> BatchSize:
    """Return the rows of a batch from the arguments of penstock.Loader. Raises TypeError and SettingsError."""
    if _is_budget(batch_size) or _is_budget(global_batch_size):
        return _budgeted(batch_size, global_batch_size, max_batch_size, world)
    name = "batch_size" if global_batch_size is None else "global_batch_size"
    given = {"batch_size": batch_size, "global_batch_size": global_batch_size}
    if isinstance(given[name], Mapping) and None in given.values():
        return _scheduled(name, given[name], uneven, max_batch_size, world)
    found = _at_first(batch_size, global_batch_size, uneven, world)
    if max_batch_size is None:
        return found
    most = integer("max_batch_size", max_batch_size)
    if most < found.own:
        raise SettingsError(f"max_batch_size: value is {most}; must be at least the rows of this process's batches, which "
                            f"are {found.own} (leave it out for batches that never grow)")
    return found._replace(most=most, settings={**found.settings, "max_batch_size": most})


def _is_budget(value: Any) -> bool:
    return hasattr(value, "too_long") and hasattr(value, "max_rows")  # budget.py is not imported for this


def _budgeted(budget: Any, global_batch_size: Any, max_batch_size: Any, world: int) -> BatchSize:
    if global_batch_size is not None:
        raise SettingsError(f"global_batch_size: value is {global_batch_size!r}; must be a number of rows, or a schedule (give the "
                            "budget as batch_size=: it is that of each process)")
    if max_batch_size is not None:
        raise SettingsError(f"max_batch_size: value is {max_batch_size!r}; must be left out with a budget (give penstock.Budget "
                            "max_rows=)")
    return BatchSize(1, world, 1, {"batch_size": 1, "global_batch_size": 0, "uneven": 0}, budget=budget)


def _step(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: a step is {value!r}; must be a whole number ({{0: 256, 10_000: 512}})") from None


def _scheduled(name: str, given: Mapping[Any, Any], uneven: Any, max_batch_size: Any, world: int) -> BatchSize:
    """Return the sizes of a schedule. Raises TypeError and SettingsError."""
    steps = sorted((_step(name, step), rows) for step, rows in given.items())
    if not steps or steps[0][0] != 0:
        raise SettingsError(f"{name}: value is {dict(given)!r}; must have the rows of step 0 ({{0: 256, 10_000: 512}})")
    sizes = []
    for step, rows in steps:
        if step >= 2**62:
            raise SettingsError(f"{name}: a step is {step}; must be below 2**62")
        arguments = {"batch_size": None, "global_batch_size": None, name: rows}
        try:
            sizes.append(_at_first(**arguments, uneven=uneven, world=world))
        except (SettingsError, TypeError) as error:
            raise type(error)(f"{error} (from step {step})") from None
    if len(sizes) > _c.MAX_BATCH_STEPS:
        raise SettingsError(f"{name}: value has {len(sizes)} sizes; must have at most {_c.MAX_BATCH_STEPS}")
    most = max(size.own for size in sizes)
    if max_batch_size is not None and integer("max_batch_size", max_batch_size) < most:
        raise SettingsError(f"max_batch_size: value is {max_batch_size}; must be at least the most rows of the schedule, "
                            f"which are {most} (leave it out)")
    schedule = tuple((step, size.given) for (step, _), size in zip(steps, sizes))[1:]
    return sizes[0]._replace(most=most, schedule=schedule)


def _at_first(batch_size: Any, global_batch_size: Any, uneven: Any, world: int) -> BatchSize:
    uneven = switch("uneven", uneven)
    if batch_size is None and global_batch_size is None:
        raise TypeError("batch_size: must be given, the rows of this process's batches; or penstock.GlobalBatch(ROWS), those "
                        "of all processes together")
    if global_batch_size is not None:
        return _divided(integer("global_batch_size", global_batch_size), uneven, world)
    rows = integer("batch_size", batch_size)
    return BatchSize(rows, rows * world, rows, {"batch_size": rows, "global_batch_size": 0, "uneven": 0})


# ---- between two batches -----------------------------------------------------------------------------------


def _checked(loader: Loader, name: str, rows: Any) -> BatchSize:
    """Return the new size for a loader. Raises SettingsError if it must not be changed now, or slots have no room for
    it."""
    now = loader._place.size
    loader._handle.check_turn()
    if now.budget is not None:
        raise SettingsError(f"{name}: value is {rows!r}; must not be set, because the loader was opened with {now.budget!r}")
    if now.schedule:
        raise SettingsError(f"{name}: value is {rows!r}; must not be set, because the loader was opened with a schedule of "
                            "sizes (put it in there)")
    if name != now.name:
        raise SettingsError(f"{name}: value is {rows!r}; must not be set, because the loader was opened with {now.name} (set "
                            f"loader.{now.name})")
    return now.changed(integer(name, rows), loader.ranks.world)


def change(loader: Loader, name: str, rows: Any, unchecked: bool) -> None:
    """Give a loader's batches another size from the next one on, for loader.set_batch_size and the like."""
    world, size = loader.ranks.world, None
    if switch("unchecked", unchecked) or world == 1:
        size = _checked(loader, name, rows)
    elif not loader.ranks.compare or not agreement.can_compare(loader.ranks):
        raise SettingsError(
            f"{name}: value is {rows!r}, and world is {world}; every process must set the same size before the same batch, "
            f"and nothing here compares them (initialise torch.distributed, or call set_{name}({rows!r}, unchecked=True) "
            "in each process)")
    else:
        with agreement.changing(loader.ranks, f"set {name}") as said:
            size = _checked(loader, name, rows)
            said.update({name: size.given, "the cursor": loader.cursor})
    with loader._handle.turn:
        loader._begin_turn()
        loader._place.resize(size)
    warn_of_dropped(loader)


def warn_of_dropped(loader: Loader) -> None:
    """Warn on rank 0 if some samples never come, at the line outside of the package that asked for the size. With a
    schedule or a budget nothing is said: the number of such samples varies."""
    size = loader._place.size
    if loader._order != "sequential" or loader._numbers["last_batch"] != _c.LAST_DROP or size.is_fixed or loader.ranks.rank:
        return
    epoch, position = loader.cursor
    n, rest = loader.n_samples % size.world_wide, (loader.n_samples - position) % size.world_wide
    if n or rest:
        which = "sample" if (n or rest) == 1 else f"{n or rest:,} samples"
        never = f"of {loader.n_samples:,} never come" if n else f"of epoch {epoch} do not come"
        warnings.warn(f"last_batch: value is 'drop', and samples come in sequential order: the last {which} {never} "
                      "(give last_batch=\"short\")", stacklevel=level_outside())


def restored(loader: Loader, state: Mapping[str, Any]) -> BatchSize:
    """Return the size for a loader that loads a state: the state's if the loader was opened with max_batch_size, else
    the loader's own. Raises SettingsError if the slots have no room for it."""
    now = loader._place.size
    # A state from before global batches has no such entry.
    if "max_batch_size" not in loader._numbers or state.get(now.name, now.given) == now.given:
        return now
    try:
        return now.changed(integer(now.name, state.get(now.name)), loader.ranks.world)
    except (SettingsError, TypeError) as error:
        raise SettingsError(f"state: {error} (or open the loader without max_batch_size: it then keeps its own size)") from None
