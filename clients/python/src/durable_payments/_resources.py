"""Resources of the API, each over the same few calls."""

from __future__ import annotations

from typing import List, Optional, Union, cast

from ._api import Api, Options, route
from ._list import Rows
from .types import (
    AdvanceClock,
    ApiRequest,
    AssetBalance,
    AssetBalanceTransaction,
    AvailablePaymentMethod,
    Clock,
    CreateCryptoPayment,
    CreateCryptoSettlement,
    CreatePayment,
    CreatePayout,
    CreatePayoutRecipient,
    CreateRefund,
    CreateWebhookEndpoint,
    CryptoPayment,
    CryptoSettlement,
    CurrencyBalance,
    CurrencyBalanceTransaction,
    Dispute,
    Event,
    EventWithLog,
    ListBalanceTransactionsQuery,
    ListCryptoPaymentsQuery,
    ListCryptoSettlementsQuery,
    ListDisputesQuery,
    ListEventsQuery,
    ListPaymentRefundsQuery,
    ListPaymentsQuery,
    ListPayoutsQuery,
    ListRefundsQuery,
    ListRequestsQuery,
    ListWebhookEndpointsQuery,
    Payment,
    PaymentMethod,
    Payout,
    PayoutMethod,
    PayoutRecipient,
    RedeliverEvent,
    Refund,
    RollWebhookSecret,
    SimulateCryptoPayment,
    SimulateCryptoSettlement,
    SimulatePayment,
    SimulatePayout,
    SimulateRefund,
    SubmitEvidence,
    TestWebhookEndpoint,
    UpdateWebhookEndpoint,
    WebhookEndpoint,
    WebhookEndpointWithSecret,
)

Balance = Union[CurrencyBalance, AssetBalance]
BalanceTransaction = Union[CurrencyBalanceTransaction, AssetBalanceTransaction]

CallOptions = Optional[Options]
Key = Optional[str]


class _Resource:
    def __init__(self, api: Api) -> None:
        self._api = api


class Payments(_Resource):
    def create(
        self, body: CreatePayment, *, idempotency_key: Key = None, options: CallOptions = None
    ) -> Payment:
        """Creates a payment; send the customer to its ``redirect_url``."""
        return cast(Payment, self._api.create("/v1/payments", body, idempotency_key, options))

    def get(self, id: str, *, options: CallOptions = None) -> Payment:
        return cast(Payment, self._api.get(route("/v1/payments/{}", id), None, options))

    def list(
        self, query: Optional[ListPaymentsQuery] = None, *, options: CallOptions = None
    ) -> Rows[Payment]:
        return Rows(self._api, "/v1/payments", query, options)

    def cancel(self, id: str, *, options: CallOptions = None) -> Payment:
        """Cancels a payment that the customer has not paid; ``cannot_cancel`` otherwise."""
        return cast(Payment, self._api.post(route("/v1/payments/{}/cancel", id), {}, options))

    def list_refunds(
        self, id: str, query: Optional[ListPaymentRefundsQuery] = None, *, options: CallOptions = None
    ) -> Rows[Refund]:
        return Rows(self._api, route("/v1/payments/{}/refunds", id), query, options)


class Refunds(_Resource):
    def create(
        self, body: CreateRefund, *, idempotency_key: Key = None, options: CallOptions = None
    ) -> Refund:
        """Refunds a settled payment: ``amount``, or all that is left."""
        return cast(Refund, self._api.create("/v1/refunds", body, idempotency_key, options))

    def get(self, id: str, *, options: CallOptions = None) -> Refund:
        return cast(Refund, self._api.get(route("/v1/refunds/{}", id), None, options))

    def list(
        self, query: Optional[ListRefundsQuery] = None, *, options: CallOptions = None
    ) -> Rows[Refund]:
        return Rows(self._api, "/v1/refunds", query, options)


class Disputes(_Resource):
    def get(self, id: str, *, options: CallOptions = None) -> Dispute:
        return cast(Dispute, self._api.get(route("/v1/disputes/{}", id), None, options))

    def list(
        self, query: Optional[ListDisputesQuery] = None, *, options: CallOptions = None
    ) -> Rows[Dispute]:
        return Rows(self._api, "/v1/disputes", query, options)

    def submit_evidence(
        self, id: str, body: SubmitEvidence, *, options: CallOptions = None
    ) -> Dispute:
        """Sends the bank evidence, once; other evidence is refused from then on."""
        return cast(Dispute, self._api.post(route("/v1/disputes/{}/evidence", id), body, options))

    def accept(self, id: str, *, options: CallOptions = None) -> Dispute:
        """Gives in: what the bank took stays with the customer."""
        return cast(Dispute, self._api.post(route("/v1/disputes/{}/accept", id), {}, options))


