"""`demo_translation`: English to German from a synchronous grammar.

Every sentence is drawn once as a structure (who does what to whom, when, where, in which mood) and
spelled out in both languages, each by its own rules: German has three genders, four cases,
adjective endings, the verb second in main clauses and last in subordinate ones, separable prefixes,
and participles and infinitives at the end. Some words and orders have two correct renderings, of
which one is drawn, so no model can be sure of every token.

An example is a function of its split and index. Splits are disjoint by construction: which one a
sentence may belong to is decided by a checksum of its English text.
"""

import dataclasses
from collections.abc import Callable

from spec_cascades.tasks import splits
from spec_cascades.tasks.dice import Dice
from spec_cascades.tasks.grammar.clauses import (
    Clause,
    english_clause,
    english_infinitive,
    german_infinitive,
    german_main,
    german_question,
    german_subordinate,
)
from spec_cascades.tasks.grammar.morphology import (
    ACCUSATIVE,
    DATIVE,
    GENITIVE,
    NOMINATIVE,
    THIRD,
    Determiner,
    contract,
    english_verb,
    german_phrase,
    german_verb,
)
from spec_cascades.tasks.grammar.phrases import (
    NAMES,
    THE,
    THEM,
    TWO_WAY,
    Phrase,
    company,
    definite_person,
    direction,
    draw_adjectives,
    noun_phrase,
    object_pronoun,
    person,
    place,
    resume,
    time,
)
from spec_cascades.tasks.grammar.words import (
    CONTROL,
    DATIVE_VERBS,
    DITRANSITIVE,
    FREQUENCY,
    INTRANSITIVE,
    MANNER,
    MOTION,
    NOUNS,
    SAYING,
    STATIVE,
    TRANSITIVE,
    Verb,
    Words,
    adjectives_of,
)

PREFIX = "German: "
SIZES = {"train": 200_000, "validation": 512, "test": 512}
_SEED = 20_250_401
_MOST_CHARACTERS = 110


# Clauses.

# English modal, German finite forms.
_MODALS = (
    ("can", "können"),
    ("must", "müssen"),
    ("want to", "wollen"),
    ("should", "sollte"),
    ("would like to", "möchte"),
    ("may", "dürfen"),
)
_NEGATABLE = ("can", "want to", "should")


def _draw_tense(dice: Dice) -> str:
    return dice.weighted(
        ("present", "progressive", "past", "perfect", "future", "modal"),
        (0.36, 0.5, 0.72, 0.79, 0.87, 1.0),
    )


def _tense_for(dice: Dice, verb: Verb) -> str:
    """A tense without a modal, and without the progressive where the verb has none."""
    tense = _draw_tense(dice)
    if tense == "modal":
        return "future"
    stative = tense == "progressive" and verb.english.base in STATIVE
    return "present" if stative else tense


def _times_of(tense: str) -> str:
    return {"past": "past", "future": "future"}.get(tense, "present")


def _clause(
    dice: Dice,
    *,
    subject: Phrase | None = None,
    tense: str | None = None,
    detail: float = 1.0,
    allow_negation: bool = True,
) -> Clause:
    """Draws a clause with a verb; `detail` scales the number of adverbials."""
    subject = subject or person(dice)
    tense = tense or _draw_tense(dice)
    settings: dict = {"subject": subject, "tense": tense}
    if tense == "modal":
        settings["modal"] = dice.skewed(_MODALS, 1.2)
    if allow_negation and dice.chance(0.12):
        settings["negated"] = tense != "modal" or settings["modal"][0] in _NEGATABLE
    kind = dice.weighted(
        ("transitive", "intransitive", "ditransitive", "motion", "dative"),
        (0.5, 0.68, 0.82, 0.93, 1.0),
    )
    settings.update(_PREDICATES[kind](dice, subject, detail))
    _make_sound(settings)
    if dice.chance(0.42 * detail):
        settings["time"] = time(dice, _times_of(tense))
        settings["front"] = dice.weighted(("subject", "time"), (0.6, 1.0))
    elif tense in ("present", "past") and not settings.get("negated") and dice.chance(0.2):
        english, german = dice.skewed(FREQUENCY)
        settings["frequency"] = english, dice.synonym(german)
    if dice.chance(0.1 * detail) and kind != "dative":
        english, german = dice.skewed(MANNER)
        settings["manner"] = english, dice.synonym(german)
    return Clause(**settings)


