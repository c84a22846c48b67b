"""`spec-cascades generate`: one answer, with each token coloured by who wrote it."""

import argparse
import os
import sys

from spec_cascades.cli import arguments

_DESCRIPTION = """\
Answers texts with a method, shows which model wrote each token, and counts the calls.
Tokens are coloured in a terminal; elsewhere corrections stand in [ ] and bonus tokens in { }.
"""
# The swept value of the method.
_VALUES = (
    arguments.Flag("alpha", "X", arguments.real, "default: the rule's own"),
    arguments.Flag("threshold", "X", arguments.real, "of sequence_cascade"),
    arguments.Flag("fallback", "X", arguments.real, "of bild"),
)
# Options of the method; see `methods.parse`.
_OPTIONS = (
    arguments.Flag("verification", ("token", "block"), str, "default: token"),
    arguments.Flag("bonus", ("target", "rule"), str, "whose token ends a full block"),
    arguments.Flag("strict_prefix", "N", int, "verify so many first tokens losslessly"),
    arguments.Flag("beta", "X", str, "of lossy: a number or 'normalised'"),
    arguments.Flag("eps", "X", arguments.real, "of typical"),
    arguments.Flag("delta", "X", arguments.real, "of typical"),
    arguments.Flag("score", "NAME", str, "of sequence_cascade: mean, sum, min or quantile"),
    arguments.Flag("quantile", "X", arguments.real, "of sequence_cascade with --score=quantile"),
    arguments.Flag("rollback", "X", arguments.real, "of bild"),
    arguments.Flag("max_draft", "N", int, "of bild"),
)
_DECODING = (
    arguments.Flag("gamma", "N", int, "tokens a block (default: 5)", 5),
    arguments.Flag("temperature", "X", arguments.real, "default: 0, greedy", 0.0),
    arguments.Flag("top_k", "K", int, "sample among so many tokens (default: 0, all)", 0),
    arguments.Flag(
        "top_p", "P", arguments.real, "sample within this probability (default: 1, all)", 1.0
    ),
    arguments.Flag("vocabulary", "NAME", str, "of checkpoints that carry none (T5X, Orbax)"),
    arguments.Flag("seed", "N", int, "of sampling (default: 0)", 0),
    arguments.Flag("max_decode_length", "N", int, "most tokens (default: 128)", 128),
)
_METHOD = (
    arguments.Flag("target", "DIR", str, "checkpoint of the large model", "demo/target"),
    arguments.Flag(
        "drafter",
        "DIR",
        str,
        "checkpoint of the small model, or prompt_lookup: n-grams of the input",
        "demo/drafter",
    ),
    arguments.Flag(
        "rule",
        "NAME",
        str,
        "a deferral rule, or any other method of `evaluate` (default: token_v3)",
        "token_v3",
    ),
)


def add(commands) -> None:
    """Adds the command."""
    parser = arguments.add_command(
        commands,
        "generate",
        run,
        summary="answer a text, each token coloured by the model that wrote it",
        description=_DESCRIPTION,
        gin=False,
    )
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="inputs; lines of stdin if none")
    arguments.add_flags(parser, [*_METHOD, *_VALUES, *_DECODING, *_OPTIONS])


def run(options: argparse.Namespace) -> int:
    """Checks everything, decodes, prints."""
    from spec_cascades.cli import quiet

    quiet.import_tasks()
    from spec_cascades.serving import Generator
    from spec_cascades.text import coloring

    generator = Generator(
        describe(options),
        target=options.target,
        drafter=options.drafter,
        **{flag.name: getattr(options, flag.name) for flag in _DECODING},
    )
    colors = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    texts = options.texts or (line.rstrip("\n") for line in sys.stdin)
    style = "ansi" if colors else "markers"
    for number, text in enumerate(texts):
        answer = generator.answer(text, index=number)
        print(answer.render(style), flush=True)
        print(answer.summary(), file=sys.stderr)
    print(coloring.legend(style), file=sys.stderr)
    return 0


def describe(options: argparse.Namespace) -> dict:
    """The method as `methods.parse` reads it."""
    method = {"name": options.rule}
    given = {name: value for name, value in vars(options).items() if value is not None}
    method |= {f"{name}s": [given[name]] for name, *_ in _VALUES if name in given}
    method |= {name: given[name] for name, *_ in _OPTIONS if name in given}
    return method
