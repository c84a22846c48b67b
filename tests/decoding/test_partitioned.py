"""The loop on a mesh of eight virtual devices, and what one iteration of it compiles to."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toys

from spec_cascades import decoding, partitioning, rules
from spec_cascades.decoding import ModelDrafter, PairParams, Prompt
from spec_cascades.models.t5 import T5, T5Config
from spec_cascades.testing import ToyModel

BATCH = 8
# (What the compiler makes of a loop is looked at with its usual options.)
_decode = toys.decode


def tiny_t5(layers, vocab_size=16, **settings):
    return T5(
        T5Config(
            vocab_size=vocab_size,
            emb_dim=16,
            num_heads=4,
            head_dim=4,
            mlp_dim=32,
            num_encoder_layers=layers,
            num_decoder_layers=layers,
            **settings,
        )
    )


@pytest.fixture(scope="module")
def t5_pair():
    target, drafter = tiny_t5(2), tiny_t5(1, mlp_activations=("relu",))
    params = []
    for seed, model in enumerate((target, drafter)):
        tree = model.init(jax.random.key(seed))
        # Larger logits than a fresh model has, so that argmax ties are out of the question.
        tree["decoder"]["logits_dense"]["kernel"] *= 4.0
        params.append(tree)
    return target, drafter, params


def needs_eight_devices():
    if len(jax.devices()) < 8:
        pytest.skip("needs 8 devices: see conftest.py")


def on_mesh(decoder, params, models, inputs, keys, **settings):
    """Decodes with parameters by their logical axes and rows over `data`, on a (2, 4) mesh."""
    mesh = partitioning.make_mesh(model_parallelism=4)
    assert dict(mesh.shape) == {"data": 2, "model": 4}
    sharded = [
        partitioning.shard_params(tree, model, mesh)
        for tree, model in zip(params, models, strict=True)
    ]
    rows = partitioning.batch_sharding(mesh)
    per_row = {
        name: jax.device_put(value, rows) if getattr(value, "ndim", 0) else value
        for name, value in settings.items()
    }
    with jax.set_mesh(mesh):
        return _decode(
            decoder,
            PairParams(*sharded),
            jax.device_put(Prompt.padded(inputs), rows),
            jax.device_put(keys, rows),
            **per_row,
        )


def assert_equal_results(got, wanted):
    for name in ("tokens", "lengths", "finish", "origins"):
        np.testing.assert_array_equal(getattr(got, name), getattr(wanted, name), name)
    jax.tree.map(np.testing.assert_array_equal, got.statistics, wanted.statistics)
    if wanted.log_probs is not None:
        np.testing.assert_allclose(got.log_probs, wanted.log_probs, atol=1e-4)


SETTINGS = {
    "alpha": jnp.asarray(np.resize([0.2, 0.6], BATCH), jnp.float32),
    "temperature": jnp.asarray(np.resize([0.0, 1.0, 0.5], BATCH), jnp.float32),
    "row_mask": jnp.arange(BATCH) != 5,
}


@pytest.mark.parametrize("verification", ["token", "block"])
def test_toy_models_on_a_mesh(verification):
    needs_eight_devices()
    toy = ToyModel(8)
    params = toys.tables(0, vocab=8, model=toy)
    # `unsharded` is no axis of the partitioning rules: the toy's table is replicated by hand.
    mesh = partitioning.make_mesh(model_parallelism=4)
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    decoder = decoding.SpeculativeDecoder(
        toy,
        ModelDrafter(toy),
        rules.get("token_v3"),
        toys.config(8),
        gamma=3,
        verification=verification,
        bonus="rule",
    )
    inputs, keys = toys.ragged_inputs(BATCH), toys.keys(BATCH)
    params, prompt = PairParams(*params), Prompt.padded(inputs)
    wanted = _decode(decoder, params, prompt, keys, **SETTINGS)
    rows = partitioning.batch_sharding(mesh)
    with jax.set_mesh(mesh):
        got = _decode(
            decoder,
            jax.device_put(params, everywhere),
            jax.device_put(prompt, rows),
            jax.device_put(keys, rows),
            **jax.device_put(SETTINGS, rows),
        )
    assert_equal_results(got, wanted)
    assert wanted.statistics.corrected.sum() > 0


def test_t5_on_a_mesh(t5_pair):
    needs_eight_devices()
    target, drafter, params = t5_pair
    decoder = decoding.SpeculativeDecoder(
        target,
        ModelDrafter(drafter),
        rules.get("token_v3"),
        toys.config(8, return_log_probs=True),
        gamma=3,
    )
    inputs, keys = toys.ragged_inputs(BATCH) % 16, toys.keys(BATCH)
    wanted = _decode(decoder, PairParams(*params), Prompt.padded(inputs), keys, **SETTINGS)
    got = on_mesh(decoder, params, (target, drafter), inputs, keys, **SETTINGS)
    assert_equal_results(got, wanted)
    assert len(got.tokens.sharding.device_set) == 8


# ------------------------------------------------------------------------------------------------
# What the loop compiles to
# ------------------------------------------------------------------------------------------------


def computations(text):
    """Name -> lines, of a compiled module's text."""
    found, name = {}, None
    for line in text.splitlines():
        head = re.match(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$", line)
        if head:
            name = head.group(1)
            found[name] = []
        elif name:
            found[name].append(line)
    return found


def called_in_loops(text):
    """Lines of all computations that a while loop of the module runs."""
    every = computations(text)
    todo = re.findall(r"body=%?([\w.\-]+)", text)
    assert todo, "no loop in the module"
    seen = set()
    while todo:
        name = todo.pop()
        if name in seen or name not in every:
            continue
        seen.add(name)
        for line in every[name]:
            todo += re.findall(r"(?:calls|to_apply|body|condition)=%?([\w.\-]+)", line)
            for group in re.findall(r"branch_computations=\{([^}]*)\}", line):
                todo += [part.strip().lstrip("%") for part in group.split(",")]
    return [line for name in seen for line in every[name]]


def copies(lines, *shapes):
    """Lines that copy an array of one of these shapes, in whatever order of dimensions."""
    wanted = {tuple(sorted(shape)) for shape in shapes}
    found = []
    for line in lines:
        match = re.search(r"= \w+\[([\d,]+)\]\S* copy\(", line)
        if match and tuple(sorted(int(n) for n in match.group(1).split(","))) in wanted:
            found.append(line.strip()[:160])
    return found


def test_the_search_for_copies_finds_one():
    def loop(x):
        # Both the old and the new array are needed: XLA has to copy.
        def body(_, state):
            x, kept = state
            return x.at[0].add(1.0), jnp.where(x[0] > 3, x, kept)

        return jax.lax.fori_loop(0, 5, body, (x, x + 1))

    text = jax.jit(loop).lower(jnp.zeros((53, 4))).compile().as_text()
    assert copies(called_in_loops(text), (53, 4))


@pytest.mark.parametrize("which", ["speculative", "block", "autoregressive"])
def test_no_iteration_copies_a_cache(t5_pair, which):
    """Rolling back costs nothing: the caches are updated in place."""
    target, drafter, params = t5_pair
    # The caches' length is 40, or 38: no other dimension is. A block has 3 queries, unlike the 4
    # heads of size 4, so that a bias on the caches does not look like one of them.
    gamma, cap = 2, 37
    config = toys.config(cap)
    prompt, keys = Prompt.padded(toys.ragged_inputs(2) % 16), toys.keys(2)
    if which == "autoregressive":
        decoder = decoding.AutoregressiveDecoder(target, config)
        length = cap + 1
    else:
        decoder = decoding.SpeculativeDecoder(
            target,
            ModelDrafter(drafter),
            rules.get("token_v3"),
            config,
            gamma,
            verification="block" if which == "block" else "token",
        )
        length = cap + gamma + 1
    compiled = (
        jax.jit(decoding.decode, static_argnums=0)
        .lower(decoder, PairParams(*params), prompt, keys, alpha=0.3, temperature=1.0)
        .compile()
    )
    lines = called_in_loops(compiled.as_text())
    heads, size = target.config.num_heads, target.config.head_dim
    shapes = (f"[2,{length},{heads * size}]", f"[2,{heads * size},{length}]")
    assert any(shape in line for line in lines for shape in shapes), "the caches are in the loop"
    assert not copies(lines, (2, length, heads * size), (2, length, heads, size))


def test_memory_of_the_loop_does_not_grow_with_length_times_vocabulary():
    """Nothing of size batch x length x V: temporaries grow with the caches alone."""
    batch, vocab = 4, 4096
    model = tiny_t5(1, vocab_size=vocab)
    params = jax.eval_shape(model.init, jax.random.key(0))

    def temporaries(cap):
        decoder = decoding.SpeculativeDecoder(
            model, ModelDrafter(model), rules.get("token_v3"), toys.config(cap), gamma=2
        )
        lowered = jax.jit(decoding.decode, static_argnums=0).lower(
            decoder,
            PairParams(params, params),
            Prompt.padded(toys.ragged_inputs(batch)),
            toys.keys(batch),
            alpha=0.3,
            temperature=1.0,
        )
        return lowered.compile().memory_analysis().temp_size_in_bytes

    grown = temporaries(264) - temporaries(64)
    assert 0 < grown < 200 * batch * vocab * 4 / 8
