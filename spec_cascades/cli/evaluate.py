"""`spec-cascades evaluate`: the sweep."""

import argparse
import itertools
import shlex
import sys

from spec_cascades.cli import arguments

_DESCRIPTION = """\
Evaluates speculative cascades, cascades and speculative decoding of two models on SeqIO tasks,
and draws quality against cost. Without arguments: the embedded demo.

A sweep runs methods x gammas x temperatures x seeds. Methods are the rules that
`spec-cascades rules` lists, and: target, drafter, sequence_cascade, token_cascade:<rule>, bild.
Killed and started again, it keeps every finished point.
"""
_words, _integers, _floats = (
    arguments.words,
    arguments.numbers(int),
    arguments.numbers(arguments.real),
)
# Each binds an argument of the job. Defaults are those of `evaluation.evaluate`; the demo's are in
# gin/demo.gin.
_FLAGS = tuple(
    itertools.starmap(
        arguments.Flag,
        [
            ("output_dir", "DIR", str, "folder for results and report (default: output/TASK)"),
            ("task", "NAME", str, "SeqIO task or mixture"),
            ("target", "DIR", str, "checkpoint of the large model, or demo/target"),
            ("drafter", "DIR", str, "that of the small model, demo/drafter, or prompt_lookup"),
            (
                "methods",
                "NAME,…",
                _words,
                "names, separated by commas (default: target,drafter,speculative,lossy,token_v3,"
                "opt)",
            ),
            ("alphas", "X,…", _floats, "of every rule that takes alpha (default: its own grid)"),
            ("gammas", "N,…", _integers, "block sizes (default: 5)"),
            ("temperatures", "X,…", _floats, "0 is greedy (default: 0)"),
            ("seeds", "N,…", _integers, "seeds of sampling (default: 0)"),
            ("top_k", "K", int, "sample among so many tokens (default: 0, all)"),
            ("top_p", "P", arguments.real, "sample within this probability (default: 1, all)"),
            ("split", "NAME", str, "split of the task (default: test)"),
            ("num_examples", "N", int, "the first so many examples (default: all)"),
            ("batch_size", "N", int, "rows decoded together (default: 16)"),
            ("input_length", "N", int, "cut inputs to so many tokens (default: cut nothing)"),
            ("max_decode_length", "N", int, "most tokens of an output (default: 128)"),
        ],
    )
)


def add(commands) -> None:
    """Adds the command."""
    parser = arguments.add_command(
        commands,
        "evaluate",
        run,
        summary="sweep methods on tasks: quality against cost",
        description=_DESCRIPTION,
        gin=True,
    )
    arguments.add_flags(parser, _FLAGS)
    arguments.add_file_task(parser)


def run(options: argparse.Namespace) -> int:
    """Runs the sweep, prints its table and where the picture is."""
    from spec_cascades import evaluation
    from spec_cascades.cli import gin_utils
    from spec_cascades.evaluation import report

    lines = arguments.bindings(options, "evaluate", _FLAGS)
    arguments.prepare(options, _gin_files(options), lines, _FLAGS)
    provenance = report.Provenance(
        command=shlex.join(["spec-cascades", *sys.argv[1:]]), config=gin_utils.operative_config
    )
    points = gin_utils.call("evaluate", provenance=provenance)
    bound = gin_utils.bound("evaluate")
    folder = bound.get("output_dir") or evaluation.default_output_dir(bound["task"])
    print(report.table(points))
    print(f"\npicture: {folder}/tradeoff.png\nreport:  {folder}/report.html")
    return 0


def _gin_files(options: argparse.Namespace) -> list[str]:
    """The demo's file where nothing else says what to evaluate."""
    own = options.gin_file or any((options.task, options.target, options.drafter))
    return options.gin_file if own else ["demo.gin"]
