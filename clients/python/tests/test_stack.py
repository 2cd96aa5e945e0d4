"""The client against a running service, whose address and sandbox key the environment has."""

from __future__ import annotations

import os
import time
import unittest
from typing import List

from durable_payments import (
    ApiConnectionError,
    ApiError,
    ApiTimeoutError,
    Client,
    Options,
    Response,
)
from durable_payments.types import CreatePayment, CreatePayout, Dispute, Payment, SubmitEvidence

URL = os.environ.get("DURABLE_PAYMENTS_URL", "")
KEY = os.environ.get("DURABLE_PAYMENTS_KEY", "")
IDEAL: CreatePayment = {
    "method": "ideal",
    "amount": 1050,
    "currency": "EUR",
    "country": "NL",
    "success_url": "https://shop.example/thanks",
    "error_url": "https://shop.example/sorry",
}


@unittest.skipUnless(URL and KEY, "DURABLE_PAYMENTS_URL and DURABLE_PAYMENTS_KEY name no service")
class Stack(unittest.TestCase):
    def setUp(self) -> None:
        self.client = Client(KEY, URL)

    def test_a_payment_is_settled_and_refunded(self) -> None:
        payment = self.settle(self.client.payments.create({**IDEAL, "metadata": {"n": 2**70}}))
        self.assertEqual(payment["metadata"], {"n": 2**70})
        refund = self.client.refunds.create({"payment_id": payment["id"], "amount": 250})
        self.client.sandbox.simulate_refund(refund["id"], {"event": "settled"})
        refunds = list(self.client.payments.list_refunds(payment["id"]))
        self.assertEqual([row["id"] for row in refunds], [refund["id"]])
        self.assertEqual(self.client.refunds.get(refund["id"])["amount"], 250)

    def test_a_create_under_the_same_key_gives_the_first_answer_again(self) -> None:
        answers: List[Response] = []
        options = Options(on_response=answers.append)
        key = f"order-{time.time_ns()}"
        first = self.client.payments.create(IDEAL, idempotency_key=key, options=options)
        second = self.client.payments.create(IDEAL, idempotency_key=key, options=options)
        self.assertEqual(first["id"], second["id"])
        self.assertEqual(answers[1].headers["idempotent-replayed"], "true")

    def test_payouts_are_listed_page_by_page(self) -> None:
        recipient = self.client.recipients.create(
            {
                "type": "bank_account",
                "first_name": "Ada",
                "last_name": "Lovelace",
                "iban": "NL91ABNA0417164300",
                "address_line1": "Keizersgracht 1",
                "city": "Amsterdam",
                "postal_code": "1015 CN",
            }
        )
        payout: CreatePayout = {
            "recipient_id": recipient["id"],
            "method": "sepa_instant",
            "amount": 101,
            "currency": "EUR",
        }
        ids = [self.client.payouts.create(payout)["id"] for _ in range(3)]
        rows = self.client.payouts.list({"limit": 2})
        self.assertEqual([row["id"] for row in rows], ids[::-1])
        self.assertEqual([len(page.data) for page in rows.pages()], [2, 1])
        self.assertIs(self.client.recipients.delete(recipient["id"]).get("deleted"), True)

    def test_a_dispute_is_listed_and_answered_with_evidence_or_accepted(self) -> None:
        first, second = self.dispute(), self.dispute()
        evidence: SubmitEvidence = {"explanation": "Signed for.", "carrier": "PostNL"}
        answered = self.client.disputes.submit_evidence(first["id"], evidence)
        self.assertEqual(answered["status"], "under_review")
        self.assertEqual(self.client.disputes.accept(second["id"])["status"], "accepted")
        self.assertEqual(self.client.disputes.get(first["id"]), answered)
        rows = self.client.disputes.list({"limit": 1})
        self.assertEqual([row["id"] for row in rows], [second["id"], first["id"]])

    def test_a_refusal_has_a_code_and_the_wrong_fields(self) -> None:
        with self.assertRaises(ApiError) as caught:
            self.client.payments.create({**IDEAL, "currency": "JPY", "country": "PT"})
        error = caught.exception
        self.assertEqual((error.status, error.code), (422, "method_requirements_not_met"))
        self.assertEqual(sorted(item["field"] for item in error.details), ["country", "currency"])
        self.assertTrue(error.request_id)

    def test_lists_without_pages(self) -> None:
        self.assertEqual(self.client.balances.list()[0]["object"], "balance")
        available = {row["method"] for row in self.client.payment_methods.list_available()}
        catalog = {row["method"] for row in self.client.payment_methods.list()}
        self.assertLessEqual(available, catalog)
        self.assertIn("sepa_instant", {row["method"] for row in self.client.payouts.list_methods()})

    def test_a_server_that_is_away_and_one_that_is_slow(self) -> None:
        nobody = Client(KEY, "http://127.0.0.1:9", retries_max=0)
        with self.assertRaises(ApiConnectionError):
            nobody.balances.list()
        with self.assertRaises(ApiTimeoutError):
            self.client.payments.create(IDEAL, options=Options(timeout=0.000001, retries_max=0))

    def dispute(self) -> Dispute:
        payment = self.settle(self.client.payments.create(IDEAL))
        self.client.sandbox.simulate_payment(payment["id"], {"event": "dispute_opened"})
        return self.client.disputes.list({"payment_id": payment["id"]}).first_page().data[0]

    def settle(self, payment: Payment) -> Payment:
        self.client.sandbox.simulate_payment(payment["id"], {"event": "settled"})
        until = time.monotonic() + 60
        while time.monotonic() < until:
            payment = self.client.payments.get(payment["id"])
            if payment["status"] == "settled":
                return payment
            time.sleep(0.05)
        raise AssertionError(f"The payment stays {payment['status']}.")
