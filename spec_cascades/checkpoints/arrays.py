"""Arrays that still lie in a file, and their way onto devices.

Every format gives a checkpoint as a flat mapping from parameter name (`decoder/layers_0/…`) to
`LazyArray`. Names, shapes and dtypes are known before any number is read, and each device's share
is then read by itself, one parameter at a time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import traverse_util

DTYPES = ("float32", "bfloat16", "float16")

Index = tuple[slice, ...]
Arrays = Mapping[str, "LazyArray"]


class CopiesDiffer(ValueError):
    """Two stored copies of one array have different numbers; the message names both."""


@dataclasses.dataclass(frozen=True)
class LazyArray:
    """An array in a file.

    Attributes:
        shape: its shape.
        dtype: as stored.
        read: gives the part at a tuple of slices, one per dimension, with bounds and without
            steps.
        label: file and name there, for messages.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    read: Callable[[Index], np.ndarray]
    label: str

    @classmethod
    def of(cls, array, label: str) -> LazyArray:
        """One that is in memory already."""
        array = np.asarray(array)
        return cls(array.shape, array.dtype, array.__getitem__, label)

    @property
    def T(self) -> LazyArray:  # noqa: N802 (numpy's name)
        """The transpose."""
        return dataclasses.replace(
            self, shape=self.shape[::-1], read=lambda index: self.read(index[::-1]).T
        )

    def __getitem__(self, index: tuple[slice | int, ...]) -> LazyArray:
        """The subarray at one integer; all else must be whole (`x[:, 3]`)."""
        (axis,) = (i for i, part in enumerate(index) if part != slice(None))
        at = slice(index[axis], index[axis] + 1)

        def read(rest: Index) -> np.ndarray:
            return self.read((*rest[:axis], at, *rest[axis:])).squeeze(axis)

        shape = (*self.shape[:axis], *self.shape[axis + 1 :])
        return dataclasses.replace(self, shape=shape, read=read)

    def reshape(self, shape: tuple[int, ...]) -> LazyArray:
        """Merges two neighbouring axes; no other change of shape."""
        merges = [
            axis
            for axis in range(len(self.shape) - 1)
            if (
                *self.shape[:axis],
                self.shape[axis] * self.shape[axis + 1],
                *self.shape[axis + 2 :],
            )
            == tuple(shape)
        ]
        if not merges:
            raise ValueError(f"{self.label}: {self.shape} does not merge into {shape}")
        axis = merges[0]
        minor = self.shape[axis + 1]

        def read(index: Index) -> np.ndarray:
            # Whole minor rows that cover what is asked for, then the part of them.
            start, stop = index[axis].start, index[axis].stop
            first, last = start // minor, -(-stop // minor)
            rows = (slice(first, last), slice(0, minor))
            block = self.read((*index[:axis], *rows, *index[axis + 1 :]))
            merged = block.reshape(*block.shape[:axis], -1, *block.shape[axis + 2 :])
            part = slice(start - first * minor, stop - first * minor)
            return merged[(slice(None),) * axis + (part,)]

        return dataclasses.replace(self, shape=tuple(shape), read=read)

    def whole(self) -> np.ndarray:
        """All of it."""
        return read_part(self, (slice(None),) * len(self.shape))


def read_part(array: LazyArray, index: Index) -> np.ndarray:
    """The part at slices without steps, open bounds allowed.

    Raises:
        ValueError: the file cannot be read; names file and array.
        CopiesDiffer: the file has the array twice, with different numbers.
    """
    bounds = (part.indices(size)[:2] for part, size in zip(index, array.shape, strict=True))
    try:
        return array.read(tuple(slice(*bound) for bound in bounds))
    except CopiesDiffer:
        raise
    except Exception as error:  # Each storage layer raises types of its own.
        raise ValueError(f"{array.label} cannot be read: {first_line(error)}") from error


def as_dtype(name: str) -> np.dtype:
    """The dtype of parameters that a name means; raises ValueError for another."""
    if name not in DTYPES:
        raise ValueError(f"unknown dtype {name!r}; known: {', '.join(DTYPES)}")
    return jnp.dtype(name)


def check_dtypes(arrays: Arrays, dtype: str | None) -> None:
    """Raises ValueError for an array that cannot be a parameter as it is, or be cast to one."""
    if dtype is not None:
        as_dtype(dtype)
    allowed = DTYPES if dtype is None else (*DTYPES, "float64")
    for array in arrays.values():
        if array.dtype.name not in allowed:
            hint = "" if array.dtype.name != "float64" else "; ask for another with dtype"
            raise ValueError(
                f"{array.label} is {array.dtype.name}; parameters are {', '.join(DTYPES)}{hint}"
            )


def place(arrays: Arrays, shardings: Mapping[str, jax.sharding.Sharding], dtype: str | None):
    """Reads arrays onto devices, each device's part by itself.

    The layers of a stacked array follow one another, so that what is cached of it serves them all.

    Args:
        arrays: by name.
        shardings: where each goes; the same names.
        dtype: to cast to; None keeps what is stored.

    Returns:
        The parameters, as nested dictionaries.
    """
    by_source = sorted(arrays.items(), key=lambda item: item[1].label)
    placed = {
        name: _place(array, shardings[name], jnp.dtype(dtype or array.dtype))
        for name, array in by_source
    }
    return unflatten(placed)


def _place(array: LazyArray, sharding, dtype) -> jax.Array:
    read: dict[str, np.ndarray] = {}  # Devices that hold the same part share one reading of it.

    def part(index: Index) -> np.ndarray:
        key = str(index)
        if key not in read:
            read[key] = read_part(array, index).astype(dtype, copy=False)
        return read[key]

    return jax.make_array_from_callback(array.shape, sharding, part)


def flatten(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Nested dictionaries as one, with names joined by `/`."""
    return traverse_util.flatten_dict(tree, sep="/")


def unflatten(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `flatten`."""
    return traverse_util.unflatten_dict(flat, sep="/")


def to_host(array: jax.Array | np.ndarray) -> np.ndarray:
    """A parameter on the host, gathered from all hosts."""
    if isinstance(array, jax.Array) and not array.is_fully_addressable:
        from jax.experimental import multihost_utils

        return np.asarray(multihost_utils.process_allgather(array, tiled=True))
    return np.asarray(array)


def first_line(error: Exception) -> str:
    """What an exception says, in one line."""
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def some(items: list[str], limit: int = 5) -> str:
    """The first few, and how many more."""
    more = f" and {len(items) - limit} more" if len(items) > limit else ""
    return ", ".join(items[:limit]) + more
