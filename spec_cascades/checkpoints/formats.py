"""Which format a path has, and what it holds; no arrays are read here."""

from __future__ import annotations

import dataclasses
import difflib
import pathlib
import re
from typing import Any

from etils import epath

from spec_cascades.checkpoints import (
    arrays,
    checks,
    folder,
    huggingface,
    huggingface_vocabulary,
    orbax_files,
    t5x_files,
)
from spec_cascades.checkpoints.arrays import Arrays
from spec_cascades.models import families

DEMO = pathlib.Path(__file__).parent.parent / "demo"

MODEL, HUGGINGFACE, T5X, ORBAX = "model folder", "Hugging Face folder", "T5X", "Orbax"
# What tells a format, in this order; old Orbax versions wrote a file `checkpoint` as well.
_MARKS = {
    "model.json": MODEL,
    huggingface.CONFIG: HUGGINGFACE,
    orbax_files.METADATA: ORBAX,
    t5x_files.FILE: T5X,
}
# Folders in which training runs, T5X and Orbax keep the model of a run or step.
_ITEMS = ("model", "default", "state", "params", "pytree", "model_params")
_STEP = re.compile(r"(?:checkpoint_)?(\d+)")
NO_VOCABULARY = (
    "{} carries no vocabulary; name one with `vocabulary`: a SentencePiece file, 'byte', or a "
    "folder that has one"
)
# Where a model stands in a tree that holds more: T5X's and Flax's training states, and ours.
_ROOTS = ("target/", "optimizer/target/", "params/params/", "params/")
# A parameter that every model has, and has once.
_LANDMARK = "encoder/encoder_norm/scale"


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose names and shapes have been checked.

    Attributes:
        format: one of `MODEL`, `HUGGINGFACE`, `T5X`, `ORBAX`.
        path: where it is, local or `gs://`.
        model: the model's functions.
        vocabulary: a seqio vocabulary; None if it carries none and none was given.
        arrays: the parameters by our names, unread.
    """

    format: str
    path: epath.Path
    model: Any
    vocabulary: Any
    arrays: Arrays


def open_checkpoint(path, *, model=None, vocabulary=None) -> Checkpoint:
    """Recognises a checkpoint and checks its names and shapes.

    Args:
        path: see `load`.
        model: see `load`.
        vocabulary: see `load`.

    Raises:
        FileNotFoundError: no checkpoint there, or a part of it is missing.
        ValueError: a damaged checkpoint, or one that does not fit its model.
    """
    kind, place = locate(path)
    given = None if model is None else families.as_model(model)
    if kind == MODEL:
        model, own = folder.read_description(place)
        found = folder.read(place)
    elif kind == HUGGINGFACE:
        model, own = huggingface.read_model(place), huggingface_vocabulary.read(place)
        found = huggingface.read(place, given or model)
    else:
        found = (t5x_files if kind == T5X else orbax_files).read(place)
        model, found = _model_of(found, str(place), given)
        own = None
    model = given or model
    what = f"the parameters in {place}"
    checks.compare_shapes(checks.shapes(found), checks.expected_shapes(model), what)
    if own is None and vocabulary is not None:
        own = as_vocabulary(vocabulary, model.vocab_size)
    if own is not None:
        checks.check_table(model, own, place)
    return Checkpoint(kind, place, model, own, found)


def read_vocabulary(path, vocabulary=None):
    """The vocabulary of a checkpoint, or the given one if it carries none; no arrays are read.

    Args:
        path: see `load`.
        vocabulary: see `load`.

    Raises:
        FileNotFoundError: no checkpoint there.
        ValueError: it carries none, and none is given.
    """
    kind, place = locate(path)
    own = None
    if kind == MODEL:
        own = folder.read_description(place)[1]
    elif kind == HUGGINGFACE:
        own = huggingface_vocabulary.read(place)
    if own is None and vocabulary is None:
        raise ValueError(NO_VOCABULARY.format(place))
    if own is not None or not isinstance(vocabulary, str | pathlib.PurePath):
        return own if own is not None else vocabulary
    return open_checkpoint(path, vocabulary=vocabulary).vocabulary


def as_vocabulary(vocabulary, rows: int = 0):
    """A vocabulary from a name, a file, or a folder that carries one; one stays as it is.

    Args:
        vocabulary: see `load`.
        rows: of the embedding of the model that speaks it. A name and a SentencePiece file do not
            say how many sentinels there are; `vocabularies.usual_sentinels` tells by these.
    """
    from spec_cascades.text import vocabularies

    if not isinstance(vocabulary, str | pathlib.PurePath):
        return vocabulary
    place = pathlib.Path(vocabulary)
    if (place / "model.json").is_file():
        return folder.read_description(place)[1]
    if (place / huggingface.CONFIG).is_file():
        found = huggingface_vocabulary.read(place)
        if found is None:
            raise FileNotFoundError(
                f"{place} has no vocabulary: neither spiece.model nor tokenizer.json"
            )
        return found
    return vocabularies.load_for_table(vocabulary, rows)


def _model_of(found: Arrays, where: str, given) -> tuple[Any, Arrays]:
    """The model that a tree without a description holds: the one given, or by its shapes."""
    found = _subtree(found, where)
    # There is one family with such trees; another one would be told apart by its names here.
    family = families.FAMILIES["t5"] if given is None else families.family_of(given)
    found = family.trees.to_ours(found)
    model = given or family.model(family.trees.config_from_shapes(found, where))
    return model, found


def _subtree(found: Arrays, where: str) -> Arrays:
    """The model's part of a tree.

    What lies elsewhere and deeper, such as an optimizer's moments, is left aside.

    Raises:
        ValueError: there are several models inside of it or beside it, as in the file of a pair.
    """
    root = next(
        (r for r in _ROOTS if any(k.startswith((f"{r}encoder/", f"{r}decoder/")) for k in found)),
        "",
    )
    parent = root[: root.rstrip("/").rfind("/") + 1]
    models = sorted(name.removesuffix(_LANDMARK) for name in found if name.endswith(_LANDMARK))
    several = [
        model
        for model in models
        if model.startswith(root)
        or (model.startswith(parent) and model.count("/") == root.count("/"))
    ]
    if len(several) > 1:
        names = ", ".join(model.rstrip("/").split("/")[-1] or "at the top" for model in several)
        raise ValueError(f"{where} holds several models ({names}); give a checkpoint of one")
    return {name.removeprefix(root): x for name, x in found.items() if name.startswith(root)}


# --- where it is ---


def locate(path) -> tuple[str, epath.Path]:
    """The format of a checkpoint and the folder (or file) that holds it.

    Args:
        path: a checkpoint; a folder of checkpoints by step, of which the newest is meant; a
            training run's folder; or the name of a shipped model (`demo/target`).

    Raises:
        FileNotFoundError: no checkpoint there; says what is there instead.
        ValueError: a format that is read from local disks alone, elsewhere.
    """
    parts = pathlib.PurePath(path).parts
    shipped = DEMO.joinpath(*parts[1:]) if parts[:1] == ("demo",) else None
    for candidate in (as_path(path), shipped):
        if candidate is not None and (found := _search(candidate)):
            kind, place = found
            if kind in (MODEL, HUGGINGFACE):
                check_local(place, f"a {kind} is read")
            return found
    raise FileNotFoundError(f"no checkpoint at {path}: {_nothing(as_path(path), shipped)}")


def as_path(path) -> epath.Path:
    """An absolute local path, or one that `epath` reads elsewhere (`gs://`)."""
    if "://" in str(path):
        return epath.Path(path)
    return pathlib.Path(path).absolute()


def check_local(path: epath.Path, what: str) -> None:
    """Raises ValueError for a path that is not on a local disk (`gs://`)."""
    if "://" in str(path):
        raise ValueError(f"{path}: {what} on local disks alone; copy it from or to there")


def resolve(path) -> epath.Path:
    """The folder that `path` names; see `locate`.

    Raises:
        FileNotFoundError: no checkpoint there.
    """
    return locate(path)[1]


def _search(path: epath.Path, depth: int = 3) -> tuple[str, epath.Path] | None:
    if not path.exists():
        return None
    if path.is_file():
        return T5X, path
    for mark, kind in _MARKS.items():
        if (path / mark).is_file():
            return kind, path
    newest = _newest_step(path)
    for inner in [*(path / item for item in _ITEMS), *([newest] if newest else [])]:
        if depth and inner.is_dir() and (found := _search(inner, depth - 1)):
            return found
    return None


def _newest_step(path: epath.Path) -> epath.Path | None:
    """The folder of the newest step; an older one never stands in for it."""
    steps = {int(m[1]): p for p in path.iterdir() if (m := _STEP.fullmatch(p.name))}
    return steps[max(steps)] if steps else None


def _nothing(path: epath.Path, shipped: pathlib.Path | None) -> str:
    """What is to be said of a path without a checkpoint."""
    if shipped is not None and shipped.parent == DEMO and not path.exists():
        names = sorted(p.parent.name for p in DEMO.glob("*/model.json"))
        near = difflib.get_close_matches(shipped.name, names, n=1) or names
        hint = f"shipped with the package: {', '.join(f'demo/{n}' for n in near)}"
    elif not path.exists():
        hint = (
            "there is nothing of that name; give a folder written by `spec-cascades train`, a T5X, "
            "Orbax or Hugging Face checkpoint, or demo/target, demo/drafter"
        )
    elif weights := sorted(
        p.name for p in path.iterdir() if p.name.endswith((".safetensors", ".bin"))
    ):
        hint = f"the folder has {weights[0]}, but no {huggingface.CONFIG}"
    elif newest := _newest_step(path):
        hint = (
            f"its newest step, {newest.name}, is incomplete (no {', '.join(_MARKS)}); remove it, "
            "or give the path of another step"
        )
    else:
        has = arrays.some(sorted(p.name for p in path.iterdir()), 4) or "nothing"
        hint = f"the folder exists but has no {', '.join(_MARKS)} (it has {has})"
    return hint
