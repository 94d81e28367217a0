"""From a request of a spec to one that can be sent: values in, secrets in, rules kept."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from tarry.core import templates
from tarry.core.answers import StatusUrl, Validators
from tarry.core.origin import Origin, OriginError, check_found, origin_of, resolve, resolved
from tarry.core.request import Request, is_credential, plain_json
from tarry.core.templates import TemplateError
from tarry.core.validators import bare
from tarry.frozen import quick
from tarry.http.secrets import SecretError, Secrets
from tarry.ports import Prepared
from tarry.words import CallKind, Micros, micros


class CallRefused(Exception):
    """The call must not or cannot be made. Its text is one line for a person, free of secrets."""


def prepare(
    request: Request,
    *,
    kind: CallKind,
    values: Mapping[str, Any],
    secrets: Secrets,
    timeout: Micros,
    base: str | None = None,
    home: str | None = None,
    status_url: StatusUrl | None = None,
    validators: Validators | None = None,
    allowed_hosts: Collection[str] = (),
    idempotency_key: str | None = None,
    refresh: bool = False,
) -> Prepared:
    """Fill in the request, or raise `CallRefused`.

    `values` holds what placeholders may name: `input`, `key`, and the answers `submit`,
    `baseline` and `poll`, each as {status, headers, body, url}. `base` is the URL of the request whose
    answer held the URL to call (default: of the answer that the URL names first): a URL found in an
    answer is resolved against it and keeps its origin, save for
    `allowed_hosts`. Secrets go to the origin of `home` (default: the URL's own, or `base`) and to no
    other. A `status_url` is called instead of the request's own URL; of `params` it gets those
    that it does not name itself. `validators` go with a conditional request to where they came from. `refresh`: the last call was
    denied, so secrets are fetched afresh. `timeout` bounds the whole call, in microseconds.
    """
    try:
        if status_url is not None or request.secret_names or templates.authority_roots(request.url):
            base = base or templates.finder(request.url, values)
            request = _where_it_may_go(request, values, base, home or base, status_url, allowed_hosts)
            values = {**values, "secret": secrets.resolve(request.secret_names, refresh=refresh)}
        filled = _Filling(request, values, status_url)
        url = filled.url(base)
        return Prepared(
            kind=kind,
            method=request.method,
            url=url,
            headers=filled.headers(
                idempotency_key if kind is CallKind.SUBMIT else None,
                () if validators is None else _preconditions(request, url, validators),
            ),
            content=filled.content(),
            timeout=timeout if request.total_timeout is None else min(timeout, micros(request.total_timeout)),
            connect_timeout=None if request.connect_timeout is None else micros(request.connect_timeout),
            read_timeout=None if request.read_timeout is None else micros(request.read_timeout),
        )
    except (TemplateError, OriginError, SecretError) as refused:
        raise CallRefused(str(refused)) from None
    except UnicodeError:
        raise CallRefused("a value is no valid text") from None


def _where_it_may_go(
    request: Request,
    values: Mapping[str, Any],
    base: str | None,
    home: str | None,
    status_url: StatusUrl | None,
    allowed_hosts: Collection[str],
) -> Request:
    """The request as it may be sent to where it leads, judged before any secret is fetched."""
    where = _target(request, values, base, allowed_hosts) if status_url is None else _moved(status_url, allowed_hosts)
    return _for_origin(request, where, home, allowed_hosts, is_moved=status_url is not None)


def _target(request: Request, values: Mapping[str, Any], base: str | None, allowed_hosts: Collection[str]) -> Origin:
    """Where the call would go, before any secret is fetched; refused when it may not go there."""
    url = resolve(templates.render_url(request.url.partition("?")[0], values), base)
    if not templates.ANSWER_ROOTS.isdisjoint(templates.authority_roots(request.url)):
        check_found(url, base, allowed_hosts)
    return origin_of(url)


def _moved(status_url: StatusUrl, allowed_hosts: Collection[str]) -> Origin:
    """As `_target`: what was allowed when the URL was found may not be any more."""
    if status_url.found_at is not None:
        check_found(status_url.url, status_url.found_at, allowed_hosts)
    return origin_of(status_url.url)


def _for_origin(
    request: Request, target: Origin, home: str | None, allowed_hosts: Collection[str], *, is_moved: bool
) -> Request:
    """The request as it may go to this origin: with its secrets only where they are bound to."""
    roots = templates.authority_roots(request.url)
    if not roots and not is_moved:
        return request
    home = home if roots else templates.blanked(request.url)
    if home is not None and origin_of(home) == target:
        return request
    if is_moved or (not templates.ANSWER_ROOTS.isdisjoint(roots) and target.is_among(allowed_hosts)):
        request = _without_credentials(request)
    if request.secret_names:
        raise OriginError(
            f"the call would send a secret to {target}; a secret goes to the origin that its request's URL writes out, "
            "or, where a placeholder leads the URL, to the origin of the request whose answer holds it"
        )
    return request


def _without_credentials(request: Request) -> Request:
    return request.model_copy(
        update={
            "headers": {name: text for name, text in request.headers.items() if not _is_secret(name, [text])},
            "params": {name: value for name, value in request.params.items() if not _is_secret(name, _items(value))},
        }
    )


def _is_secret(name: str, texts: Iterable[object]) -> bool:
    return is_credential(name) or any("secret" in templates.roots(str(text)) for text in texts)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _preconditions(request: Request, url: str, validators: Validators) -> Iterable[tuple[str, str]]:
    """The headers by which the service may answer that nothing changed."""
    if not request.is_revalidated or bare(url) != validators.url:
        return
    if validators.etag is not None:
        yield "If-None-Match", validators.etag
    if validators.last_modified is not None:
        yield "If-Modified-Since", validators.last_modified


@quick
@dataclass(frozen=True, slots=True)
class _Filling:
    """A request and the values for its placeholders; gives the parts of what is sent."""

    request: Request
    values: Mapping[str, Any]
    status_url: StatusUrl | None = None

    def url(self, base: str | None) -> str:
        params = self.request.params
        if self.status_url is None:
            url = resolved(templates.render_url(self.request.url, self.values), base)
            if not params:
                return url
        else:
            url = self.status_url.url
            named = {name for name, _ in parse_qsl(url.partition("?")[2], keep_blank_values=True)}
            params = {name: value for name, value in params.items() if name not in named}
        if params:
            # Appended, never merged: the query of a signed URL has to stay as it is.
            url += ("&" if "?" in url else "?") + urlencode(self._pairs(params), quote_via=quote)
        origin_of(url)
        return url

    def headers(
        self, idempotency_key: str | None, preconditions: Iterable[tuple[str, str]]
    ) -> tuple[tuple[str, str], ...]:
        request = self.request
        headers = [(name, templates.render_header(text, self.values)) for name, text in request.headers.items()]
        headers.append(("Accept", request.accept))
        content_type = request.content_type or self._content_type()
        if content_type:
            headers.append(("Content-Type", content_type))
        if idempotency_key is not None:
            headers.append((request.idempotency_header, idempotency_key))
        headers += preconditions
        return tuple(headers)

    def content(self) -> bytes | None:
        if self.request.json_body is not None:
            return self._json()
        if self.request.data is not None:
            return urlencode(self._pairs(self.request.data)).encode("ascii")
        if self.request.content is not None:
            return templates.render_text(self.request.content, self.values).encode()
        return None

    def _content_type(self) -> str | None:
        if self.request.json_body is not None:
            return "application/json"
        if self.request.data is not None:
            return "application/x-www-form-urlencoded"
        return None if self.request.content is None else "text/plain; charset=utf-8"

    def _json(self) -> bytes:
        try:
            body = plain_json(templates.render_json(self.request.json_body, self.values))
        except TemplateError:
            raise
        except ValueError as error:
            raise TemplateError(f"the JSON body, filled in: {error}") from None
        return json.dumps(body, separators=(",", ":")).encode("ascii")

    def _pairs(self, fields: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [(name, self._field(item)) for name, value in fields.items() for item in _items(value)]

    def _field(self, value: Any) -> str:
        return templates.render_text(value, self.values) if isinstance(value, str) else json.dumps(value)
