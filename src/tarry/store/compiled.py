"""SQL that was compiled once, for every SQLite store of the process."""

from __future__ import annotations

from typing import Any

from sqlalchemy.util import LRUCache


class Compiled(LRUCache[Any, Any]):
    """Statements as SQL; those that were not used for long are let go.

    SQLAlchemy looks them up by dialect and statement. Each engine has a dialect of its own, which would
    compile them all again, but one SQLite dialect is like the other.
    """

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(key[1:], default)

    def __setitem__(self, key: Any, compiled: Any) -> None:
        super().__setitem__(key[1:], compiled)


COMPILED = Compiled(500)
