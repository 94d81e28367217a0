"""What is wrong, or weaker than it could be, with a database and the jobs in it; nothing is changed."""

from tarry.store.doctor.examine import examine
from tarry.store.doctor.findings import Finding, Level

__all__ = ["Finding", "Level", "examine"]
