"""The model families that checkpoints are read and written for: the one place to add one."""

from __future__ import annotations

import dataclasses
from types import ModuleType

from spec_cascades.models.t5 import T5, T5Config, trees


@dataclasses.dataclass(frozen=True)
class Family:
    """A family.

    Attributes:
        model: class of its models, made from a config alone.
        config: class of its configs; `preset(name)` and `preset_names()` give the public sizes.
        trees: a module that knows the names of its parameters elsewhere, such as `models.t5.trees`.
    """

    model: type
    config: type
    trees: ModuleType


FAMILIES = {"t5": Family(T5, T5Config, trees)}


def name_of(model) -> str:
    """The family's name.

    Raises:
        ValueError: a model of no known family.
    """
    for name, family in FAMILIES.items():
        if isinstance(model, family.model):
            return name
    raise ValueError(f"cannot save a {type(model).__name__}; known: {', '.join(FAMILIES)}")


def family_of(model) -> Family:
    """The family of a model; raises like `name_of`."""
    return FAMILIES[name_of(model)]


def as_model(model):
    """A model from a preset's name or a config; a model stays as it is.

    Raises:
        ValueError: an unknown name.
    """
    for family in FAMILIES.values():
        if isinstance(model, family.config):
            return family.model(model)
        if isinstance(model, str) and model in family.config.preset_names():
            return family.model(family.config.preset(model))
    if isinstance(model, str):
        # Of one family the error suggests a name.
        return T5(T5Config.preset(model))
    return model
