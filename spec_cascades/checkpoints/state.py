"""Checkpoints of a training run: an Orbax `CheckpointManager` over one pytree."""

from __future__ import annotations

import pathlib
from typing import Any

import jax


def manager(path: str | pathlib.Path, keep: int = 2):
    """A `CheckpointManager` of the run folder's `checkpoints/`, which is made if need be.

    A checkpoint appears under its final name only when it is complete, so that a run killed
    while saving finds the one before it.
    """
    import orbax.checkpoint as ocp

    options = ocp.CheckpointManagerOptions(
        max_to_keep=keep, enable_async_checkpointing=False, cleanup_tmp_directories=True
    )
    return ocp.CheckpointManager(pathlib.Path(path).absolute(), options=options)


def save_state(manager, step: int, state: Any) -> None:
    """Saves `state` as checkpoint `step`, unless that one exists."""
    import orbax.checkpoint as ocp

    if step not in manager.all_steps():
        manager.save(step, args=ocp.args.StandardSave(state))


def restore_state(manager, like: Any) -> Any:
    """The newest checkpoint, with the shapes, dtypes and shardings of `like`.

    Raises:
        ValueError: the checkpoint does not have the structure or the shapes of `like`.
    """
    import orbax.checkpoint as ocp

    step = manager.latest_step()
    abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, like)
    try:
        return manager.restore(step, args=ocp.args.StandardRestore(abstract))
    except (ValueError, KeyError, TypeError, FileNotFoundError) as error:
        reason = str(error).strip().split("\n")[0]
        raise ValueError(
            f"checkpoint {step} in {manager.directory} cannot be restored into this model and "
            f"optimizer: {reason}"
        ) from error
