"""`spec-cascades evaluate`: the sweep."""

import argparse
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
# Flags that bind an argument of the job.
_FLAGS = (
    "output_dir",
    "task",
    "target",
    "drafter",
    "methods",
    "alphas",
    "gammas",
    "temperatures",
    "seeds",
    "top_k",
    "top_p",
    "split",
    "num_examples",
    "batch_size",
    "input_length",
    "max_decode_length",
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
    parser.add_argument(
        "--output_dir",
        metavar="DIR",
        help="folder for results, picture and report (default: output/TASK)",
    )
    parser.add_argument("--task", metavar="NAME", help="SeqIO task or mixture")
    parser.add_argument("--target", metavar="DIR", help="folder of the large model, or demo/target")
    parser.add_argument(
        "--drafter", metavar="DIR", help="folder of the small model, or demo/drafter"
    )
    parser.add_argument(
        "--methods", metavar="NAME,…", type=arguments.words, help="names, separated by commas"
    )
    parser.add_argument(
        "--alphas",
        metavar="X,…",
        type=arguments.numbers(float),
        help="for every rule that takes alpha (default: each rule's own grid)",
    )
    parser.add_argument("--gammas", metavar="N,…", type=arguments.numbers(int), help="block sizes")
    parser.add_argument(
        "--temperatures", metavar="X,…", type=arguments.numbers(float), help="0 is greedy"
    )
    parser.add_argument(
        "--seeds", metavar="N,…", type=arguments.numbers(int), help="seeds of sampling"
    )
    parser.add_argument(
        "--top_k", metavar="K", type=int, help="sample among so many tokens; 0: all"
    )
    parser.add_argument(
        "--top_p", metavar="P", type=float, help="sample within this probability; 1: all"
    )
    parser.add_argument("--split", metavar="NAME", help="split of the task (default: test)")
    parser.add_argument("--num_examples", metavar="N", type=int, help="the first so many examples")
    parser.add_argument("--batch_size", metavar="N", type=int, help="rows decoded together")
    parser.add_argument(
        "--input_length", metavar="N", type=int, help="cut inputs to so many tokens"
    )
    parser.add_argument(
        "--max_decode_length", metavar="N", type=int, help="most tokens of an output"
    )
    arguments.add_file_task(parser)


def run(options: argparse.Namespace) -> int:
    """Runs the sweep, prints its table and where the picture is."""
    from spec_cascades import evaluation, gin_utils, report

    lines = arguments.bindings(options, "evaluate", _FLAGS)
    arguments.parse_gin(options, _gin_files(options), lines)
    provenance = report.Provenance(
        command=shlex.join(["spec-cascades", *sys.argv[1:]]), config=gin_utils.operative_config
    )
    points = gin_utils.call("evaluate", flags=_FLAGS, provenance=provenance)
    bound = gin_utils.bound("evaluate")
    folder = bound.get("output_dir") or evaluation.default_output_dir(bound["task"])
    print(report.table(points))
    print(f"\npicture: {folder}/tradeoff.png\nreport:  {folder}/report.html")
    return 0


def _gin_files(options: argparse.Namespace) -> list[str]:
    """The demo's file where nothing else says what to evaluate."""
    own = options.gin_file or any((options.task, options.target, options.drafter))
    return options.gin_file if own else ["demo.gin"]
