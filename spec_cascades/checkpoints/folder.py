"""The model folder: one model, its parameters and its vocabulary."""

from __future__ import annotations

import dataclasses
import difflib
import json
import pathlib
from typing import Any

import jax
import jax.numpy as jnp

from spec_cascades import partitioning
from spec_cascades.models.t5 import T5, T5Config

FORMAT = 1
FAMILIES = {"t5": (T5, T5Config)}
DTYPES = ("float32", "bfloat16", "float16")
DEMO = pathlib.Path(__file__).parent.parent / "demo"


@dataclasses.dataclass(frozen=True)
class Loaded:
    """A model ready for use.

    Attributes:
        model: the model's functions (static under jit).
        params: its parameters.
        vocabulary: a seqio vocabulary.
        path: the folder it came from.
    """

    model: Any
    params: Any
    vocabulary: Any
    path: pathlib.Path


def resolve(path: str | pathlib.Path) -> pathlib.Path:
    """The folder that `path` names: a folder on disk, or "demo/target" and "demo/drafter".

    Raises:
        FileNotFoundError: no model folder there.
    """
    path = pathlib.Path(path)
    shipped = DEMO / pathlib.Path(*path.parts[1:]) if path.parts[:1] == ("demo",) else None
    for candidate in (path, shipped):
        if candidate is not None and (candidate / "model.json").is_file():
            return candidate
    if shipped is not None and len(path.parts) == 2:
        names = sorted(p.parent.name for p in DEMO.glob("*/model.json"))
        near = difflib.get_close_matches(path.parts[1], names, n=1) or names
        hint = f"; shipped with the package: {', '.join(f'demo/{n}' for n in near)}"
    elif path.is_dir():
        hint = "; the folder exists but has no model.json"
        if (path / "model" / "model.json").is_file():
            hint += f" (it is a training run: use {path / 'model'})"
    else:
        hint = "; give a folder written by `spec-cascades train`, or demo/target, demo/drafter"
    raise FileNotFoundError(f"no model folder at {path}{hint}")


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

    family = next((name for name, (cls, _) in FAMILIES.items() if isinstance(model, cls)), None)
    if family is None:
        raise ValueError(f"cannot save a {type(model).__name__}; known: {', '.join(FAMILIES)}")
    check_params(params, model, "the parameters to save")
    if dtype is not None:
        params = jax.tree.map(lambda x: jnp.asarray(x, _dtype(dtype)), params)
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
    from spec_cascades.tasks import vocabularies

    description = vocabularies.describe(vocabulary)
    if "file" in description:
        (folder / description["file"]).write_bytes(vocabularies.model_bytes(vocabulary))
    return description


# --- loading ---


def load(path, *, dtype: str = "float32", mesh: jax.sharding.Mesh | None = None) -> Loaded:
    """Reads a model folder.

    Args:
        path: a folder, or a shipped model's name; see `resolve`.
        dtype: of the parameters in memory, whatever they are stored as.
        mesh: where given, each parameter is read with its sharding on this mesh; else onto the
            first device.

    Raises:
        FileNotFoundError: no model folder there, or a part of it is missing.
        ValueError: an unreadable `model.json`, or stored arrays whose names or shapes are not
            those that it describes.
    """
    import orbax.checkpoint as ocp

    path = resolve(path).absolute()
    model, vocabulary = read_description(path)
    folder = path / "params"
    if not folder.is_dir():
        raise FileNotFoundError(f"{path} has no params/ folder")
    with ocp.StandardCheckpointer() as checkpointer:
        check_params(_stored_shapes(checkpointer, folder), model, f"the parameters in {folder}")
        if mesh is None:
            one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
            shardings = jax.tree.map(lambda _: one, expected_params(model))
        else:
            shardings = partitioning.param_shardings(model, mesh)
        wanted = jax.tree.map(
            lambda x, s: jax.ShapeDtypeStruct(x.shape, _dtype(dtype), sharding=s),
            expected_params(model),
            shardings,
        )
        try:
            params = checkpointer.restore(folder, wanted)
        except Exception as error:  # Each storage layer below Orbax raises its own types.
            reason = str(error).strip().split("\n")[0]
            raise ValueError(f"the parameters in {folder} cannot be read: {reason}") from error
    return Loaded(model=model, params=params, vocabulary=vocabulary, path=path)


