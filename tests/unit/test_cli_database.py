"""The database as it is named and shown."""

from __future__ import annotations

import pytest

from tarry.cli.database import shown


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("postgresql://tarry:s3cr3t@db.example.com/jobs", "postgresql://tarry:***@db.example.com/jobs"),
        ("mysql://tarry:s3c@r3t@db.example.com/jobs", "mysql://tarry:***@db.example.com/jobs"),
        (
            "postgresql://db.example.com/jobs?user=a&password=s3cr3t",
            "postgresql://db.example.com/jobs?user=a&password=***",
        ),
        ("postgresql:///jobs?PassWord=s3cr3t&port=5433", "postgresql:///jobs?PassWord=***&port=5433"),
        ("postgresql:///jobs?sslpassword=s3=cr3t", "postgresql:///jobs?sslpassword=***"),
        ("mysql://tarry:s3cr3t@db.example.com/jobs?passwd=s3cr3t", "mysql://tarry:***@db.example.com/jobs?passwd=***"),
        (
            "postgresql://db.example.com:5433/jobs?sslmode=require",
            "postgresql://db.example.com:5433/jobs?sslmode=require",
        ),
        ("/home/me/my jobs.db", "/home/me/my jobs.db"),
    ],
)
def test_no_password_is_shown(named: str, told: str) -> None:
    """Neither before the host nor in the query; what else is in the URL stays."""
    assert shown(named) == told
