"""Placeholders: what they name, how a value goes in, and what it can never do."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarry.core.templates import (
    MissingValue,
    TemplateError,
    blanked,
    leading,
    placeholders,
    render_header,
    render_json,
    render_text,
    render_url,
    roots,
    secret_names,
    texts,
)

VALUES: dict[str, Any] = {
    "key": "orders/2026 q2",
    "input": {
        "name": "a b/c?d#e",
        "n": 5,
        "half": 0.5,
        "yes": True,
        "none": None,
        "empty": "",
        "up": "..",
        "list": ["x", {"y": "z"}],
        "broken": "\ud800",
        "huge": 10**5000,
        "template": "{key}",
        "line": "a\r\nX: y",
        "umlaut": "é",
    },
    "submit": {"headers": {"location": "https://api.example.com/jobs/7"}, "body": {"jobId": "7", "path": "/jobs/7"}},
    "secret": {"TOKEN": "s3cr3t\n"},
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("plain", set()),
        ("{other.x} {} {x} {inputs.a} {key: 1} {Input.a}", set()),
        ("{key}", {"key"}),
        ("{input}", {"input"}),
        ("{input.a.b}{submit.body.jobId}", {"input", "submit"}),
        ("{poll.body.x} {baseline.body.y}", {"poll", "baseline"}),
        ("{secret.TOKEN}", {"secret"}),
        ("{input.name:path}", {"input"}),
        ("{{input.name}}", {"input"}),
    ],
)
def test_roots_are_those_of_placeholders_only(text: str, found: set[str]) -> None:
    """Braces around anything but a known root are literal."""
    assert roots(text) == found


@pytest.mark.parametrize(
    "text",
    ["{input.}", "{input..a}", "{input.a:b}", "{input.a b}", "{key.x}", "{secret}", "{secret.a.b}", "{secret.1}"],
)
def test_a_malformed_placeholder_is_refused(text: str) -> None:
    """What looks like a placeholder and is none would be sent as it stands, so it is an error."""
    with pytest.raises(TemplateError, match=r"write|no parts"):
        placeholders(text)


def test_a_placeholder_knows_its_name_and_place() -> None:
    """The name leaves out the modifier; the place is that of the braces."""
    (found,) = placeholders("/x/{input.a.b:path}")
    assert (found.name, found.keeps_slashes, found.start, found.end) == ("input.a.b", True, 3, 19)


def test_leading_is_the_placeholder_a_url_starts_with() -> None:
    """Only at the very start is a placeholder a URL reference."""
    lead = leading("{submit.headers.location}?x=1")
    assert lead is not None
    assert lead.name == "submit.headers.location"
    assert leading("https://example.com/{key}") is None
    assert leading("https://example.com/") is None


def test_secret_names_are_found() -> None:
    """The secrets a text needs, by name."""
    assert secret_names("{secret.A} {secret.B-1} {key}") == {"A", "B-1"}


def test_blanked_replaces_placeholders_alone() -> None:
    """A stand-in for each placeholder; other braces stay."""
    assert blanked("{key}/{x}/{input.a}") == "1/{x}/1"


def test_texts_are_the_values_of_a_json_value() -> None:
    """Every text value, none of the names."""
    assert list(texts({"{key}": ["a", 1, None, {"b": "c"}]})) == ["a", "c"]


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{key}!", "orders/2026 q2!"),
        ("{input.n} {input.half} {input.yes}", "5 0.5 true"),
        ("{input.list.0}{input.list.1.y}", "xz"),
        ("{submit.headers.Location}", "https://api.example.com/jobs/7"),
        ("{input.template}", "{key}"),
        ("{x} {input.empty}.", "{x} ."),
    ],
)
def test_values_become_text(template: str, filled: str) -> None:
    """Texts as they are, numbers and booleans as JSON writes them, once and never read as templates again."""
    assert render_text(template, VALUES) == filled


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{input.gone}", r"\{input\.gone\} has no value"),
        ("{submit.body.JobId}", r"\{submit\.body\.JobId\} has no value"),
        ("{input.list.2}", r"\{input\.list\.2\} has no value"),
        ("{input.list.x}", "has no value"),
        ("{input.list.²}", "has no value"),
        ("{input.name.x}", "has no value"),
        ("{baseline.body}", r"\{baseline\.body\} has no value"),
        ("{input.none}", r"\{input\.none\} is null"),
    ],
)
def test_a_missing_value_is_named(template: str, problem: str) -> None:
    """The error says which placeholder has no value."""
    with pytest.raises(MissingValue, match=problem) as caught:
        render_text(template, VALUES)
    assert caught.value.name == template.strip("{}")


@pytest.mark.parametrize("template", ["{input}", "{input.list}", "{input.huge}", "{submit}"])
def test_what_is_no_text_cannot_be_part_of_one(template: str) -> None:
    """Lists, objects and numbers that cannot be written are refused inside a text."""
    with pytest.raises(TemplateError) as caught:
        render_text(f"a{template}", VALUES)
    assert template in str(caught.value)


def test_a_stranger_is_refused() -> None:
    """A value that no JSON has is named by its placeholder and refused."""
    with pytest.raises(TemplateError, match="stranger"):
        render_text("{input}", {"input": object()})


@pytest.mark.parametrize(
    ("template", "url"),
    [
        ("https://example.com/{input.name}", "https://example.com/a%20b%2Fc%3Fd%23e"),
        ("https://example.com/{input.name:path}", "https://example.com/a%20b/c%3Fd%23e"),
        ("https://example.com/?q={input.name}&e={input.empty}", "https://example.com/?q=a%20b%2Fc%3Fd%23e&e="),
        ("{submit.headers.location}/result", "https://api.example.com/jobs/7/result"),
        ("{submit.body.path}?id={input.n}", "/jobs/7?id=5"),
        ("https://example.com/../{input.n}", "https://example.com/../5"),
    ],
)
def test_a_url_takes_references_in_front_and_encodes_the_rest(template: str, url: str) -> None:
    """A leading value is a URL reference as it is; any other is percent-encoded."""
    assert render_url(template, VALUES) == url


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("https://example.com/{input.empty}/cancel", "is empty"),
        ("https://example.com/{input.up}/cancel", "segment of dots"),
        ("https://example.com/.{input.dot}/", "segment of dots"),
        ("https://example.com/%2{input.e}%2{input.e}", "segment of dots"),
        ("https://example.com/{input.n}/{input.dot}?{input.n}", "segment of dots"),
        ("https://example.com/{input.climb:path}", "segment of dots"),
        ("https://example.com/{input.broken}", "not valid text"),
        ("{submit.headers.gone}", "has no value"),
    ],
)
def test_a_value_cannot_lead_a_url_elsewhere(template: str, problem: str) -> None:
    """Neither an empty segment nor one of dots comes from a value."""
    values = VALUES | {"input": VALUES["input"] | {"dot": ".", "e": "E", "climb": "a/../../b"}}
    with pytest.raises(TemplateError, match=problem):
        render_url(template, values)


@given(value=st.text(min_size=1))
def test_any_text_stays_one_segment(value: str) -> None:
    """Whatever the value, it comes back whole from its own segment of the path, or is refused."""
    try:
        url = render_url("https://example.com/jobs/{input.x}/status", {"input": {"x": value}})
    except TemplateError:
        assert value in {".", ".."} or any("\ud800" <= character <= "\udfff" for character in value)
    else:
        parts = urlsplit(url)
        assert parts.netloc == "example.com"
        assert [unquote(segment) for segment in parts.path.split("/")] == ["", "jobs", value, "status"]


@pytest.mark.parametrize("template", ["{input.line}", "{input.umlaut}", "Bearer {secret.TOKEN}"])
def test_no_header_holds_control_characters(template: str) -> None:
    """A value that would break or split a header is refused, and not quoted in the error."""
    with pytest.raises(TemplateError, match="no header can hold") as caught:
        render_header(template, VALUES)
    assert "s3cr3t" not in str(caught.value)


def test_a_header_has_no_blanks_around_it() -> None:
    """Blanks that a value brings along are cut off."""
    assert render_header("{input.x}", {"input": {"x": " a b "}}) == "a b"


def test_a_placeholder_alone_keeps_its_type() -> None:
    """Alone in a JSON value a placeholder is its value; beside other text it is text."""
    template = {"n": "{input.n}", "list": "{input.list}", "none": "{input.none}", "text": "n={input.n}", "{key}": [1.5]}
    assert render_json(template, VALUES) == {
        "n": 5,
        "list": ["x", {"y": "z"}],
        "none": None,
        "text": "n=5",
        "{key}": [1.5],
    }


def test_a_value_is_given_away_as_a_copy() -> None:
    """Whoever gets it may change it; the values stay as they are."""
    values = {"input": {"rows": [{"n": 1}]}}
    filled: Any = render_json("{input.rows}", values)
    filled[0]["n"] = 2
    assert values == {"input": {"rows": [{"n": 1}]}}


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_value_goes_through_json_unchanged(value: object) -> None:
    """A value put into a JSON body is that value, braces and all."""
    assert json.dumps(render_json(["{input.x}"], {"input": {"x": value}})) == json.dumps([value])
