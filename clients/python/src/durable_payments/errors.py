"""Errors of this package."""

from __future__ import annotations

import json
from typing import Any, List, Optional

from .types import ErrorDetail


class PaymentsError(Exception):
    """Every error of this package."""


class ApiError(PaymentsError):
    """The API refused the call. Act on ``code``; the message is for people and may change."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        type: str,
        code: str,
        details: List[ErrorDetail],
        request_id: Optional[str],
    ) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status."""
        self.type = type
        """Group of the code, such as ``invalid_request_error``."""
        self.code = code
        """One of ``types.ErrorCode``, or one that the API has added since."""
        self.details = details
        """Every field that is wrong."""
        self.request_id = request_id
        """Names the call in the service's logs; include it when you ask for help."""


class ApiConnectionError(PaymentsError):
    """No answer came, also after the retries: the outcome of a write is unknown.

    Repeat a create with the same ``idempotency_key``.
    """


class ApiTimeoutError(ApiConnectionError):
    """No answer came in time."""


class SignatureError(PaymentsError):
    """The webhook is not from the service, is too old, or was changed on its route: answer 400."""


def read_refusal(status: int, text: str, request_id: Optional[str]) -> ApiError:
    """Reads the body of a refusal; what a proxy answers has no code of the API."""
    error = _read_error(text)
    return ApiError(
        error.get("message", f"The server answered {status} without an error of the API."),
        status=status,
        type=error.get("type", "api_error"),
        code=error.get("code", "unexpected_response"),
        details=error.get("details", []),
        request_id=error.get("request_id", request_id),
    )


def _read_error(text: str) -> Any:
    try:
        body = json.loads(text)
    except ValueError:
        return {}
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {}
