"""`load`: any checkpoint, straight onto its devices."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
from etils import epath

from spec_cascades import partitioning
from spec_cascades.checkpoints import arrays, formats


@dataclasses.dataclass(frozen=True)
class Loaded:
    """A model ready for use.

    Attributes:
        model: the model's functions (static under jit).
        params: its parameters.
        vocabulary: a seqio vocabulary.
        path: the folder (or file) it came from, local or `gs://`.
    """

    model: Any
    params: Any
    vocabulary: Any
    path: epath.Path


def load(
    path,
    *,
    dtype: str | None = None,
    mesh: jax.sharding.Mesh | None = None,
    model=None,
    vocabulary=None,
) -> Loaded:
    """Reads a checkpoint of any known format.

    Names, shapes and dtypes are checked before any array is read; then each device gets its part
    of each parameter, so that no host ever holds the whole model besides.

    Args:
        path: a model folder of ours or the run that wrote one, a T5X `checkpoint_<step>` or Orbax
            checkpoint or their parent (the newest step), a Hugging Face folder, or `demo/target`.
            T5X and Orbax checkpoints may be in `gs://`.
        dtype: of the parameters in memory; None keeps what is stored.
        mesh: where given, each parameter is read with its sharding on this mesh; else onto the
            first device.
        model: a preset's name (`flan_t5_base`), a config or a model, to be used instead of what
            the checkpoint says or its shapes suggest.
        vocabulary: of a checkpoint that carries none (T5X, Orbax): a SentencePiece file, 'byte', a
            folder that has one, or a seqio vocabulary. A file and 'byte' get the sentinels for
            which the embedding has room (`vocabularies.usual_sentinels`).

    Raises:
        FileNotFoundError: no checkpoint there, or a part of it is missing.
        ValueError: a damaged checkpoint; names, shapes or dtypes that are not the model's; no
            vocabulary.
    """
    found = formats.open_checkpoint(path, model=model, vocabulary=vocabulary)
    if found.vocabulary is None:
        raise ValueError(formats.NO_VOCABULARY.format(found.path))
    params = read_params(found, dtype=dtype, mesh=mesh)
    return Loaded(found.model, params, found.vocabulary, found.path)


def read_params(
    found: formats.Checkpoint, *, dtype: str | None = None, mesh: jax.sharding.Mesh | None = None
):
    """The parameters of an opened checkpoint, placed as `load` says."""
    arrays.check_dtypes(found.arrays, dtype)
    if mesh is None:
        one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
        shardings = dict.fromkeys(found.arrays, one)
    else:
        shardings = arrays.flatten(partitioning.param_shardings(found.model, mesh))
    return arrays.place(found.arrays, shardings, dtype)
