"""Two checkpoints in one run: a checkpoint manager for the parameters of target and drafter.

T5X restores one checkpoint. Here the parameters are `{'target': ..., 'draft': ...}`, and each
subtree comes from a checkpoint of its own, by one of T5X's managers: legacy or Orbax, sharded and
cast as T5X does. Names and shapes are compared with the model's first (for Orbax checkpoints T5X
itself compares none), for both checkpoints before either is read.
"""

from typing import Any

import flax
import jax
from flax.linen import partitioning as nn_partitioning
from flax.traverse_util import unflatten_dict
from t5x import checkpoints, partitioning
from t5x.train_state import InferenceState

from spec_cascades.t5x import layout


class CompositeCheckpointManager:
    """Restores each model's parameters from its own checkpoint.

    To be bound as `RestoreCheckpointConfig.checkpoint_manager_cls`; the config's `path` is the
    target's checkpoint. It only restores.
    """

    def __init__(
        self,
        directory: str,
        train_state: InferenceState,
        partitioner: partitioning.BasePartitioner,
        draft_path: str | None = None,
        restore_dtype: str | None = None,
        **settings: Any,
    ):
        """Called by T5X, which gives everything but `draft_path`.

        Args:
            directory: unused.
            train_state: shapes and logical axes of the parameters of all models.
            partitioner: says how they are sharded.
            draft_path: the drafter's checkpoint; None for a model without drafter.
            restore_dtype: of the restored parameters; None is as saved.
            **settings: T5X's settings for saving, unused.

        Raises:
            ValueError: the model has a drafter and there is no path, or the other way round.
        """
        del directory, settings
        has_draft = "draft" in train_state.params
        if has_draft and not draft_path:
            raise ValueError(
                "the drafter needs a checkpoint: bind DRAFT_CHECKPOINT_PATH (or let the input "
                "draft: DRAFT = 'prompt_lookup')"
            )
        if draft_path and not has_draft:
            raise ValueError(
                f"DRAFT_CHECKPOINT_PATH is {draft_path!r}, but the model has no drafter: bind None"
            )
        self._state, self._partitioner = train_state, partitioner
        self._draft_path, self._dtype = draft_path, restore_dtype

    def restore(
        self, path: str, state_transformation_fns: Any = (), fallback_state: Any = None
    ) -> InferenceState:
        """Restores all models.

        Args:
            path: the target's checkpoint.
            state_transformation_fns: must be empty.
            fallback_state: must be None.

        Raises:
            FileNotFoundError: there is no checkpoint at a path.
            ValueError: a checkpoint does not fit its model.
        """
        if state_transformation_fns or fallback_state is not None:
            raise ValueError(
                "two checkpoints are restored as they are: unset assignment_map, "
                "state_transformation_fns and fallback_to_scratch"
            )
        paths = {"target": path}
        if self._draft_path:
            paths["draft"] = self._draft_path
        stored = {name: layout.stored_shapes(path) for name, path in paths.items()}
        for name, path in paths.items():
            expected = layout.flatten(self._state.params[name])
            what = f"the parameters of the {name} checkpoint {path}"
            layout.check_shapes(stored[name], expected, what)
        states = {name: self._restore(name, paths[name], stored[name]) for name in paths}
        params = flax.core.freeze({name: state.params for name, state in states.items()})
        return self._state.replace(params=params, step=states["target"].step)

    def restore_from_tf_checkpoint(self, path: str, **settings: Any) -> InferenceState:
        """Refuses a TensorFlow checkpoint."""
        del settings
        raise ValueError(f"{path} is a TensorFlow checkpoint: convert it to T5X's format first")

    def close(self) -> None:
        """Does nothing: nothing stays open."""

    def _restore(
        self, name: str, path: str, stored: dict[layout.Path, jax.ShapeDtypeStruct]
    ) -> InferenceState:
        """One model, read in the checkpoint's layout and brought into the model's."""
        state = InferenceState(
            step=self._state.step,
            params=self._state.params[name],
            params_axes=self._state.params_axes[name],
        )
        axes = layout.flatten(nn_partitioning.get_axis_names(state.params_axes))
        as_stored = state.replace(
            params=flax.core.freeze(unflatten_dict(stored)),
            params_axes=flax.core.freeze(layout.stored_axes(stored, axes)),
        )
        restored = self._read(path, as_stored)
        specs = layout.flatten(self._partitioner.get_mesh_axes(state).params)
        shardings = {
            key: jax.sharding.NamedSharding(self._partitioner.mesh, spec)
            for key, spec in specs.items()
        }
        params = layout.to_model(layout.flatten(restored.params), shardings)
        return restored.replace(params=unflatten_dict(params))

    def _read(self, path: str, state: InferenceState) -> InferenceState:
        manager = checkpoints.OrbaxCheckpointManagerInterface(
            path, state, self._partitioner, restore_dtype=self._dtype
        )
        try:
            return manager.restore(path=path)
        finally:
            manager.close()
