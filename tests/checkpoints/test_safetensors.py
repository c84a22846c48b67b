"""Our safetensors files against the `safetensors` package, both ways."""

import numpy as np
import pytest

from spec_cascades.checkpoints import safetensors_files

safetensors_numpy = pytest.importorskip("safetensors.numpy")

ARRAYS = {
    "a": np.arange(12, dtype=np.float32).reshape(3, 4),
    "b.weight": np.arange(6, dtype=np.float16),
    "c": np.array(2.5, np.float64),
    "d": np.zeros((0, 3), np.float32),
}


def test_files_of_the_package_are_read(tmp_path):
    safetensors_numpy.save_file(ARRAYS, tmp_path / "x.safetensors", metadata={"format": "pt"})
    found = safetensors_files.read(tmp_path / "x.safetensors")
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype)
        np.testing.assert_array_equal(found[name].whole(), array)


def test_files_of_ours_are_read_by_the_package(tmp_path):
    shapes = {name: (x.shape, x.dtype) for name, x in ARRAYS.items()}
    safetensors_files.write(tmp_path / "x.safetensors", shapes, lambda name: ARRAYS[name])
    found = safetensors_numpy.load_file(tmp_path / "x.safetensors")
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_shards_keep_the_order_and_the_limit():
    sizes = {"a": 4, "b": 5, "c": 20, "d": 1, "e": 9, "f": 1}
    assert safetensors_files.shards(sizes, 10) == [["a", "b"], ["c"], ["d", "e"], ["f"]]
