"""Sends a poll once, whatever the auth of the caller's client would make of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any


@asynccontextmanager
async def sent_once(client: Any, message: Any, no_auth: Any) -> AsyncIterator[Any]:
    """The open response to `message`, which goes out once, as the client's auth has it.

    The auth is shown the response, and so learns what its next call needs. What it
    asks for elsewhere, before or after, is a sign-in and is sent; the first request of its
    own to where `message` goes, after that one was answered, ends it. Raises what the
    client and the auth raise, and `RuntimeError` when the auth gives up before the call.
    """
    async with aclosing(client.auth.async_auth_flow(message)) as flow:
        request = await _next(flow, None)
        while request is not None and not _is_same(request, message):
            request = await _next(flow, await _sign_in(client, request, no_auth))
        if request is None:
            raise RuntimeError("the auth ended without the call")
        response = await client.send(request, stream=True, auth=no_auth, follow_redirects=False)
        try:
            request = await _next(flow, response)
            yield response
        finally:
            await response.aclose()
        # After the body was read: the connection may be the only one.
        while request is not None and not _is_same(request, message):
            request = await _next(flow, await _sign_in(client, request, no_auth))


async def _sign_in(client: Any, request: Any, no_auth: Any) -> Any:
    return await client.send(request, auth=no_auth, follow_redirects=False)


async def _next(flow: Any, response: Any) -> Any:
    """The request that the auth wants sent after this response; None when it is done."""
    try:
        return await flow.asend(response)
    except StopAsyncIteration:
        return None


def _is_same(request: Any, message: Any) -> bool:
    """Whether this is the call: an auth may have signed a copy, or added to its query."""
    return request is message or _target(request) == _target(message)


def _target(request: Any) -> tuple[Any, ...]:
    return request.method, request.url.scheme, request.url.host, request.url.port, request.url.path
