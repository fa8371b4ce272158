"""What sections of settings are made of: the frozen table and the kinds of values in it."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

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


class Section(BaseModel):
    """A frozen table of settings; a key it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
