"""A table: drawn on a terminal, plain columns in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tarry.cli.world import is_terminal, say


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print it; the cells must be escaped already."""
    if not is_terminal(sys.stdout):
        for line in plain_table(columns, rows):
            say(line)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        # Text, not str: a key may look like markup.
        table.add_row(*(Text(cell, overflow="ellipsis", no_wrap=True) for cell in row))
    Console(highlight=False, markup=False, emoji=False).print(table)


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The table as lines, a heading first, columns two blanks apart."""
    every = [[name.upper() for name in columns], *rows]
    widths = [max(len(row[column]) for row in every) for column in range(len(columns))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in every]
