"""The toy model itself: its predictions depend on all they should, and on nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spec_cascades.models.interface import Model, Prompt
from spec_cascades.testing import ToyModel

TOY = ToyModel(5)
TABLE = TOY.init(jax.random.key(0))
PROMPT = Prompt.of([[3, 4, 5], [7], [3, 4, 9, 2]])
TOKENS = jnp.array([[0, 2, 3, 4, 2, 1], [0, 4, 4, 2, 3, 3], [0, 1, 1, 1, 1, 1]])
extend = jax.jit(TOY.extend)


def teacher_forced(tokens, prompt=PROMPT):
    """Logits after each of the tokens, the first of which is what decoding starts from."""
    return TOY.score(TABLE, prompt, jnp.pad(tokens[:, 1:], [(0, 0), (0, 1)]))


def test_it_is_a_model():
    assert isinstance(TOY, Model)
    assert TABLE.shape == (997, 5) and TABLE.dtype == jnp.float32
    assert hash(TOY) == hash(ToyModel(5))


@pytest.mark.parametrize("sizes", [(1,) * 6, (2, 3, 1), (6,)])
def test_steps_and_blocks_equal_teacher_forcing(sizes):
    whole = teacher_forced(TOKENS)
    cache, at = TOY.prefill(TABLE, PROMPT, 10), 0
    for k in sizes:
        logits, cache = extend(TABLE, cache, TOKENS[:, at : at + k], jnp.full(3, at))
        np.testing.assert_array_equal(logits, whole[:, at : at + k])
        at += k


def test_a_rollback_leaves_no_trace():
    whole = teacher_forced(TOKENS)
    cache = TOY.prefill(TABLE, PROMPT, 10)
    _, cache = extend(TABLE, cache, TOKENS[:, :3], jnp.zeros(3, jnp.int32))
    _, cache = extend(TABLE, cache, TOKENS[:, :3] + 1, jnp.full(3, 3))
    start = jnp.array([1, 2, 3])  # each row goes back to a place of its own
    block = jax.vmap(lambda row, i: jax.lax.dynamic_slice_in_dim(row, i, 3))(TOKENS, start)
    logits, _ = extend(TABLE, cache, block, start)
    for row, i in enumerate(np.asarray(start)):
        np.testing.assert_array_equal(logits[row], whole[row, i : i + 3])


def test_every_earlier_token_and_the_input_matter():
    whole = np.asarray(teacher_forced(TOKENS))
    for place in range(1, 6):  # what decoding starts from is not ours to change
        changed = TOKENS.at[0, place].add(1)
        other = np.asarray(teacher_forced(changed))
        differs = (other[0] != whole[0]).any(axis=-1)
        np.testing.assert_array_equal(differs, np.arange(6) >= place)
        np.testing.assert_array_equal(other[1:], whole[1:])
    swapped = np.asarray(teacher_forced(TOKENS, Prompt.of([[5, 4, 3], [7], [2, 9, 4, 3]])))
    assert (swapped[0] != whole[0]).any(), "the input's order matters"


def test_padding_of_the_input_does_not_matter():
    whole = teacher_forced(TOKENS)
    wide = jnp.pad(PROMPT.tokens, [(0, 0), (0, 3)], constant_values=8)
    np.testing.assert_array_equal(teacher_forced(TOKENS, Prompt(wide, PROMPT.lengths)), whole)


def test_a_missing_cache_entry_shows():
    """A model fed only its newest token, with a hole before it, answers differently."""
    whole = teacher_forced(TOKENS)
    cache = TOY.prefill(TABLE, PROMPT, 10)
    _, cache = extend(TABLE, cache, TOKENS[:, :2], jnp.zeros(3, jnp.int32))
    logits, _ = extend(TABLE, cache, TOKENS[:, 3:4], jnp.full(3, 3))  # position 2 never fed
    assert (logits[:, 0] != whole[:, 3]).any(axis=-1).all()
