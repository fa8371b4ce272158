"""Sorts a fork into its bucket, and says why: pure rules over the worker's words.

The worker's own word can only make it stricter: external before scope before quality. Words that
tell of the outside world make a fork external whatever the worker calls it, and a doubtful one is
external, since a trial of such options would be wasted at best.
"""

import re
from dataclasses import dataclass
from typing import Final

from loopctl.forking import Bucket
from loopctl.steps import ForkRaised

MOST_CHARS: Final = 40_000
"""Of a fork that is read; more is no question that anybody could settle."""

_EXTERNAL: Final = re.compile(
    r"\b(?:"
    r"credentials?|passwords?|passphrases?|secrets?|(?:api|access|private|signing)[ _-]?keys?"
    r"|(?:access|auth|bearer|refresh|api)[ _-]?tokens?"
    r"|accounts?|subscriptions?|billing|payments?|purchas\w+|pric(?:e|es|ing)|dollars?|usd|money"
    r"|budgets?|paid|invoic\w+"
    r"|licen[cs]\w+|legal\w*|law|laws|gdpr|hipaa|copyright\w*|trademarks?|patents?"
    r"|terms of (?:service|use)|privacy polic(?:y|ies)|business rules?"
    r"|irreversibl\w+|irrevocabl\w+|cannot be undone|force[ -]push\w*"
    r"|deploy\w*|staging|(?:in|on|to|into) production|publish\w*"
    r"|production (?:data|database|server|system|environment)s?"
    r"|(?:drop|delete|wipe|truncate) (?:the |a |all )*(?:data|databases?|tables?|buckets?|users?)"
    r"|(?:cloud|hosting|payment|email) providers?|vendors?|aws|azure|gcp"
    r"|send (?:an? |the )?(?:e-?mails?|messages?|notifications?)"
    r")\b"
)

_SCOPE: Final = re.compile(
    r"\b(?:"
    r"mvp|scope|how far|how (?:much|many) of|minimal version|full version|nice[ -]to[ -]have"
    r"|backwards?[ -]compatib\w+|breaking changes?|public (?:api|interface|names?)"
    r"|user[ -](?:facing|visible)|look and feel|taste|wording|naming"
    r"|default (?:value|behaviou?r)|which (?:features?|formats?|platforms?|languages?|versions?)"
    r")\b"
)

NARROW: Final = frozenset({"mvp", "narrow", "narrower", "minimal", "minimum", "basic", "core"})
WIDE: Final = frozenset({"full", "wide", "wider", "complete", "everything", "all", "extended"})
"""Names that say how far an option goes."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """A fork's bucket, and why it is that one; ``reason`` is one line."""

    bucket: Bucket
    reason: str


def bucket_of(raised: ForkRaised) -> Sorted:
    """Return the bucket that counts, the strictest that anything speaks for."""
    said = raised.bucket.strip().lower()
    text = words_of(raised)
    if said == Bucket.EXTERNAL:
        return Sorted(Bucket.EXTERNAL, "the worker says so")
    if len(text) > MOST_CHARS:
        return Sorted(Bucket.EXTERNAL, "it is too long to be read")
    if found := _EXTERNAL.search(text):
        return Sorted(Bucket.EXTERNAL, f'it speaks of "{_shown(found[0])}"')
    if said not in set(Bucket):
        return Sorted(Bucket.EXTERNAL, "the worker's word for it is none of the three")
    if said == Bucket.SCOPE:
        return Sorted(Bucket.SCOPE, "the worker says so")
    if found := _SCOPE.search(text):
        return Sorted(Bucket.SCOPE, f'it speaks of "{_shown(found[0])}"')
    if reach := next((one.name for one in raised.options if extent(one.name)), ""):
        return Sorted(Bucket.SCOPE, f'the option "{_shown(reach)}" says how far to go')
    return Sorted(Bucket.QUALITY, "the worker says so, and nothing speaks of scope or the outside")


def words_of(raised: ForkRaised) -> str:
    """Return all that a fork says, as one text in small letters."""
    options = (f"{option.name}\n{option.prompt}" for option in raised.options)
    # Names are often written as identifiers.
    return "\n".join((raised.question, raised.best_guess, *options)).replace("_", " ").lower()


def extent(name: str) -> str:
    """Return ``narrow`` or ``wide`` where an option's name says so; else empty."""
    words = set(re.findall(r"[a-z]+", name.lower()))
    is_narrow, is_wide = bool(words & NARROW), bool(words & WIDE)
    if is_narrow == is_wide:
        return ""
    return "narrow" if is_narrow else "wide"


def _shown(text: str) -> str:
    return " ".join(text.split())[:60]
