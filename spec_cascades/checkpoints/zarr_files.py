"""zarr arrays through TensorStore: what T5X and Orbax keep arrays in, on disk or in `gs://`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from spec_cascades.checkpoints import arrays
from spec_cascades.checkpoints.arrays import LazyArray


def kvstore(path: str) -> dict[str, str]:
    """TensorStore's description of a folder: a local path or `gs://bucket/path`."""
    path = path.rstrip("/") + "/"
    if bucket := re.fullmatch(r"gs://([^/]+)/(.*)", path):
        return {"driver": "gcs", "bucket": bucket[1], "path": bucket[2]}
    if "://" in path:
        raise ValueError(f"{path}: a local path or gs://… is expected")
    return {"driver": "file", "path": path}


def open_all(
    specs: Mapping[str, dict[str, Any]], where: str, *, every_chunk: bool
) -> dict[str, LazyArray]:
    """Opens zarr arrays; no numbers are read.

    Args:
        specs: TensorStore specs by parameter name.
        where: the checkpoint, for messages.
        every_chunk: whether chunks of zeros are stored too. A missing chunk reads as zeros, so a
            damaged array would go unnoticed otherwise.

    Raises:
        ValueError: an array is missing or damaged; names it.
    """
    import tensorstore as ts

    opening = {name: ts.open(spec, open=True, read=True) for name, spec in specs.items()}
    return {
        name: _lazy(future, f"{where}: {name}", every_chunk) for name, future in opening.items()
    }


def _lazy(future, label: str, every_chunk: bool) -> LazyArray:
    try:
        store = future.result()
        missing = _missing_chunks(store) if every_chunk else 0
    except Exception as error:  # TensorStore raises ValueError, KeyError, RuntimeError, ...
        reason = arrays.first_line(error).split(" [tensorstore_spec=")[0]
        raise ValueError(f"{label} cannot be read: {reason}") from error
    if missing:
        raise ValueError(f"{label} is damaged: {missing} of its chunks are missing")
    return LazyArray(
        shape=tuple(store.shape),
        dtype=np.dtype(store.dtype.numpy_dtype),
        read=lambda index: np.asarray(store[index].read().result()),
        label=label,
    )


def _missing_chunks(store) -> int:
    chunks = store.chunk_layout.write_chunk.shape or ()  # None for a scalar
    wanted = math.prod(-(-size // chunk) for size, chunk in zip(store.shape, chunks, strict=True))
    keys = store.kvstore.list().result()
    # zarr.json, .zarray and .zattrs aside, every key is a chunk: 0.3, 0/3 or c/0/3.
    found = sum(
        key.decode().split("/")[-1].replace(".", "").isdigit() or key == b"c" for key in keys
    )
    return max(wanted - found, 0)
