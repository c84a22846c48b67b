"""`SpeculativeCascadeModel` by itself, against T5X's own model on the same parameters."""

import functools

import jax
import numpy as np
import pytest
from flax.core import unfreeze
from flax.traverse_util import flatten_dict

from spec_cascades import rules
from spec_cascades.checkpoints import scanned
from spec_cascades.decoding import Finish, Origin


@pytest.fixture(scope="session")
def tiny(t5x):
    import t5x_tiny

    return t5x_tiny


@pytest.fixture(scope="session")
def make(tiny):
    from spec_cascades.t5x import SpeculativeCascadeModel

    def make(target="target", draft="draft", **settings):
        target, draft = (
            tiny.config(name) if name in tiny.SIZES else name for name in (target, draft)
        )
        return SpeculativeCascadeModel(target, draft, tiny.VOCABULARY, tiny.VOCABULARY, **settings)

    return make


@pytest.fixture(scope="session")
def params(stored):
    from t5x import checkpoints

    return {
        name: checkpoints.load_t5x_checkpoint(stored(name))["target"]
        for name in ("target", "draft")
    }


@pytest.fixture(scope="session")
def batch(tiny):
    return tiny.batch()


def test_names_shapes_and_axes_are_t5xs(tiny, make):
    from flax.linen import partitioning as nn_partitioning

    shapes = {"encoder_input_tokens": (2, 4), "decoder_input_tokens": (2, 4)}

    def variables(model):
        return unfreeze(
            jax.eval_shape(lambda: model.get_initial_variables(jax.random.PRNGKey(0), shapes))
        )

    def described(part):
        axes = flatten_dict(unfreeze(nn_partitioning.get_axis_names(part["params_axes"])))
        return {k: (x.shape, tuple(axes[k])) for k, x in flatten_dict(part["params"]).items()}

    ours = variables(make())
    for which in tiny.SIZES:
        part = {collection: tree[which] for collection, tree in ours.items()}
        assert described(part) == described(variables(tiny.reference_model(which)))
    assert set(variables(make(draft="prompt_lookup"))["params"]) == {"target"}


@pytest.mark.parametrize("is_scanned", [False, True], ids=["t5", "scalable_t5"])
def test_scores_are_t5xs(tiny, make, stored, batch, is_scanned):
    from t5x import checkpoints

    path = stored("target", "scalable" if is_scanned else "t5")
    theirs = checkpoints.load_t5x_checkpoint(path)["target"]
    model = make(target=tiny.config("target", is_scanned))
    ours = {"target": scanned.to_per_layer(theirs)}
    wanted = jax.jit(tiny.reference_model("target", is_scanned).score_batch)(theirs, batch)
    scores, by_token = jax.jit(functools.partial(model.score_batch, return_intermediates=True))(
        ours, batch
    )
    np.testing.assert_allclose(scores, wanted, atol=1e-4, rtol=0)
    assert np.abs(wanted).min() > 1
    (token_scores,) = by_token["decoder"]["token_scores"]
    np.testing.assert_allclose(token_scores.sum(-1), scores, atol=1e-5)
    loss, _ = jax.jit(functools.partial(model.loss_fn, dropout_rng=None))(ours, batch)
    assert loss == pytest.approx(-float(scores.sum()), rel=1e-5)


def test_drafts_of_the_target_itself_all_stand(tiny, make, params, batch):
    model = make(draft="target", gamma=4)
    twice = {"target": params["target"], "draft": params["target"]}
    tokens, aux = jax.jit(model.predict_batch_with_aux)(twice, batch)
    wanted, theirs = jax.jit(tiny.reference_model().predict_batch_with_aux)(params["target"], batch)
    np.testing.assert_array_equal(tokens, wanted)
    np.testing.assert_allclose(aux["scores"], theirs["scores"], atol=1e-3)
    np.testing.assert_array_equal(jax.jit(model.predict_batch)(twice, batch), wanted)
    np.testing.assert_array_equal(aux["accepted"], aux["drafted"])
    assert {leaf.shape[0] for leaf in jax.tree.leaves(aux)} == {len(tokens)}
    lengths = (aux["origins"] != Origin.NONE).sum(-1)
    np.testing.assert_array_equal(aux["target_calls"], -(-lengths // 5))
    ended = (np.asarray(tokens) == 1).any(-1)
    np.testing.assert_array_equal(aux["finish"], np.where(ended, Finish.EOS, Finish.LENGTH))


def test_samples_follow_the_key_and_not_the_generator(make, params, batch):
    model = make(temperature=1.0, rule="mixture", alpha=0.5, top_k=20)
    predict = jax.jit(model.predict_batch)
    first, again, other = (predict(params, batch, jax.random.PRNGKey(i)) for i in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    # InteractiveModel switches JAX to a generator whose numbers depend on the batch.
    with jax.default_prng_impl("unsafe_rbg"):
        rng = jax.random.PRNGKey(0)
        whole = predict(params, batch, rng)
        part = predict(params, {name: array[:4] for name, array in batch.items()}, rng)
    np.testing.assert_array_equal(whole[:4], part)


def test_settings_reach_the_decoder(make, params, batch):
    def tokens(**settings):
        return np.asarray(jax.jit(make(**settings).predict_batch)(params, batch))

    assert (tokens(rule=rules.get("draft_only")) != tokens()).any()
    assert (tokens(vocab_size=200) < 200).all()
    assert (tokens() >= 200).any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rule": "speculativ"}, "did you mean 'speculative'"),
        ({"rule": "token_v3", "alpha": 2.0}, "alpha = 2.0 is out of range"),
        ({"gamma": 0}, "gamma must be a whole number of at least 1, got 0"),
        ({"temperature": -1.0}, "temperature must be a number of at least 0"),
        ({"top_p": 0.0}, "top_p must be above 0"),
        ({"gamma": 2.5}, "gamma must be a whole number"),
        ({"verification": "blocks"}, "verification = 'blocks'"),
        ({"target": "flan_t5_xlarge"}, "did you mean 'flan_t5_large'"),
        ({"dtype": "float16"}, "dtype='float16'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_settings_are_refused_by_the_constructor(make, settings, message):
    with pytest.raises(ValueError, match=message):
        make(**settings)


def test_a_vocabulary_larger_than_the_embedding_is_refused(tiny):
    from spec_cascades.t5x import SpeculativeCascadeModel

    class Large:
        vocab_size = 385

    with pytest.raises(ValueError, match="385 ids, but the target's embedding only 384"):
        SpeculativeCascadeModel(tiny.config("target"), "prompt_lookup", Large(), Large())
