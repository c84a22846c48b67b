"""The sweep, on tiny random models: what it writes, and that it survives."""

import json
import shutil

import jax
import pytest
import tiny

from spec_cascades import checkpoints, partitioning, records
from spec_cascades.checkpoints import digests, pair
from spec_cascades.evaluation import run as evaluation
from spec_cascades.evaluation import store, summary

METHODS = [
    "target",
    "drafter",
    {"name": "speculative"},
    {"name": "token_v3", "alphas": [0.2, 0.9]},
]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    from spec_cascades import tasks

    home = tmp_path_factory.mktemp("evaluation")
    tiny.make_pair(home)
    tiny.make_data(home / "data.jsonl")
    tasks.register_file_task("tiny_task", test=home / "data.jsonl", vocabulary="byte")
    return home


@pytest.fixture(scope="module", autouse=True)
def compilation_cache(tmp_path_factory):
    """Equal programs of different tests are compiled once."""
    old = (
        jax.config.jax_compilation_cache_dir,
        jax.config.jax_persistent_cache_min_compile_time_secs,
    )
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.mktemp("cache")))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    yield
    jax.config.update("jax_compilation_cache_dir", old[0])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", old[1])


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
    make_mesh = partitioning.make_mesh
    monkeypatch.setattr(partitioning, "make_mesh", lambda n: make_mesh(n, jax.devices()[:1]))


def run(home, output, **settings):
    arguments = {
        "task": "tiny_task",
        "methods": METHODS,
        "gammas": 2,
        "temperatures": (0.0, 1.0),
        "seeds": (0, 1),
        "batch_size": 4,
        "input_buckets": (32,),
        "max_decode_length": tiny.LENGTH,
        "latency_batches": 1,
    }
    return evaluation.evaluate(
        output_dir=output,
        **{"target": home / "target", "drafter": home / "drafter"} | arguments | settings,
    )


@pytest.fixture(scope="module")
def finished(home, tmp_path_factory):
    """A finished sweep: (folder, points)."""
    output = tmp_path_factory.mktemp("output") / "sweep"
    make_mesh = partitioning.make_mesh
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitioning, "make_mesh", lambda n: make_mesh(n, jax.devices()[:1]))
        return output, run(home, output)


def test_one_line_for_each_point(finished):
    output, points = finished
    lines = [json.loads(line) for line in (output / "results.jsonl").read_text().splitlines()]
    # T = 0 runs the first seed alone.
    assert len(points) == len(lines) == 5 + 5 * 2
    assert {line["id"] for line in lines} == {point["id"] for point in points}
    assert len({line["id"] for line in lines}) == len(lines)


def test_settings_are_echoed_and_figures_add_up(finished):
    _, points = finished
    for point in points:
        assert point["task"] == "tiny_task"
        assert point["rows"] == 10
        assert point["emitted"] == point["accepted"] + point["corrected"] + point["bonus_tokens"]
        assert point["relative_latency"] > 0 and point["wall_clock_s"] > 0
        assert 0 <= point["quality"] <= 100 and point["quality_metric"] == "bleu"
    rule = [point for point in points if point["method"] == "token_v3"]
    assert {point["alpha"] for point in rule} == {0.2, 0.9}
    assert {point["gamma"] for point in rule} == {2}
    assert {point["bonus"] for point in rule} == {"target"}
    assert {point["verification"] for point in rule} == {"token"}
    assert {(point["temperature"], point["seed"]) for point in rule} == {(0, 0), (1, 0), (1, 1)}
    assert all(point["predicted_speedup"] > 0 for point in rule)


def test_predictions_are_in_input_order_and_lossless_at_zero(finished):
    output, points = finished
    texts = {}
    for point in points:
        lines = records.read_lines(output / "predictions" / f"{point['id']}.jsonl")
        assert [line["index"] for line in lines] == list(range(10))
        assert [line["target"] for line in lines] == [f"it is {i}" for i in range(10)]
        assert sum(len(line["tokens"]) for line in lines) == point["emitted"]
        assert all(len(line["tokens"]) == len(line["origins"]) for line in lines)
        if point["temperature"] == 0:
            texts[point["label"], point.get("alpha")] = [line["tokens"] for line in lines]
    assert texts["speculative", None] == texts["target", None]
    assert texts["drafter", None] != texts["target", None]
    assert texts["token_v3", 0.9] != texts["target", None]


def test_all_files_are_there_and_stand_alone(finished):
    output, _ = finished
    page = (output / "report.html").read_text()
    assert "<svg" in page and 'class="draft"' in page and "Why speculation pays" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace(
        "https://matplotlib.org", ""
    ).replace("http://purl.org", "").replace("http://creativecommons.org", "")
    assert (output / "tradeoff.png").read_bytes().startswith(b"\x89PNG")
    assert (output / "tradeoff.svg").stat().st_size > 1000
    rows = (output / "summary.csv").read_text().splitlines()
    assert len(rows) == 1 + 10  # seeds are averaged


def test_finished_points_are_kept_and_new_ones_added(home, finished, monkeypatch):
    output, points = finished
    before = (output / "results.jsonl").read_text()
    monkeypatch.setattr(pair, "load_models", lambda *a, **k: pytest.fail("nothing is to be run"))
    run(home, output)
    assert (output / "results.jsonl").read_text() == before
    monkeypatch.undo()