def _make_sound(settings: dict) -> None:
    """Drops a progressive or a negation that the drawn verb or object does not allow."""
    if settings["tense"] == "progressive" and settings["verb"].base in STATIVE:
        settings["tense"] = "present"
    accusative = settings.get("accusative")
    if accusative and not (accusative.definite or accusative.negated):
        settings["negated"] = False  # "not two apples" would correct someone


def _transitive(dice: Dice, subject: Phrase, detail: float) -> dict:
    verb = dice.skewed(TRANSITIVE, 1.5)
    kind, nouns = dice.skewed(verb.objects, 1.3)
    settings = _with_verb(dice, verb)
    if dice.chance(0.08):
        person = kind in ("PERSONS", "staff")
        settings["accusative"] = object_pronoun(dice, subject) if person else THEM
        settings["particle_last"] = verb.moves_particle
    else:
        settings["accusative"] = noun_phrase(dice, kind, nouns)
    settings["early_object"] = dice.chance(0.2)
    if dice.chance(0.18 * detail):
        settings["place"] = place(dice)
    elif dice.chance(0.1 * detail):
        settings["company"] = company(dice)
    return settings


def _intransitive(dice: Dice, subject: Phrase, detail: float) -> dict:
    settings = _with_verb(dice, dice.skewed(INTRANSITIVE))
    if dice.chance(0.7):
        settings["place"] = place(dice)
    if dice.chance(0.25 * detail):
        settings["company"] = company(dice, beneficiary=False)
    return settings


def _ditransitive(dice: Dice, subject: Phrase, detail: float) -> dict:
    verb = dice.skewed(DITRANSITIVE)
    kind, nouns = dice.skewed(verb.objects, 1.3)
    settings = _with_verb(dice, verb)
    settings["dative"] = _dative_person(dice, subject)
    settings["accusative"] = noun_phrase(dice, kind, nouns)
    # "recommends the child the book" is no English, and "buys a book to the child" neither.
    base = verb.english.base
    settings["dative_with_to"] = base == "recommend" or (base != "buy" and dice.chance(0.5))
    return settings


def _dative_person(dice: Dice, subject: Phrase) -> Phrase:
    return object_pronoun(dice, subject) if dice.chance(0.2) else definite_person(dice)


def _motion(dice: Dice, subject: Phrase, detail: float) -> dict:
    settings = _with_verb(dice, dice.skewed(MOTION))
    settings["direction"] = direction(dice)
    if dice.chance(0.2 * detail):
        settings["company"] = company(dice)
    return settings


def _dative(dice: Dice, subject: Phrase, detail: float) -> dict:
    settings = _with_verb(dice, dice.skewed(DATIVE_VERBS))
    settings["dative"] = _dative_person(dice, subject)
    if dice.chance(0.3 * detail):
        settings["place"] = place(dice)
    return settings


def _with_verb(dice: Dice, verb: Verb) -> dict:
    return {"verb": verb.english, "german": dice.synonym(verb.german)}


_PREDICATES: dict[str, Callable[[Dice, Phrase, float], dict]] = {
    "transitive": _transitive,
    "intransitive": _intransitive,
    "ditransitive": _ditransitive,
    "motion": _motion,
    "dative": _dative,
}


# Sentences: each returns English and German without capitals, final mark included.


