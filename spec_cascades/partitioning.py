"""How arrays are laid out over a ('data', 'model') mesh.

Parameters and activations are described by logical axis names (`batch`, `heads`, `mlp`, ...).
`LOGICAL_RULES` maps each name to a mesh axis or to None (replicated); the rules are the standard
ones of T5X, so a T5X user finds the layout they know: the batch over `data`, vocabulary, MLP and
heads over `model`.

A dimension that its mesh axis does not divide evenly is replicated instead (a head count of 6 on 4
devices, the last, smaller batch): slower, never an error.
"""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence

import jax
import numpy as np
from flax.linen import partitioning as nn_partitioning
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

LOGICAL_RULES: Mapping[str, str | None] = {
    "batch": "data",
    "vocab": "model",
    "mlp": "model",
    "heads": "model",
    "joined_kv": "model",
    "kv": None,
    "embed": None,
    "length": None,
    "relpos_buckets": None,
}
"""Logical axis name -> mesh axis name, or None for replicated (T5X's standard 1D rules)."""


def make_mesh(model_parallelism: int = 1, devices: Sequence[jax.Device] | None = None) -> Mesh:
    """Arranges devices into a ('data', 'model') mesh.

    Args:
        model_parallelism: devices over which one copy of the parameters is split.
        devices: the devices to use; all of them by default.

    Returns:
        A mesh of shape (number of devices / model_parallelism, model_parallelism).

    Raises:
        ValueError: if `model_parallelism` does not divide the number of devices.
    """
    devices = jax.devices() if devices is None else list(devices)
    if model_parallelism < 1 or len(devices) % model_parallelism:
        raise ValueError(
            f"model_parallelism={model_parallelism} must be a positive divisor of the number of"
            f" devices, {len(devices)}"
        )
    grid = np.asarray(devices).reshape(-1, model_parallelism)
    return Mesh(grid, ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))


def partition_spec(
    axes: Sequence[str | None],
    shape: Sequence[int],
    mesh_shape: Mapping[str, int],
    rules: Iterable[tuple[str, str | tuple[str, ...] | None]] = tuple(LOGICAL_RULES.items()),
) -> PartitionSpec:
    """Translates logical axes into mesh axes for an array of this shape.

    Args:
        axes: one logical axis name (or None) per dimension.
        shape: the array's shape.
        mesh_shape: mesh axis name -> number of devices along it.
        rules: (logical axis, mesh axis or axes) in the order of precedence, as T5X has them; each
            mesh axis is used once.

    Returns:
        A `PartitionSpec` with one entry per dimension; None where the dimension is replicated.

    Raises:
        ValueError: for a logical axis without a rule, or when the number of axes and dimensions
            differ.
    """
    if len(axes) != len(shape):
        raise ValueError(f"{len(axes)} logical axes {tuple(axes)} for an array of shape {shape}")
    unknown = [name for name in axes if name is not None and name not in LOGICAL_RULES]
    if unknown:
        raise ValueError(f"no rule for logical axes {unknown}; known: {sorted(LOGICAL_RULES)}")
    entries: list[str | tuple[str, ...] | None] = [None] * len(axes)
    free = set(mesh_shape)
    for name, mesh_axes in rules:
        parts = (mesh_axes,) if isinstance(mesh_axes, str) else tuple(mesh_axes or ())
        if not parts or not free.issuperset(parts):
            continue
        devices = math.prod(mesh_shape[part] for part in parts)
        for i, size in enumerate(shape):
            if axes[i] == name and entries[i] is None and size % devices == 0:
                entries[i] = mesh_axes
                free -= set(parts)
                break
    return PartitionSpec(*entries)


def param_shardings(model, mesh: Mesh):
    """Sharding of every parameter of `model`.

    Args:
        model: anything with `init(rng)` and `logical_axes()` (see `models.interface.Model`).
        mesh: a mesh from `make_mesh`.

    Returns:
        The parameters' tree with a `NamedSharding` at each leaf.
    """
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    replicated = []

    def sharding(path, array, axes):
        spec = partition_spec(axes, array.shape, mesh.shape)
        wanted = partition_spec(axes, [0] * len(axes), mesh.shape)
        if spec != wanted:
            replicated.append(jax.tree_util.keystr(path, simple=True, separator="/"))
        return NamedSharding(mesh, spec)

    tree = jax.tree_util.tree_map_with_path(sharding, shapes, model.logical_axes())
    if replicated:
        logging.getLogger(__name__).warning(
            "replicated over the mesh %s, which does not divide their sizes: %s",
            dict(mesh.shape),
            ", ".join(replicated),
        )
    return tree


def batch_sharding(mesh: Mesh) -> NamedSharding:
    """Sharding of an array whose leading dimension is the batch: rows over `data`."""
    return NamedSharding(mesh, PartitionSpec("data"))


def shard_params(params, model, mesh: Mesh):
    """Places parameters (host or device arrays) on the mesh, as `param_shardings` says."""
    return jax.device_put(params, param_shardings(model, mesh))


def constrain(x: jax.Array, *axes: str | None) -> jax.Array:
    """Asks the compiler to lay `x` out by its logical axes over the mesh of `jax.set_mesh`.

    Without such a mesh it returns `x` as it is, and so do the model's functions that call it: they
    are written once, for one device and for many. (Only axes left to the compiler are constrained:
    inside `shard_map` it does nothing.) Rules set by `flax.linen.partitioning.axis_rules`, which
    T5X's partitioner does, take the place of `LOGICAL_RULES`.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or any(kind != AxisType.Auto for kind in mesh.axis_types):
        return x
    rules = nn_partitioning.get_axis_rules() or tuple(LOGICAL_RULES.items())
    return jax.lax.with_sharding_constraint(x, partition_spec(axes, x.shape, mesh.shape, rules))
