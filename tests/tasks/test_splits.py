import hashlib
import os
import subprocess
import sys

import pytest

from spec_cascades.tasks import reasoning, splits, translation

TASKS = (translation, reasoning)

DIGEST = """
import hashlib, sys
from spec_cascades.tasks import reasoning, translation
digest = hashlib.sha256()
for task in (translation, reasoning):
    for split, last in (("train", 200), ("validation", 100), ("test", 100)):
        digest.update(repr(task.examples(split, 0, last)).encode())
print(digest.hexdigest())
"""


@pytest.mark.parametrize("task", TASKS)
def test_splits_are_disjoint(task):
    texts = {
        split: [text for text, _ in task.examples(split, 0, last)]
        for split, last in (("train", 3000), ("validation", 512), ("test", 512))
    }
    assert len(set(texts["validation"])) == len(set(texts["test"])) == 512
    assert not set(texts["train"]) & set(texts["validation"])
    assert not set(texts["train"]) & set(texts["test"])
    assert not set(texts["validation"]) & set(texts["test"])
    # Not by luck: the text itself says which split it may be in, for every example there is.
    for split, found in texts.items():
        bare = [text.removeprefix(task.PREFIX) for text in found]
        assert {splits.split_of(text) for text in bare} == {split}


@pytest.mark.parametrize("task", TASKS)
def test_an_example_is_a_function_of_its_index(task):
    assert task.examples("train", 5, 9) == task.examples("train", 0, 12)[5:9]
    assert task.examples("test", 5, 9) == task.examples("test")[5:9]
    with pytest.raises(IndexError, match="has 512 examples"):
        task.examples("test", 0, 513)


def test_examples_are_the_same_in_every_process():
    digest = hashlib.sha256()
    for task in TASKS:
        for split, last in (("train", 200), ("validation", 100), ("test", 100)):
            digest.update(repr(task.examples(split, 0, last)).encode())
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "TF_CPP_MIN_LOG_LEVEL": "3"}
    found = subprocess.run(
        [sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.split()[-1] == digest.hexdigest()


def test_shares_of_the_splits():
    counts = dict.fromkeys(("train", "validation", "test"), 0)
    for i in range(4000):
        counts[splits.split_of(f"text {i}")] += 1
    assert 0.05 < counts["test"] / 4000 < 0.075
    assert 0.05 < counts["validation"] / 4000 < 0.075
