"""English and German word forms: articles, adjective endings, verb forms.

Noun phrases carry their German forms in four cases; verbs carry four finite forms, for ich, du,
er/sie/es and the plural, the only ones that the demo's sentences use.
"""

import dataclasses
from collections.abc import Sequence

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
FIRST, SECOND, THIRD, PLURAL = range(4)  # columns of a verb's finite forms

_VOWELS = "aeiouyäöü"
_GENDERS = {"m": 0, "f": 1, "n": 2}  # column 3 is the plural

# Endings by [case][m, f, n, plural].
_DER = (
    ("der", "die", "das", "die"),
    ("den", "die", "das", "die"),
    ("dem", "der", "dem", "den"),
    ("des", "der", "des", "der"),
)
_DIESER = (
    ("er", "e", "es", "e"),
    ("en", "e", "es", "e"),
    ("em", "er", "em", "en"),
    ("es", "er", "es", "er"),
)
_EIN = (
    ("", "e", "", "e"),
    ("en", "e", "", "e"),
    ("em", "er", "em", "en"),
    ("es", "er", "es", "er"),
)
_WEAK = (
    ("e", "e", "e", "en"),
    ("en", "e", "e", "en"),
    ("en", "en", "en", "en"),
    ("en", "en", "en", "en"),
)
_MIXED = (
    ("er", "e", "es", "en"),
    ("en", "e", "es", "en"),
    ("en", "en", "en", "en"),
    ("en", "en", "en", "en"),
)
_STRONG = (
    ("er", "e", "es", "e"),
    ("en", "e", "es", "e"),
    ("em", "er", "em", "en"),
    ("en", "er", "en", "er"),
)


_ADJECTIVE_ENDINGS = {"der": _WEAK, "dieser": _WEAK, "ein": _MIXED, "none": _STRONG}


@dataclasses.dataclass(frozen=True)
class GermanNoun:
    """A German noun.

    Attributes:
      singular: nominative.
      gender: 'm', 'f' or 'n'.
      plural: nominative.
      weak: masculine with `-(e)n` in every case but the nominative.
    """

    singular: str
    gender: str
    plural: str = ""
    weak: bool = False

    def form(self, case: int, plural: bool) -> str:
        """The noun in a case and number."""
        if plural:
            if case == DATIVE and not self.plural.endswith(("n", "s")):
                return self.plural + "n"
            return self.plural
        if self.weak and case != NOMINATIVE:
            return self.singular + ("n" if self.singular.endswith(("e", "er", "ar")) else "en")
        if case == GENITIVE and self.gender != "f":
            return self.singular + _genitive_ending(self.singular)
        return self.singular


_IRREGULAR_GENITIVES = {
    **dict.fromkeys(("Chef", "Koch", "Tee", "Ei"), "s"),
    **dict.fromkeys(("Bus", "Geheimnis"), "ses"),
}


def _genitive_ending(noun: str) -> str:
    if noun in _IRREGULAR_GENITIVES:
        return _IRREGULAR_GENITIVES[noun]
    if noun.endswith(("s", "ß", "z", "x")):
        return "es"
    syllables = sum(
        letter in _VOWELS and (i == 0 or noun[i - 1].lower() not in _VOWELS)
        for i, letter in enumerate(noun.lower())
    )
    return "es" if syllables == 1 else "s"


@dataclasses.dataclass(frozen=True)
class Determiner:
    """An English determiner with its German counterpart.

    Attributes:
      english: singular; '' for none, 'a' becomes 'an' where needed.
      german: stem.
      kind: 'der', 'dieser', 'ein' (ein, kein and possessives) or 'none' (no ending: numbers, names,
        nothing).
      english_plural: where it differs.
    """

    english: str
    german: str
    kind: str
    english_plural: str | None = None

    def form(self, case: int, column: int) -> str:
        """The German word in a case, for column 0 to 3 (m, f, n, plural)."""
        if self.kind == "der":
            return _DER[case][column]
        if self.kind == "dieser":
            return self.german + _DIESER[case][column]
        if self.kind == "ein":
            return self.german + _EIN[case][column]
        return self.german

    def adjective_ending(self, case: int, column: int) -> str:
        """Ending of an adjective after this determiner."""
        return _ADJECTIVE_ENDINGS[self.kind][case][column]


def german_phrase(
    determiner: Determiner, adjectives: Sequence[str], noun: GermanNoun, case: int, plural: bool
) -> str:
    """A German noun phrase: determiner, declined adjectives (given as stems), noun."""
    column = 3 if plural else _GENDERS[noun.gender]
    ending = determiner.adjective_ending(case, column)
    words = [determiner.form(case, column)]
    words += [stem + ending for stem in adjectives]
    words.append(noun.form(case, plural))
    return " ".join(word for word in words if word)


def relative_pronoun(noun: GermanNoun, case: int, plural: bool) -> str:
    """The relative pronoun: in the nominative and accusative it equals the article."""
    return _DER[case][3 if plural else _GENDERS[noun.gender]]


def english_phrase(
    determiner: Determiner, adjectives: Sequence[str], noun: str, plural: bool
) -> str:
    """An English noun phrase; `noun` is in its number already."""
    words = [*adjectives, noun]
    article = determiner.english
    if plural and determiner.english_plural is not None:
        article = determiner.english_plural
    if article == "a" and _sounds_like_vowel(words[0]):
        article = "an"
    return " ".join([article, *words]) if article else " ".join(words)


