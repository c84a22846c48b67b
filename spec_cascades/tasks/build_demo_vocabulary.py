"""Trains the demo's vocabulary: `python -m spec_cascades.tasks.build_demo_vocabulary [OUTPUT]`.

The text is the first training examples of both demo tasks, so the result is the same wherever it is
run. A model is tied to its vocabulary: with a new one, train the demo's models anew. (The shipped
file is older than the last corrections of the grammar, and so differs in a few rare pieces.)
"""

import itertools
import os
import sys

from spec_cascades.tasks import reasoning, translation
from spec_cascades.text import vocabularies

SIZE = 1200
_EXAMPLES = 12_000


def lines() -> list[str]:
    """The training text: inputs and targets of both tasks."""
    tasks = (translation, reasoning)
    pairs = (pair for task in tasks for pair in task.examples("train", 0, _EXAMPLES))
    return list(itertools.chain.from_iterable(pairs))


def main(arguments: list[str]) -> None:
    """Writes the vocabulary to the given path, by default the one that is shipped."""
    default = os.path.join(os.path.dirname(vocabularies.__file__), "data", "demo.model")
    path = arguments[0] if arguments else default
    vocabulary = vocabularies.train_sentencepiece(lines(), path, SIZE, model_type="bpe")
    print(f"{path}: {vocabulary.vocab_size} pieces, {os.path.getsize(path):,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
