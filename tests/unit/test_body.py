"""Bodies: unpacked within bounds, judged by content, never a crash."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarry.core.observation import Observation, folded, unfolded
from tarry.http import body as bodies
from tarry.http.body import MAX_TEXT, BodyError, Decoder, decode, parse
from tarry.words import CallKind, ErrorKind

LIMIT = 1_000


def unpacked(data: bytes, coding: str = "gzip", limit: int = LIMIT, step: int = 7) -> bytes:
    """The data after a decoder took it in small pieces."""
    decoder = Decoder(coding, limit)
    for start in range(0, len(data), step):
        decoder.feed(data[start : start + step])
    return decoder.finish()


def failure(data: bytes, coding: str = "gzip", limit: int = LIMIT, step: int = 7) -> ErrorKind:
    """Why the data cannot be unpacked."""
    with pytest.raises(BodyError) as caught:
        unpacked(data, coding, limit, step)
    assert caught.value.as_error().sent
    return caught.value.kind


@pytest.mark.parametrize("coding", ["", "identity", " Identity , "])
def test_a_plain_body_is_taken_as_it_is(coding: str) -> None:
    """Up to the limit, to the byte."""
    assert unpacked(b"x" * LIMIT, coding) == b"x" * LIMIT
    assert failure(b"x" * (LIMIT + 1), coding) is ErrorKind.TOO_LARGE


@pytest.mark.parametrize("coding", ["gzip", "X-GZip", "identity, gzip"])
@pytest.mark.parametrize("step", [1, 10_000])
def test_gzip_is_unpacked(coding: str, step: int) -> None:
    """In any pieces, of one member or several, up to the limit, to the byte."""
    assert unpacked(gzip.compress(b"x" * LIMIT), coding, step=step) == b"x" * LIMIT
    assert unpacked(gzip.compress(b"ab") + gzip.compress(b"cd"), coding, step=step) == b"abcd"
    assert failure(gzip.compress(b"x" * (LIMIT + 1)), coding, step=step) is ErrorKind.TOO_LARGE


def test_an_empty_body_may_be_labelled() -> None:
    """A 304 or the answer to a HEAD names a coding and has nothing to unpack."""
    assert unpacked(b"") == b""


def test_a_bomb_is_not_unpacked() -> None:
    """Memory is taken up to the limit and one byte, whatever the body would grow to."""
    bomb = gzip.compress(b"\0" * 50_000_000)
    decoder = Decoder("gzip", 100_000)
    with pytest.raises(BodyError):
        decoder.feed(bomb)
    assert len(decoder._body) == 100_001


def test_members_without_end_are_bounded() -> None:
    """Packed bytes count too: members that unpack to nothing would never reach the limit."""
    assert failure(gzip.compress(b"") * 100) is ErrorKind.TOO_LARGE


@given(
    raw=st.binary(max_size=40),
    is_packed=st.booleans(),
    coding=st.sampled_from(["", "gzip", "identity", "br"]),
    limit=st.integers(0, 60),
)
def test_a_body_that_came_at_once_is_unpacked_as_one_in_pieces(
    raw: bytes, is_packed: bool, coding: str, limit: int
) -> None:
    """The same bytes, or the same error."""

    def told(unpack: Any) -> Any:
        try:
            return unpack(gzip.compress(raw) if is_packed else raw, coding, limit)
        except BodyError as error:
            return error.kind

    assert told(bodies.unpacked) == told(unpacked)


@pytest.mark.parametrize(
    ("data", "coding"),
    [
        (b'{"a": 1}', "gzip"),
        (gzip.compress(b"x" * 50)[:-9], "gzip"),
        (gzip.compress(b"x") + b"rest", "gzip"),
        (zlib.compress(b"x"), "gzip"),
        (gzip.compress(gzip.compress(b"x")), "gzip, gzip"),
        (b"x", "br"),
        (b"x", "deflate"),
        (b"x", ",".join(["gzip"] * 20)),
    ],
)
def test_what_is_not_gzip_once_is_refused(data: bytes, coding: str) -> None:
    """Another coding, more than one, a wrong label, an early end."""
    assert failure(data, coding) is ErrorKind.BAD_BODY


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"state": "DONE"}', {"state": "DONE"}),
        (b"  [] ", []),
        (b" \t\r\n[1] \t\r\n", [1]),
        (b"null", None),
        (b"5", 5),
        (b'"text"', "text"),
        (b"true", True),
        (b"\xef\xbb\xbf{}", {}),
        ('{"a": "\u00e9"}'.encode(), {"a": "\u00e9"}),
        ('{"a": "\u00e9"}'.encode("utf-16"), {"a": "\u00e9"}),
        ('{"a": "\u00e9"}'.encode("utf-16-le"), {"a": "\u00e9"}),
        ('{"a": "\u00e9"}'.encode("utf-16-be"), {"a": "\u00e9"}),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b'"\\u0000"', "\0"),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'["\\ud800", {"\\uDC00": 1}]', ["\ufffd", {"\ufffd": 1}]),
        (b"1e308", 1e308),
        (b"9" * 4300, int("9" * 4300)),
        (b"[" * 64 + b"]" * 64, json.loads("[" * 64 + "]" * 64)),
        (b'["[[[[" , ' + b'"\\"[" , ' * 100 + b"1]", ["[[[[", *['"['] * 100, 1]),
        (b"[" + b"{}," * 100 + b"{}]", [{}] * 101),
    ],
)
def test_json_is_told_by_its_content(data: bytes, value: Any) -> None:
    """Whatever the label says: a mark, an encoding, a scalar, brackets in texts."""
    body = parse(data, "text/html; charset=ebcdic")
    assert body.is_json
    assert body.value == value


@pytest.mark.parametrize(
    "data",
    [
        b"DONE",
        b"<html><body>Maintenance</body></html>",
        b'{"status":"ok"} junk',
        b"[1] [2]",
        b"[1],",
        "\u00a0[1]".encode(),
        "[1]\u2028".encode(),
        b"\x0c[1]",
        b"[1]\x00",
        b'{"a": NaN}',
        b"[Infinity]",
        b"-Infinity",
        b"1e999",
        b"[-1e999]",
        b"9" * 4301,
        b"[" * 65 + b"]" * 65,
        b'{"a":' * 65 + b"1" + b"}" * 65,
        b"[" * 100_000,
        b"]" * 1000 + b"[" * 1000,
        b'"' + b"\\" * 1001,
        b"{",
        b"\x00\x01\x02",
    ],
)
def test_what_is_no_json_is_text(data: bytes) -> None:
    """Broken, too deep, out of range: kept as a bounded text for the message, never a crash."""
    body = parse(data)
    assert not body.is_json
    assert isinstance(body.value, str)
    assert body.value == decode(data)[:MAX_TEXT]


@pytest.mark.parametrize("data", [b"", b"  \r\n", b"\xef\xbb\xbf"])
def test_an_empty_body_is_none(data: bytes) -> None:
    """Blanks alone are empty too."""
    body = parse(data)
    assert (body.value, body.is_json) == (None, False)


def test_depth_is_told_in_linear_time() -> None:
    """A megabyte of quotes, backslashes or brackets is no way to stop the process."""
    for pattern in (b'"\\', b'\\"', b"[]", b"[", b'["', b"{}[", b'"'):
        parse(b"[[" * 40 + pattern * (1_000_000 // len(pattern)))


@pytest.mark.parametrize(
    ("data", "content_type", "text"),
    [
        (b"caf\xe9", "text/plain; charset=iso-8859-1", "caf\u00e9"),
        (b"caf\xe9", 'text/plain; charset="Latin1"', "caf\u00e9"),
        (b"caf\xe9", "text/plain", "caf\ufffd"),
        (b"caf\xc3\xa9", "text/plain; charset=iso-8859-1", "caf\u00e9"),
        *((b"caf\xe9", f"text/plain; charset={charset}", "caf\ufffd") for charset in ("zlib", "hex", "rot13", "idna")),
        *(
            (b"caf\xe9", f"text/plain; charset={charset}", "caf\ufffd")
            for charset in ("punycode", "undefined", "x" * 9_999)
        ),
        (b"\xff\xfeA\x00\x00", "", "A\ufffd"),
    ],
)
def test_the_label_never_picks_a_codec(data: bytes, content_type: str, text: str) -> None:
    """UTF-8, UTF-16 and Latin-1 are all there is; what cannot be read becomes U+FFFD."""
    assert decode(data, content_type) == text


def test_secrets_are_taken_out_first() -> None:
    """What a server echoes of a secret does not reach the body, as JSON or as text."""

    def redact(text: str) -> str:
        return text.replace("hunter2", "***")

    assert parse(b'{"a": "key hunter2"}', redact=redact).value == {"a": "key ***"}
    assert parse(b"key hunter2", redact=redact).value == "key ***"


def test_no_secret_no_search() -> None:
    """As long as no secret was given out, nothing is looked at."""

    class Idle:
        def __bool__(self) -> bool:
            return False

        def __call__(self, text: str) -> str:
            raise AssertionError("searched")

    assert parse(b'{"a": "\\/"}', redact=Idle()).value == {"a": "/"}


def test_json_without_escapes_is_searched_as_a_whole() -> None:
    """One look at the text, not one at each string."""
    looks = []

    def redact(text: str) -> str:
        looks.append(text)
        return text

    data = '{"a": ["b", "c"]}'
    assert parse(data.encode(), redact=redact).value == {"a": ["b", "c"]}
    assert looks == [data]


@given(data=st.binary(max_size=200), content_type=st.text(max_size=50))
def test_any_bytes_are_a_body(data: bytes, content_type: str) -> None:
    """Never an error, and what comes out can be stored."""
    body = parse(data, content_type)
    json.dumps(body.value, allow_nan=False)


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        st.lists,
        max_leaves=30,
    )
)
def test_any_json_comes_through(value: Any) -> None:
    """What a service sends as JSON is what is seen."""
    body = parse(json.dumps(value).encode())
    assert body.is_json
    assert body.value == value


def test_bodies_that_say_the_same_have_the_same_digest() -> None:
    """By it, an answer is told from the last one unread; what is no JSON has none."""
    one, same, other = (parse(data).digest for data in (b'{"state": "A"}', b'{"state": "A"}', b'{"state": "B"}'))
    assert one is not None
    assert one == same != other
    assert parse(b"<html>").digest is None


def test_a_body_that_is_known_is_not_read_again() -> None:
    """Its text stands for it; what is another, or cannot stand for itself, is read as ever."""
    data = b'{"state": "A"}'
    known = parse(data).digest
    again = parse(data, known=known)
    assert (again.value, again.is_json, again.digest, again.text) == (None, True, known, data.decode())
    assert parse(b'{"state": "B"}', known=known).value == {"state": "B"}
    for data in (b'{"a": "\\u00e9"}', b"no JSON", b"", b"  "):
        read = parse(data)
        once_more = parse(data, known=read.digest)
        assert (once_more.value, once_more.text, once_more.is_json) == (read.value, read.text, read.is_json)


def test_a_known_body_is_read_again_where_a_secret_is_in_it() -> None:
    """One that became a secret meanwhile, too: the text would show it."""
    data = b'{"state": "hunter2"}'
    known = parse(data).digest
    hidden = parse(data, redact=lambda text: text.replace("hunter2", "***"), known=known)
    assert (hidden.value, hidden.text) == ({"state": "***"}, None)
    assert parse(data, redact=lambda text: text.replace("elsewhere", "***"), known=known).value is None


def test_a_digest_is_neither_compared_nor_shown() -> None:
    """Two observations that say the same are the same, in one process or in two."""
    one, other = (Observation(CallKind.POLL, 1, 2, body={"a": 1}, digest=digest) for digest in (7, 8))
    assert one == other
    assert "digest" not in repr(one)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(_VALUES, st.booleans(), st.sampled_from(["", "secret", "1"]))
def test_a_body_that_was_folded_is_the_same_again(value: Any, is_ascii: bool, secret: str) -> None:
    """Whatever it holds and whatever was taken out of it; folded it is a text, where a text says all of it."""
    text = json.dumps(value, ensure_ascii=is_ascii)
    body = parse(
        text.encode("utf-8", "surrogatepass"), redact=lambda part: part.replace(secret, "*") if secret else part
    )
    seen = Observation(
        CallKind.POLL, 0, 1, 200, body=body.value, is_json=body.is_json, digest=body.digest, text=body.text
    )
    away = folded(seen)
    assert repr(unfolded(away)) == repr(seen)
    assert (away is seen) if body.text is None else (away.body is None and away.text == body.text)


def test_a_body_in_which_something_was_replaced_is_not_folded() -> None:
    """Its text says what it must not, or cannot, say."""
    assert parse(b'{"a": "plain"}').text == '{"a": "plain"}'
    assert parse(b'{"a": "secret"}', redact=lambda part: part.replace("secret", "*")).text is None
    assert parse(b'{"a": "\\ud800"}').text is None
    assert parse(b"no JSON").text is None