def _sounds_like_vowel(word: str) -> bool:
    return word[0] in "aeiou" and not word.startswith(("uni", "use"))


CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
    ("bei", "dem"): "beim",
}


def contract(preposition: str, phrase: str) -> str:
    """Joins a preposition and a phrase: in + dem Garten -> im Garten."""
    first, _, rest = phrase.partition(" ")
    joined = CONTRACTIONS.get((preposition, first))
    return f"{joined} {rest}" if joined else f"{preposition} {phrase}"


@dataclasses.dataclass(frozen=True)
class GermanVerb:
    """A German verb.

    Attributes:
      infinitive: with its separable prefix.
      prefix: separable prefix, or ''.
      finite: present forms for ich, du, er, plural; without the prefix.
      participle: past participle.
      auxiliary: of the perfect, 'haben' or 'sein'.
    """

    infinitive: str
    prefix: str
    finite: tuple[str, str, str, str]
    participle: str
    auxiliary: str

    @property
    def zu(self) -> str:
        """The infinitive with "zu"."""
        if self.prefix:
            return f"{self.prefix}zu{self.infinitive.removeprefix(self.prefix)}"
        return f"zu {self.infinitive}"


_IRREGULAR = {"wissen": ("weiß", "weißt", "weiß", "wissen")}


def german_verb(text: str, changed: str, participle: str, auxiliary: str) -> GermanVerb:
    """Makes a verb from its table entry.

    Args:
      text: infinitive, with a dot after a separable prefix: `auf.machen`.
      changed: stem of the forms for du and er, or '-' where it is the infinitive's.
      participle: past participle.
      auxiliary: 'h' (haben) or 's' (sein).
    """
    prefix, _, base = text.rpartition(".")
    return GermanVerb(
        infinitive=prefix + base,
        prefix=prefix,
        finite=_IRREGULAR.get(base) or _present(base, changed),
        participle=participle,
        auxiliary={"h": "haben", "s": "sein"}[auxiliary],
    )


def _present(infinitive: str, changed: str) -> tuple[str, str, str, str]:
    stem = infinitive.removesuffix("n")
    stem = stem.removesuffix("e") if infinitive.endswith("en") else stem
    strong = changed if changed != "-" else stem
    link = ""
    if changed == "-":
        # An e goes between the stem and -st, -t: arbeitet, zeichnet, but lernt.
        cluster = stem[-1] in "mn" and stem[-2] not in "aeiouäöülrmn"
        cluster = cluster and not (stem[-2] == "h" and stem[-3] in "aeiouäöü")  # wohnt
        link = "e" if stem.endswith(("t", "d")) or cluster else ""
    du = "t" if strong.endswith(("s", "ß", "z", "x")) else link + "st"
    return stem + "e", strong + du, strong + link + "t", infinitive


# Auxiliaries: ich, du, er, plural.
FINITE = {
    "haben": ("habe", "hast", "hat", "haben"),
    "sein": ("bin", "bist", "ist", "sind"),
    "war": ("war", "warst", "war", "waren"),
    "werden": ("werde", "wirst", "wird", "werden"),
    "wurde": ("wurde", "wurdest", "wurde", "wurden"),
    "können": ("kann", "kannst", "kann", "können"),
    "müssen": ("muss", "musst", "muss", "müssen"),
    "wollen": ("will", "willst", "will", "wollen"),
    "sollte": ("sollte", "solltest", "sollte", "sollten"),
    "dürfen": ("darf", "darfst", "darf", "dürfen"),
    "möchte": ("möchte", "möchtest", "möchte", "möchten"),
    "stehen": ("stehe", "stehst", "steht", "stehen"),
    "liegen": ("liege", "liegst", "liegt", "liegen"),
}

# Verbs that double their last consonant before -ing and -ed.
_DOUBLED = {"put", "run", "swim", "sit", "get", "forget", "begin", "plan"}


@dataclasses.dataclass(frozen=True)
class EnglishVerb:
    """An English verb; words after the first ("put on") stay as they are."""

    base: str
    third: str
    past: str
    participle: str
    progressive: str


def english_verb(text: str, past: str, participle: str) -> EnglishVerb:
    """Makes a verb from its table entry; '-' for regular past and participle."""
    word, *rest = text.split("_")
    tail = "".join(f" {w}" for w in rest)
    consonant_y = word.endswith("y") and word[-2] not in "aeiou"
    if consonant_y:
        third = word[:-1] + "ies"
    elif word.endswith(("s", "sh", "ch", "x", "o")):
        third = word + "es"
    else:
        third = word + "s"
    if past == "-":
        if word.endswith("e"):
            past = word + "d"
        elif consonant_y:
            past = word[:-1] + "ied"
        else:
            past = word + (word[-1] if word in _DOUBLED else "") + "ed"
        participle = past
    if word.endswith("e") and not word.endswith("ee"):
        progressive = word[:-1] + "ing"
    else:
        progressive = word + (word[-1] if word in _DOUBLED else "") + "ing"
    return EnglishVerb(*(form + tail for form in (word, third, past, participle, progressive)))
