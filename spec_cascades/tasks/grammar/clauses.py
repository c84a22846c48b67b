"""Clauses: what is said, and how each language spells it out."""

import dataclasses

from spec_cascades.tasks.grammar.morphology import (
    ACCUSATIVE,
    DATIVE,
    FINITE,
    NOMINATIVE,
    THIRD,
    EnglishVerb,
    GermanVerb,
)
from spec_cascades.tasks.grammar.phrases import Phrase
from spec_cascades.tasks.grammar.words import Words

_BE = ("am", "are", "is", "are")
_WAS = ("was", "were", "was", "were")


@dataclasses.dataclass(frozen=True)
class Clause:
    """One clause before it is spelled out.

    `tense` is 'present', 'progressive', 'past', 'perfect', 'future' or 'modal'. Adverbials and
    predicates are pairs of English and German words. `copula` and `passive` replace the verb by
    forms of to be.
    """

    subject: Phrase
    tense: str
    verb: EnglishVerb | None = None
    german: GermanVerb | None = None
    modal: tuple[str, str] | None = None
    negated: bool = False
    accusative: Phrase | None = None
    dative: Phrase | None = None
    dative_with_to: bool = False
    particle_last: bool = False
    early_object: bool = False
    time: Words | None = None
    frequency: Words | None = None
    manner: Words | None = None
    company: Words | None = None
    place: Words | None = None
    direction: Words | None = None
    predicate: Words | None = None
    agent: Words | None = None
    passive: bool = False
    front: str = "subject"

    @property
    def copula(self) -> bool:
        """Whether the clause says what the subject is like."""
        return self.predicate is not None


def _english_verbs(clause: Clause, question: bool) -> tuple[list[str], str]:
    """The auxiliaries and the main verb, auxiliaries first."""
    person = clause.subject.agreement
    third = person == THIRD
    no = ["not"] if clause.negated else []
    if clause.copula or clause.passive:
        return _english_to_be(clause, no)
    verb = clause.verb
    if clause.tense == "progressive":
        return [_BE[person], *no], verb.progressive
    if clause.tense == "perfect":
        return ["has" if third else "have", *no], verb.participle
    if clause.tense == "future":
        return ["will", *no], verb.base
    if clause.tense == "modal":
        modal = clause.modal[0]
        if modal == "want to":
            if clause.negated or question:
                return ["does" if third else "do", *no, "want to"], verb.base
            return ["wants to" if third else "want to"], verb.base
        if modal == "can" and clause.negated:
            return ["cannot"], verb.base
        return [*modal.split(" ", 1), *no], verb.base
    if clause.negated or question:
        auxiliary = "did" if clause.tense == "past" else ("does" if third else "do")
        return [auxiliary, *no], verb.base
    if clause.tense == "past":
        return [], verb.past
    return [], verb.third if third else verb.base


def _english_to_be(clause: Clause, no: list[str]) -> tuple[list[str], str]:
    person = clause.subject.agreement
    last = clause.verb.participle if clause.passive else ""
    if clause.tense == "past":
        return [_WAS[person], *no], last
    if clause.tense == "future":
        return ["will", *no, "be"], last
    return [_BE[person], *no], last


def _english_rest(clause: Clause) -> list[str]:
    """What follows the main verb."""
    parts = []
    if clause.predicate:
        parts.append(clause.predicate[0])
    accusative = clause.accusative.english_object if clause.accusative else None
    dative = clause.dative.english_object if clause.dative else None
    if dative and not clause.dative_with_to:
        parts.append(dative)
    if accusative:
        parts.append(accusative)
    if dative and clause.dative_with_to:
        parts.append(f"to {dative}")
    for words in (clause.agent, clause.direction, clause.company, clause.manner):
        if words:
            parts.append(words[0])
    if clause.place and clause.front != "place":
        parts.append(clause.place[0])
    if clause.time and clause.front != "time":
        parts.append(clause.time[0])
    return parts


def _join(*words: str) -> str:
    return " ".join(word for word in words if word)


def english_clause(clause: Clause, *, question: bool = False) -> str:
    """Spells a clause in English, without capital letter and final mark."""
    auxiliaries, main = _english_verbs(clause, question)
    main, rest = _place_particle(clause, main)
    middle = [clause.frequency[0]] if clause.frequency else []
    if question:
        first, *others = auxiliaries
        return _join(first, clause.subject.english, *others, *middle, main, *rest)
    front = {"time": clause.time, "place": clause.place}.get(clause.front)
    return _join(
        front[0] if front else "", clause.subject.english, *auxiliaries, *middle, main, *rest
    )


