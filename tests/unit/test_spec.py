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
        (None, "https://api.example.com/{poll.body.next}", "nothing fills {poll"),
        ("https://api.example.com/{baseline.body.at}", "https://api.example.com/x", "nothing fills {baseline"),
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
