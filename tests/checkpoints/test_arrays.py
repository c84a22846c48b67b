"""A part of an array that is not read yet is that part of the array."""

import itertools

import jax
import numpy as np
import pytest

from spec_cascades import partitioning
from spec_cascades.checkpoints import arrays
from spec_cascades.checkpoints.arrays import LazyArray

STACK = np.arange(4 * 3 * 2 * 5).reshape(4, 3, 2, 5).astype(np.float32)  # embed, layers, heads, kv


def counting(array):
    """A lazy array, and the sizes of the parts that are read of it."""
    sizes = []

    def read(index):
        assert all(part.start is not None and part.step is None for part in index)
        sizes.append(array[index].size)
        return array[index]

    return LazyArray(array.shape, array.dtype, read, "file: x"), sizes


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x,
        lambda x: x[:, 1],
        lambda x: x[:, 2].reshape((4, 10)),
        lambda x: x[:, 2].reshape((8, 5)),
        lambda x: x[:, 0].reshape((4, 10)).T,
        lambda x: x.T,
    ],
)
def test_every_part_is_that_of_the_array(change):
    lazy, expected = change(LazyArray.of(STACK, "x")), change(STACK)
    assert lazy.shape == expected.shape
    np.testing.assert_array_equal(lazy.whole(), expected)
    spans = [list(itertools.combinations(range(n + 1), 2)) for n in expected.shape]
    for axis, (low, high) in ((a, s) for a, ss in enumerate(spans) for s in ss):
        index = [slice(None)] * expected.ndim
        index[axis] = slice(low, high)
        np.testing.assert_array_equal(arrays.read_part(lazy, tuple(index)), expected[tuple(index)])


def test_only_merges_of_neighbours_are_reshaped():
    with pytest.raises(ValueError, match=r"x: \(4, 3, 2, 5\) does not merge into \(12, 10\)"):
        LazyArray.of(STACK, "x").reshape((12, 10))


def test_each_device_part_is_read_once():
    lazy, sizes = counting(np.arange(32.0, dtype=np.float32).reshape(4, 8))
    mesh = partitioning.make_mesh(model_parallelism=4)  # 2 copies
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(None, "model"))
    placed = arrays.place({"a/b": lazy}, {"a/b": sharding}, None)["a"]["b"]
    np.testing.assert_array_equal(placed, lazy.whole())
    assert placed.sharding == sharding
    assert sizes[:-1] == [8] * 4  # the last one is `whole`


def test_layers_of_one_array_are_read_in_a_row():
    order = []

    def stack(name):
        def read(index):
            order.append(name)
            return STACK[index]

        return LazyArray(STACK.shape, STACK.dtype, read, name)

    layers = {f"{i}/{name}": stack(name)[:, i] for i in range(3) for name in "qk"}
    where = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    placed = arrays.place(layers, dict.fromkeys(layers, where), None)
    assert order == ["k"] * 3 + ["q"] * 3
    np.testing.assert_array_equal(placed["2"]["q"], STACK[:, 2])


@pytest.mark.parametrize(
    ("stored", "asked", "message"),
    [
        ("int32", None, "file: x is int32; parameters are float32, bfloat16, float16"),
        ("float64", None, "file: x is float64; .* ask for another with dtype"),
        ("float32", "int8", "unknown dtype 'int8'"),
        ("int32", "float32", "file: x is int32"),
    ],
)
def test_surprising_dtypes_are_refused(stored, asked, message):
    lazy = LazyArray((2,), np.dtype(stored), None, "file: x")
    with pytest.raises(ValueError, match=message):
        arrays.check_dtypes({"x": lazy}, asked)


def test_what_cannot_be_read_is_named():
    def read(index):
        raise OSError("disk gone\nlong story")

    lazy = LazyArray((2,), np.dtype("float32"), read, "file: x")
    with pytest.raises(ValueError, match=r"^file: x cannot be read: disk gone$"):
        lazy.whole()
