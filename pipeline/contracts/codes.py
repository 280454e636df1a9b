"""Codes for SQL, each with a sentence for people and, in some enums, facts for programs."""

from enum import StrEnum


class CodeWithSentence(StrEnum):
    """An enum whose members are written as ``NAME = auto(), "What it says."``, followed by further facts that
    a subclass takes in ``__init__``; a member's value is its name in lower case."""

    sentence: str

    def __new__(cls, code: str, sentence: str, *_facts: object) -> "CodeWithSentence":  # noqa: D102
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member