@pytest.mark.parametrize("killed_after", [0, 2])
def test_resumes_where_it_was_stopped(home, tmp_path, monkeypatch, killed_after):
    settings = {"methods": ["target", {"name": "token_v3", "alphas": [0.2, 0.5, 0.9]}]}
    settings |= {"temperatures": 0.0, "latency_batches": 1}
    add, calls = store.Folder.add, []

    def stop(self, *arguments):
        if len(calls) == killed_after:
            raise KeyboardInterrupt
        calls.append(arguments[0])
        add(self, *arguments)

    monkeypatch.setattr(store.Folder, "add", stop)
    with pytest.raises(KeyboardInterrupt):
        run(home, tmp_path, **settings)
    monkeypatch.setattr(store.Folder, "add", add)
    first = (tmp_path / "results.jsonl").read_text() if killed_after else ""
    run(home, tmp_path, **settings)
    whole = (tmp_path / "results.jsonl").read_text()
    assert whole.startswith(first) and len(whole.splitlines()) == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"methods": ["tokn_v3"]}, "did you mean 'token_v3'"),
        ({"methods": []}, "methods is empty"),
        ({"methods": ["target", "target"]}, "two methods are called 'target'"),
        ({"methods": ["token_v3"], "alphas": [2.0]}, "alpha = 2.0 is out of range"),
        ({"gammas": 0}, "gamma must be a whole number of at least 1"),
        ({"temperatures": -0.5}, "temperature must be a number of at least 0"),
        ({"temperatures": ()}, "temperatures is empty"),
        ({"seeds": (-1,)}, "a seed must be"),
        ({"methods": ["bild"], "temperatures": 1.0}, "bild is greedy"),
        ({"top_p": 0.0}, "top_p must be above 0"),
        ({"top_k": -1}, "top_k must be"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"task": "tiny_tsk"}, "did you mean 'tiny_task'"),
        ({"split": "train"}, "no split 'train'"),
        ({"model_parallelism": 3}, "model_parallelism=3"),
    ],
)
def test_errors_come_before_any_compilation(home, tmp_path, monkeypatch, settings, message):
    monkeypatch.setattr(jax, "jit", lambda *a, **k: pytest.fail("compiled"))
    with pytest.raises(ValueError, match=message):
        run(home, tmp_path / "new", **settings)


def test_another_experiment_is_refused(home, finished):
    output, _ = finished
    with pytest.raises(ValueError, match="max_decode_length is 5 now and was 12 there"):
        run(home, output, max_decode_length=5)


def halved(src, dst):
    """Writes a Hugging Face folder of the same sizes with other numbers in it."""
    from safetensors import numpy as safetensors

    shutil.copytree(src, dst)
    tensors = safetensors.load_file(dst / "model.safetensors")
    safetensors.save_file({k: x * 0.5 for k, x in tensors.items()}, dst / "model.safetensors")


def test_another_model_of_the_same_sizes_is_another_experiment(home, finished, tmp_path):
    output, _ = finished
    checkpoints.convert(home / "target", tmp_path / "a", to="huggingface")
    halved(tmp_path / "a", tmp_path / "b")
    shutil.copytree(tmp_path / "a", tmp_path / "moved")
    a, b, moved = (digests.of_checkpoint(tmp_path / name) for name in ("a", "b", "moved"))
    assert a == moved != b
    shutil.copytree(output, tmp_path / "output")
    with pytest.raises(ValueError, match="another experiment: target is"):
        run(home, tmp_path / "output", target=tmp_path / "b")


@pytest.mark.parametrize("changed", [0, 640, 999])
def test_large_files_are_digested_all_over(tmp_path, monkeypatch, changed):
    monkeypatch.setattr(digests, "_BLOCK", 16)
    monkeypatch.setattr(digests, "_BLOCKS", 25)
    content = bytearray(1000)
    (tmp_path / "model").write_bytes(content)
    before = digests.of_checkpoint(tmp_path / "model")
    content[changed] = 1
    (tmp_path / "model").write_bytes(content)
    assert digests.of_checkpoint(tmp_path / "model") != before


def test_another_vocabulary_of_a_checkpoint_without_one_is_another_experiment(home, tmp_path):
    from seqio import ByteVocabulary

    checkpoints.convert(home / "target", tmp_path / "orbax", to="orbax")
    settings = dict.fromkeys(evaluation._SHARED) | {"drafter": "prompt_lookup"}
    settings["target"] = tmp_path / "orbax"
    plain, with_sentinels = (
        evaluation._fingerprint(settings | {"vocabulary": vocabulary}, {})
        for vocabulary in (ByteVocabulary(extra_ids=0), ByteVocabulary(extra_ids=125))
    )
    assert (plain.pop("vocab_size"), with_sentinels.pop("vocab_size")) == (259, 384)
    assert plain == with_sentinels


def test_seeds_are_averaged_with_their_spread(finished):
    _, points = finished
    rows = summary.rows(points)
    sampled = [row for row in rows if row["temperature"] == 1]
    assert all(row.seeds == 2 for row in sampled)
    assert all(row.spread is not None and row.error >= 0 for row in sampled)
    assert all(row.seeds == 1 and row.spread is None for row in rows if row not in sampled)
