"""How calls are repeated, over a scripted transport."""

from __future__ import annotations

import json
import unittest
from typing import Any, Callable, List, Optional, Union
from unittest import mock

import durable_payments
from durable_payments import ApiConnectionError, ApiError, Client, Options, Request, Response
from durable_payments._retry import choose_wait

Line = Union[Response, Exception]


def answer(status: int, body: Any, **headers: str) -> Response:
    names = {name.replace("_", "-").lower(): value for name, value in headers.items()}
    return Response(status, names, body if isinstance(body, str) else json.dumps(body))


def refuse(status: int, code: str, **headers: str) -> Response:
    error = {"type": "t", "code": code, "message": "No.", "request_id": "req_1"}
    return answer(status, {"error": error}, **headers)


class Retries(unittest.TestCase):
    def setUp(self) -> None:
        self.requests: List[Request] = []
        self.waits: List[float] = []
        patches = (
            mock.patch("time.sleep", self.waits.append),
            mock.patch("random.random", lambda: 1.0),
        )
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)

    def connect(self, *script: Line, retries_max: int = 4) -> Client:
        lines = list(script)

        def transport(request: Request, timeout: float) -> Response:
            self.requests.append(request)
            line = lines.pop(0) if len(lines) > 1 else lines[0]
            if isinstance(line, Exception):
                raise line
            return line

        return Client("sk_x", "http://h/b/", retries_max=retries_max, transport=transport)

    def test_a_create_is_repeated_with_the_same_key_and_bytes(self) -> None:
        for first in (
            ApiConnectionError("broken"),
            refuse(503, "temporarily_unavailable"),
            answer(500, "Bad luck"),
            refuse(429, "rate_limited"),
            refuse(409, "idempotency_request_in_progress"),
        ):
            with self.subTest(first=first):
                self.requests.clear()
                client = self.connect(first, answer(201, {"id": "r"}))
                refund = client.refunds.create({"payment_id": "p", "reason": "Zoë"})
                self.assertEqual(refund["id"], "r")
                one, two = self.requests
                self.assertEqual(one, two)
                self.assertRegex(one.headers["Idempotency-Key"], "^[0-9a-f-]{36}$")
                self.assertIn("Zoë".encode("utf-8"), one.body or b"")

    def test_each_call_has_a_key_of_its_own_unless_the_caller_names_one(self) -> None:
        client = self.connect(answer(201, {}))
        client.refunds.create({"payment_id": "p"})
        client.refunds.create({"payment_id": "p"})
        client.refunds.create({"payment_id": "p"}, idempotency_key="order-1")
        keys = [request.headers["Idempotency-Key"] for request in self.requests]
        self.assertEqual(len(set(keys)), 3)
        self.assertEqual(keys[2], "order-1")

    def test_a_refusal_is_not_repeated_and_says_what_is_wrong(self) -> None:
        client = self.connect(refuse(422, "cannot_cancel"))
        error = self.refused(lambda: client.payments.cancel("p"))
        self.assertEqual((error.status, error.code, error.type), (422, "cannot_cancel", "t"))
        self.assertEqual((str(error), error.request_id, error.details), ("No.", "req_1", []))
        self.assertEqual(len(self.requests), 1)

    def test_a_simulation_is_repeated_only_after_a_call_without_effect(self) -> None:
        client = self.connect(refuse(429, "rate_limited"), refuse(503, "temporarily_unavailable"))
        simulate = lambda: client.sandbox.simulate_payment("p", {"event": "settled"})  # noqa: E731
        self.assertEqual(self.refused(simulate).status, 503)
        self.assertEqual(len(self.requests), 2)

    def test_retries_end_and_wait_longer_each_time(self) -> None:
        client = self.connect(ApiConnectionError("broken"), retries_max=3)
        with self.assertRaises(ApiConnectionError):
            client.payments.get("p")
        self.assertEqual(self.waits, [0.5, 1.0, 2.0])
        with self.assertRaises(ApiConnectionError):
            client.payments.get("p", options=Options(retries_max=0))
        self.assertEqual(len(self.waits), 3)

    def test_waits_are_never_shorter_than_retry_after(self) -> None:
        self.assertEqual(choose_wait(0, None, 0), 0.25)
        self.assertEqual(choose_wait(9, None, 1), 8)
        self.assertEqual(choose_wait(0, "3", 1), 3.25)
        self.assertEqual(choose_wait(3, "1", 1), 4)
        self.assertEqual(choose_wait(0, "Wed, 21 Oct 2026 07:28:00 GMT", 1), 0.5)
        self.assertIsNone(choose_wait(0, "3600", 1))

    def test_what_is_not_from_the_api_is_an_error_whatever_its_status(self) -> None:
        for status in (200, 302, 404):
            client = self.connect(answer(status, "<html>", request_id="req_2"))
            error = self.refused(lambda: client.payments.get("p"))
            self.assertEqual((error.status, error.code), (status, "unexpected_response"))
            self.assertEqual(error.request_id, "req_2")

    def test_ids_are_encoded_and_an_empty_one_is_refused(self) -> None:
        client = self.connect(answer(200, {}))
        client.payments.get("a/../b?c")
        self.assertEqual(self.requests[0].url, "http://h/b/v1/payments/a%2F..%2Fb%3Fc")
        with self.assertRaises(durable_payments.PaymentsError):
            client.payments.get("")
        with self.assertRaises(durable_payments.PaymentsError):
            Client("", "http://h")
        with self.assertRaises(durable_payments.PaymentsError):
            Client("sk_x", "localhost")

    def test_a_list_gives_every_row(self) -> None:
        def page(data: List[str], cursor: Optional[str]) -> Response:
            body = {"data": data, "has_more": cursor is not None, "next_cursor": cursor}
            return answer(200, {"object": "list", **body})

        client = self.connect(page(["a", "b"], "T"), page(["c"], None))
        self.assertEqual(list(client.payments.list({"limit": 2})), ["a", "b", "c"])
        self.assertEqual(
            [request.url.partition("?")[2] for request in self.requests],
            ["limit=2", "limit=2&created_before=T"],
        )

    def refused(self, call: Callable[[], object]) -> ApiError:
        with self.assertRaises(ApiError) as caught:
            call()
        return caught.exception
