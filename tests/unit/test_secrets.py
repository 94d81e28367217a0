"""Secrets: fetched at call time, never shown."""

from __future__ import annotations

from typing import Any

import pytest

from tarry.http.secrets import SecretError, Secrets

CANARY = 'hunter2 "x"/y'


def test_a_mapping_or_a_callable_provides() -> None:
    """Both give a secret by its name, only when asked."""
    asked = []

    def provider(name: str) -> str:
        asked.append(name)
        return name.lower()

    assert Secrets({"A": "1", "B": "2"}).resolve({"A"}) == {"A": "1"}
    assert Secrets(provider).resolve(["B", "A"]) == {"A": "a", "B": "b"}
    assert asked == ["A", "B"]
    assert Secrets().resolve([]) == {}


def test_a_secret_is_asked_for_anew() -> None:
    """A rotated secret is picked up by the next call."""
    vault = {"A": "old-secret"}
    secrets = Secrets(vault)
    assert secrets.resolve(["A"]) == {"A": "old-secret"}
    vault["A"] = "new-secret"
    assert secrets.resolve(["A"]) == {"A": "new-secret"}
    assert secrets.redact("old-secret new-secret") == "*** ***"


def raising(_: str) -> str:
    """A provider that fails with the secret in its words."""
    raise RuntimeError(CANARY)


def unknowing(_: str) -> str:
    """A provider that has nothing."""
    raise KeyError("A")


@pytest.mark.parametrize(
    ("provider", "problem"),
    [
        (None, "not there"),
        ({}, "not there"),
        ({"A": None}, "not there"),
        ({"A": 5}, "not there"),
        ({"A": ""}, "is empty"),
        (unknowing, "not there"),
        (raising, "RuntimeError"),
    ],
)
def test_a_secret_that_cannot_be_had_is_named(provider: Any, problem: str) -> None:
    """The error names the secret and never holds what the provider said."""
    with pytest.raises(SecretError, match="the secret A") as caught:
        Secrets(provider).resolve(["A"])
    assert problem in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_secrets_do_not_show() -> None:
    """Neither the repr nor a text that went through `redact` shows a value, plain or encoded."""
    secrets = Secrets({"A": CANARY, "B": CANARY + "tail"})
    secrets.resolve(["A", "B"])
    text = 'hunter2 "x"/y hunter2 \\"x\\"/y hunter2%20%22x%22%2Fy hunter2%20%22x%22/y hunter2 "x"/ytail'
    assert secrets.redact(text) == "*** *** *** *** ***"
    assert "hunter2" not in repr(secrets)


def test_what_holds_no_secret_stays_as_it_is() -> None:
    """Escapes and percent codes are decoded to look, and given back as they came."""
    secrets = Secrets({"A": CANARY})
    assert not secrets.redact
    secrets.resolve(["A"])
    assert secrets.redact
    text = "\\u0041 \\\\n \\/ %41 a+b"
    assert secrets.redact(text) == text
    assert secrets.redact(CANARY + text) == "***" + text


def test_secrets_of_several_spellings_are_all_masked() -> None:
    """The one that was found first does not hide the others."""
    secrets = Secrets({"A": "first/secret", "B": "second/secret", "C": "third/secret"})
    secrets.resolve(["A", "B", "C"])
    text = "first/secret second\\/secret \\\\u0074hird%2fsecre%74"
    assert secrets.redact(text) == "*** *** ***"


def test_endless_escapes_are_no_trap() -> None:
    """An escape that unfolds into the next escape is followed three times, not for ever."""
    secrets = Secrets({"A": CANARY})
    secrets.resolve(["A"])
    text = "\\" + "u005c" * 100_000
    assert secrets.redact(text) == text


def test_short_values_are_not_masked() -> None:
    """A value of under 6 characters is a word that any body may hold."""
    secrets = Secrets({"A": "true"})
    secrets.resolve(["A"])
    assert secrets.redact('{"done": true}') == '{"done": true}'


def test_only_so_many_are_remembered() -> None:
    """A secret that changes with each call does not fill the memory; the latest are still masked."""
    secrets = Secrets(lambda name: f"secret-{name}")
    for n in range(2_000):
        secrets.resolve([str(n)])
    assert secrets.redact("secret-1999 secret-0") == "*** secret-0"


def test_all_spellings_of_a_secret_are_forgotten_at_once() -> None:
    """A known secret is known in each of its spellings, also after many others."""
    secrets = Secrets(lambda name: f"secret/{name} ")
    for n in range(1_500):
        secrets.resolve([str(n)])
    assert secrets.redact("secret%2f500+ secret%2F500%20 secret/500 ") == "*** *** ***"


def test_a_provider_without_a_signature_is_asked_by_name_alone() -> None:
    """Some callables of C do not tell what they take."""
    assert Secrets(str).resolve(["TOKEN"], refresh=True) == {"TOKEN": "TOKEN"}