class Recipients(_Resource):
    def create(
        self, body: CreatePayoutRecipient, *, idempotency_key: Key = None, options: CallOptions = None
    ) -> PayoutRecipient:
        """Creates a recipient, which any number of payouts can name."""
        recipient = self._api.create("/v1/payout-recipients", body, idempotency_key, options)
        return cast(PayoutRecipient, recipient)

    def delete(self, id: str, *, options: CallOptions = None) -> PayoutRecipient:
        """Deletes the recipient's details; payouts to it are refused from then on."""
        recipient = self._api.delete(route("/v1/payout-recipients/{}", id), options)
        return cast(PayoutRecipient, recipient)


class Payouts(_Resource):
    def create(
        self, body: CreatePayout, *, idempotency_key: Key = None, options: CallOptions = None
    ) -> Payout:
        """Sends money to a recipient, out of the balance account that ``metadata`` may name."""
        return cast(Payout, self._api.create("/v1/payouts", body, idempotency_key, options))

    def get(self, id: str, *, options: CallOptions = None) -> Payout:
        return cast(Payout, self._api.get(route("/v1/payouts/{}", id), None, options))

    def list(
        self, query: Optional[ListPayoutsQuery] = None, *, options: CallOptions = None
    ) -> Rows[Payout]:
        return Rows(self._api, "/v1/payouts", query, options)

    def list_methods(self, *, options: CallOptions = None) -> List[PayoutMethod]:
        """Rails that your account can use now."""
        methods = self._api.get("/v1/payout-methods", None, options)
        return cast(List[PayoutMethod], methods["data"])


class Balances(_Resource):
    def list(self, *, options: CallOptions = None) -> List[Balance]:
        return cast(List[Balance], self._api.get("/v1/balances", None, options)["data"])


class BalanceTransactions(_Resource):
    def list(
        self, query: Optional[ListBalanceTransactionsQuery] = None, *, options: CallOptions = None
    ) -> Rows[BalanceTransaction]:
        """Every change of what is available."""
        return Rows(self._api, "/v1/balance_transactions", query, options)


class Events(_Resource):
    def get(self, id: str, *, options: CallOptions = None) -> EventWithLog:
        return cast(EventWithLog, self._api.get(route("/v1/events/{}", id), None, options))

    def list(
        self, query: Optional[ListEventsQuery] = None, *, options: CallOptions = None
    ) -> Rows[Event]:
        """Newest first; with ``after``, the oldest first, to catch up."""
        cursor = "after" if query and query.get("after") else "created_before"
        return Rows(self._api, "/v1/events", query, options, cursor)

    def redeliver(
        self, id: str, body: Optional[RedeliverEvent] = None, *, options: CallOptions = None
    ) -> Event:
        """Sends it again, to one endpoint or to all that want it; not repeated when it fails."""
        path = route("/v1/events/{}/redeliver", id)
        return cast(Event, self._api.post_once(path, body or {}, options))


class WebhookEndpoints(_Resource):
    def create(
        self, body: CreateWebhookEndpoint, *, idempotency_key: Key = None, options: CallOptions = None
    ) -> WebhookEndpointWithSecret:
        """Creates an endpoint; store its ``signing_secret``, which is shown once."""
        endpoint = self._api.create("/v1/webhook-endpoints", body, idempotency_key, options)
        return cast(WebhookEndpointWithSecret, endpoint)

    def get(self, id: str, *, options: CallOptions = None) -> WebhookEndpoint:
        endpoint = self._api.get(route("/v1/webhook-endpoints/{}", id), None, options)
        return cast(WebhookEndpoint, endpoint)

    def list(
        self, query: Optional[ListWebhookEndpointsQuery] = None, *, options: CallOptions = None
    ) -> Rows[WebhookEndpoint]:
        return Rows(self._api, "/v1/webhook-endpoints", query, options)

    def update(
        self, id: str, body: UpdateWebhookEndpoint, *, options: CallOptions = None
    ) -> WebhookEndpoint:
        endpoint = self._api.patch(route("/v1/webhook-endpoints/{}", id), body, options)
        return cast(WebhookEndpoint, endpoint)

    def delete(self, id: str, *, options: CallOptions = None) -> WebhookEndpoint:
        endpoint = self._api.delete(route("/v1/webhook-endpoints/{}", id), options)
        return cast(WebhookEndpoint, endpoint)

    def roll_secret(
        self, id: str, body: Optional[RollWebhookSecret] = None, *, options: CallOptions = None
    ) -> WebhookEndpointWithSecret:
        """Creates a new secret; a repeat would create another, so it is not repeated when it
        fails."""
        path = route("/v1/webhook-endpoints/{}/roll-secret", id)
        return cast(WebhookEndpointWithSecret, self._api.post_once(path, body or {}, options))

    def test(self, id: str, body: TestWebhookEndpoint, *, options: CallOptions = None) -> Event:
        """Sends a test event, once."""
        path = route("/v1/webhook-endpoints/{}/test", id)
        return cast(Event, self._api.post_once(path, body, options))


