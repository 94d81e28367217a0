"""`python -m tests.vendors`: one line a service, and whether its spec says what it has to."""

from __future__ import annotations

from collections.abc import Iterable

from tarry.cli.table import plain_table
from tests.vendors.vendors import Vendor, vendors


def _row(vendor: Vendor) -> list[str]:
    wrong = [list(found) for found in (vendor.wrong_verdicts(), vendor.wrong_hints(), vendor.wrong_urls())]
    examples, hints = len(vendor.examples), len(vendor.hints)
    return [
        vendor.id,
        _share(examples - len(wrong[0]), examples),
        _share(hints - len(wrong[1]), hints) if hints or wrong[1] else "-",
        "yes" if not wrong[2] else "no",
        vendor.spec.until.type,
        "; ".join(line for lines in wrong for line in lines),
    ]


def _share(good: int, all_: int) -> str:
    return f"{good}/{all_}"


def _print(lines: Iterable[str]) -> None:
    print("\n".join(lines))  # a command of the tests


if __name__ == "__main__":
    _print(
        plain_table(["service", "examples", "hints", "url", "condition", "wrong"], [_row(each) for each in vendors()])
    )
