"""Orbax checkpoints: the arrays of a tree, whoever wrote it and on whatever devices."""

from __future__ import annotations

import json

from etils import epath

from spec_cascades.checkpoints import arrays, zarr_files
from spec_cascades.checkpoints.arrays import LazyArray

METADATA = "_METADATA"
# The first names of a training state's other parts, in T5X's and in Flax's.
_NOT_THE_MODEL = ("state", "opt_state", "step")


def read(path: epath.Path) -> dict[str, LazyArray]:
    """The model's arrays by name; those of the optimizer are left aside.

    Args:
        path: the folder that holds `_METADATA`.

    Raises:
        ValueError: damaged, or an array is missing.
    """
    try:
        metadata = json.loads((path / METADATA).read_text())
        names = [
            [str(key["key"]) for key in entry["key_metadata"]]
            for entry in metadata["tree_metadata"].values()
            if not entry["value_metadata"].get("skip_deserialize", False)
        ]
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        reason = arrays.first_line(error)
        raise ValueError(f"{path} is not an Orbax checkpoint, or is damaged: {reason}") from error
    driver = "zarr3" if metadata.get("use_zarr3") else "zarr"
    together = metadata.get("use_ocdbt", (path / "manifest.ocdbt").exists())
    specs = {}
    for name in names:
        if name[0] in _NOT_THE_MODEL:
            continue
        at = ".".join(name)
        base = zarr_files.kvstore(str(path) if together else f"{path}/{at}")
        store = {"driver": "ocdbt", "base": base, "path": f"{at}/"} if together else base
        specs["/".join(name)] = {"driver": driver, "kvstore": store}
    every_chunk = metadata.get("store_array_data_equal_to_fill_value", False)
    return zarr_files.open_all(specs, str(path), every_chunk=every_chunk)
