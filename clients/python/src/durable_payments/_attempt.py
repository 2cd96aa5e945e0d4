"""One attempt over HTTP, with the standard library."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.message import Message
from typing import IO, Any, Callable, Mapping, Optional

from .errors import ApiConnectionError, ApiTimeoutError


@dataclass(frozen=True)
class Request:
    """What is sent; a retry sends the same."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: Optional[bytes]


@dataclass(frozen=True)
class Response:
    """Answer as it came. ``text`` has numbers as they were written."""

    status: int
    headers: Mapping[str, str]
    text: str


Transport = Callable[[Request, float], Response]
"""Sends a request within some seconds. Raises ``ApiConnectionError`` when no answer comes."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The API has no redirects, and another host must not get the key."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def send(request: Request, timeout: float) -> Response:
    """Sends a request through the proxies of the environment, if any are set there.

    The timeout is that of each wait for the network, not of the whole answer.
    """
    prepared = urllib.request.Request(
        request.url, data=request.body, headers=dict(request.headers), method=request.method
    )
    try:
        with _open(prepared, timeout) as response:
            # The case of a name does not matter.
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Response(response.code, headers, response.read().decode("utf-8", "replace"))
    except (OSError, http.client.HTTPException) as error:
        raise _explain(request, timeout, error) from error


def _open(prepared: urllib.request.Request, timeout: float) -> Any:
    try:
        return _OPENER.open(prepared, timeout=timeout)
    except urllib.error.HTTPError as refusal:
        return refusal  # It is an answer, too.


def _explain(request: Request, timeout: float, error: Exception) -> ApiConnectionError:
    where = f"{request.method} {request.url.split('?')[0]}"
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    # A timeout of a socket has a class of its own before Python 3.10.
    if "timed out" in str(cause):
        return ApiTimeoutError(f"{where} gave no answer within {timeout} s.")
    return ApiConnectionError(f"{where} could not be reached or broke off: {cause}")
