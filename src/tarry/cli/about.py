"""`tarry db`: where the database is, whether this version fits it, what it holds."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tarry.cli.database import shown, url_of
from tarry.cli.exits import Exit
from tarry.cli.text import as_json, count, plain
from tarry.cli.world import say

if TYPE_CHECKING:
    from tarry.store.inventory import Inventory


def about_command(db: str, *, as_json_object: bool) -> int:
    """Print it; exit 4 when the database was made by a newer Tarry."""
    from tarry.store import SqlStore

    store = SqlStore(url_of(db, must_exist=True))
    try:
        found = store.inventory()
    finally:
        store.close()
    where = shown(url_of(db))
    if as_json_object:
        say(as_json({"database": where, **asdict(found)}, indent=2))
    else:
        for name, text in _facts(where, found):
            say(f"{name:<10} {text}")
    return Exit.TROUBLE if found.schema > found.newest else Exit.OK


def _facts(where: str, found: Inventory) -> list[tuple[str, Any]]:
    facts = [
        ("database", plain(where)),
        ("engine", found.engine),
        ("schema", _fit(found)),
    ]
    if found.jobs is not None:
        facts.append(("jobs", f"{found.jobs}, {found.live} not over, {found.held} held"))
        facts.append(("workers", count(found.workers or 0, "worker") + " alive"))
    return facts


def _fit(found: Inventory) -> str:
    if found.schema == found.newest:
        return f"version {found.schema}, current"
    if found.schema > found.newest:
        return f"version {found.schema}, made by a newer Tarry: this one knows up to {found.newest}"
    if found.schema == 0:
        return "no tables yet: they are made at the first use"
    return f"version {found.schema}, brought to {found.newest} at the next use"
