"""`tarry doctor`: what is wrong, or weaker than it could be, with a database and the jobs in it."""

from __future__ import annotations

from dataclasses import asdict

from tarry.cli.database import shown, url_of
from tarry.cli.exits import Exit
from tarry.cli.text import as_json, plain
from tarry.cli.world import World, say


def doctor_command(world: World, db: str, *, as_json_object: bool) -> int:
    """Print the findings; exit 1 when one is an error."""
    from tarry.store import SqlStore
    from tarry.store.doctor import Level

    store = SqlStore(url_of(db, must_exist=True))
    try:
        findings = store.doctor(world.clock.now())
    finally:
        store.close()
    is_sound = all(finding.level is not Level.ERROR for finding in findings)
    if as_json_object:
        found = [asdict(finding) for finding in findings]
        say(as_json({"database": shown(url_of(db)), "is_sound": is_sound, "findings": found}, indent=2))
    else:
        for finding in findings:
            say(f"{finding.level:<8} {finding.name:<11} {plain(finding.text)}")
    return Exit.OK if is_sound else Exit.FAILED
