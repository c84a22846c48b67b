"""T5X's own checkpoints: a msgpack file, and zarr folders beside it.

    checkpoint_<step>/checkpoint      {'version': 3, 'optimizer': {'target': …, 'state': …}}
    checkpoint_<step>/target.<name>/  zarr arrays, where the file holds TensorStore specs of them

Leaves of the file are arrays, or specs whose paths are relative to the folder. The file alone, with
all arrays inline, is a checkpoint too. Reading and writing needs no t5x.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from etils import epath

from spec_cascades.checkpoints import arrays, zarr_files
from spec_cascades.checkpoints.arrays import LazyArray

FILE = "checkpoint"
VERSION = 3
_CHUNK_BYTES = 64 * 2**20
# How aggregated files of old Orbax versions mark an array that has a zarr folder of its own.
_PLACEHOLDER = "PLACEHOLDER://"


def read(path: epath.Path) -> dict[str, LazyArray]:
    """The model's arrays by name; those of the optimizer are left aside.

    Args:
        path: the folder, or the msgpack file.

    Raises:
        ValueError: not a T5X checkpoint, or a damaged one.
    """
    from flax import serialization

    file = path / FILE if path.is_dir() else path
    try:
        content = serialization.msgpack_restore(file.read_bytes())
    except Exception as error:  # msgpack and flax raise several types
        reason = arrays.first_line(error)
        raise ValueError(f"{file} is no T5X checkpoint, or is damaged: {reason}") from error
    if not isinstance(content, Mapping):
        raise ValueError(f"{file} is no T5X checkpoint: it holds a {type(content).__name__}")
    state = content.get("optimizer", content)
    if not isinstance(state, Mapping) or not isinstance(state.get("target", state), Mapping):
        raise ValueError(f"{file} is no T5X checkpoint: it has no optimizer/target")
    inline, specs = {}, {}
    for name, leaf in _leaves(state.get("target", state), ()):
        if isinstance(leaf, Mapping):
            specs[name] = spec(leaf, str(file.parent), f"{file}: {name}")
        elif isinstance(leaf, str) and leaf.startswith(_PLACEHOLDER):
            at = leaf.removeprefix(_PLACEHOLDER)
            specs[name] = spec({"driver": "zarr", "kvstore": {"path": at}}, str(file.parent), name)
        else:
            inline[name] = LazyArray.of(leaf, f"{file}: {name}")
    stored = zarr_files.open_all(specs, str(file.parent), every_chunk=True)
    return inline | stored


def spec(leaf: Mapping[str, Any], folder: str, label: str) -> dict[str, Any]:
    """The TensorStore spec of an array, wherever the checkpoint has been copied since.

    Args:
        leaf: the spec in the msgpack file; its path is relative to the checkpoint's folder, its
            driver that of the file system it was written to.
        folder: where the checkpoint is now, local or `gs://`.
        label: for messages.
    """
    store = leaf.get("kvstore")
    path = store.get("path", leaf.get("path")) if isinstance(store, Mapping) else None
    if leaf.get("driver") not in ("zarr", "zarr3") or not isinstance(path, str):
        raise ValueError(f"{label} is neither an array nor a TensorStore spec of one")
    return {"driver": leaf["driver"], "kvstore": zarr_files.kvstore(f"{folder}/{path}")}


def _leaves(tree, path: tuple[str, ...]):
    """(name, leaf) of every array or spec."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and not {"driver", "kvstore"} <= value.keys():
            yield from _leaves(value, (*path, key))
        else:
            yield "/".join((*path, key)), value


# --- writing ---


def write(path: epath.Path, params: Mapping[str, Any], step: int = 0) -> None:
    """Writes parameters as a T5X checkpoint without optimizer state.

    Args:
        path: the folder, by T5X's custom `checkpoint_<step>`; made if need be.
        params: nested dictionaries of arrays.
        step: what the checkpoint says.
    """
    from flax import serialization

    path.mkdir(parents=True, exist_ok=True)
    (path / FILE).unlink(missing_ok=True)
    specs = {name: _write_array(path, name, x) for name, x in arrays.flatten(params).items()}
    state = {"target": arrays.unflatten(specs), "state": {"step": np.asarray(step, np.int32)}}
    # Last: without the file it is no checkpoint, however far a killed process came.
    content = serialization.msgpack_serialize({"version": VERSION, "optimizer": state})
    (path / FILE).write_bytes(content)


def _write_array(folder: epath.Path, name: str, array) -> dict[str, Any]:
    """Writes one zarr folder; returns the spec that the msgpack file gets."""
    import tensorstore as ts

    array = arrays.to_host(array)
    relative = f"target.{name.replace('/', '.')}/"
    row_bytes = max(array.nbytes // max(len(array), 1), 1)
    rows = min(max(_CHUNK_BYTES // row_bytes, 1), len(array))
    metadata = {
        "shape": list(array.shape),
        "chunks": [rows, *array.shape[1:]],
        "compressor": {"id": "gzip", "level": 1},
    }
    leaf = {"driver": "zarr", "dtype": array.dtype.name, "metadata": metadata}
    store = ts.open(
        {
            **leaf,
            "kvstore": zarr_files.kvstore(f"{folder}/{relative}"),
            "store_data_equal_to_fill_value": True,
        },
        create=True,
        delete_existing=True,
    ).result()
    store.write(array).result()
    driver = "gcs" if str(folder).startswith("gs://") else "file"
    return {**leaf, "kvstore": {"driver": driver, "path": relative}}