class Requests(_Resource):
    def list(
        self, query: Optional[ListRequestsQuery] = None, *, options: CallOptions = None
    ) -> Rows[ApiRequest]:
        """Writes and errors of the last seven days."""
        return Rows(self._api, "/v1/requests", query, options)


class PaymentMethods(_Resource):
    def list(self, *, options: CallOptions = None) -> List[PaymentMethod]:
        """The whole catalog."""
        methods = self._api.get("/v1/payment-methods", None, options)
        return cast(List[PaymentMethod], methods["data"])

    def list_available(self, *, options: CallOptions = None) -> List[AvailablePaymentMethod]:
        """Those that your account can take payments with now."""
        methods = self._api.get("/v1/payment-methods/available", None, options)
        return cast(List[AvailablePaymentMethod], methods["data"])


class CryptoPayments(_Resource):
    def create(
        self, body: CreateCryptoPayment, *, idempotency_key: Key = None, options: CallOptions = None
    ) -> CryptoPayment:
        payment = self._api.create("/v1/crypto/payments", body, idempotency_key, options)
        return cast(CryptoPayment, payment)

    def get(self, id: str, *, options: CallOptions = None) -> CryptoPayment:
        payment = self._api.get(route("/v1/crypto/payments/{}", id), None, options)
        return cast(CryptoPayment, payment)

    def list(
        self, query: Optional[ListCryptoPaymentsQuery] = None, *, options: CallOptions = None
    ) -> Rows[CryptoPayment]:
        return Rows(self._api, "/v1/crypto/payments", query, options)


class CryptoSettlements(_Resource):
    def create(
        self, body: CreateCryptoSettlement, *, idempotency_key: Key = None, options: CallOptions = None
    ) -> CryptoSettlement:
        """Pays a balance out to your wallet now; it is also paid out daily."""
        settlement = self._api.create("/v1/crypto/settlements", body, idempotency_key, options)
        return cast(CryptoSettlement, settlement)

    def get(self, id: str, *, options: CallOptions = None) -> CryptoSettlement:
        settlement = self._api.get(route("/v1/crypto/settlements/{}", id), None, options)
        return cast(CryptoSettlement, settlement)

    def list(
        self, query: Optional[ListCryptoSettlementsQuery] = None, *, options: CallOptions = None
    ) -> Rows[CryptoSettlement]:
        return Rows(self._api, "/v1/crypto/settlements", query, options)


class Crypto:
    def __init__(self, api: Api) -> None:
        self.payments = CryptoPayments(api)
        self.settlements = CryptoSettlements(api)


class Sandbox(_Resource):
    """Reports as the bank of the sandbox. A report acts each time, so it is not repeated when it
    fails."""

    def get_clock(self, *, options: CallOptions = None) -> Clock:
        return cast(Clock, self._api.get("/v1/sandbox/clock", None, options))

    def advance_clock(self, body: AdvanceClock, *, options: CallOptions = None) -> Clock:
        """Begins to move the clock of your sandbox; read it until it is there."""
        return cast(Clock, self._api.post_once("/v1/sandbox/clock", body, options))

    def stop_clock(self, *, options: CallOptions = None) -> Clock:
        """Ends an advance where the clock is."""
        return cast(Clock, self._api.delete("/v1/sandbox/clock", options))

    def simulate_payment(
        self, id: str, body: SimulatePayment, *, options: CallOptions = None
    ) -> Payment:
        path = route("/v1/sandbox/payments/{}/simulate", id)
        return cast(Payment, self._api.post_once(path, body, options))

    def simulate_refund(self, id: str, body: SimulateRefund, *, options: CallOptions = None) -> Refund:
        path = route("/v1/sandbox/refunds/{}/simulate", id)
        return cast(Refund, self._api.post_once(path, body, options))

    def simulate_payout(self, id: str, body: SimulatePayout, *, options: CallOptions = None) -> Payout:
        path = route("/v1/sandbox/payouts/{}/simulate", id)
        return cast(Payout, self._api.post_once(path, body, options))

    def simulate_crypto_payment(
        self, id: str, body: SimulateCryptoPayment, *, options: CallOptions = None
    ) -> CryptoPayment:
        path = route("/v1/sandbox/crypto/payments/{}/simulate", id)
        return cast(CryptoPayment, self._api.post_once(path, body, options))

    def simulate_crypto_settlement(
        self, id: str, body: SimulateCryptoSettlement, *, options: CallOptions = None
    ) -> CryptoSettlement:
        path = route("/v1/sandbox/crypto/settlements/{}/simulate", id)
        return cast(CryptoSettlement, self._api.post_once(path, body, options))
