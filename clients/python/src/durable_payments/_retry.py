"""When a call is repeated, and after which wait."""

from __future__ import annotations

from typing import Optional

from .errors import ApiError, ApiConnectionError

FIRST_WAIT = 0.5
WAIT_MAX = 8.0
RETRY_AFTER_MAX = 60.0
"""A server that asks for a longer wait than this is not waited for."""


def should_retry(error: Exception, repeatable: bool) -> bool:
    """Whether a repeat under the same key can help. ``repeatable``: it does no harm to run twice."""
    if not isinstance(error, ApiError):
        return repeatable and isinstance(error, ApiConnectionError)
    if error.status == 429:
        return True  # The call had no effect.
    if not repeatable:
        return False
    return error.status >= 500 or error.code == "idempotency_request_in_progress"


def choose_wait(retry: int, retry_after: Optional[str], random: float) -> Optional[float]:
    """Seconds until the next attempt: twice as long after each, with jitter, and at least
    ``Retry-After``. None when the server asks for too long a wait.

    ``retry`` is 0 before the first retry, ``random`` from 0 to 1.
    """
    backoff: float = min(WAIT_MAX, FIRST_WAIT * 2**retry) * (0.5 + random / 2)
    try:
        after = float(retry_after or 0)
    except ValueError:  # A date.
        return backoff
    if not after > 0:
        return backoff
    # Jitter on top: those who wait for the same second do not all come at once.
    return None if after > RETRY_AFTER_MAX else max(backoff, after + random * 0.25)
