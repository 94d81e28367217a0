"""`Request`: one HTTP request of a spec, as data with placeholders."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args
from urllib.parse import parse_qsl, urlsplit

from pydantic import Field, field_validator, model_validator

from tarry.core import templates
from tarry.core.durations import DurationLike, PositiveDuration
from tarry.core.model import Model
from tarry.core.texts import MAX_BITS
from tarry.errors import SpecError
from tarry.words import Json

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
Scalar = bool | int | float | str
_Fields = dict[str, Scalar | list[Scalar]]

MAX_URL = 8_192
MAX_HEADERS = 100
MAX_HEADER_VALUE = 16_384
MAX_DEPTH = 64

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")
_BLANK_OR_CONTROL = re.compile(r"[\s\x00-\x20\x7f-\xa0]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_FAMILY = re.compile(r"[1-5]xx")

_CONNECTION_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection"}
    | {"te", "trailer", "upgrade", "expect"}
)
_OWN_HEADERS = {
    "accept": "write accept=… instead",
    "content-type": "write content_type=… instead",
    "accept-encoding": "Tarry sets it, because it bounds what is unpacked",
}
_PRECONDITIONS = frozenset({"if-none-match", "if-modified-since"})
_CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key"})
_CREDENTIAL_PARTS = ("token", "secret", "api-key", "apikey", "password")


class Request(Model):
    """One HTTP request, with placeholders where it needs values.

    - `method`: GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS.
    - `url`: http or https, up to 8 KiB, or starting with a placeholder that is a URL reference.
    - `headers`, `params`: by name; a parameter may be a list. A credential is
      written as `{secret.NAME}` and never as itself.
    - `json`, `data` or `content`: at most one body: JSON, form fields, or text as it is.
    - `accept`, `content_type`: the headers of that name.
    - `accepted`: statuses besides 2xx whose answers are read, as codes (404) or families ("4xx").
    - `connect_timeout`, `read_timeout`, `total_timeout`: bounds of this call, within `poll_timeout`.
    - `idempotent`: the service honours the idempotency key, so a submit whose
      answer was lost may be sent again; `idempotency_header` is where the key goes.
    - `conditional`: a `poll` alone: the last answer's `ETag` and `Last-Modified` go with the next poll, which a
      service may answer with 304. A header `If-None-Match` or `If-Modified-Since` of your own goes in their place.

    Raises `SpecError` naming the field when the request can never be sent.
    """

    _positional: ClassVar[tuple[str, ...]] = ("method", "url")

    method: Method
    url: str
    headers: dict[str, str] = Field(default_factory=dict)
    params: _Fields = Field(default_factory=dict)
    json_body: Any = Field(default=None, alias="json")
    data: _Fields | None = None
    content: Annotated[str, Field(strict=True)] | None = None
    accept: str = "application/json"
    content_type: str | None = None
    accepted: tuple[Annotated[int, Field(strict=True)] | str, ...] = ()
    connect_timeout: PositiveDuration | None = None
    read_timeout: PositiveDuration | None = None
    total_timeout: PositiveDuration | None = None
    idempotent: Annotated[bool, Field(strict=True)] = False
    idempotency_header: str = "Idempotency-Key"
    conditional: Annotated[bool, Field(strict=True)] = False

    if TYPE_CHECKING:

        def __init__(
            self,
            method: Method,
            url: str,
            *,
            headers: Mapping[str, str] = ...,
            params: Mapping[str, Scalar | Sequence[Scalar]] = ...,
            json: Json | Mapping[str, Any] | Sequence[Any] = None,
            data: Mapping[str, Scalar | Sequence[Scalar]] | None = None,
            content: str | None = None,
            accept: str = "application/json",
            content_type: str | None = None,
            accepted: Sequence[int | str] = (),
            connect_timeout: DurationLike | None = None,
            read_timeout: DurationLike | None = None,
            total_timeout: DurationLike | None = None,
            idempotent: bool = False,
            idempotency_header: str = "Idempotency-Key",
            conditional: bool = False,
        ) -> None: ...

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text where a placeholder counts."""
        return tuple(text for _, text in _texts_by_field(self))

    @property
    def roots(self) -> frozenset[str]:
        """The roots of all placeholders, wherever they stand."""
        return frozenset().union(*map(templates.roots, self.texts))

    @cached_property
    def secret_names(self) -> frozenset[str]:
        """The names of the secrets that the request needs."""
        return frozenset().union(*map(templates.secret_names, self.texts))

    @property
    def is_revalidated(self) -> bool:
        """Whether the last answer's validators go with the request, and no header of the caller's."""
        return self.conditional and _PRECONDITIONS.isdisjoint(name.lower() for name in self.headers)

    def is_accepted(self, status: int) -> bool:
        """Whether an answer with this HTTP status is read: 2xx, and what `accepted` adds."""
        return 200 <= status <= 299 or status in self.accepted or f"{status // 100}xx" in self.accepted

    @field_validator("method", mode="before")
    @classmethod
    def _is_a_method(cls, value: object) -> object:
        if isinstance(value, str) and value not in _METHODS:
            hint = f"write {value.upper()}" if value.upper() in _METHODS else "use one of " + ", ".join(_METHODS)
            raise ValueError(f"no method of a request; {hint}")
        return value

    @field_validator("url")
    @classmethod
    def _is_a_url(cls, url: str) -> str:
        for name, value in parse_qsl(url.partition("?")[2]):
            _check_credential(name, value)
        return _checked(url, url_template_problem)

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        if len(headers) > MAX_HEADERS:
            raise ValueError(f"{len(headers)} headers; at most {MAX_HEADERS}")
        if len({name.lower() for name in headers}) < len(headers):
            raise ValueError("a name is there twice, in different case; write it once")
        for name, value in headers.items():
            _check_header(name, value)
        return headers

    @field_validator("params", "data")
    @classmethod
    def _are_fields(cls, fields: _Fields | None) -> _Fields | None:
        for name, value in (fields or {}).items():
            for item in value if isinstance(value, list) else [value]:
                _check_credential(name, str(item))
        return fields

    @field_validator("json_body")
    @classmethod
    def _is_json(cls, value: object) -> Json:
        return plain_json(value)

    @field_validator("accept", "content_type")
    @classmethod
    def _is_a_header_value(cls, value: str | None) -> str | None:
        if value is not None and "{" in value:
            raise ValueError("has a brace; placeholders do not work here")
        return None if value is None else _checked(value, _header_value_problem)

    @field_validator("idempotency_header")
    @classmethod
    def _is_a_header_name(cls, name: str) -> str:
        return _checked(name, _header_name_problem)

    @field_validator("accepted")
    @classmethod
    def _are_statuses(cls, accepted: tuple[int | str, ...]) -> tuple[int | str, ...]:
        for item in accepted:
            if not (_FAMILY.fullmatch(item) if isinstance(item, str) else 100 <= item <= 599):
                raise ValueError('write codes from 100 to 599 as numbers, families as texts such as "4xx"')
        return accepted

    @model_validator(mode="after")
    def _holds_together(self) -> Request:
        for field, text in _texts_by_field(self):
            _check_text(field, text)
        if sum(body is not None for body in (self.json_body, self.data, self.content)) > 1:
            raise ValueError("json, data and content are three ways to give one body; use one of them")
        if self.idempotency_header.lower() in {name.lower() for name in self.headers}:
            raise ValueError(f"headers: Tarry sends {self.idempotency_header} itself; leave it out, or rename it here")
        return self


