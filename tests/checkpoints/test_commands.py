"""The commands take any checkpoint where a model is named."""

import json

import pytest
import tiny

from spec_cascades import main


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A pair of ours, and the same as T5X and Hugging Face checkpoints."""
    home = tmp_path_factory.mktemp("commands")
    tiny.make_pair(home)
    for name in ("target", "drafter"):  # With the sentinels that fill a table of 384 rows.
        file = home / name / "model.json"
        description = json.loads(file.read_text())
        description["vocabulary"]["extra_ids"] = 125
        file.write_text(json.dumps(description))
    tiny.make_data(home / "data.jsonl", count=4)
    for src, dst, to in (("target", "t5x/checkpoint_5", "t5x"), ("drafter", "hf", "huggingface")):
        assert main.main(["convert", str(home / src), str(home / dst), f"--to={to}"]) == 0
    return home


def evaluate(home, target, drafter, *flags):
    output = home / f"output_{drafter}"
    code = main.main(
        [
            "evaluate",
            "--task=any_checkpoint",
            f"--test_file={home / 'data.jsonl'}",
            f"--target={home / target}",
            f"--drafter={home / drafter}",
            f"--output_dir={output}",
            "--methods=speculative",
            "--gammas=2",
            f"--max_decode_length={tiny.LENGTH}",
            "--batch_size=8",
            *flags,
        ]
    )
    assert code == 0
    (predictions,) = (output / "predictions").iterdir()
    return [json.loads(line) for line in predictions.read_text().splitlines()]


def test_other_formats_give_the_same_predictions(home):
    ours = evaluate(home, "target", "drafter")
    assert len(ours) == 4
    assert evaluate(home, "t5x", "hf", "--vocabulary=byte") == ours


def test_a_vocabulary_is_asked_for_in_one_line(home, capsys):
    flags = [f"--target={home / 't5x'}", f"--drafter={home / 'hf'}"]
    assert main.main(["generate", *flags, "text"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ") and "checkpoint_5 carries no vocabulary; name one" in error
    data = [f"--test_file={home / 'data.jsonl'}", "--task=any_checkpoint"]
    assert main.main(["evaluate", *data, *flags, f"--output_dir={home / 'o'}"]) == 2
    assert "carries no vocabulary; name one with" in capsys.readouterr().err
