"""Codes for SQL that carry a sentence for people."""

from enum import StrEnum


class CodeWithSentence(StrEnum):
    """An enum whose members are written as ``CODE = "code", "What it says."``; the value is the code."""

    sentence: str

    def __new__(cls, code: str, sentence: str) -> "CodeWithSentence":  # noqa: D102
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member
