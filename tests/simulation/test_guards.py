"""Each rule of the protocol is needed, and the simulation notices when it is gone."""

from __future__ import annotations

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.world import Report, simulate

SEEDS = range(1, 301)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_missing_rule_is_noticed(name: str) -> None:
    """With one rule switched off some seed breaks what that rule is for; with it on, the same seed breaks nothing."""
    red = _first_red(name)
    assert red is not None, f"{name}: {len(SEEDS)} seeds are green without the rule"
    assert not simulate(red.seed).broken


def _first_red(name: str) -> Report | None:
    mutant = MUTANTS[name]
    for seed in SEEDS:
        report = simulate(seed, mutant)
        if any(broken.rule in mutant.breaks for broken in report.broken):
            return report
    return None
