"""Databases that several processes can share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarry.store import SqlStore
from tests.acceptance.servers import Missing, database_of, emptied, mariadb_url, postgres_url, schema_of


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty one; a kind that the machine has not is skipped with the reason."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'jobs.db'}"
    try:
        url = schema_of(postgres_url()) if request.param == "postgres" else database_of(mariadb_url())
    except Missing as missing:
        pytest.skip(str(missing))
    emptied(store := SqlStore(url))
    store.close()
    return url.render_as_string(hide_password=False)
