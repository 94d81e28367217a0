"""A spec whose placeholders can never be filled is refused when it is written."""

from __future__ import annotations

from typing import Any

import pytest

from tarry import JobSpec, Match, Request, SpecError

UNTIL = Match("body.state", succeeded="OK")


@pytest.mark.parametrize(
    ("submit", "poll", "words"),
    [
        ("https://api.example.com/{submit.body.id}", "https://api.example.com/x", "only after the submit"),
        (None, "https://api.example.com/{submit.body.id}", "needs a submit"),
        (None, "https://api.example.com/{poll.body.next}", "poll: {poll…} needs a submit"),
        (
            "https://api.example.com/{baseline.body.at}",
            "https://api.example.com/x",
            "submit: {baseline…} needs a baseline",
        ),
    ],
)
def test_a_placeholder_that_nothing_fills_is_refused(submit: str | None, poll: str, words: str) -> None:
    """The error names the call and what to write."""
    fields: dict[str, Any] = {"poll": Request("GET", poll), "until": UNTIL}
    if submit is not None:
        fields["submit"] = Request("POST", submit)
    with pytest.raises(SpecError) as caught:
        JobSpec(**fields)
    assert words in str(caught.value)


def test_placeholders_of_the_submit_input_key_and_secrets_are_fine() -> None:
    """What will be known when the call is made may be named."""
    spec = JobSpec(
        submit=Request("POST", "https://api.example.com/{input.team}/jobs", headers={"X-Api-Key": "{secret.API}"}),
        poll=Request("GET", "https://api.example.com/jobs/{submit.body.id}?key={key}"),
        until=UNTIL,
        input={"team": "blue"},
    )
    assert spec.submit is not None


def test_the_arguments_of_a_submitting_callable_cannot_name_its_answer() -> None:
    """A callable gets `args`, and both share them: what only the poll could know is refused."""
    with pytest.raises(SpecError, match="only after the submit"):
        JobSpec(submit=print, poll=print, until=UNTIL, args={"id": "{submit.body}"})
    with pytest.raises(SpecError, match="needs a submit"):
        JobSpec(poll=print, until=UNTIL, args={"ids": ["{submit.body}"]})
    assert JobSpec(
        submit=Request("POST", "https://api.example.com"), poll=print, until=UNTIL, args={"id": "{submit.body}"}
    )


@pytest.mark.parametrize("field", ["input", "args"])
def test_what_json_cannot_hold_is_refused_before_it_is_stored(field: str) -> None:
    """A restart would give back something else: a text for a set or an instant."""
    given: dict[str, Any] = {field: {"at": {1, 2}}}
    with pytest.raises(SpecError, match=f"JobSpec.{field}: JSON cannot hold a set"):
        JobSpec(poll=print, until=UNTIL, **given)


def test_the_input_is_a_copy() -> None:
    """What the caller does to its own lists afterwards does not change a frozen spec."""
    rows = [1]
    spec = JobSpec(poll=print, until=UNTIL, input={"rows": rows})
    rows.append(2)
    assert spec.input == {"rows": [1]}


@pytest.mark.parametrize(
    "host", ["https://files.example.com", "files.example.com/a", "me@files.example.com", "a b", ""]
)
def test_a_host_that_no_url_can_have_is_refused(host: str) -> None:
    """It would never match, and the job would find out in the middle."""
    with pytest.raises(SpecError, match=r"JobSpec\.allowed_hosts: no host"):
        JobSpec(poll=print, until=UNTIL, allowed_hosts=[host])


def test_hosts_come_with_a_port_or_without() -> None:
    """Names and addresses alike."""
    hosts = ("files.example.com", "files.example.com:8443", "127.0.0.1", "[::1]:80", "::1")
    assert JobSpec(poll=print, until=UNTIL, allowed_hosts=hosts).allowed_hosts == hosts


def test_what_is_kept_is_an_expression_over_the_body() -> None:
    """It is checked when the spec is written, like every stored expression."""
    poll = Request("GET", "https://api.example.com/jobs/1")
    assert JobSpec(poll=poll, until=UNTIL, keep="{state: state}").keep == "{state: state}"
    with pytest.raises(SpecError, match=r"JobSpec\.keep"):
        JobSpec(poll=poll, until=UNTIL, keep="state ||")
