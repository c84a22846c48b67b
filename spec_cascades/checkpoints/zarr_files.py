"""zarr arrays through TensorStore: what T5X and Orbax keep arrays in, on disk or in `gs://`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from spec_cascades.checkpoints import arrays
from spec_cascades.checkpoints.arrays import LazyArray

# What TensorStore's cache counts besides numbers, generously: per chunk, and for OCDBT's indices.
_ENTRY_BYTES = 4096
_INDEX_BYTES = 2**20


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

    The chunks of one array stay in memory once they are decompressed: a scanned stack, which is one
    chunk by T5X's custom, is read layer by layer, and each device's part by itself.

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
    stores = {
        name: _opened(future, f"{where}: {name}", every_chunk) for name, future in opening.items()
    }
    # Sizes are known only now; opening again with known metadata reads nothing.
    largest = max(map(_cached_bytes, stores.values()), default=0)
    context = ts.Context({"cache_pool": {"total_bytes_limit": largest + _INDEX_BYTES}})
    known = dict(open=True, read=True, assume_metadata=True, recheck_cached_data=False)
    return {
        name: _lazy(ts.open(store.spec(), context=context, **known).result(), f"{where}: {name}")
        for name, store in stores.items()
    }


def _opened(future, label: str, every_chunk: bool):
    """The TensorStore, once its metadata are there and its chunks found."""
    try:
        store = future.result()
        missing = _missing_chunks(store) if every_chunk else 0
    except Exception as error:  # TensorStore raises ValueError, KeyError, RuntimeError, ...
        reason = arrays.first_line(error).split(" [tensorstore_spec=")[0]
        raise ValueError(f"{label} cannot be read: {reason}") from error
    if missing:
        raise ValueError(f"{label} is damaged: {missing} of its chunks are missing")
    return store


def _lazy(store, label: str) -> LazyArray:
    return LazyArray(
        shape=tuple(store.shape),
        dtype=np.dtype(store.dtype.numpy_dtype),
        read=lambda index: np.asarray(store[index].read().result()),
        label=label,
    )


def _num_chunks(store) -> int:
    chunks = store.chunk_layout.write_chunk.shape or ()  # None for a scalar
    return math.prod(-(-size // chunk) for size, chunk in zip(store.shape, chunks, strict=True))


def _cached_bytes(store) -> int:
    """What the decompressed chunks take in TensorStore's cache; all are of one size."""
    chunk_bytes = math.prod(store.chunk_layout.write_chunk.shape or ())
    chunk_bytes *= store.dtype.numpy_dtype.itemsize
    return _num_chunks(store) * (chunk_bytes + _ENTRY_BYTES)


def _missing_chunks(store) -> int:
    wanted = _num_chunks(store)
    keys = store.kvstore.list().result()
    # zarr.json, .zarray and .zattrs aside, every key is a chunk: 0.3, 0/3 or c/0/3.
    found = sum(
        key.decode().split("/")[-1].replace(".", "").isdigit() or key == b"c" for key in keys
    )
    return max(wanted - found, 0)
