"""Something that happens once, and those who wait for it."""

from __future__ import annotations

import asyncio


class Signal:
    """Set once, and set from then on; as an `asyncio.Event`, but there is nothing of it until somebody waits."""

    __slots__ = ("_bell", "_is_set")

    def __init__(self) -> None:
        self._is_set = False
        self._bell: asyncio.Future[None] | None = None

    def set(self) -> None:
        """It has happened; again is fine."""
        self._is_set = True
        if self._bell is not None and not self._bell.done():
            self._bell.set_result(None)

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._is_set

    async def wait(self) -> None:
        """Until it has happened."""
        if not self._is_set:
            if self._bell is None:
                self._bell = asyncio.get_running_loop().create_future()
            await asyncio.wait({self._bell})