def read_description(path: pathlib.Path) -> tuple[Any, Any]:
    """The model and the vocabulary that a folder's model.json describes."""
    from spec_cascades.tasks import vocabularies

    file = path / "model.json"
    try:
        description = json.loads(file.read_text(encoding="utf-8"))
        version, family = description["format"], description["family"]
        config, vocabulary = dict(description["config"]), description["vocabulary"]
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} is not a model description: {error!r}") from error
    if version != FORMAT:
        raise ValueError(f"{file} has format {version}; this version reads format {FORMAT}")
    if family not in FAMILIES:
        raise ValueError(f"{file}: unknown family {family!r}; known: {', '.join(FAMILIES)}")
    model_class, config_class = FAMILIES[family]
    known = {field.name for field in dataclasses.fields(config_class)}
    if unknown := sorted(set(config) - known):
        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{file}: unknown config field {unknown[0]!r}{hint}")
    config = {name: tuple(x) if isinstance(x, list) else x for name, x in config.items()}
    try:
        model = model_class(config_class(**config))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file} is not a model description: {error}") from error
    return model, vocabularies.from_description(vocabulary, path)


# --- checking ---


def expected_params(model) -> Any:
    """The tree of shapes that `model` wants; nothing is computed."""
    return jax.eval_shape(model.init, jax.random.key(0))


def check_params(params, model, what: str) -> None:
    """Compares names and shapes with the model's.

    Raises:
        ValueError: lists the missing and unexpected names and the shapes that differ.
    """
    found, wanted = _shapes(params), _shapes(expected_params(model))
    problems = []
    if missing := sorted(wanted.keys() - found.keys()):
        problems.append(f"missing: {_some(missing)}")
    if unexpected := sorted(found.keys() - wanted.keys()):
        problems.append(f"unexpected: {_some(unexpected)}")
    if differing := [
        f"{name} is {found[name]}, not {wanted[name]}"
        for name in sorted(found.keys() & wanted.keys())
        if found[name] != wanted[name]
    ]:
        problems.append(f"shapes: {_some(differing)}")
    if problems:
        raise ValueError(f"{what} do not fit the model: {'; '.join(problems)}")


def check_pair(target: Loaded, drafter: Loaded) -> None:
    """Raises ValueError unless both models speak the same pieces (padded tables may differ)."""
    from spec_cascades.tasks import vocabularies

    difference = vocabularies.difference(target.vocabulary, drafter.vocabulary)
    if difference is not None:
        raise ValueError(
            f"the target ({target.path}) and the drafter ({drafter.path}) have different "
            f"vocabularies: {difference}; both must be trained with the same one"
        )


def _shapes(tree) -> dict[str, tuple[int, ...]]:
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {
        jax.tree_util.keystr(path, simple=True, separator="/"): tuple(leaf.shape)
        for path, leaf in leaves
    }


def _stored_shapes(checkpointer, folder: pathlib.Path):
    """Names and shapes of the stored arrays, from Orbax's metadata alone."""
    try:
        metadata = checkpointer.metadata(folder).item_metadata
    except (FileNotFoundError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{folder} is not an Orbax checkpoint, or is damaged: {error}") from error
    if metadata is None:
        raise ValueError(f"{folder} is not an Orbax checkpoint, or is damaged: no arrays listed")
    return dict(getattr(metadata, "tree", metadata))


def _some(items: list[str], limit: int = 5) -> str:
    more = f" and {len(items) - limit} more" if len(items) > limit else ""
    return ", ".join(items[:limit]) + more


def _dtype(name: str) -> jnp.dtype:
    if name not in DTYPES:
        raise ValueError(f"unknown dtype {name!r}; known: {', '.join(DTYPES)}")
    return jnp.dtype(name)
