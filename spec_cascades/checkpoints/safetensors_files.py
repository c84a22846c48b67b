"""The safetensors format: a JSON header and raw bytes.

    8 bytes      length of the header, little endian
    header       {name: {"dtype": "BF16", "shape": […], "data_offsets": [begin, end]}, …}
    the rest     the arrays, row by row; offsets count from here

Read and written here rather than with the `safetensors` package, which keeps a whole file mapped
and writes whole files from memory: a slice at a time is what bounds the host's memory.
"""

from __future__ import annotations

import json
import math
import pathlib
from collections.abc import Callable, Mapping

import jax.numpy as jnp
import numpy as np

from spec_cascades.checkpoints.arrays import LazyArray, first_line

_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}
_NAMES = {name: code for code, name in _DTYPES.items()}
_MAX_HEADER = 100 * 2**20


def read(file: pathlib.Path) -> dict[str, LazyArray]:
    """The arrays of a file by name; only its header is read.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a safetensors file, a truncated one, or an unknown dtype.
    """
    size = file.stat().st_size
    with open(file, "rb") as content:
        length = int.from_bytes(content.read(8), "little")
        if size < 8 or length > min(_MAX_HEADER, size - 8):
            raise ValueError(f"{file} is no safetensors file, or is truncated: {size} bytes")
        header = content.read(length)
    try:
        entries = json.loads(header)
        entries.pop("__metadata__", None)
        return {name: _lazy(file, name, e, 8 + length, size) for name, e in entries.items()}
    except (UnicodeDecodeError, json.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{file} has a damaged header: {first_line(error)}") from error


def _lazy(file: pathlib.Path, name: str, entry: Mapping, start: int, size: int) -> LazyArray:
    label = f"{file}: {name}"
    if entry["dtype"] not in _DTYPES:
        raise ValueError(f"{label} has the dtype {entry['dtype']}; known: {', '.join(_DTYPES)}")
    dtype, shape = jnp.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"])
    begin, end = entry["data_offsets"]
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{label} has {end - begin} bytes for the shape {shape} of {dtype}")
    if start + end > size:
        raise ValueError(f"{label} ends at byte {start + end}, but the file has {size}: truncated")

    def part(index: tuple[slice, ...]) -> np.ndarray:
        # Mapped for this one reading: pages of a file that stays mapped count as the process's.
        stored = np.memmap(file, np.uint8, "r", start + begin, max(end - begin, 1))
        return np.array(stored[: end - begin].view(dtype).reshape(shape)[index])

    return LazyArray(shape=shape, dtype=np.dtype(dtype), read=part, label=label)


def write(
    file: pathlib.Path,
    shapes: Mapping[str, tuple[tuple[int, ...], np.dtype]],
    array: Callable[[str], np.ndarray],
) -> None:
    """Writes a file, one array in memory at a time.

    Args:
        file: what to write.
        shapes: shape and dtype of every array by name.
        array: gives an array by name.
    """
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (shape, dtype) in shapes.items():
        end = at + math.prod(shape) * np.dtype(dtype).itemsize
        code = _NAMES[np.dtype(dtype).name]
        header[name] = {"dtype": code, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)  # Arrays begin at multiples of 8.
    with open(file, "wb") as content:
        content.write(len(encoded).to_bytes(8, "little") + encoded)
        for name in shapes:
            content.write(np.ascontiguousarray(array(name)).tobytes())


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
