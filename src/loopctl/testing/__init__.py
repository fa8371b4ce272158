"""What tests of the project and of others' adapters use: doubles for the ports, a scripted model."""

from loopctl.testing.doubles import (
    MemoryBrain,
    MemoryEventLog,
    MemoryRepository,
    MemorySandbox,
    MemorySessions,
    ScriptedGate,
    ScriptedStep,
    ScriptedWorker,
    StillClock,
)
from loopctl.testing.money import MemoryPurse, MemoryReplies, ScriptedCompactor, ScriptedRecall

__all__ = [
    "MemoryBrain",
    "MemoryEventLog",
    "MemoryPurse",
    "MemoryReplies",
    "MemoryRepository",
    "MemorySandbox",
    "MemorySessions",
    "ScriptedCompactor",
    "ScriptedGate",
    "ScriptedRecall",
    "ScriptedStep",
    "ScriptedWorker",
    "StillClock",
]