def _statement(dice: Dice) -> Words:
    clause = _clause(dice)
    if clause.place and clause.front == "subject" and not clause.time and dice.chance(0.25):
        clause = dataclasses.replace(clause, front="place")
    return english_clause(clause) + ".", german_main(clause) + "."


def _question(dice: Dice) -> Words:
    clause = dataclasses.replace(
        _clause(dice, detail=0.7), front="subject", negated=False, early_object=False
    )
    word = dice.weighted((None, "where", "when", "why"), (0.5, 0.7, 0.85, 1.0))
    if word == "where":
        clause = dataclasses.replace(clause, place=None, company=None)
        german = "wohin" if clause.direction else "wo"
        clause = dataclasses.replace(clause, direction=None)
    elif word == "when":
        clause = dataclasses.replace(clause, time=None, frequency=None)
        german = "wann"
    else:
        german = "warum"
    english = english_clause(clause, question=True) + "?"
    if word is None:
        return english, german_question(clause) + "?"
    return f"{word} {english}", f"{german} {german_question(clause)}?"


_CONJUNCTIONS = (
    ("because", ("weil", "da")),
    ("when", ("wenn",)),
    ("although", ("obwohl",)),
    ("if", ("wenn", "falls")),
    ("before", ("bevor",)),
    ("while", ("während",)),
)


def _complex(dice: Dice) -> Words:
    """Two clauses joined by a conjunction; the second often resumes the first's subject."""
    english, options = dice.skewed(_CONJUNCTIONS, 1.4)
    german = dice.synonym(options)
    present = english in ("when", "if", "before", "while")
    tense = "present" if present else None
    main = dataclasses.replace(_clause(dice, detail=0.4, tense=tense), front="subject")
    subject = resume(main.subject) if dice.chance(0.65) else None
    other = dataclasses.replace(
        _clause(dice, subject=subject, detail=0.4, tense=tense), front="subject"
    )
    if dice.chance(0.35) and subject is None:
        return (
            f"{english} {english_clause(other)}, {english_clause(main)}.",
            f"{german} {german_subordinate(other)}, {german_main(main, after_clause=True)}.",
        )
    return (
        f"{english_clause(main)} {english} {english_clause(other)}.",
        f"{german_main(main)}, {german} {german_subordinate(other)}.",
    )


def _likes_it(dice: Dice) -> Words:
    """The man buys the apple because he needs it: gender agreement across clauses."""
    main = dataclasses.replace(_clause(dice, detail=0.2, allow_negation=False), front="subject")
    subject = resume(main.subject)
    thing = main.accusative
    if subject is None or thing is None or thing.pronoun is None or not thing.definite:
        return _complex(dice)
    resumed = resume(thing)
    english, german = dice.pick(_LIKING)
    other = Clause(
        subject=subject, tense="present", verb=english, german=german, accusative=resumed
    )
    return (
        f"{english_clause(main)} because {english_clause(other)}.",
        f"{german_main(main)}, weil {german_subordinate(other)}.",
    )


_LIKING = (
    (english_verb("need", "-", "-"), german_verb("brauchen", "-", "gebraucht", "h")),
    (english_verb("love", "-", "-"), german_verb("lieben", "-", "geliebt", "h")),
    (english_verb("know", "knew", "known"), german_verb("kennen", "-", "gekannt", "h")),
    (english_verb("miss", "-", "-"), german_verb("vermissen", "-", "vermisst", "h")),
)


def _saying(dice: Dice) -> Words:
    """The man says that the woman is sleeping."""
    verb = dice.skewed(SAYING)
    subject = person(dice)
    main = Clause(
        subject=subject,
        tense=dice.weighted(("present", "past"), (0.65, 1.0)),
        **_with_verb(dice, verb),
    )
    inner = dataclasses.replace(_clause(dice, detail=0.5), front="subject")
    return (
        f"{english_clause(main)} that {english_clause(inner)}.",
        f"{german_main(main)}, dass {german_subordinate(inner)}.",
    )


