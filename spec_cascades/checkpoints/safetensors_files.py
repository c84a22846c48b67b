"""Hugging Face's safetensors files, by their library: arrays that are read a slice at a time."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
import safetensors
import safetensors.numpy

from spec_cascades.checkpoints.arrays import Index, LazyArray, first_line

# The dtypes in which parameters may be stored.
_DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}


def read(file: pathlib.Path) -> dict[str, LazyArray]:
    """The arrays of a file by name; only its header is read.

    Raises:
        ValueError: not a safetensors file, a truncated one, or an array of another dtype than
            floating point of 16 bits or more.
    """
    try:
        with safetensors.safe_open(file, framework="numpy") as content:
            return {name: _lazy(file, name, content.get_slice(name)) for name in content.keys()}
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{file} is no safetensors file, or is damaged or truncated: {first_line(error)}"
        ) from error


def _lazy(file: pathlib.Path, name: str, stored) -> LazyArray:
    label = f"{file}: {name}"
    if stored.get_dtype() not in _DTYPES:
        raise ValueError(f"{label} has the dtype {stored.get_dtype()}; known: {', '.join(_DTYPES)}")

    def part(index: Index) -> np.ndarray:
        # Opened for this one reading: pages of a file that stays mapped count as the process's.
        with safetensors.safe_open(file, framework="numpy") as content:
            # The library knows neither scalars' slices nor empty arrays'.
            whole = all(part.stop - part.start == n for part, n in zip(index, shape, strict=True))
            return content.get_tensor(name) if whole else content.get_slice(name)[index]

    shape = tuple(stored.get_shape())
    dtype = np.dtype(jnp.dtype(_DTYPES[stored.get_dtype()]))
    return LazyArray(shape=shape, dtype=dtype, read=part, label=label)


def write(file: pathlib.Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Writes a file of arrays on the host."""
    # The library copies the memory as it lies: a transposed view would be written untransposed.
    contiguous = {name: np.asarray(x, order="C") for name, x in tensors.items()}
    safetensors.numpy.save_file(contiguous, file, metadata={"format": "pt"})


def shards(sizes: Mapping[str, int], limit: int) -> list[list[str]]:
    """Distributes arrays over files of at most `limit` bytes, in order."""
    groups: list[list[str]] = [[]]
    used = 0
    for name, size in sizes.items():
        if groups[-1] and used + size > limit:
            groups.append([])
            used = 0
        groups[-1].append(name)
        used += size
    return groups
