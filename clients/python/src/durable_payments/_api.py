"""Calls to one installation with one key. Resources are written over it."""

from __future__ import annotations

import json
import random
import time
import urllib.parse
import uuid
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional

from . import _attempt
from ._attempt import Request, Response, Transport
from ._retry import choose_wait, should_retry
from ._version import VERSION
from .errors import ApiConnectionError, PaymentsError, read_refusal


@dataclass(frozen=True)
class Options:
    """Options of a call; those that are None are the client's.

    ``timeout``: seconds for one attempt. ``retries_max``: attempts after the first one.
    ``on_response``: called with the successful answer before it is parsed.
    """

    timeout: Optional[float] = None
    retries_max: Optional[int] = None
    on_response: Optional[Callable[[Response], None]] = None


class Api:
    def __init__(
        self,
        api_key: str,
        base_url: str,
        timeout: float,
        retries_max: int,
        transport: Optional[Transport],
    ) -> None:
        if not api_key:
            raise PaymentsError("An api_key is needed: sk_sandbox_… or sk_live_….")
        if not base_url.startswith(("http://", "https://")):
            raise PaymentsError("A base_url is needed, such as https://payments.example.com.")
        self._api_key = api_key
        self._base_url = base_url.rstrip("/")
        self._timeout = timeout
        self._retries_max = retries_max
        self._transport = transport or _attempt.send

    def get(
        self,
        path: str,
        query: Optional[Mapping[str, Any]] = None,
        options: Optional[Options] = None,
    ) -> Any:
        values = {name: value for name, value in (query or {}).items() if value is not None}
        search = f"?{urllib.parse.urlencode(values)}" if values else ""
        return self._call("GET", f"{path}{search}", options=options)

    def create(
        self,
        path: str,
        body: Mapping[str, Any],
        idempotency_key: Optional[str],
        options: Optional[Options],
    ) -> Any:
        """Creates a resource: every attempt has the same key and the same bytes."""
        key = idempotency_key or str(uuid.uuid4())
        return self._call("POST", path, body, {"Idempotency-Key": key}, options=options)

    def post(self, path: str, body: Mapping[str, Any], options: Optional[Options] = None) -> Any:
        return self._call("POST", path, body, options=options)

    def post_once(
        self, path: str, body: Mapping[str, Any], options: Optional[Options] = None
    ) -> Any:
        """A call that would act again, so that only a refusal without effect is repeated."""
        return self._call("POST", path, body, options=options, repeatable=False)

    def patch(self, path: str, body: Mapping[str, Any], options: Optional[Options] = None) -> Any:
        return self._call("PATCH", path, body, options=options)

    def delete(self, path: str, options: Optional[Options] = None) -> Any:
        return self._call("DELETE", path, options=options)

    def _call(
        self,
        method: str,
        path: str,
        body: Optional[Mapping[str, Any]] = None,
        more_headers: Optional[Mapping[str, str]] = None,
        options: Optional[Options] = None,
        repeatable: bool = True,
    ) -> Any:
        headers = {
            "Authorization": f"Bearer {self._api_key}",
            "User-Agent": f"durable-payments-python/{VERSION}",
            **(more_headers or {}),
        }
        payload = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8")
        if payload is not None:
            headers["Content-Type"] = "application/json"
        request = Request(method, f"{self._base_url}{path}", headers, payload)
        return _parse(self._send_until_answered(request, options or Options(), repeatable))

    def _send_until_answered(
        self, request: Request, options: Options, repeatable: bool
    ) -> Response:
        timeout = self._timeout if options.timeout is None else options.timeout
        retries_max = self._retries_max if options.retries_max is None else options.retries_max
        retry = 0
        while True:
            retry_after = None
            error: Exception
            try:
                response = self._transport(request, timeout)
                if 200 <= response.status < 300:
                    if options.on_response is not None:
                        options.on_response(response)
                    return response
                retry_after = response.headers.get("retry-after")
                error = _refusal(response)
            except ApiConnectionError as broken:
                error = broken
            wait = choose_wait(retry, retry_after, random.random())
            if retry >= retries_max or wait is None or not should_retry(error, repeatable):
                raise error
            time.sleep(wait)
            retry += 1


def route(template: str, *ids: str) -> str:
    """Path with each ID encoded. An empty one would name the list instead of a resource."""
    if not all(ids):
        raise PaymentsError("An ID must not be empty.")
    return template.format(*(urllib.parse.quote(each, safe="") for each in ids))


def _parse(response: Response) -> Any:
    try:
        return json.loads(response.text)
    except ValueError:  # Not from the API, such as a proxy's page.
        raise _refusal(response) from None


def _refusal(response: Response) -> Exception:
    return read_refusal(response.status, response.text, response.headers.get("request-id"))