def _control(dice: Dice) -> Words:
    """The man tries to open the door."""
    subject = person(dice)
    main = Clause(
        subject=subject,
        tense=dice.weighted(("present", "past", "future"), (0.6, 0.9, 1.0)),
        **_with_verb(dice, dice.skewed(CONTROL)),
    )
    inner = dataclasses.replace(
        _clause(dice, subject=subject, tense="present", detail=0.4, allow_negation=False),
        front="subject",
        frequency=None,
    )
    return (
        f"{english_clause(main)} {english_infinitive(inner)}.",
        f"{german_main(main)}, {german_infinitive(inner)}.",
    )


def _purpose(dice: Dice) -> Words:
    """The woman goes to the market to buy apples."""
    subject = person(dice)
    main = Clause(
        subject=subject,
        tense=dice.pick(("present", "past", "future")),
        **_motion(dice, subject, 0.0),
    )
    inner = Clause(subject=subject, tense="present", **_transitive(dice, subject, 0.0))
    return (
        f"{english_clause(main)} {english_infinitive(inner)}.",
        f"{german_main(main)}, um {german_infinitive(inner)}.",
    )


def _copula(dice: Dice) -> Words:
    """The old house is very expensive; the dog is bigger than the cat."""
    kind = dice.weighted(
        ("PERSONS", "THINGS", "ANIMALS", "READING", "CLOTHES", "BUILDINGS", "FOOD"),
        (0.3, 0.48, 0.6, 0.7, 0.8, 0.92, 1.0),
    )
    subject = noun_phrase(dice, kind, NOUNS[kind], definite=dice.chance(0.8), adjective=0.2)
    adjective = dice.skewed(adjectives_of(kind))
    predicative, _, comparative = dice.synonym(adjective.german)
    if comparative and adjective.comparative and dice.chance(0.4):
        other = noun_phrase(dice, kind, NOUNS[kind], definite=True, adjective=0.15)
        predicate = (
            f"{adjective.comparative} than {other.english}",
            f"{comparative} als {other.german[NOMINATIVE]}",
        )
    else:
        degree = dice.weighted((("", ""), ("very ", "sehr "), ("too ", "zu ")), (0.5, 0.82, 1.0))
        predicate = degree[0] + adjective.english, degree[1] + predicative
    tense = dice.weighted(("present", "past", "future"), (0.65, 0.93, 1.0))
    clause = Clause(
        subject=subject,
        tense=tense,
        predicate=predicate,
        negated=dice.chance(0.15),
        time=time(dice, _times_of(tense)) if dice.chance(0.15) else None,
        front="subject",
    )
    if clause.time and dice.chance(0.5):
        clause = dataclasses.replace(clause, front="time")
    return english_clause(clause) + ".", german_main(clause) + "."


def _passive(dice: Dice) -> Words:
    """The bridge was built by the engineer."""
    verb = dice.skewed(TRANSITIVE, 1.3)
    kind, nouns = dice.skewed(verb.objects, 1.3)
    tense = dice.weighted(("present", "past", "future"), (0.4, 0.88, 1.0))
    agent = None
    if dice.chance(0.55):
        person = definite_person(dice)
        agent = f"by {person.english}", contract("von", person.german[DATIVE])
    clause = Clause(
        subject=noun_phrase(dice, kind, nouns, definite=True, adjective=0.3),
        tense=tense,
        passive=True,
        agent=agent,
        negated=dice.chance(0.1),
        time=time(dice, _times_of(tense)) if dice.chance(0.4) else None,
        front=dice.weighted(("subject", "time"), (0.7, 1.0)),
        **_with_verb(dice, verb),
    )
    if clause.time is None:
        clause = dataclasses.replace(clause, front="subject")
    return english_clause(clause) + ".", german_main(clause) + "."


