"""A target and its drafter: read together, and known to speak one vocabulary."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax

from spec_cascades import partitioning
from spec_cascades.checkpoints import formats, loading
from spec_cascades.text import vocabularies


@dataclasses.dataclass(frozen=True)
class Models:
    """A checked pair of models, on the devices of `mesh`."""

    target: loading.Loaded
    drafter: loading.Loaded
    mesh: jax.sharding.Mesh

    @property
    def vocabulary(self) -> Any:
        """The vocabulary that both speak."""
        return self.target.vocabulary


def check_vocabularies(
    target: str | None,
    drafter: str | None,
    vocabulary: str | None = None,
    others: Mapping[str, Any] | None = None,
) -> None:
    """Checks that both models, and whatever else, mean the same by each id; reads no parameters.

    Args:
        target: a checkpoint, or None.
        drafter: a checkpoint, or None.
        vocabulary: of checkpoints that carry none.
        others: more vocabularies, by what people call their owners.

    Raises:
        FileNotFoundError: no checkpoint there.
        ValueError: a broken description, or two different vocabularies.
    """
    folders = {"target": target, "drafter": drafter}
    spoken = {
        f"the {who} ({folder})": formats.read_vocabulary(folder, vocabulary)
        for who, folder in folders.items()
        if folder is not None
    }
    if not spoken:
        return
    spoken |= others or {}
    reference, *rest = spoken
    for other in rest:
        difference = vocabularies.difference(spoken[other], spoken[reference])
        if difference is not None:
            raise ValueError(f"{other} and {reference} have different vocabularies: {difference}")


def load_models(
    target: str,
    drafter: str | None,
    *,
    dtype: str = "float32",
    model_parallelism: int = 1,
    vocabulary: str | None = None,
) -> Models:
    """Loads target and drafter; see `checkpoints.load` for what their paths may be.

    A drafter that is no model (None) needs no parameters: the target stands in for the unused one.

    Raises:
        FileNotFoundError: no checkpoint there.
        ValueError: a checkpoint that does not fit its model, or two different vocabularies.
    """
    check_vocabularies(target, drafter, vocabulary=vocabulary)
    mesh = partitioning.make_mesh(model_parallelism)
    paths = (target,) if drafter is None else (target, drafter)
    # Names and shapes of both are checked before the parameters of one are read.
    opened = [formats.open_checkpoint(path, vocabulary=vocabulary) for path in paths]

    def read(found: formats.Checkpoint) -> loading.Loaded:
        where = mesh if mesh.size > 1 else None
        params = loading.read_params(found, dtype=dtype, mesh=where)
        return loading.Loaded(found.model, params, found.vocabulary, found.path)

    loaded = [read(found) for found in opened]
    return Models(loaded[0], loaded[-1], mesh)
