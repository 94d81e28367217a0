from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.bench import BENCHES, START, Bench


@pytest.fixture(params=BENCHES)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """Each kind of store in turn, open and empty."""
    made = BENCHES[request.param](tmp_path)
    made.store.open(START)
    yield made
    made.close()
