"""Trains the joint vocabulary of the Multi30k models on the training text.

    python benchmarks/multi30k/make_vocabulary.py DATA OUTPUT

DATA is the folder with train.en.gz and train.de.gz, OUTPUT the file to write. About 10 seconds.
"""

import gzip
import pathlib
import sys

from spec_cascades.text import vocabularies

PIECES = 4096


def main(data: str, output: str) -> None:
    lines = []
    for language in ("en", "de"):
        with gzip.open(pathlib.Path(data) / f"train.{language}.gz", "rb") as file:
            lines += [line.decode("utf-8").rstrip("\n") for line in file]
    vocabularies.train_sentencepiece(lines, output, PIECES)
    print(f"{output}: {PIECES} pieces from {len(lines)} lines")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
