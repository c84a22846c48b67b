"""Comparison of what a checkpoint holds with what a model wants."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax

from spec_cascades.checkpoints import arrays

Shapes = Mapping[str, tuple[int, ...]]


def expected_params(model) -> Any:
    """The tree of shapes that `model` wants; nothing is computed."""
    return jax.eval_shape(model.init, jax.random.key(0))


@functools.lru_cache(maxsize=64)
def expected_shapes(model) -> Shapes:
    """The shapes that `model` wants, by name."""
    return shapes(arrays.flatten(expected_params(model)))


def shapes(flat: Mapping[str, Any]) -> Shapes:
    """Shapes by name."""
    return {name: tuple(leaf.shape) for name, leaf in flat.items()}


def check_params(params, model, what: str) -> None:
    """Compares the names and shapes of a tree with the model's; raises like `compare_shapes`."""
    compare_shapes(shapes(arrays.flatten(params)), expected_shapes(model), what)


def compare_shapes(found: Shapes, wanted: Shapes, what: str) -> None:
    """Compares names and shapes.

    Args:
        found: what there is.
        wanted: what there should be.
        what: subject of the message.

    Raises:
        ValueError: lists the missing and unexpected names and the shapes that differ.
    """
    problems = []
    if missing := sorted(wanted.keys() - found.keys()):
        problems.append(f"missing: {arrays.some(missing)}")
    if unexpected := sorted(found.keys() - wanted.keys()):
        problems.append(f"unexpected: {arrays.some(unexpected)}")
    if differing := [
        f"{name} is {found[name]}, not {wanted[name]}"
        for name in sorted(found.keys() & wanted.keys())
        if found[name] != wanted[name]
    ]:
        problems.append(f"shapes: {arrays.some(differing)}")
    if problems:
        raise ValueError(f"{what} do not fit the model: {'; '.join(problems)}")


def check_table(model, vocabulary, where) -> None:
    """Raises ValueError if the embedding has fewer rows than the vocabulary has pieces."""
    if vocabulary.vocab_size > model.vocab_size:
        raise ValueError(
            f"{where}: the vocabulary has {vocabulary.vocab_size} pieces, but the embedding "
            f"{model.vocab_size} rows"
        )


def check_pair(target, drafter) -> None:
    """Raises ValueError unless both models speak the same pieces (padded tables may differ)."""
    from spec_cascades.text import vocabularies

    difference = vocabularies.difference(target.vocabulary, drafter.vocabulary)
    if difference is not None:
        raise ValueError(
            f"the target ({target.path}) and the drafter ({drafter.path}) have different "
            f"vocabularies: {difference}; both must be trained with the same one"
        )
