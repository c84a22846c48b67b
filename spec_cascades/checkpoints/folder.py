"""The model folder: one model, its parameters and its vocabulary."""

from __future__ import annotations

import dataclasses
import difflib
import json
import pathlib
from typing import Any

import jax
import jax.numpy as jnp

from spec_cascades.checkpoints import arrays, checks, orbax_files
from spec_cascades.checkpoints.arrays import LazyArray
from spec_cascades.models import families

FORMAT = 1


# --- saving ---


def save(path, model, params, vocabulary, dtype: str | None = None) -> None:
    """Writes a model folder, replacing one that is there.

    Args:
        path: the folder to write; made if need be.
        model: a model of a known family (`T5`).
        params: its parameters.
        vocabulary: the seqio vocabulary that the model was trained with.
        dtype: of the stored parameters ("float32", "bfloat16"); as they are by default.

    Raises:
        ValueError: unknown model family, or parameters that are not this model's.
    """
    import orbax.checkpoint as ocp

    family = families.name_of(model)
    checks.check_params(params, model, "the parameters to save")
    if dtype is not None:
        params = jax.tree.map(lambda x: jnp.asarray(x, arrays.as_dtype(dtype)), params)
    path = pathlib.Path(path).absolute()
    path.mkdir(parents=True, exist_ok=True)
    # model.json comes last: a folder without it is no model folder, however far a killed
    # process came.
    (path / "model.json").unlink(missing_ok=True)
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path / "params", params, force=True)
    description = {
        "format": FORMAT,
        "family": family,
        "config": dataclasses.asdict(model.config),
        "vocabulary": _save_vocabulary(vocabulary, path),
    }
    (path / "model.json").write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")


def _save_vocabulary(vocabulary, folder: pathlib.Path) -> dict[str, Any]:
    """Copies a SentencePiece model next to the parameters; returns what model.json says."""
    from spec_cascades.text import vocabularies

    description = vocabularies.describe(vocabulary)
    if "file" in description:
        (folder / description["file"]).write_bytes(vocabularies.model_bytes(vocabulary))
    return description


# --- reading ---


def read(path: pathlib.Path) -> dict[str, LazyArray]:
    """The parameters of a folder by name, unread.

    Raises:
        FileNotFoundError: there are none.
        ValueError: damaged.
    """
    if not (path / "params").is_dir():
        raise FileNotFoundError(f"{path} has no params/ folder")
    return orbax_files.read(path / "params")


def read_description(path: pathlib.Path) -> tuple[Any, Any]:
    """The model and the vocabulary that a folder's model.json describes."""
    from spec_cascades.text import vocabularies

    file = path / "model.json"
    try:
        description = json.loads(file.read_text(encoding="utf-8"))
        version, family = description["format"], description["family"]
        config, vocabulary = dict(description["config"]), description["vocabulary"]
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} is not a model description: {error!r}") from error
    if not isinstance(vocabulary, dict):
        raise ValueError(f"{file} is not a model description: its vocabulary is {vocabulary!r}")
    if version != FORMAT:
        raise ValueError(f"{file} has format {version}; this version reads format {FORMAT}")
    if not isinstance(family, str) or family not in families.FAMILIES:
        known = ", ".join(families.FAMILIES)
        raise ValueError(f"{file}: unknown family {family!r}; known: {known}")
    known = {field.name for field in dataclasses.fields(families.FAMILIES[family].config)}
    if unknown := sorted(set(config) - known):
        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{file}: unknown config field {unknown[0]!r}{hint}")
    config = {name: tuple(x) if isinstance(x, list) else x for name, x in config.items()}
    try:
        model = families.FAMILIES[family].model(families.FAMILIES[family].config(**config))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file} is not a model description: {error}") from error
    return model, vocabularies.from_description(vocabulary, path)
