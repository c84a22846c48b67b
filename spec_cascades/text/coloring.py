"""Generated text with each token marked by who wrote it: for terminals, plain text and HTML."""

import html
from collections.abc import Sequence
from typing import Any

from spec_cascades.decoding import Origin

Span = tuple[str, str]  # (text, origin name)

NAMES = {
    int(Origin.DRAFT): "draft",
    int(Origin.TARGET): "target",
    int(Origin.BONUS): "bonus",
}
MEANINGS = {
    "draft": "drafted, and let stand",
    "target": "the target's, in place of a rejected draft",
    "bonus": "the target's, after a block that stood whole",
}
# 256-colour codes of the Okabe-Ito palette, which colour-blind readers can tell apart.
_ANSI = {"draft": "38;5;32", "target": "1;38;5;202", "bonus": "38;5;35"}
# Control characters as the symbols that Unicode has for them; line breaks stay.
_CONTROL = {code: 0x2400 + code for code in range(32) if code != 10} | {127: 0x2421}
_MARKERS = {"draft": ("", ""), "target": ("[", "]"), "bonus": ("{", "}")}


def spans(vocabulary: Any, tokens: Sequence[int], origins: Sequence[int]) -> list[Span]:
    """Splits a decoded text into the pieces that its tokens added.

    Args:
        vocabulary: SeqIO vocabulary.
        tokens: ids of one output.
        origins: an `Origin` for each.

    Returns:
        (text, origin) for each token that adds text; joined, they are the decoded text.
    """
    pieces, before = [], ""
    tokens = [int(token) for token in tokens]
    for end, origin in enumerate(origins, start=1):
        text = vocabulary.decode(tokens[:end])
        # Half of a multi-byte character decodes to a replacement mark that the next token mends.
        if not text.startswith(before):
            common = len(_common_prefix(text, before))
            pieces, before = _cut(pieces, common), text[:common]
        if text != before:
            pieces.append((text[len(before) :], NAMES.get(int(origin), "bonus")))
        before = text
    return pieces


def _common_prefix(a: str, b: str) -> str:
    length = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    return a[:length] if length is not None else min(a, b, key=len)


def _cut(pieces: list[Span], length: int) -> list[Span]:
    kept = []
    for text, origin in pieces:
        if length > 0:
            kept.append((text[:length], origin))
        length -= len(text)
    return kept


def to_ansi(pieces: Sequence[Span]) -> str:
    """For a terminal; control characters that a model may have written are shown, not sent."""
    return "".join(
        f"\x1b[{_ANSI[origin]}m{text.translate(_CONTROL)}\x1b[0m" for text, origin in pieces
    )


def to_markers(pieces: Sequence[Span]) -> str:
    """For plain text: `[target's correction]`, `{bonus}`, drafts as they are."""
    marked = []
    for text, origin in pieces:
        left, right = _MARKERS[origin]
        # The space before a word stays outside its brackets.
        body = text.lstrip(" ")
        space = text[: len(text) - len(body)]
        marked.append(f"{space}{left}{body}{right}" if body else text)
    return "".join(marked)


def to_html(pieces: Sequence[Span]) -> str:
    """For a page whose style sheet knows the classes draft, target and bonus."""
    return "".join(
        f'<span class="{origin}" title="{MEANINGS[origin]}">{html.escape(text)}</span>'
        for text, origin in pieces
    )


def legend(style: str) -> str:
    """One line that explains the marks of `style`: 'ansi', 'markers' or 'html'."""
    render = {"ansi": to_ansi, "markers": to_markers, "html": to_html}[style]
    return ", ".join(f"{render([(name, name)])}: {meaning}" for name, meaning in MEANINGS.items())
