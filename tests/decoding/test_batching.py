import numpy as np
import pytest

from spec_cascades.decoding import batching


def inputs_of(lengths):
    return [np.full(length, i + 1, np.int32) for i, length in enumerate(lengths)]


@pytest.mark.parametrize("batch_size", [1, 3, 8])
@pytest.mark.parametrize("count", [1, 7, 40])
def test_every_input_once_and_back_in_order(batch_size, count):
    lengths = np.random.default_rng(count).integers(1, 70, count)
    inputs = inputs_of(lengths)
    batches = batching.make_batches(inputs, batch_size=batch_size)
    for batch in batches:
        assert batch.prompt.tokens.shape[0] == batch_size
        rows = zip(
            batch.prompt.tokens, batch.prompt.lengths, batch.indices, batch.row_mask, strict=True
        )
        for row, length, index, real in rows:
            if real:
                assert row[:length].tolist() == inputs[index].tolist()
            else:
                assert length == 0
    rows = [[int(row.max()) for row in batch.prompt.tokens] for batch in batches]
    assert batching.in_input_order(batches, rows) == list(range(1, count + 1))
    assert sum(int((~batch.row_mask).sum()) for batch in batches) == -count % batch_size


def test_few_shapes_for_many_lengths():
    batches = batching.make_batches(inputs_of(range(1, 65)), batch_size=4)
    assert {batch.prompt.tokens.shape[1] for batch in batches} == {16, 32, 64}


def test_an_unfilled_bucket_moves_up():
    batches = batching.make_batches(inputs_of([3, 20]), batch_size=2, buckets=[8, 32])
    assert [batch.prompt.tokens.shape for batch in batches] == [(2, 32)]


def test_too_long_an_input_is_refused():
    with pytest.raises(ValueError, match="9 tokens is longer than the largest bucket, 8"):
        batching.make_batches(inputs_of([9]), batch_size=2, buckets=[8])
