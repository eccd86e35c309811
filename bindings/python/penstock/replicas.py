# SPDX-License-Identifier: Apache-2.0
"""The data-parallel rank of a process whose model is split over several processes: penstock.ranks.from_mesh and
from_megatron.

Processes of one tensor-, pipeline- or context-parallel group have the same data-parallel rank, so they get the same
batches. Each of them reads and decodes the batches by itself. The processes of a machine share its cores and memory.
"""
from __future__ import annotations

import importlib
import operator
import sys
from collections.abc import Sequence
from typing import Any

from .errors import SettingsError
from .ranks import Ranks, distributed, local

__all__ = ["from_mesh", "from_megatron"]


def _made(rank: Any, world: Any, source: str) -> Ranks:
    """Return the ranks of a process with this data-parallel rank. Raises SettingsError for impossible numbers."""
    try:
        rank, world = operator.index(rank), operator.index(world)
    except TypeError:
        raise SettingsError(f"ranks: {source} gives rank {rank!r} of {world!r}; must be whole numbers") from None
    if not 0 <= rank < world:
        raise SettingsError(f"ranks: {source} gives rank {rank} of {world}; must be from 0 to {world - 1} (this process is "
                            "in none of its groups)")
    torch = distributed()
    n_processes = torch.get_world_size() if torch is not None else world
    if n_processes % world:
        raise SettingsError(f"ranks: {source} has {world} ranks among {n_processes} processes; must divide them, so that "
                            "each rank has as many processes as any other (give "
                            "ranks=penstock.Ranks(RANK, WORLD, compare=False))")
    return local()._replace(rank=rank, world=world, source=source, n_replicas=n_processes // world)


def _names(dim: str | Sequence[str] | None, mesh: Any) -> tuple[str, ...]:
    known = tuple(mesh.mesh_dim_names or ())
    if dim is None:
        if mesh.ndim == 1:
            return ()
        raise SettingsError(f"dim: value is None, and the mesh has {mesh.ndim} dimensions; must name those that split the "
                            f"data (one or several of {known})")
    names = (dim,) if isinstance(dim, str) else tuple(dim)
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise SettingsError(f"dim: value is {dim!r}; must be one or several names of dimensions, each once (of {known})")
    return names


def from_mesh(mesh: Any, dim: str | Sequence[str] | None = None) -> Ranks:
    """Return the data-parallel rank and size of this process in a torch.distributed.device_mesh.DeviceMesh, for
    penstock.Loader(ranks=...).

    dim: name of the dimension that splits the data, such as "dp"; or several names, outermost first, such as
        ("dp_replicate", "dp_shard"); None for a mesh of one dimension. It may be a name that mesh[dim]._flatten() gave.

    Processes that differ in other dimensions get the same batches. Raises SettingsError for a name that the mesh lacks,
    and in a process that is not part of the mesh.
    """
    if not all(hasattr(mesh, name) for name in ("mesh_dim_names", "ndim", "get_coordinate", "shape")):
        raise TypeError(f"mesh: value is {mesh!r}; must be a torch.distributed.device_mesh.DeviceMesh")
    names, part = _names(dim, mesh), mesh
    if mesh.get_coordinate() is None:
        raise SettingsError("mesh: this process is not part of it; must be one of its processes (open the loader in those "
                            "alone, and give ranks=ranks._replace(compare=False) there)")
    if names:
        try:
            part = mesh[names[0] if len(names) == 1 else names]
        except (KeyError, RuntimeError, ValueError) as error:
            raise SettingsError(f"dim: value is {dim!r}; must be one or several of the mesh's dimensions "
                                f"{tuple(mesh.mesh_dim_names or ())}, in their order ({error})") from None
    rank, world = 0, 1
    for coordinate, size in zip(part.get_coordinate(), part.shape):
        rank, world = rank * size + coordinate, world * size
    return _made(rank, world, "DeviceMesh" + "".join(" " + name for name in names))


def from_megatron(parallel_state: Any = None) -> Ranks:
    """Return the data-parallel rank and size of this process in Megatron-LM, for penstock.Loader(ranks=...).

    parallel_state: megatron.core.parallel_state if None; else anything with get_data_parallel_rank() and
        get_data_parallel_world_size(), such as the `mpu` that DeepSpeed takes.

    Context-parallel groups count as one rank. Raises SettingsError before initialize_model_parallel(), and
    ImportError without Megatron.
    """
    if parallel_state is None:
        name = "megatron.core.parallel_state"
        try:
            parallel_state = sys.modules.get(name) or importlib.import_module(name)
        except ImportError as error:
            raise ImportError(f"ranks: {name} cannot be imported: {error}; must be importable for from_megatron() (install megatron-core; "
                              "or give parallel_state=, as the mpu of DeepSpeed; or ranks=penstock.Ranks(RANK, WORLD) to the loader)") from error
    for name in ("get_data_parallel_rank", "get_data_parallel_world_size"):
        if not callable(getattr(parallel_state, name, None)):
            raise TypeError(f"parallel_state: value is {parallel_state!r}, which has no {name}(); must be "
                            "megatron.core.parallel_state or the like")
    ready = getattr(parallel_state, "model_parallel_is_initialized", None)
    if ready is not None and not ready():
        raise SettingsError("ranks: Megatron's groups are not initialised; must be initialised before a loader opens (call "
                            "parallel_state.initialize_model_parallel first)")
    return _made(parallel_state.get_data_parallel_rank(), parallel_state.get_data_parallel_world_size(), "Megatron")
