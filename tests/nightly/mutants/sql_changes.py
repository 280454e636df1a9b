"""Small changes to the logic of SQL: each is one mutant that a test must notice."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import duckdb

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "=": "<>", "<>": "=", "!=": "="}
OPPOSITES = {
    "least": "greatest",
    "greatest": "least",
    "min": "max",
    "max": "min",
    "arg_min": "arg_max",
    "arg_max": "arg_min",
    "bool_and": "bool_or",
    "bool_or": "bool_and",
}
JOINS = {"left": "INNER", "full": "INNER", "semi": "ANTI", "anti": "SEMI", "inner": "LEFT"}
FILTERS = {"where", "having", "qualify"}

# What ends a condition, and what ends a term, on the same level of brackets.
CLAUSES = {
    *("select", "from", "where", "group", "having", "qualify", "order", "limit", "union", "join", "left"),
    *(
        "full",
        "semi",
        "anti",
        "inner",
        "cross",
        "asof",
        "positional",
        "window",
        "then",
        "end",
        "as",
        ";",
        ",",
    ),
}
END_OF_CONDITION = CLAUSES | {"and", "or"}
END_OF_TERM = END_OF_CONDITION | set(COMPARISONS) | {
    *("+", "-", "||", "when", "else", "is", "in", "not", "like", "between", "asc", "desc", "for", "->", ":"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """A file's text between two offsets, and what stands there instead."""

    file: str
    line: int
    column: int
    start: int
    end: int
    old: str
    new: str

    @property
    def name(self) -> str:
        """Return the place and the change, such as ``jobs/20_cost.sql:12:5 < to <=``."""
        old = " ".join(self.old.split())
        return f"{self.file}:{self.line}:{self.column} {old} to {self.new or 'nothing'}"

    def applied(self, text: str) -> str:
        """Return the file's text with the change."""
        return text[: self.start] + self.new + text[self.end :]


class _Token(NamedTuple):
    text: str
    start: int
    end: int
    depth: int
    is_number: bool

    @property
    def word(self) -> str:
        return self.text.lower()


def _tokens(text: str) -> list[_Token]:
    """Return the tokens without comments, and the depth of brackets in which each stands."""
    found = duckdb.tokenize(text)
    ends = [offset for offset, _ in found[1:]] + [len(text)]
    tokens, depth = [], 0
    for (start, kind), end in zip(found, ends, strict=True):
        if kind == duckdb.token_type.comment:
            continue
        token = text[start:end].rstrip()
        if token in (")", "]", "}"):
            depth -= 1
        is_number = kind == duckdb.token_type.numeric_const and token[0].isdigit()
        tokens.append(_Token(token, start, start + len(token), depth, is_number))
        if token in ("(", "[", "{"):
            depth += 1
    return tokens


def _scaled(number: str) -> str:
    if re.fullmatch(r"\d+", number):
        value = int(number)
        return str(value + 1 if value < 10 else round(value * 1.1))
    return re.sub(r"^[\d.]+", lambda match: f"{float(match[0]) * 1.1 or 1.0:.12g}", number)


def _end(tokens: list[_Token], first: int, stops: set[str]) -> int:
    """Return the index of the last token of what begins at ``first``."""
    depth, last, cases = tokens[first].depth, first - 1, 0
    for index in range(first, len(tokens)):
        token = tokens[index]
        cases += token.word == "case"
        if token.depth < depth or (token.depth == depth and token.word in stops and not cases):
            break
        cases -= token.word == "end"
        last = index
    return last


def _replaced(token: str, before: str, after: str) -> str | None:
    """Return what stands in place of a token, or None if the token stays."""
    if token in COMPARISONS and before != ":":
        return COMPARISONS[token]
    if token in OPPOSITES and after == "(":
        return OPPOSITES[token]
    if token in JOINS and after == "join":
        return JOINS[token]
    if token == "join" and before not in {*JOINS, "cross", "asof", "positional"}:
        return "LEFT JOIN"
    if token == "not" and before != "is" and after != "null":
        return ""
    return None


def _changes(tokens: list[_Token]) -> Iterator[tuple[int, int, str]]:
    """Yield the first and the last token of each change, and the text in their place."""
    in_between = False
    for index, token in enumerate(tokens):
        before = tokens[index - 1].word if index else ""
        after = tokens[index + 1].word if index + 1 < len(tokens) else ""
        replaced = _replaced(token.word, before, after)
        if replaced is not None:
            yield index, index, replaced
        elif token.is_number and not (index > 1 and tokens[index - 2].word == "decimal"):
            yield index, index, _scaled(token.text)
        elif token.word in ("+", "-") and re.search(r"[\w)\]\"']$", before) and before not in END_OF_TERM:
            yield index, _end(tokens, index + 1, END_OF_TERM), ""
        elif token.word in FILTERS:
            yield index + 1, _end(tokens, index + 1, END_OF_CONDITION), "TRUE"
        elif token.word in ("and", "or") and before != "create":
            if not in_between:
                yield index, index, {"and": "OR", "or": "AND"}[token.word]
                yield index, _end(tokens, index + 1, END_OF_CONDITION), ""
            in_between = False
        in_between = in_between or token.word == "between"


def mutants(folder: Path, file: str) -> list[Mutant]:
    """Return the mutants of a file below ``folder``, in the order of its text."""
    text = (folder / file).read_text(encoding="utf-8")
    tokens = _tokens(text)
    found = []
    for first, last, new in _changes(tokens):
        start, end = tokens[first].start, tokens[max(first, last)].end
        line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
        found.append(Mutant(file, line, column, start, end, text[start:end], new))
    return found