def _relative_subject(dice: Dice) -> Words:
    """The man who lives in Berlin buys a car."""
    subject = noun_phrase(dice, "PERSONS", NOUNS["PERSONS"], definite=True, adjective=0.15)
    inner = dataclasses.replace(
        _clause(dice, subject=subject, detail=0.3, allow_negation=False), front="subject"
    )
    outer = dataclasses.replace(_clause(dice, subject=subject, detail=0.3), front="subject")
    nobody = dataclasses.replace(subject, english="who")
    english_inner = english_clause(dataclasses.replace(inner, subject=nobody))
    english_whole = dataclasses.replace(subject, english=f"{subject.english} {english_inner}")
    german_inner = german_subordinate(inner, subject=subject.relative[0])
    german_whole = f"{subject.german[NOMINATIVE]}, {german_inner},"
    german_forms = (german_whole,)
    outer = dataclasses.replace(
        outer, subject=dataclasses.replace(english_whole, german=german_forms)
    )
    return english_clause(outer) + ".", german_main(outer) + "."


def _relative_object(dice: Dice) -> Words:
    """The woman is looking for the key that the man lost."""
    verb = dice.skewed(TRANSITIVE, 1.5)
    kind, nouns = dice.skewed(verb.objects, 1.3)
    thing = noun_phrase(dice, kind, nouns, definite=True, adjective=0.2)
    if thing.relative is None:
        return _complex(dice)
    main = Clause(
        subject=person(dice),
        tense=_tense_for(dice, verb),
        accusative=thing,
        **_with_verb(dice, verb),
    )
    suited = [v for v in TRANSITIVE if kind in dict(v.objects)]
    inner_verb = dice.pick(suited)
    inner = Clause(
        subject=person(dice),
        tense=_tense_for(dice, inner_verb),
        **_with_verb(dice, inner_verb),
    )
    return (
        f"{english_clause(main)} that {english_clause(inner)}.",
        f"{german_main(main)}, {thing.relative[1]} {german_subordinate(inner)}.",
    )


def _position(dice: Dice) -> Words:
    """The book lies on the table; the woman puts it on the table: where it is, where to."""
    flat = dice.chance(0.5)
    kind = "FLAT" if flat else "STANDING"
    english, german = dice.pick(TWO_WAY)
    support = noun_phrase(dice, "SUPPORTS", NOUNS["SUPPORTS"], definite=True, adjective=0.25)
    thing = noun_phrase(dice, kind, NOUNS[kind], adjective=0.25)
    if dice.chance(0.5):
        verb, there = (_LIE if flat else _STAND), DATIVE
        clause = Clause(
            subject=thing,
            tense="present",
            place=(f"{english} {support.english}", contract(german, support.german[there])),
            verb=verb[0],
            german=verb[1],
            time=time(dice, "present") if dice.chance(0.15) else None,
            front=dice.weighted(("subject", "place"), (0.75, 1.0)),
        )
    else:
        tense = _draw_tense(dice).replace("modal", "future")
        clause = Clause(
            subject=person(dice),
            tense=tense,
            accusative=thing,
            direction=(
                f"{english} {support.english}",
                contract(german, support.german[ACCUSATIVE]),
            ),
            verb=_PUT,
            german=_LAY if flat else _SET,
            time=time(dice, _times_of(tense)) if dice.chance(0.3) else None,
        )
        if clause.time and dice.chance(0.4):
            clause = dataclasses.replace(clause, front="time")
    return english_clause(clause) + ".", german_main(clause) + "."


_LIE = english_verb("lie", "lay", "lain"), german_verb("liegen", "-", "gelegen", "h")
_STAND = english_verb("stand", "stood", "stood"), german_verb("stehen", "-", "gestanden", "h")
_PUT = english_verb("put", "put", "put")
_LAY = german_verb("legen", "-", "gelegt", "h")
_SET = german_verb("stellen", "-", "gestellt", "h")


