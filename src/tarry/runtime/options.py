"""The options of a `Poller`, for what passes them on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypedDict

from tarry.core.durations import DurationLike
from tarry.core.politeness import Politeness
from tarry.http.clients import Client
from tarry.ports import Clock, Offload, StoredEvent, Transport


class Options(TypedDict, total=False):
    """As `Poller` takes them by keyword, and says what they mean."""

    client: Client | None
    namespace: str
    secrets: Mapping[str, str] | Callable[[str], str] | None
    on_event: Callable[[StoredEvent], object] | None
    lease: DurationLike
    politeness: Politeness | None
    keep_finished: DurationLike | None
    transport: Transport | None
    clock: Clock | None
    offload: Offload | None
    token: Callable[[], str]
