"""`spec-cascades generate`: one answer, with each token coloured by who wrote it."""

import argparse
import os
import sys

from spec_cascades.cli import arguments

_DESCRIPTION = """\
Answers texts with a method, shows which model wrote each token, and counts the calls.
Tokens are coloured in a terminal; elsewhere corrections stand in [ ] and bonus tokens in { }.
"""
# Flags that become options of the method; see `methods.parse`.
_OPTIONS = ("verification", "bonus", "strict_prefix", "beta", "eps", "delta", "score", "rollback")


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
    parser.add_argument(
        "--target", metavar="DIR", default="demo/target", help="folder of the large model"
    )
    parser.add_argument(
        "--drafter",
        metavar="DIR",
        default="demo/drafter",
        help="folder of the small model, or prompt_lookup: n-grams of the input",
    )
    parser.add_argument(
        "--rule",
        metavar="NAME",
        default="token_v3",
        help="a deferral rule, or any other method of `evaluate` (default: token_v3)",
    )
    parser.add_argument("--alpha", metavar="X", type=float, help="default: the rule's own")
    parser.add_argument("--threshold", metavar="X", type=float, help="of sequence_cascade")
    parser.add_argument("--fallback", metavar="X", type=float, help="of bild")
    parser.add_argument(
        "--gamma", metavar="N", type=int, default=5, help="tokens a block (default: 5)"
    )
    parser.add_argument(
        "--temperature", metavar="X", type=float, default=0.0, help="default: 0, greedy"
    )
    parser.add_argument(
        "--top_k", metavar="K", type=int, default=0, help="sample among so many tokens"
    )
    parser.add_argument(
        "--top_p", metavar="P", type=float, default=1.0, help="sample within this probability"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of sampling")
    parser.add_argument(
        "--max_decode_length", metavar="N", type=int, default=128, help="most tokens"
    )
    parser.add_argument("--verification", choices=("token", "block"), help="default: token")
    parser.add_argument("--bonus", choices=("target", "rule"), help="whose token ends a full block")
    parser.add_argument(
        "--strict_prefix", metavar="N", type=int, help="verify so many first tokens losslessly"
    )
    parser.add_argument("--beta", metavar="X", help="of lossy: a number or 'normalised'")
    parser.add_argument("--eps", metavar="X", type=float, help="of typical")
    parser.add_argument("--delta", metavar="X", type=float, help="of typical")
    parser.add_argument(
        "--score", metavar="NAME", help="of sequence_cascade: mean, sum, min or quantile"
    )
    parser.add_argument("--rollback", metavar="X", type=float, help="of bild")


def run(options: argparse.Namespace) -> int:
    """Checks everything, decodes, prints."""
    from spec_cascades.cli import quiet

    quiet.import_tasks()
    from spec_cascades import coloring, generation

    lookup = options.drafter == "prompt_lookup"
    generator = generation.Generator(
        describe(options),
        target=options.target,
        # Prompt look-up needs no second model; the target stands in for the unused one.
        drafter=options.target if lookup else options.drafter,
        gamma=options.gamma,
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        seed=options.seed,
        max_decode_length=options.max_decode_length,
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
    for name in ("alpha", "threshold", "fallback"):
        if getattr(options, name) is not None:
            method[f"{name}s"] = [getattr(options, name)]
    for name in _OPTIONS:
        if getattr(options, name) is not None:
            method[name] = getattr(options, name)
    if options.drafter == "prompt_lookup":
        method["drafter"] = "prompt_lookup"
    return method
