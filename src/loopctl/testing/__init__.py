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
from loopctl.testing.pins import MemoryPins
from loopctl.testing.script import (
    ChatRequest,
    CutOff,
    Garbled,
    HangUp,
    Held,
    HttpError,
    NoChoices,
    Play,
    Script,
    ScriptedCall,
    ScriptedReply,
    Silence,
    overflow,
    rate_limited,
    wrong_key,
)
from loopctl.testing.server import ScriptedModel
from loopctl.testing.till import MemoryTill

__all__ = [
    "ChatRequest",
    "CutOff",
    "Garbled",
    "HangUp",
    "Held",
    "HttpError",
    "MemoryBrain",
    "MemoryEventLog",
    "MemoryPins",
    "MemoryPurse",
    "MemoryReplies",
    "MemoryRepository",
    "MemorySandbox",
    "MemorySessions",
    "MemoryTill",
    "NoChoices",
    "Play",
    "Script",
    "ScriptedCall",
    "ScriptedCompactor",
    "ScriptedGate",
    "ScriptedModel",
    "ScriptedRecall",
    "ScriptedReply",
    "ScriptedStep",
    "ScriptedWorker",
    "Silence",
    "StillClock",
    "overflow",
    "rate_limited",
    "wrong_key",
]
