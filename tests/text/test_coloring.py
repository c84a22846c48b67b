from spec_cascades.decoding import Origin
from spec_cascades.text import coloring


class Words:
    """A vocabulary of words; 9 is half of a character that 10 completes."""

    WORDS = {2: "the", 3: "cat", 4: "sat"}

    def decode(self, ids):
        text = " ".join(self.WORDS[i] for i in ids if i in self.WORDS)
        return text + {(9,): "\ufffd", (9, 10): "ä"}.get(tuple(i for i in ids if i > 8), "")


def test_spans_join_to_the_text_and_know_their_origin():
    spans = coloring.spans(Words(), [2, 3, 4, 1], [Origin.DRAFT, Origin.TARGET, Origin.BONUS, 1])
    assert spans == [("the", "draft"), (" cat", "target"), (" sat", "bonus")]


def test_split_characters_are_mended():
    spans = coloring.spans(Words(), [2, 9, 10], [Origin.DRAFT, Origin.DRAFT, Origin.TARGET])
    assert "".join(text for text, _ in spans) == "theä"
    assert spans[-1] == ("ä", "target")


def test_styles():
    spans = [("a", "draft"), (" <b>", "target"), (" c", "bonus")]
    assert coloring.to_markers(spans) == "a [<b>] {c}"
    assert "&lt;b&gt;" in coloring.to_html(spans)
    assert coloring.to_ansi(spans).count("\x1b[0m") == 3
    assert "draft" in coloring.legend("markers")