def _belonging(dice: Dice) -> Words:
    """The car belongs to my uncle; my uncle's car is red: dative and genitive of the owner."""
    kind = dice.pick(("THINGS", "CLOTHES", "VEHICLES", "BUILDINGS", "ANIMALS"))
    owner = definite_person(dice)
    if dice.chance(0.4):
        clause = Clause(
            subject=noun_phrase(dice, kind, NOUNS[kind], definite=True, adjective=0.4),
            tense="present",
            verb=_BELONG[0],
            german=_BELONG[1],
            dative=owner,
            dative_with_to=True,
            negated=dice.chance(0.15),
        )
        return english_clause(clause) + ".", german_main(clause) + "."
    noun = dice.skewed(NOUNS[kind])
    german = dice.synonym(noun.german)
    adjectives = draw_adjectives(dice, kind, 0.3)
    mark = "'" if owner.english.endswith("s") else "'s"
    english = " ".join([owner.english + mark, *(a for a, _ in adjectives), noun.singular])
    stems = [s for _, s in adjectives]
    if owner.agreement == THIRD and owner in NAMES:
        name = Determiner("", owner.german[GENITIVE], "none")
        forms = [german_phrase(name, stems, german, case, False) for case in range(4)]
    else:
        forms = [
            f"{german_phrase(THE, stems, german, case, False)} {owner.german[GENITIVE]}"
            for case in range(4)
        ]
    thing = Phrase(english, english, tuple(forms), THIRD, True)
    if dice.chance(0.5):
        adjective = dice.skewed(adjectives_of(kind))
        predicate = adjective.english, dice.synonym(adjective.german)[0]
        clause = Clause(subject=thing, tense="present", predicate=predicate)
    else:
        verb = dice.pick([v for v in TRANSITIVE if kind in dict(v.objects)])
        clause = Clause(
            subject=person(dice),
            tense=_tense_for(dice, verb),
            accusative=thing,
            **_with_verb(dice, verb),
        )
    return english_clause(clause) + ".", german_main(clause) + "."


_BELONG = english_verb("belong", "-", "-"), german_verb("gehören", "-", "gehört", "h")


def _both(dice: Dice) -> Words:
    """Two main clauses joined by and, but, or."""
    english, german = dice.weighted((("and", "und"), (", but", ", aber")), (0.6, 1.0))
    first, second = (
        dataclasses.replace(_clause(dice, detail=0.25), front="subject") for _ in range(2)
    )
    space = "" if english.startswith(",") else " "
    return (
        f"{english_clause(first)}{space}{english} {english_clause(second)}.",
        f"{german_main(first)}{space}{german} {german_main(second)}.",
    )


_SENTENCES: tuple[Callable[[Dice], Words], ...] = (
    _statement,
    _question,
    _complex,
    _likes_it,
    _saying,
    _control,
    _purpose,
    _copula,
    _passive,
    _relative_subject,
    _relative_object,
    _position,
    _belonging,
    _both,
)
_CUMULATIVE = (0.30, 0.37, 0.46, 0.50, 0.57, 0.63, 0.67, 0.75, 0.81, 0.86, 0.90, 0.95, 0.98, 1.0)


def sentence(seed: int) -> Words:
    """An English sentence and its German translation, as a function of the seed."""
    dice = Dice(seed)
    while True:
        english, german = dice.weighted(_SENTENCES, _CUMULATIVE)(dice)
        if len(english) <= _MOST_CHARACTERS:
            return english[0].upper() + english[1:], german[0].upper() + german[1:]


def examples(split: str, first: int = 0, last: int | None = None) -> list[tuple[str, str]]:
    """Input and target texts of the examples `first` to `last` (excluded) of a split."""
    pairs = _STREAM.examples(split, first, last)
    return [(PREFIX + english, german) for english, german in pairs]


_STREAM = splits.Stream("demo_translation", sentence, seed=_SEED, sizes=SIZES)
