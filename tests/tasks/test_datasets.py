import itertools

import numpy as np
import pytest

from spec_cascades import tasks

LENGTHS = {"inputs": 48, "targets": 40}
DEMO = ("demo_translation", "demo_reasoning")


@pytest.fixture(scope="module", params=DEMO)
def test_split(request):
    return request.param, tasks.examples(request.param, "test")


def test_examples_are_whole_and_in_order(test_split):
    name, examples = test_split
    assert [e.index for e in examples] == list(range(512))
    vocabulary = tasks.vocabulary(name)
    for e in examples:
        assert e.inputs.dtype == np.int32 and e.inputs[-1] == e.targets[-1] == 1
        assert 1 not in e.inputs[:-1] and 0 not in e.inputs
        assert 2 not in e.inputs and 2 not in e.targets  # nothing unknown to the vocabulary
        assert vocabulary.decode([int(i) for i in e.inputs]) == e.inputs_text
        assert vocabulary.decode([int(i) for i in e.targets]) == e.targets_text


def test_examples_are_short(test_split):
    _, examples = test_split
    assert np.percentile([len(e.inputs) for e in examples], 90) <= 48
    assert max(len(e.inputs) for e in examples) <= 64
    assert np.percentile([len(e.targets) for e in examples], 95) <= 40
    assert max(len(e.targets) for e in examples) <= 64


def test_number_and_length_limits():
    whole = tasks.examples("demo_translation", num_examples=20)
    cut = tasks.examples("demo_translation", num_examples=20, lengths={"inputs": 12})
    assert len(whole) == len(cut) == 20
    for a, b in zip(whole, cut, strict=True):
        assert len(b.inputs) == min(12, len(a.inputs)) and b.inputs[-1] == 1
        assert b.inputs[:-1].tolist() == a.inputs[: len(b.inputs) - 1].tolist()
        assert b.targets.tolist() == a.targets.tolist()
        assert (a.inputs_text, a.targets_text) == (b.inputs_text, b.targets_text)


def batches(count, **options):
    # The training split takes half a minute to generate; the pipeline is the same.
    options = {"batch_size": 8, "lengths": LENGTHS, "split": "validation", **options}
    return list(itertools.islice(tasks.training_dataset("demo", **options), count))


def same(a, b):
    return all((a[key] == b[key]).all() for key in a)


def test_training_batches():
    (batch,) = batches(1)
    assert {key: value.shape for key, value in batch.items()} == {
        "encoder_input_tokens": (8, 48),
        "decoder_input_tokens": (8, 40),
        "decoder_target_tokens": (8, 40),
        "decoder_loss_weights": (8, 40),
    }
    targets, inputs = batch["decoder_target_tokens"], batch["decoder_input_tokens"]
    assert (inputs[:, 0] == 0).all()
    assert (inputs[:, 1:] == targets[:, :-1]).all()
    assert (batch["decoder_loss_weights"] == (targets != 0)).all()
    assert ((targets == 1).sum(axis=1) == 1).all()
    assert ((batch["encoder_input_tokens"] == 1).sum(axis=1) == 1).all()


def test_mixture_holds_both_tasks():
    first = np.concatenate([b["encoder_input_tokens"][:, 0] for b in batches(8)])
    counts = np.unique(first, return_counts=True)[1]
    assert len(counts) == 2 and counts.min() > 16  # of 64, at equal rates


def test_training_is_a_function_of_its_arguments():
    first, again = batches(6), batches(6)
    assert all(map(same, first, again))
    resumed = batches(2, start_step=4)
    assert same(resumed[0], first[4]) and same(resumed[1], first[5])
    assert not same(first[0], batches(1, seed=1)[0])


def rows(dataset):
    return {tuple(row) for batch in dataset for row in batch["encoder_input_tokens"]}


def test_shards_share_nothing():
    halves = [
        rows(batches(4, shard=(index, 2), lengths={"inputs": 64, "targets": 64}))
        for index in (0, 1)
    ]
    assert not halves[0] & halves[1]


def test_small_sets_are_reshuffled_every_epoch(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text("".join(f'{{"inputs": "{i:02d}", "targets": "x"}}\n' for i in range(20)))
    tasks.register_file_task("dataset_epochs", train=str(path), vocabulary="byte")
    epochs = itertools.islice(
        tasks.training_dataset(
            "dataset_epochs", batch_size=20, lengths={"inputs": 4, "targets": 4}
        ),
        3,
    )
    orders = [[tuple(r) for r in b["encoder_input_tokens"]] for b in epochs]
    assert all(len(set(order)) == 20 for order in orders)
    assert orders[0] != orders[1] != orders[2]


def test_validation_covers_the_split_once():
    found = list(tasks.validation_dataset("demo_reasoning", batch_size=200, lengths=LENGTHS))
    assert [len(b["encoder_input_tokens"]) for b in found] == [200, 200, 200]
    real = [b["decoder_loss_weights"].any(axis=1) for b in found]
    assert [r.sum() for r in real] == [200, 200, 112]
    assert not found[-1]["encoder_input_tokens"][112:].any()
    some = tasks.validation_dataset("demo_reasoning", batch_size=4, lengths=LENGTHS, num_examples=6)
    assert sum(b["decoder_loss_weights"].any(axis=1).sum() for b in some) == 6


def test_primary_metrics():
    assert tasks.primary_metric("demo_translation") == "bleu"
    assert tasks.primary_metric("demo_reasoning") == "accuracy"
    with pytest.raises(ValueError, match="'demo' is a mixture .*: choose among demo_"):
        tasks.primary_metric("demo")


def test_unknown_names():
    with pytest.raises(ValueError, match="unknown task 'demo_traslation': did you mean 'demo_tr"):
        tasks.examples("demo_traslation")
    with pytest.raises(ValueError, match="no split 'tets': it has"):
        tasks.examples("demo_reasoning", "tets")
    with pytest.raises(ValueError, match="num_examples is 0"):
        tasks.examples("demo_reasoning", num_examples=0)
    with pytest.raises(ValueError, match="length of 'targets' is None"):
        tasks.training_dataset("demo", batch_size=2, lengths={"inputs": 8})
