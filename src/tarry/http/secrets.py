"""Secrets: fetched when a call is made, and taken out of whatever a person may see."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias
from urllib.parse import quote

from tarry.errors import SpecError

SecretProvider: TypeAlias = Mapping[str, str] | Callable[[str], str]
"""Gives a secret by its name; a `LookupError` (or nothing) means that it has none."""

MASK = "***"
_SHORTEST = 6  # what is shorter is a word that bodies hold anyway, and no secret
_REMEMBERED = 1_000


class SecretError(ValueError):
    """The secret is not to be had. The message names it, never its value."""


class Secrets:
    """Resolves `{secret.NAME}` at call time and masks each value it ever gave out.

    `provider` is None, a mapping or a callable from name to value; it is
    asked anew for every call, so that a rotated secret is picked up.
    """

    def __init__(self, provider: SecretProvider | None = None) -> None:
        if not (provider is None or isinstance(provider, Mapping) or callable(provider)):
            raise SpecError("secrets", f"expected a mapping or a callable, got {type(provider).__name__}")
        self._provider = provider
        self._given: dict[str, None] = {}
        self._longest_first: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "Secrets(***)"

    def resolve(self, names: Iterable[str]) -> dict[str, str]:
        """The values by name; `SecretError` naming the first that cannot be had."""
        return {name: self._one(name) for name in sorted(names)}

    def redact(self, text: str) -> str:
        """The text with every known secret of 6 characters or more, plain or encoded, as `***`."""
        for form in self._longest_first:
            if form in text:
                text = text.replace(form, MASK)
        return text

    def _one(self, name: str) -> str:
        value = self._ask(name)
        if not isinstance(value, str) or not value:
            problem = "is empty" if value == "" else "is not there"
            raise SecretError(f"the secret {name} {problem}; give it to the Poller as secrets={{'{name}': …}}")
        self._remember(value)
        return value

    def _ask(self, name: str) -> object:
        if self._provider is None:
            return None
        try:
            return self._provider(name) if callable(self._provider) else self._provider.get(name)
        except LookupError:
            return None
        except Exception as error:  # noqa: BLE001  # the provider is foreign code: whatever it raises means no secret
            # The type alone: the provider's words may hold what it was asked for.
            raise SecretError(f"the secret {name} could not be read: {type(error).__name__}") from None

    def _remember(self, value: str) -> None:
        if value in self._given or len(value) < _SHORTEST:
            return
        forms = {value, json.dumps(value)[1:-1], quote(value, safe=""), quote(value, safe="/")}
        self._given = dict.fromkeys([*self._given, *forms][-_REMEMBERED:])
        # A secret that is part of another must not leave the other's rest behind.
        self._longest_first = tuple(sorted(self._given, key=len, reverse=True))
