"""A model that judges goals, makes tasks of them and does them, for what is driven by a goal."""

from collections.abc import Callable, Sequence
from typing import Any

from loopctl.testing import ScriptedCall, ScriptedReply
from loopctl.testing.script import ChatRequest

Make = Callable[..., Any]

CLEAR: dict[str, Any] = {"ambiguous": False, "questions": []}
UNCLEAR: dict[str, Any] = {
    "ambiguous": True,
    "questions": [
        {"question": "Which word?", "assumption": "word", "options": ["word", "verb"]},
        {"question": "In which folder?", "assumption": "the root"},
    ],
}


def todo(name: str, *deps: str, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "title": f"Write {name}",
        "prompt": f"Write the word into {name}.txt",
        "verify_cmd": f"grep -q . {name}.txt",
        "deps": list(deps),
        **more,
    }


def backlog(*tasks: dict[str, Any], done_when: Sequence[dict[str, str]] = ()) -> dict[str, Any]:
    return {"done_when": list(done_when) or [{"check": "test -e B.txt"}], "tasks": list(tasks)}


TWO = backlog(todo("A"), todo("B", "A"))
RESTING = backlog(todo("A", assumes=[1]), todo("B", "A"))


def reply(*calls: tuple[str, Any]) -> ScriptedReply:
    return ScriptedReply(calls=tuple(ScriptedCall(name, given) for name, given in calls))


class Mind:
    """Judges, plans and writes: each as often as it is asked."""

    def __init__(self, judged: Any = CLEAR, *backlogs: Any) -> None:
        self.judged = judged
        self.backlogs = backlogs or (TWO,)
        self.asked = 0
        self.seen: Any = {"met": "unclear", "why": "nobody knows", "quotes": []}
        self.proposals: list[dict[str, Any]] = []
        self.prompts: list[str] = []

    def __call__(self, request: ChatRequest) -> ScriptedReply:
        words = [str(message["content"]) for message in request.messages]
        if words[0].startswith("You judge whether a goal"):
            return self._said(self.judged)
        if words[0].startswith("You judge whether a repository"):
            return self._said(self.seen)
        if words[0].startswith("You turn a goal"):
            self.prompts.append(words[1])
            made = self.backlogs[min(self.asked, len(self.backlogs) - 1)]
            self.asked += 1
            return self._said(made)
        return self._worked("\n".join(words))

    def _said(self, answer: Any) -> ScriptedReply:
        return ScriptedReply(answer) if isinstance(answer, str) else reply(("answer", answer))

    def _worked(self, words: str) -> ScriptedReply:
        names = [f"{name}.txt" for name in "ABCD"]
        name = max(names, key=lambda one: words.rfind(f"word into {one}"))
        text = "verb\n" if "Which word? verb" in words else "word\n"
        proposals = [("propose", one) for one in self.proposals]
        self.proposals = []
        return reply(
            *proposals,
            ("write_file", {"path": name, "content": text}),
            ("todo_done", {"summary": "written"}),
        )


def begun(whole: Make, mind: Callable[[ChatRequest], Any], manifest: str | None = None) -> Any:
    one = whole(mind)
    path = one.root / "tasks" / "ACTIVE.toml"
    if manifest is None:
        path.unlink()
    else:
        path.write_bytes(manifest.encode())
    one.settings('[loop]\nmode = "relay"\n')
    one.commit()
    return one


def manifest(one: Any) -> str:
    text: str = (one.root / "tasks" / "ACTIVE.toml").read_bytes().decode()
    return text
