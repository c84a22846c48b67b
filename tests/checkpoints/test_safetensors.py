"""Arrays in safetensors files: slices, dtypes, and the distribution over files."""

import ml_dtypes
import numpy as np
import pytest

from spec_cascades.checkpoints import arrays, safetensors_files

ARRAYS = {
    "a": np.arange(12, dtype=np.float32).reshape(3, 4),
    "transposed": np.arange(12, dtype=np.float32).reshape(3, 4).T,
    "b.weight": np.arange(6).astype(ml_dtypes.bfloat16),
    "c": np.array(2.5, np.float64),
    "d": np.zeros((0, 3), np.float32),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    file = tmp_path_factory.mktemp("safetensors") / "x.safetensors"
    safetensors_files.write(file, ARRAYS)
    return safetensors_files.read(file)


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_come_back(found, name):
    array = ARRAYS[name]
    assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype)
    np.testing.assert_array_equal(found[name].whole(), array)


@pytest.mark.parametrize("name", ["a", "b.weight"])
def test_parts_come_alone(found, name):
    index = (slice(1, 3),) * ARRAYS[name].ndim
    part = arrays.read_part(found[name], index)
    assert part.dtype == ARRAYS[name].dtype
    np.testing.assert_array_equal(part, ARRAYS[name][index])


def test_shards_keep_the_order_and_the_limit():
    sizes = {"a": 4, "b": 5, "c": 20, "d": 1, "e": 9, "f": 1}
    assert safetensors_files.shards(sizes, 10) == [["a", "b"], ["c"], ["d", "e"], ["f"]]
