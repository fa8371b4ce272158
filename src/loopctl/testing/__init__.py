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

__all__ = [
    "MemoryBrain",
    "MemoryEventLog",
    "MemoryRepository",
    "MemorySandbox",
    "MemorySessions",
    "ScriptedGate",
    "ScriptedStep",
    "ScriptedWorker",
    "StillClock",
]