def english_infinitive(clause: Clause) -> str:
    """Spells a clause without its subject: "to buy an apple"."""
    main, rest = _place_particle(clause, clause.verb.base)
    return _join("to", main, *rest)


def _place_particle(clause: Clause, main: str) -> tuple[str, list[str]]:
    """The main verb and what follows it: "put on the coat", but "put it on"."""
    rest = _english_rest(clause)
    if clause.particle_last:
        main, _, particle = main.rpartition(" ")
        rest.insert(1, particle)
    return main, rest


def _german_verbs(clause: Clause) -> tuple[str, list[str]]:
    """The finite verb and what stands at the end of a main clause."""
    person = clause.subject.agreement
    if clause.copula:
        if clause.tense == "future":
            return FINITE["werden"][person], ["sein"]
        return FINITE["war" if clause.tense == "past" else "sein"][person], []
    verb = clause.german
    if clause.passive:
        if clause.tense == "future":
            return FINITE["werden"][person], [verb.participle, "werden"]
        return FINITE["wurde" if clause.tense == "past" else "werden"][person], [verb.participle]
    if clause.tense in ("past", "perfect"):
        return FINITE[verb.auxiliary][person], [verb.participle]
    if clause.tense == "future":
        return FINITE["werden"][person], [verb.infinitive]
    if clause.tense == "modal":
        return FINITE[clause.modal[1]][person], [verb.infinitive]
    return verb.finite[person], [verb.prefix] if verb.prefix else []


def _german_middle(clause: Clause) -> list[str]:
    """What stands between the finite verb (or the conjunction and subject) and the end.

    Pronouns, time, dative, definite accusative, "nicht", manner, company, place, indefinite
    accusative, direction.
    """
    accusative, dative = clause.accusative, clause.dative
    negated = clause.negated
    if negated and accusative and accusative.negated:
        accusative, negated = accusative.negated, False
    known = accusative is not None and (accusative.definite or accusative.is_pronoun)
    first = accusative is not None and (accusative.is_pronoun or (known and clause.early_object))
    parts = []
    if first:
        parts.append(accusative.german[ACCUSATIVE])
    if dative and dative.is_pronoun:
        parts.append(dative.german[DATIVE])
    if clause.time and clause.front != "time":
        parts.append(clause.time[1])
    if clause.frequency:
        parts.append(clause.frequency[1])
    if dative and not dative.is_pronoun:
        parts.append(dative.german[DATIVE])
    if known and not first:
        parts.append(accusative.german[ACCUSATIVE])
    if negated:
        parts.append("nicht")
    for words in (clause.manner, clause.agent, clause.company):
        if words:
            parts.append(words[1])
    if clause.place and clause.front != "place":
        parts.append(clause.place[1])
    if accusative is not None and not known:
        parts.append(accusative.german[ACCUSATIVE])
    for words in (clause.direction, clause.predicate):
        if words:
            parts.append(words[1])
    return parts


def german_main(clause: Clause, *, after_clause: bool = False) -> str:
    """Spells a main clause: the verb stands second.

    Before it stands the subject, a fronted adverbial, or (`after_clause`) what the caller puts.
    """
    finite, tail = _german_verbs(clause)
    subject = clause.subject.german[NOMINATIVE]
    middle = _german_middle(clause)
    front = {"time": clause.time, "place": clause.place}.get(clause.front)
    if after_clause:
        return _join(finite, subject, *middle, *tail)
    if front:
        return _join(front[1], finite, subject, *middle, *tail)
    return _join(subject, finite, *middle, *tail)


def german_question(clause: Clause) -> str:
    """Spells a question: the verb stands first, or after the question word that the caller adds."""
    return german_main(clause, after_clause=True)


def german_subordinate(clause: Clause, *, subject: str | None = None) -> str:
    """Spells what follows a conjunction: the finite verb stands last, with its prefix.

    Args:
      clause: the clause.
      subject: replaces the subject; '' where the relative pronoun is the subject.
    """
    finite, tail = _german_verbs(clause)
    if subject is None:
        subject = clause.subject.german[NOMINATIVE]
    simple = clause.tense in ("present", "progressive") and not (clause.copula or clause.passive)
    ending = ["".join([*tail, finite])] if simple else [*tail, finite]
    return _join(subject, *_german_middle(clause), *ending)


def german_infinitive(clause: Clause) -> str:
    """Spells a clause without its subject: "einen Apfel zu kaufen"."""
    return _join(*_german_middle(clause), clause.german.zu)
