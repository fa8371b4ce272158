"""The event of a fork that was met inside a task."""

from typing import Literal

from loopctl.eventbase import Event
from loopctl.forking import Bucket


class ForkClassified(Event):
    """A fork that a worker has met was sorted, and settled where it was not tried or asked about.

    Attributes:
        said: The worker's own word for its bucket.
        bucket: The one that counts.
        reason: Why it is that one; where an option is chosen, why that one as well.
        chosen: The option that is taken without a trial; empty where it is tried or asked about.
    """

    type: Literal["fork_classified"] = "fork_classified"
    candidate: str
    question: str
    options: tuple[str, ...]
    said: str
    bucket: Bucket
    reason: str
    chosen: str = ""
