"""Scores the shipped demo pair on the whole test split, and writes spec_cascades/demo/scores.json.

    python benchmarks/demo/score.py

Run it after replacing the weights; tests/test_demo_models.py holds them to these figures.
"""

import json
import pathlib
import tempfile

import spec_cascades
from spec_cascades import evaluation

SCORES = pathlib.Path(spec_cascades.__file__).parent / "demo" / "scores.json"


def scores() -> dict[str, dict[str, float]]:
    """Greedy quality of both models: {task: {"metric": …, "target": …, "drafter": …}}."""
    with tempfile.TemporaryDirectory() as output_dir:
        points = evaluation.evaluate(
            output_dir=output_dir,
            task="demo",
            target="demo/target",
            drafter="demo/drafter",
            methods=("target", "drafter"),
            batch_size=64,
            input_buckets=(64,),
            max_decode_length=64,
            latency_batches=1,
        )
    table = {}
    for point in points:
        row = table.setdefault(point["task"], {"metric": point["quality_metric"]})
        row[point["method"]] = round(point["quality"], 2)
    return table


if __name__ == "__main__":
    SCORES.write_text(json.dumps(scores(), indent=1) + "\n", encoding="utf-8")
    print(SCORES.read_text())
