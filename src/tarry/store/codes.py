"""What the codes of database servers mean.

PostgreSQL's are SQLSTATEs, whose first two characters are a class; MariaDB's and MySQL's are numbers.
Words of a message are never looked at: they change with version and language, and may hold values.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Fault(Enum):
    """What to do about it."""

    PASSING = "passing"
    """The whole unit of work may be made again."""
    TWICE = "twice"
    """A row with this key is there already."""
    VALUE = "value"
    """One value is at fault."""
    OTHER = "other"
    """A person has to do something."""


_PASSING_CLASSES = frozenset({"08", "40", "53", "57", "58"})
_VALUE_CLASSES = frozenset({"21", "22", "23", "54"})
# A lock not had in time; a transaction that was ended for idling; a server that only reads, as one does after a switch.
_PASSING_STATES = frozenset({"55P03", "55006", "25P03", "25P04", "25006"})

_STATE_ADVICE: Mapping[str, str] = {
    "53100": "the disk of the database is full: make room",
    "53300": "the database has no connection left: raise its limit, or run fewer processes",
    "25006": "the database is read-only now, as a standby is: name the primary",
    "42501": "the user may not do this: grant it the rights on the tables",
    "42P01": "the tables do not look as expected: open the store before it is used, and let nothing else change them",
    "42703": "the tables do not look as expected: open the store before it is used, and let nothing else change them",
    "3D000": "there is no such database: create it first",
    "3F000": "there is no schema to create tables in: create it, or name one in search_path",
    "28P01": "the database refuses the user or the password",
    "28000": "the database refuses the user",
}

_PASSING_NUMBERS = frozenset(
    {
        *(1020, 1205, 1213, 1317, 1927, 1969, 3024, 3572),  # changed meanwhile, lock wait, deadlock, killed, too slow
        *(1021, 1041, 1114, 1135, 1180, 1181),  # disk, memory, threads, an error in COMMIT or ROLLBACK
        *(1040, 1053, 1129, 1152, 1158, 1159, 1160, 1161, 1203, 1226),  # too many connections, shutdown, network
        *(1290, 1792, 1836),  # read-only now
        *(2002, 2003, 2005, 2006, 2012, 2013, 2014, 2055, 4031),  # not reached, or the connection broke
    }
)
_TWICE_NUMBERS = frozenset({1062, 1586})
_VALUE_NUMBERS = frozenset(
    {1048, 1118, 1153, 1264, 1265, 1292, 1300, 1301, 1364, 1365, 1366, 1406, 1411, 1451, 1452, 1690, 3819, 4025}
)
_NUMBER_ADVICE: Mapping[int, str] = {
    1021: "the disk of the database is full: make room",
    1114: "the disk of the database is full: make room",
    1040: "the database has no connection left: raise its limit, or run fewer processes",
    1290: "the database is read-only now, as a replica is: name the primary",
    1792: "the database is read-only now, as a replica is: name the primary",
    1836: "the database is read-only now, as a replica is: name the primary",
    1044: "the user may not use this database: grant it the rights",
    1045: "the database refuses the user or the password",
    1049: "there is no such database: create it first",
    1142: "the user may not do this: grant it the rights on the tables",
    1146: "the tables do not look as expected: open the store before it is used, and let nothing else change them",
    1054: "the tables do not look as expected: open the store before it is used, and let nothing else change them",
    1227: "the user may not do this: grant it the right",
}


def of_sqlstate(state: str) -> tuple[Fault, str]:
    """What a SQLSTATE means, and what may help; "" where there is nothing more to say."""
    advice = _STATE_ADVICE.get(state, "")
    if state == "23505":
        return Fault.TWICE, advice
    if state in _PASSING_STATES or state[:2] in _PASSING_CLASSES:
        return Fault.PASSING, advice
    return (Fault.VALUE if state[:2] in _VALUE_CLASSES else Fault.OTHER), advice


def of_number(number: int) -> tuple[Fault, str]:
    """What an error number of MariaDB or MySQL means, and what may help."""
    advice = _NUMBER_ADVICE.get(number, "")
    if number in _TWICE_NUMBERS:
        return Fault.TWICE, advice
    if number in _PASSING_NUMBERS:
        return Fault.PASSING, advice
    return (Fault.VALUE if number in _VALUE_NUMBERS else Fault.OTHER), advice
