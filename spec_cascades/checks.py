"""Checks of settings that several jobs take; each raises ValueError in one line."""

import math
import os
from typing import Any


def is_number(value: Any) -> bool:
    """Whether a value is a real number, NaN and booleans excluded."""
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def is_whole(value: Any, least: int) -> bool:
    """Whether a value is a whole number of at least `least`, booleans excluded."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def several(values: Any) -> tuple:
    """A list or tuple as a tuple, anything else as the only one of its kind."""
    return tuple(values) if isinstance(values, list | tuple) else (values,)


def counts(**named: Any) -> None:
    """Each must be a whole number of at least 1."""
    for name, value in named.items():
        if not is_whole(value, 1):
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")


def names(**named: Any) -> None:
    """Each must be text or a path, and not empty."""
    for name, value in named.items():
        if not isinstance(value, str | os.PathLike) or not os.fspath(value):
            raise ValueError(f"{name} must be a name, got {value!r}")


def between(low: float, high: float, **named: Any) -> None:
    """Each must be a number from `low` to `high`, both included."""
    for name, value in named.items():
        if not (is_number(value) and low <= value <= high):
            raise ValueError(f"{name} must lie between {low:g} and {high:g}, got {value!r}")


def positive(**named: Any) -> None:
    """Each must be a finite number above 0."""
    for name, value in named.items():
        if not (is_number(value) and 0 < value < math.inf):
            raise ValueError(f"{name} must be a number above 0, got {value!r}")


def not_negative(**named: Any) -> None:
    """Each must be a finite number of at least 0."""
    for name, value in named.items():
        if not (is_number(value) and 0 <= value < math.inf):
            raise ValueError(f"{name} must be a number of at least 0, got {value!r}")


def sampling(*, temperature: Any = 0.0, top_k: Any = 0, top_p: Any = 1.0, seed: Any = 0) -> None:
    """Temperature at least 0, top_k at least 0, top_p above 0 and at most 1, seed at least 0."""
    not_negative(temperature=temperature)
    if not is_whole(top_k, 0):
        raise ValueError(f"top_k must be a whole number, 0 for all tokens, got {top_k!r}")
    if not is_number(top_p) or not 0 < top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, got {top_p!r}")
    if not is_whole(seed, 0) or seed >= 2**32:
        raise ValueError(f"a seed must be a whole number from 0 to 2**32 - 1, got {seed!r}")