_METHODS: tuple[str, ...] = get_args(Method)


def is_credential(name: str) -> bool:
    """Whether a header or parameter of this name is taken to hold a credential."""
    folded = name.lower().replace("_", "-")
    if folded == "idempotency-key":
        return False
    return folded in _CREDENTIALS or any(part in folded for part in _CREDENTIAL_PARTS)


def url_problem(url: str) -> str | None:
    """What is wrong with a whole URL, in words that do not repeat it; None when nothing is."""
    if len(url) > MAX_URL:
        return f"longer than {MAX_URL} characters"
    if _BLANK_OR_CONTROL.search(url) or "\\" in url or not url.isascii():
        return "has blanks, backslashes, control or non-ASCII characters; percent-encode them (a host as xn--…)"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "has no valid host and port"
    if parts.scheme not in {"http", "https"}:
        return "must start with http:// or https://"
    if "@" in parts.netloc:
        return "has a user or password; send credentials in a header, as {secret.NAME}"
    if not host or not _HOST.fullmatch(host) or port == 0:
        return "has no valid host and port"
    return "has a fragment (#…), which is never sent; leave it out" if "#" in url else None


def url_template_problem(url: str) -> str | None:
    """As `url_problem`, for a URL that may hold placeholders."""
    path = url.partition("?")[0]
    if any(found.root == "secret" and found.start < len(path) for found in templates.placeholders(url)):
        return "names a secret before the query, where it would be shown and stored; send it in a header or parameter"
    lead = templates.leading(url)
    rest = url[lead.end :] if lead else url
    return url_problem(("https://example.com" if lead else "") + templates.blanked(rest))


