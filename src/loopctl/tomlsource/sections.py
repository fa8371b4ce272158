"""What sections of settings are made of: the frozen table and the kinds of values in it."""

import re
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

UNSHOWN: Final = "unshown"
"""The type of an error about a value that may be a key: no message shows it."""

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Count = Annotated[int, Field(ge=0, le=(1 << 63) - 1)]
Positive = Annotated[int, Field(ge=1, le=(1 << 63) - 1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL character")
    return text


Text = Annotated[str, AfterValidator(_without_nul)]
Word = Annotated[Text, StringConstraints(min_length=1)]
Texts = Annotated[tuple[Word, ...], Field(strict=False)]
"""A list of texts; TOML's arrays come as lists."""


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise PydanticCustomError(
            UNSHOWN,
            "it is no name of an environment variable; keep the value in a variable, and name that",
        )
    return name


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as exc:
        raise ValueError("is no URL") from exc
    if "@" in parts.netloc:
        raise PydanticCustomError(
            UNSHOWN, "it holds a user name or password; keep that in a variable, and name it"
        )
    if parts.scheme not in {"http", "https"} or not host or re.search(r"[\s\x00-\x1f]", text):
        raise ValueError("is no URL that begins with http:// or https://")
    return text


Variable = Annotated[str, AfterValidator(_variable)]
"""The name of an environment variable; what it holds may be a key, so settings never hold it."""
Url = Annotated[Word, AfterValidator(_url)]
"""An address, without what belongs into a variable."""


class Section(BaseModel):
    """A frozen table of settings; a key it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
