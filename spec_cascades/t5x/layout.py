"""How T5X checkpoints store parameters: which there are, how they are sharded, how to unstack them.

Checkpoints of T5X's `t5` network hold the very tree that our T5 has. Those of `scalable_t5` stack
the layers of a stack in one array and keep heads apart (`checkpoints.scanned`): they are read as
they are stored, and brought into our form on the mesh. Trees are flat here: paths to leaves.
"""

from collections.abc import Mapping
from typing import Any

import flax
import jax
import orbax.checkpoint as ocp
from etils import epath
from flax.linen import partitioning as nn_partitioning
from flax.traverse_util import flatten_dict, unflatten_dict
from t5x import checkpoints

from spec_cascades.checkpoints import checks, scanned

Path = tuple[str, ...]


def flatten(tree: Mapping[str, Any]) -> dict[Path, Any]:
    """Leaves by path; a `PartitionSpec` is a leaf."""
    return flatten_dict(flax.core.unfreeze(tree))


def stored_shapes(path: str) -> dict[Path, jax.ShapeDtypeStruct]:
    """Shapes of the parameters in a checkpoint, legacy or Orbax, none of which is read.

    Raises:
        FileNotFoundError: there is no T5X checkpoint.
    """
    folder = epath.Path(path)
    if (folder / "checkpoint").exists():
        tree = checkpoints.load_t5x_checkpoint(path, lazy_parameters=True)
    elif (folder / "state").exists():
        tree = ocp.PyTreeCheckpointHandler().metadata(folder / "state").tree
    else:
        raise FileNotFoundError(f"{path} is no T5X checkpoint: expected a folder 'checkpoint_STEP'")
    return {
        key: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
        for key, leaf in flatten_dict(tree["target"]).items()
    }


def check_shapes(
    stored: Mapping[Path, jax.ShapeDtypeStruct], expected: Mapping[Path, Any], what: str
) -> None:
    """Compares a checkpoint with the model, before anything is read.

    Args:
        stored: from `stored_shapes`.
        expected: the model's parameters.
        what: subject of the error's text.

    Raises:
        ValueError: see `checks.compare_shapes`; in one line.
    """
    found = flatten_dict(scanned.to_per_layer(unflatten_dict(stored)))
    shapes = (
        checks.shapes({"/".join(key): leaf for key, leaf in tree.items()})
        for tree in (found, expected)
    )
    try:
        checks.compare_shapes(*shapes, what)
    except ValueError as error:
        raise ValueError(f"{error}{_hint(found, expected)}") from None


def _hint(found: Mapping[Path, Any], expected: Mapping[Path, Any]) -> str:
    """What to set where the checkpoint has a position table a layer and the model one a stack."""
    table = ("encoder", "layers_0", "relpos_bias", "rel_embedding")
    if (table in found) == (table in expected):
        return ""
    return f"; T5Config.shared_relative_bias = {table not in found} is what the checkpoint has"


def stored_axes(
    stored: Mapping[Path, jax.ShapeDtypeStruct], axes: Mapping[Path, Any]
) -> dict[str, Any]:
    """Logical axes of the parameters in a checkpoint, as T5X's (nested) `params_axes` has them.

    Args:
        stored: from `stored_shapes`.
        axes: logical axes of the model's parameters.
    """
    return unflatten_dict(
        {
            (*key[:-1], f"{key[-1]}_axes"): nn_partitioning.AxisMetadata(
                _names(key, len(array.shape), axes)
            )
            for key, array in stored.items()
        }
    )


def _names(key: Path, rank: int, axes: Mapping[Path, Any]) -> tuple[str, ...]:
    """Logical axes of one stored parameter of so many dimensions."""
    stacked = key[0] == key[1]
    names = list(axes[(key[0], "layers_0", *key[2:]) if stacked else key])
    if len(names) + stacked < rank:  # heads and head size are dimensions of their own
        place = names.index("joined_kv")
        names[place : place + 1] = ["heads", "kv"]
    if stacked:
        names.insert(scanned.LAYER_AXIS, "layers")
    return tuple(names)


def to_model(
    stored: Mapping[Path, jax.Array], shardings: Mapping[Path, jax.sharding.Sharding]
) -> dict[Path, jax.Array]:
    """Brings stored parameters into the model's form, on the devices.

    One at a time: each stored array is freed before the next one is split.

    Args:
        stored: parameters as the checkpoint has them; used up.
        shardings: of the model's parameters.
    """
    waiting, params = dict(stored), {}
    while waiting:
        key, array = waiting.popitem()
        shape = unflatten_dict({key: jax.ShapeDtypeStruct(array.shape, array.dtype)})
        split = flatten_dict(scanned.to_per_layer(shape))
        if key in split and split[key].shape == array.shape:
            params[key] = array
            continue
        convert = jax.jit(
            lambda tree: scanned.to_per_layer(tree),
            out_shardings=unflatten_dict({name: shardings[name] for name in split}),
        )
        params |= flatten_dict(convert(unflatten_dict({key: array})))
        array.delete()
    return params