def plain_json(value: object, depth: int = 0) -> Json:
    """A copy of the value made of what JSON has; ValueError saying what cannot be.

    Tuples become lists. Refused: NaN and infinities, numbers of over 4,200
    digits, names that are not texts, broken texts, depth over 64 (and so cycles), and all other types.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH}, or in itself")
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise ValueError("JSON names are texts; a name here is not")
        return {_plain_text(name): plain_json(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item, depth + 1) for item in value]
    if isinstance(value, str):
        return _plain_text(value)
    return _plain_number(value)


def _plain_text(text: str) -> str:
    if _SURROGATE.search(text):
        raise ValueError("a text holds half a character (a lone surrogate)")
    return text


def _plain_number(value: object) -> Json:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and value.bit_length() <= MAX_BITS:
        return value
    if isinstance(value, float) and value - value == 0:  # neither NaN nor infinite
        return value
    if isinstance(value, int | float):
        raise ValueError("JSON has no NaN, no infinity, and Tarry no number of over 4,200 digits")
    raise ValueError(f"JSON cannot hold a {type(value).__name__}; give texts, numbers, lists and dicts")


def _checked(value: str, problem: Callable[[str], str | None]) -> str:
    found = problem(value)
    if found:
        raise ValueError(found)
    return value


def _header_name_problem(name: str) -> str | None:
    lowered = name.lower()
    if not _TOKEN.fullmatch(name):
        return "no legal name of a header"
    if lowered in _CONNECTION_HEADERS:
        return f"{name} belongs to the connection and is not yours to set; leave it out"
    return f"{name}: {_OWN_HEADERS[lowered]}" if lowered in _OWN_HEADERS else None


def _header_value_problem(value: str) -> str | None:
    if len(value) > MAX_HEADER_VALUE:
        return f"longer than {MAX_HEADER_VALUE} characters"
    if _CONTROL.search(value) or not value.isascii():
        return "has control or non-ASCII characters, no header can hold them"
    return "has blanks around it; leave them out" if value != value.strip() else None


def _check_header(name: str, value: str) -> None:
    _checked(name, _header_name_problem)
    problem = _header_value_problem(value)
    if problem:
        raise ValueError(f"{name}: {problem}")
    _check_credential(name, value)


def _check_credential(name: str, value: str) -> None:
    if is_credential(name) and not {"secret", "submit"} & templates.roots(value):
        raise ValueError(
            f"{name} is the name of a credential, and a spec is stored: write {{secret.NAME}} as its value, "
            "and give the secret to the Poller as secrets={'NAME': …}"
        )


def _check_text(field: str, text: str) -> None:
    try:
        templates.placeholders(text)
        _plain_text(text)
    except ValueError as error:
        raise SpecError(f"Request.{field}", str(error)) from None


def _texts_by_field(request: Request) -> Iterator[tuple[str, str]]:
    fields = {
        "url": request.url,
        "headers": list(request.headers.values()),
        "params": plain_json(request.params),
        "json": request.json_body,
        "data": plain_json(request.data),
        "content": request.content,
    }
    for field, value in fields.items():
        for text in templates.texts(value):
            yield field, text
