"""Hugging Face folders: `config.json`, safetensors, the tokenizer's files.

The sizes come from `config.json`; nothing of theirs is imported.
"""

from __future__ import annotations

import json
import math
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from spec_cascades.checkpoints import arrays, checks, huggingface_vocabulary, safetensors_files
from spec_cascades.checkpoints.arrays import LazyArray
from spec_cascades.models.families import FAMILIES, family_of

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
_SHARD_BYTES = 2 * 10**9


def read_model(path: pathlib.Path):
    """The model in a folder.

    Raises:
        ValueError: unreadable, or a model of another family.
    """
    file = path / CONFIG
    config = read_json(file)
    kind = config.get("model_type")
    for family in FAMILIES.values():
        if kind in family.trees.MODEL_TYPES:
            return family.model(family.trees.config_from_json(config, str(file)))
    known = ", ".join(kind for family in FAMILIES.values() for kind in family.trees.MODEL_TYPES)
    raise ValueError(f"{file}: the model_type is {kind!r}; supported: {known}")


def read_json(file: pathlib.Path) -> dict[str, Any]:
    """A JSON object from a file.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not JSON, or not an object.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} is not JSON: {arrays.first_line(error)}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{file} holds a {type(content).__name__}, not an object")
    return content


# --- reading ---


def read(path: pathlib.Path, model) -> dict[str, LazyArray]:
    """The parameters by our names, after their names and shapes have been checked by theirs.

    Raises:
        FileNotFoundError: a file that the index lists is missing, or there is none at all.
        ValueError: damaged files, missing or unexpected tensors, other shapes.
    """
    trees = family_of(model).trees
    stored, where = _stored(path)
    stored = trees.without_aliases(stored, read_json(path / CONFIG))
    ours = checks.expected_shapes(model)
    wanted = {
        trees.their_name(name): shape[::-1] if trees.is_transposed(name) else shape
        for name, shape in ours.items()
    }
    checks.compare_shapes(checks.shapes(stored), wanted, f"the tensors in {where}")
    found = {}
    for name in ours:
        array = stored[trees.their_name(name)]
        found[name] = array.T if trees.is_transposed(name) else array
    return found


def _stored(path: pathlib.Path) -> tuple[dict[str, LazyArray], pathlib.Path]:
    """All tensors of a folder by their names, and the file that lists them."""
    if (path / INDEX).is_file():
        return _stored_in_shards(path), path / INDEX
    if (path / WEIGHTS).is_file():
        return safetensors_files.read(path / WEIGHTS), path / WEIGHTS
    if others := sorted(p.name for p in path.glob("*.bin")):
        raise FileNotFoundError(
            f"{path} has {others[0]} but no {WEIGHTS}; write it with transformers: "
            "AutoModelForSeq2SeqLM.from_pretrained(DIR).save_pretrained(DIR)"
        )
    raise FileNotFoundError(f"{path} has a {CONFIG} but neither {WEIGHTS} nor {INDEX}")


def _stored_in_shards(path: pathlib.Path) -> dict[str, LazyArray]:
    places = read_json(path / INDEX).get("weight_map")
    if not isinstance(places, dict):
        raise ValueError(f"{path / INDEX} has no weight_map")
    shards = {}
    for file in sorted(set(places.values())):
        if not (path / file).is_file():
            missing = sum(place == file for place in places.values())
            raise FileNotFoundError(
                f"{path / file} is missing; {INDEX} wants {missing} tensors of it"
            )
        shards[file] = safetensors_files.read(path / file)
    for name, file in places.items():
        if name not in shards[file]:
            raise ValueError(f"{path / file} has no tensor {name}, which {INDEX} wants of it")
    # In the order of the files, so that each is read once, from front to back.
    return {
        name: array
        for file, shard in shards.items()
        for name, array in shard.items()
        if places.get(name) == file
    }


# --- writing ---


def write(path: pathlib.Path, model, params: Mapping[str, Any], vocabulary) -> None:
    """Writes a folder that `transformers` opens, one file's arrays on the host at a time.

    Args:
        path: the folder; made if need be.
        model: a model of a known family.
        params: its parameters.
        vocabulary: a seqio vocabulary.

    Raises:
        ValueError: transformers has no such model.
    """
    flat = arrays.flatten(params)
    dtypes = sorted({x.dtype.name for x in flat.values()})
    trees = family_of(model).trees
    config = trees.config_to_json(model.config, dtypes[-1])
    path.mkdir(parents=True, exist_ok=True)
    (path / CONFIG).unlink(missing_ok=True)
    # Each is our array and whether theirs is its transpose.
    named = {trees.their_name(name): (x, trees.is_transposed(name)) for name, x in flat.items()}
    _write_arrays(path, named)
    huggingface_vocabulary.write(vocabulary, path)
    # Last: a folder without it is no checkpoint, however far a killed process came.
    (path / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def _write_arrays(path: pathlib.Path, named: Mapping[str, tuple[Any, bool]]) -> None:
    def tensor(theirs: str) -> np.ndarray:
        x, transposed = named[theirs]
        return arrays.to_host(x).T if transposed else arrays.to_host(x)

    sizes = {theirs: math.prod(x.shape) * x.dtype.itemsize for theirs, (x, _) in named.items()}
    groups = safetensors_files.shards(sizes, _SHARD_BYTES)
    files = [WEIGHTS]
    if len(groups) > 1:
        count = len(groups)
        files = [f"model-{i:05}-of-{count:05}.safetensors" for i in range(1, count + 1)]
    for file, group in zip(files, groups, strict=True):
        safetensors_files.write(path / file, {name: tensor(name) for name in group})
    if len(groups) > 1:
        places = {n: file for file, group in zip(files, groups, strict=True) for n in group}
        index = {"metadata": {"total_size": sum(sizes.values())}, "weight_map": places}
        (path / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
