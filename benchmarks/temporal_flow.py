"""The workflow around the activity: Temporal loads it by itself, so it imports nothing else."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow


@workflow.defn
class Wait:
    """Waits for one job."""

    @workflow.run
    async def run(self, url: str) -> str:
        """Until the activity says how it ended."""
        found: str = await workflow.execute_activity(
            "wait", url, start_to_close_timeout=timedelta(hours=1), heartbeat_timeout=timedelta(seconds=30)
        )
        return found
