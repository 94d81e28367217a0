"""Secrets: fetched when a call is made, and taken out of whatever a person may see."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias
from urllib.parse import quote, quote_plus, unquote

from tarry.errors import SpecError

SecretProvider: TypeAlias = Mapping[str, str] | Callable[..., str]
"""Gives a secret by its name; a `LookupError` (or nothing) means that it has none.

A callable that takes a keyword `refresh` gets it: true for a call after a denial.
"""

MASK = "***"
_SHORTEST = 6  # what is shorter is a word that bodies hold anyway, and no secret
_REMEMBERED = 1_000
_ESCAPE = re.compile(r"((?:\\u[0-9a-fA-F]{4})+)|\\([\"\\/bfnrt])")
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HEX = re.compile("%[0-9A-F]{2}")


class SecretError(ValueError):
    """The secret is not to be had. The message names it, never its value."""


class Redactor:
    """Takes the secrets it knows out of a text. It is false as long as it knows none.

    A secret of 6 characters or more becomes `***`: plain, percent-encoded, or with
    JSON escapes. Where only a decoded text shows it, that text is what is given back.
    """

    def __init__(self) -> None:
        self._forms: dict[str, frozenset[str]] = {}
        self._longest_first: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._forms)

    def __call__(self, text: str) -> str:
        if not self._forms:
            return text
        text = plain = self._masked(text)
        for read in _READINGS:
            read_on = read(plain)
            if read_on == plain:
                continue
            plain = self._masked(read_on)
            if plain != read_on:
                text = plain
        return text

    def remember(self, value: str) -> None:
        """Mask this value from now on, unless it is too short; the latest 1,000 are known."""
        if value in self._forms or len(value) < _SHORTEST:
            return
        if len(self._forms) == _REMEMBERED:
            del self._forms[next(iter(self._forms))]
        self._forms[value] = _forms(value)
        # A secret that is part of another must not leave the other's rest behind.
        self._longest_first = tuple(sorted(frozenset().union(*self._forms.values()), key=len, reverse=True))

    def _masked(self, text: str) -> str:
        for form in self._longest_first:
            if form in text:
                text = text.replace(form, MASK)
        return text


def _forms(value: str) -> frozenset[str]:
    encoded = {encode(value, safe=safe) for encode in (quote, quote_plus) for safe in ("", "/")}
    return frozenset({value, *encoded, *(_HEX.sub(lambda code: code[0].lower(), form) for form in encoded)})


def _unescaped(text: str) -> str:
    """The text with each JSON escape as what it stands for."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(escape: re.Match[str]) -> str:
    if escape[1]:
        # A run at once: a character beyond U+FFFF is written as two escapes.
        return bytes.fromhex(escape[1].replace("\\u", "")).decode("utf-16-be", "replace")
    return _CONTROLS.get(escape[2], escape[2])


# JSON within JSON has its escapes escaped. A bound, as a text can be made that goes on for ever.
_READINGS: tuple[Callable[[str], str], ...] = (_unescaped, _unescaped, _unescaped, unquote)


class Secrets:
    """Resolves `{secret.NAME}` at call time and masks each value it ever gave out.

    `provider` is None, a mapping or a callable from name to value; it is
    asked anew for every call, so that a rotated secret is picked up; a callable that takes
    a keyword `refresh` is told after a denial that what it gave is of no use any more.
    """

    def __init__(self, provider: SecretProvider | None = None) -> None:
        if not (provider is None or isinstance(provider, Mapping) or callable(provider)):
            raise SpecError("secrets", f"expected a mapping or a callable, got {type(provider).__name__}")
        self._provider = provider
        self._refreshes = callable(provider) and _takes_refresh(provider)
        self.redact = Redactor()

    def __repr__(self) -> str:
        return "Secrets(***)"

    def resolve(self, names: Iterable[str], *, refresh: bool = False) -> dict[str, str]:
        """The values by name; `SecretError` naming the first that cannot be had.

        `refresh`: those given out before were denied.
        """
        return {name: self._one(name, refresh=refresh) for name in sorted(names)}

    def _one(self, name: str, *, refresh: bool) -> str:
        value = self._ask(name, refresh=refresh)
        if not isinstance(value, str) or not value:
            problem = "is empty" if value == "" else "is not there"
            raise SecretError(f"the secret {name} {problem}; give it to the Poller as secrets={{'{name}': …}}")
        self.redact.remember(value)
        return value

    def _ask(self, name: str, *, refresh: bool) -> object:
        if self._provider is None:
            return None
        try:
            if not callable(self._provider):
                return self._provider.get(name)
            return self._provider(name, refresh=refresh) if self._refreshes else self._provider(name)
        except LookupError:
            return None
        except Exception as error:  # noqa: BLE001  # the provider is foreign code: whatever it raises means no secret
            # The type alone: the provider's words may hold what it was asked for.
            raise SecretError(f"the secret {name} could not be read: {type(error).__name__}") from None


def _takes_refresh(provider: Callable[..., str]) -> bool:
    try:
        taken = inspect.signature(provider).parameters.get("refresh")
    except (TypeError, ValueError):  # a callable of C, without a signature
        return False
    return taken is not None and taken.kind in {taken.KEYWORD_ONLY, taken.POSITIONAL_OR_KEYWORD}
