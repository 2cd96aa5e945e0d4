"""Client for the Durable Payments API."""

from ._api import Options
from ._attempt import Request, Response, Transport
from ._client import Client
from ._list import Page, Rows
from ._version import VERSION as __version__
from .errors import ApiError, ApiConnectionError, PaymentsError, SignatureError, ApiTimeoutError
from .webhooks import sign_webhook, verify_webhook

__all__ = [
    "ApiError",
    "Client",
    "ApiConnectionError",
    "Options",
    "Page",
    "PaymentsError",
    "Request",
    "Response",
    "Rows",
    "SignatureError",
    "ApiTimeoutError",
    "Transport",
    "__version__",
    "sign_webhook",
    "verify_webhook",
]
