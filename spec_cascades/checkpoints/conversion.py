"""From any format that is read to one that is written."""

from __future__ import annotations

from etils import epath

from spec_cascades.checkpoints import (
    checks,
    folder,
    formats,
    huggingface,
    loading,
    t5x_files,
)

TARGETS = ("model", "huggingface", "orbax", "t5x")


def convert(
    src,
    dst,
    *,
    to: str,
    dtype: str | None = None,
    drafter=None,
    model=None,
    vocabulary=None,
) -> epath.Path:
    """Writes a checkpoint in another format.

    Args:
        src: what `load` reads.
        dst: the folder to write; it must not exist, or be empty. 'orbax' and 't5x' may go to
            `gs://`.
        to: 'model' (a model folder of ours), 'huggingface' (opens in `transformers`), 'orbax' (the
            parameters' tree alone) or 't5x' (T5X's own format).
        dtype: of the parameters; as stored by default.
        drafter: for 't5x', a second checkpoint: one file then holds both, as `target` and `draft`.
        model: see `load`, of `src`.
        vocabulary: see `load`, of `src` and `drafter`.

    Returns:
        The folder that was written.

    Raises:
        FileExistsError: `dst` is there and not empty.
        FileNotFoundError: no checkpoint at `src`.
        ValueError: see `load`; or a model that the other format cannot hold.
    """
    if to not in TARGETS:
        raise ValueError(f"to={to!r}: one of {', '.join(TARGETS)} is expected")
    if drafter is not None and to != "t5x":
        raise ValueError("a drafter goes with to='t5x' alone")
    place = formats.as_path(dst)
    if to in ("model", "huggingface"):
        formats.check_local(place, f"to={to!r} writes")
    if place.exists() and (place.is_file() or any(place.iterdir())):
        raise FileExistsError(f"{place} exists; give a new folder")
    found = formats.open_checkpoint(src, model=model, vocabulary=vocabulary)
    if found.vocabulary is None and to in ("model", "huggingface"):
        raise ValueError(f"{found.path} carries no vocabulary, which to={to!r} needs; name one")
    if to == "t5x":
        _write_t5x(place, found, drafter, vocabulary, dtype)
        return place
    params = loading.read_params(found, dtype=dtype)
    if to == "model":
        folder.save(place, found.model, params, found.vocabulary)
    elif to == "huggingface":
        huggingface.write(place, found.model, params, found.vocabulary)
    else:
        _write_orbax(place, params)
    return place


def _write_orbax(place: epath.Path, params) -> None:
    import orbax.checkpoint as ocp

    with ocp.StandardCheckpointer() as checkpointer:
        # An empty folder may be there, which Orbax refuses otherwise.
        checkpointer.save(place, params, force=True)


def _write_t5x(place: epath.Path, found, drafter, vocabulary, dtype: str | None) -> None:
    models = {"target": found}
    if drafter is not None:
        models["draft"] = formats.open_checkpoint(drafter, vocabulary=vocabulary)
        if all(model.vocabulary is not None for model in models.values()):
            checks.check_pair(*models.values())
    for model in models.values():
        if not model.model.config.shared_relative_bias:
            raise ValueError(
                f"{model.path} has relative biases in every layer, which T5X's t5 network lacks"
            )
    trees = {name: loading.read_params(model, dtype=dtype) for name, model in models.items()}
    t5x_files.write(place, trees if drafter is not None else trees["target"])
