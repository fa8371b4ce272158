"""The one door to LiteLLM: imported late, kept from the network, silent.

Its import takes seconds and 200 MB, so it happens in the worker's process and at the first use.
"""

import logging
import os
import warnings
from functools import cache
from types import ModuleType
from typing import Any, Final

SWITCHES: Final = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_OFFLINE_MODE": "true",
    "LANGSMITH_TRACING": "false",
}
"""Without them the import fetches a table of prices from the network."""

_LOGGERS: Final = ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router", "httpx", "openai")


@cache
def library() -> ModuleType:
    """Return LiteLLM with everything off that is not a request: fetches, logs, advice, retries."""
    # Set before the import, whatever the starter of the process did: read there, once.
    os.environ.update(SWITCHES)  # noqa: TID251
    import litellm  # noqa: PLC0415  # takes seconds, and a run of commands never needs it

    litellm.suppress_debug_info = True
    # It would fetch tokenizers of some models; counting with another one is near enough.
    litellm.disable_hf_tokenizer_download = True
    litellm.num_retries = 0
    # Embeddings take a given 0 for "not given", and retry this often.
    loose: Any = litellm  # it does not say that it exports this one
    loose.DEFAULT_MAX_RETRIES = 0
    # Its log may quote requests, and those the key.
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(logging.CRITICAL + 1)
        logger.propagate = False
    for module in ("pydantic", "litellm"):
        warnings.filterwarnings("ignore", module=module)
    return litellm
