"""What a checkpoint is, in a page of text; no arrays are read."""

from __future__ import annotations

import collections
import dataclasses
import math
import re

import numpy as np

from spec_cascades.checkpoints import checks, formats
from spec_cascades.models import families


def inspect(path, *, pair=None, model=None, vocabulary=None) -> str:
    """Describes a checkpoint.

    Args:
        path: what `load` reads.
        pair: another one: says whether the two can be target and drafter.
        model: see `load`.
        vocabulary: see `load`, of both.

    Returns:
        Format, family, sizes, dtype, number of parameters, vocabulary, a table of the parameters
        by layer, and what it pairs with.

    Raises:
        FileNotFoundError: no checkpoint there.
        ValueError: a damaged one, or one that does not fit its model.
    """
    found = formats.open_checkpoint(path, model=model, vocabulary=vocabulary)
    lines = _facts(found)
    if pair is None:
        lines.append(("pairs with", _partners(found)))
    else:
        other = formats.open_checkpoint(pair, vocabulary=vocabulary)
        lines.append((f"with {other.path}", _pairing(found, other)))
    width = max(len(name) for name, _ in lines)
    text = [f"{name:<{width}}  {value}" for name, value in lines]
    return "\n".join([*text, "", *table(found)])


def _facts(found: formats.Checkpoint) -> list[tuple[str, str]]:
    sizes = {n: math.prod(x.shape) for n, x in found.arrays.items()}
    dtypes = sorted({x.dtype.name for x in found.arrays.values()})
    stored = sum(sizes[n] * np.dtype(x.dtype).itemsize for n, x in found.arrays.items())
    family = families.name_of(found.model)
    presets = _presets_of(found.model)
    config = dataclasses.asdict(found.model.config)
    return [
        ("checkpoint", f"{found.path} ({found.format})"),
        ("family", family + (f", the size of {', '.join(presets)}" if presets else "")),
        ("config", ", ".join(f"{name}={value}" for name, value in config.items())),
        ("parameters", f"{sum(sizes.values()):,} ({' and '.join(dtypes)}, {_bytes(stored)})"),
        ("vocabulary", _describe_vocabulary(found)),
    ]


def _presets_of(model) -> list[str]:
    """The public models of these sizes; where none has as many rows, whatever their padding."""
    config = families.family_of(model).config
    alike = []
    for name in config.preset_names():
        same = dict(vocab_size=model.vocab_size, dropout_rate=model.config.dropout_rate)
        if config.preset(name, dtype=model.config.dtype, **same) == model.config:
            alike.append(name)
    exact = [name for name in alike if config.preset(name).vocab_size == model.vocab_size]
    return exact or alike


def _describe_vocabulary(found: formats.Checkpoint) -> str:
    vocabulary = found.vocabulary
    rows = f"{found.model.vocab_size} rows in the embedding"
    if vocabulary is None:
        return f"none in the checkpoint; {rows}"
    kind = {"ByteVocabulary": "bytes", "SentencePieceVocabulary": "SentencePiece"}.get(
        type(vocabulary).__name__, type(vocabulary).__name__
    )
    return f"{kind}, {vocabulary.vocab_size} pieces ({vocabulary.extra_ids} sentinels); {rows}"


def _partners(found: formats.Checkpoint) -> str:
    """Shipped models of the same vocabulary, or public sizes whose table has as many rows."""
    if found.vocabulary is not None:
        shipped = []
        for file in sorted(formats.DEMO.glob("*/model.json")):
            other = formats.folder.read_description(file.parent)[1]
            if _difference(found.vocabulary, other) is None:
                shipped.append(f"demo/{file.parent.name}")
        if shipped:
            return ", ".join(shipped)
    config = families.family_of(found.model).config
    same = collections.defaultdict(list)
    for name in config.preset_names():
        if config.preset(name).vocab_size == found.model.vocab_size:
            family, _, size = name.rpartition("_")
            same[family].append(size)
    if not same:
        return "models trained with the same vocabulary"
    names = "; ".join(f"{family}: {', '.join(sizes)}" for family, sizes in same.items())
    return f"probably, by the number of rows: {names} (check with --pair)"


def _pairing(found: formats.Checkpoint, other: formats.Checkpoint) -> str:
    if found.vocabulary is None or other.vocabulary is None:
        missing = found if found.vocabulary is None else other
        return f"cannot be told: {missing.path} carries no vocabulary (give --vocabulary)"
    difference = _difference(found.vocabulary, other.vocabulary)
    if difference is not None:
        return f"cannot be a pair: {difference}"
    larger = max((found, other), key=_count)
    return f"can be a pair; the larger one, the target, is {larger.path}"


def _difference(a, b) -> str | None:
    from spec_cascades.text import vocabularies

    return vocabularies.difference(a, b)


def _count(found: formats.Checkpoint) -> int:
    return sum(math.prod(shape) for shape in checks.expected_shapes(found.model).values())


def table(found: formats.Checkpoint) -> list[str]:
    """Names, shapes and dtypes; layers of equal shapes share a line."""
    groups: dict[tuple, list[int | None]] = collections.defaultdict(list)
    for name, array in found.arrays.items():
        layer = re.search(r"layers_(\d+)", name)
        key = (re.sub(r"layers_\d+", "layers_*", name), tuple(array.shape), array.dtype.name)
        groups[key].append(int(layer[1]) if layer else None)
    rows = []
    for (name, shape, dtype), layers in groups.items():
        if layers != [None]:
            first, last = min(layers), max(layers)
            name = name.replace("layers_*", f"layers_{{{first}..{last}}}")
        rows.append((name, " x ".join(map(str, shape)), dtype))
    rows.sort()
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    return [f"{name:<{widths[0]}}  {shape:<{widths[1]}}  {dtype}" for name, shape, dtype in rows]


def _bytes(number: int) -> str:
    for unit in ("bytes", "KB", "MB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} GB"
