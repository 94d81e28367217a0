"""The status URL: what moves it, and how far.

A `poll` whose URL names `{poll…}` moves with each judged answer that has the
value. The verdict redirect moves it to where the spec's `redirect` leads, a 307
or 308 that the condition does not judge to its `Location`. A URL found in an answer
keeps to the origin of the request that found it, save for `allowed_hosts`. What
was found stays until it is moved again: an answer without the value changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tarry.core import templates
from tarry.core.answers import Answers, StatusUrl, answer
from tarry.core.observation import Observation
from tarry.core.origin import OriginError, check_found, origin_of, resolve
from tarry.core.request import Request
from tarry.core.spec import JobSpec
from tarry.core.templates import MissingValue, TemplateError
from tarry.frozen import replace

_LOCATION = "{poll.headers.location}"


class NowhereError(ValueError):
    """An answer leads nowhere that may be called; one line for a person, with origins at most."""


def redirected(spec: JobSpec, key: str, seen: Observation, answers: Answers, *, is_told: bool) -> StatusUrl:
    """Where an answer sends the polls to come: by `redirect` when the condition told so, else by its Location.

    Raises `NowhereError`.
    """
    template = spec.redirect if is_told and spec.redirect else _LOCATION
    try:
        return _found(template, _values(spec, key, seen, answers), spec)
    except (TemplateError, OriginError) as error:
        raise NowhereError(str(error)) from None


def followed(spec: JobSpec, key: str, seen: Observation, answers: Answers) -> StatusUrl | None:
    """The status URL after a judged answer, where the URL of `poll` names `{poll…}`.

    Where the answer lacks the value it is the one that worked last. Raises `NowhereError`.
    """
    poll = spec.poll
    if not isinstance(poll, Request) or not spec.is_led:
        return current(spec, answers)
    try:
        return _found(poll.url, _values(spec, key, seen, answers), spec)
    except MissingValue:
        return current(spec, answers) or _of_submit(poll.url, spec, key, answers)
    except (TemplateError, OriginError) as error:
        raise NowhereError(str(error)) from None


def current(spec: JobSpec, answers: Answers) -> StatusUrl | None:
    """The status URL to be polled in place of the spec's own; None as long as none was found for this one."""
    found = answers.status_url
    return found if found is not None and found.instead_of == getattr(spec.poll, "url", None) else None


def home_of(spec: JobSpec, request: Request, answers: Answers) -> str | None:
    """The URL whose origin a request's secrets are bound to: its own where it is written out.

    Else that of the request whose answer leads to it, as it was before any answer moved it.
    """
    roots = templates.authority_roots(request.url)
    if not roots:
        return templates.blanked(request.url)
    if "poll" in roots and request is not spec.poll and isinstance(spec.poll, Request):
        return home_of(spec, spec.poll, answers)
    return templates.finder(request.url, {**answers.values("", None), "poll": answers.submit})


def _values(spec: JobSpec, key: str, seen: Observation, answers: Answers) -> Mapping[str, Any]:
    return replace(answers, poll=answer(seen)).values(key, spec.input)


def _found(template: str, values: Mapping[str, Any], spec: JobSpec) -> StatusUrl:
    found_at = templates.finder(template, values)
    url = resolve(templates.render_url(template, values), found_at)
    if templates.ANSWER_ROOTS.isdisjoint(templates.authority_roots(template)):
        origin_of(url)  # as the spec writes it: no answer led here
        return StatusUrl(url, None, _own_url(spec))
    check_found(url, found_at, spec.allowed_hosts)
    return StatusUrl(url, found_at, _own_url(spec))


def _own_url(spec: JobSpec) -> str:
    return spec.poll.url if isinstance(spec.poll, Request) else ""


def _of_submit(template: str, spec: JobSpec, key: str, answers: Answers) -> StatusUrl | None:
    """Where the first poll went, by the submit's answer."""
    try:
        return _found(template, replace(answers, poll=None).values(key, spec.input), spec)
    except (TemplateError, OriginError):
        return None
