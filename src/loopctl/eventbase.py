"""What all events of a run have in common."""

from pydantic import BaseModel, ConfigDict


class Event(BaseModel):
    """What all events have; the log fills these in.

    Attributes:
        seq: From 1, without gaps within a run.
        ts: ISO 8601, UTC.
        run: The run's id.
        task: The task it is about; ``None`` for the run itself.
    """

    # Built when first used: a command that reads no events does not pay for them.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    seq: int = 0
    ts: str = ""
    run: str = ""
    task: str | None = None
