# Written by `npm run clients`: do not edit.

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Optional, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired, TypeAlias


class Customer(TypedDict):
    email: Optional[str]
    first_name: Optional[str]
    last_name: Optional[str]
    reference: Optional[str]


class Failure(TypedDict):
    code: str
    message: str


class CustomerRequest(TypedDict):
    email: NotRequired[Optional[str]]
    first_name: NotRequired[Optional[str]]
    last_name: NotRequired[Optional[str]]
    reference: NotRequired[Optional[str]]


class ErrorDetail(TypedDict):
    code: str
    field: str
    message: str


class CancelPayment(TypedDict):
    pass


class Refund(TypedDict):
    id: str
    object: Literal['refund']
    payment_id: str
    amount: int
    """
    Minor units: 10.50 is 1050.
    """
    currency: str
    status: Literal['processing', 'settled', 'failed']
    reason: Optional[str]
    failure: Optional[Failure]
    amount_settled: Optional[int]
    """
    What was sent; null until it settles.
    """
    settled_at: Optional[str]
    created_at: str


class CreateRefund(TypedDict):
    payment_id: str
    """
    A settled payment.
    """
    amount: NotRequired[Optional[int]]
    """
    Minor units, up to the rest of the payment. Default: the rest.
    """
    reason: NotRequired[Optional[str]]
    """
    For your own reporting.
    """


class Dispute(TypedDict):
    id: str
    object: Literal['dispute']
    payment_id: str
    status: Literal['needs_response', 'under_review', 'won', 'lost', 'accepted']
    amount: int
    """
    What the bank took, without what came back; 0 for an inquiry.
    """
    currency: str
    fee: int
    """
    What the bank charged for it.
    """
    reason: Optional[str]
    """
    The scheme's code.
    """
    evidence_due_at: Optional[str]
    """
    Evidence is refused from then on; null: without a deadline.
    """
    evidence_submitted_at: Optional[str]
    closed_at: Optional[str]
    livemode: bool
    created_at: str
    updated_at: str


class DisputeList(TypedDict):
    object: Literal['list']
    data: list[Dispute]
    has_more: bool
    next_cursor: Optional[str]


class SubmitEvidence(TypedDict):
    explanation: str
    """
    What happened, for the bank.
    """
    customer_reference: NotRequired[Optional[str]]
    """
    The customer in your own system.
    """
    shipped_at: NotRequired[Optional[str]]
    """
    When the goods left.
    """
    carrier: NotRequired[Optional[str]]
    tracking_number: NotRequired[Optional[str]]
    refund_reference: NotRequired[Optional[str]]
    """
    The refund that the customer already has.
    """


class AcceptDispute(TypedDict):
    pass


class PayoutRecipient(TypedDict):
    id: str
    object: Literal['payout_recipient']
    type: Literal['card', 'bank_account']
    scheme: Optional[Literal['visa', 'mastercard', 'amex']]
    """
    Null for bank accounts, and for cards of networks without payouts.
    """
    last4: str
    created_at: str
    deleted: NotRequired[Literal[True]]
    """
    Present if the identifying data of the recipient was deleted.
    """


class CreatePayoutRecipient(TypedDict):
    type: Literal['card', 'bank_account']
    first_name: str
    """
    As the bank knows it.
    """
    last_name: str
    """
    As the bank knows it.
    """
    card_number: NotRequired[Optional[str]]
    expiry_month: NotRequired[Optional[str]]
    expiry_year: NotRequired[Optional[str]]
    date_of_birth: NotRequired[Optional[str]]
    iban: NotRequired[Optional[str]]
    bic: NotRequired[Optional[str]]
    sort_code: NotRequired[Optional[str]]
    account_number: NotRequired[Optional[str]]
    address_line1: NotRequired[Optional[str]]
    city: NotRequired[Optional[str]]
    postal_code: NotRequired[Optional[str]]
    last4: NotRequired[Optional[str]]
    scheme: NotRequired[Optional[Literal['visa', 'mastercard', 'amex']]]
    country: NotRequired[Optional[str]]
    email: NotRequired[Optional[str]]
    reference: NotRequired[Optional[str]]
    """
    Your own identifier.
    """
    parent_payment_reference: NotRequired[Optional[str]]
    """
    Stored, not interpreted.
    """


class PayoutReturn(TypedDict):
    code: str
    reason: str
    """
    The receiving bank's reason.
    """


class PayeeVerification(TypedDict):
    result: Literal['match', 'close_match', 'no_match', 'not_possible']
    """
    Whether the name is that of the account.
    """
    checked_at: str


class CreatePayout(TypedDict):
    recipient_id: str
    method: str
    """
    A rail id from the list of rails.
    """
    amount: int
    """
    Minor units: 10.50 is 1050.
    """
    currency: str
    """
    ISO 4217.
    """
    reference: NotRequired[Optional[str]]
    """
    Shown on the recipient's statement if the rail supports it.
    """
    metadata: NotRequired[Optional[dict[str, Any]]]
    """
    Stored and returned unchanged. Its field `balance_account` is the balance account that pays the amount and the fee. Default: `main`.
    """


class PayoutMethod(TypedDict):
    method: Literal['card_payout', 'sepa_credit_transfer', 'sepa_instant', 'faster_payments']
    display_name: str
    recipient_type: Literal['card', 'bank_account']
    typical_speed: str
    can_be_returned: bool


class CurrencyBalance(TypedDict):
    object: Literal['balance']
    balance_account: str
    currency: str
    """
    ISO 4217.
    """
    available: int
    """
    Minor units.
    """
    reserved: int
    """
    Minor units.
    """
    pending: int
    """
    Minor units.
    """
    owed: int
    """
    Minor units.
    """
    proved_until: Optional[str]
    """
    Last day until which our banks' statements prove it.
    """


class AssetBalance(TypedDict):
    object: Literal['balance']
    balance_account: str
    asset: Literal['BTC', 'ETH', 'USDC', 'USDT']
    network: Literal['bitcoin', 'ethereum', 'tron']
    available: str
    """
    An integer in the asset's smallest unit, as a string.
    """
    reserved: str
    """
    An integer in the asset's smallest unit, as a string.
    """
    pending: str
    """
    An integer in the asset's smallest unit, as a string.
    """
    owed: str
    """
    An integer in the asset's smallest unit, as a string.
    """
    proved_until: Optional[str]
    """
    Last day until which our banks' statements prove it.
    """


class BalanceTransactionSource(TypedDict):
    object: str
    """
    A kind of resource, `funding` or `adjustment`.
    """
    id: str


class AssetBalanceTransaction(TypedDict):
    id: str
    object: Literal['balance_transaction']
    type: Literal['payment', 'refund', 'refund_failure', 'payout', 'payout_failure', 'payout_return', 'chargeback', 'chargeback_reversal', 'funding', 'adjustment', 'crypto_payment', 'crypto_settlement', 'crypto_settlement_failure']
    balance_account: str
    asset: Literal['BTC', 'ETH', 'USDC', 'USDT']
    network: Literal['bitcoin', 'ethereum', 'tron']
    amount: str
    """
    An integer in the asset's smallest unit, as a string.
    """
    fee: str
    """
    An integer in the asset's smallest unit, as a string.
    """
    net: str
    """
    An integer in the asset's smallest unit, as a string.
    """
    available_on: str
    source: BalanceTransactionSource
    created_at: str


class Delivery(TypedDict):
    endpoint_id: str
    status: Literal['pending', 'delivered', 'exhausted', 'no_endpoint', 'not_subscribed', 'disabled']
    attempts: int
    """
    Over all runs.
    """
    next_attempt_at: Optional[str]


class DeliveryAttempt(TypedDict):
    at: str
    status: Optional[int]
    """
    HTTP status; null without a complete answer.
    """
    error: Optional[str]
    duration_ms: int


class RedeliverEvent(TypedDict):
    endpoint_id: NotRequired[Optional[str]]


class WebhookEndpointWithSecret(TypedDict):
    id: str
    object: Literal['webhook_endpoint']
    url: str
    description: Optional[str]
    enabled_events: list[Literal['payment.awaiting_customer', 'payment.authorized', 'payment.settled', 'payment.failed', 'payment.cancelled', 'payment.expired', 'refund.settled', 'refund.failed', 'payout.submitted', 'payout.sent', 'payout.completed', 'payout.failed', 'payout.returned', 'crypto.payment.received', 'crypto.payment.underpaid', 'crypto.payment.held', 'crypto.payment.expired', 'crypto.settlement.completed', 'crypto.settlement.failed', 'dispute.opened', 'dispute.updated', 'dispute.closed']]
    """
    By default all but those of disputes.
    """
    status: Literal['enabled', 'disabled']
    disabled_reason: Optional[Literal['merchant', 'failing']]
    """
    `merchant`: you disabled it. `failing`: nothing succeeded for five days.
    """
    livemode: bool
    created_at: str
    updated_at: str
    signing_secret: str
    """
    Shown here and never again.
    """


class CreateWebhookEndpoint(TypedDict):
    url: str
    """
    https, at a public address; in the sandbox of your own machine also http.
    """
    description: NotRequired[Optional[str]]
    enabled_events: NotRequired[list[Literal['payment.awaiting_customer', 'payment.authorized', 'payment.settled', 'payment.failed', 'payment.cancelled', 'payment.expired', 'refund.settled', 'refund.failed', 'payout.submitted', 'payout.sent', 'payout.completed', 'payout.failed', 'payout.returned', 'crypto.payment.received', 'crypto.payment.underpaid', 'crypto.payment.held', 'crypto.payment.expired', 'crypto.settlement.completed', 'crypto.settlement.failed', 'dispute.opened', 'dispute.updated', 'dispute.closed']]]


class WebhookEndpoint(TypedDict):
    id: str
    object: Literal['webhook_endpoint']
    url: str
    description: Optional[str]
    enabled_events: list[Literal['payment.awaiting_customer', 'payment.authorized', 'payment.settled', 'payment.failed', 'payment.cancelled', 'payment.expired', 'refund.settled', 'refund.failed', 'payout.submitted', 'payout.sent', 'payout.completed', 'payout.failed', 'payout.returned', 'crypto.payment.received', 'crypto.payment.underpaid', 'crypto.payment.held', 'crypto.payment.expired', 'crypto.settlement.completed', 'crypto.settlement.failed', 'dispute.opened', 'dispute.updated', 'dispute.closed']]
    """
    By default all but those of disputes.
    """
    status: Literal['enabled', 'disabled']
    disabled_reason: Optional[Literal['merchant', 'failing']]
    """
    `merchant`: you disabled it. `failing`: nothing succeeded for five days.
    """
    livemode: bool
    created_at: str
    updated_at: str
    deleted: NotRequired[Literal[True]]
    """
    Only in the answer of a deletion.
    """


class WebhookEndpointList(TypedDict):
    object: Literal['list']
    data: list[WebhookEndpoint]
    has_more: bool
    next_cursor: Optional[str]


class UpdateWebhookEndpoint(TypedDict):
    url: NotRequired[str]
    """
    https, at a public address; in the sandbox of your own machine also http.
    """
    description: NotRequired[Optional[str]]
    enabled_events: NotRequired[list[Literal['payment.awaiting_customer', 'payment.authorized', 'payment.settled', 'payment.failed', 'payment.cancelled', 'payment.expired', 'refund.settled', 'refund.failed', 'payout.submitted', 'payout.sent', 'payout.completed', 'payout.failed', 'payout.returned', 'crypto.payment.received', 'crypto.payment.underpaid', 'crypto.payment.held', 'crypto.payment.expired', 'crypto.settlement.completed', 'crypto.settlement.failed', 'dispute.opened', 'dispute.updated', 'dispute.closed']]]
    status: NotRequired[Literal['enabled', 'disabled']]


class RollWebhookSecret(TypedDict):
    after: NotRequired[Literal['now', '1h', '24h']]


class TestWebhookEndpoint(TypedDict):
    type: Literal['payment.awaiting_customer', 'payment.authorized', 'payment.settled', 'payment.failed', 'payment.cancelled', 'payment.expired', 'refund.settled', 'refund.failed', 'payout.submitted', 'payout.sent', 'payout.completed', 'payout.failed', 'payout.returned', 'crypto.payment.received', 'crypto.payment.underpaid', 'crypto.payment.held', 'crypto.payment.expired', 'crypto.settlement.completed', 'crypto.settlement.failed', 'dispute.opened', 'dispute.updated', 'dispute.closed']


class ApiRequest(TypedDict):
    request_id: str
    object: Literal['request']
    method: str
    path: str
    """
    Without the query.
    """
    status: int
    code: Optional[str]
    """
    Of the error.
    """
    idempotency_key: Optional[str]
    key_id: str
    duration_ms: int
    created_at: str
    request_body: Any
    """
    JSON, redacted: null without a body, and where it was not read.
    """
    response_body: Any
    """
    JSON, redacted: null without a body, and where it was not read.
    """


class RefundRules(TypedDict):
    kind: Literal['standard', 'none', 'payout_only']
    withinDays: int
    """
    Days from `settled_at`.
    """


class AvailablePaymentMethod(TypedDict):
    method: Literal['ideal', 'bancontact', 'mbway', 'przelewy24', 'visa', 'mastercard', 'amex', 'multibanco', 'paysafecard']
    display_name: str
    currencies: list[str]


class CryptoDeposit(TypedDict):
    transaction_id: str
    amount: str
    """
    An integer in the asset's smallest unit, as a string.
    """
    confirmations: int
    required_confirmations: int
    status: Literal['pending', 'confirmed', 'held', 'rejected']
    seen_at: str


class CreateCryptoPayment(TypedDict):
    amount: int
    """
    Minor units: 10.50 is 1050.
    """
    currency: str
    """
    ISO 4217.
    """
    asset: str
    """
    One of BTC, ETH, USDC, USDT.
    """
    network: str
    """
    One of bitcoin, ethereum, tron.
    """
    reference: NotRequired[Optional[str]]
    metadata: NotRequired[Optional[dict[str, Any]]]


class CryptoSettlement(TypedDict):
    id: str
    object: Literal['crypto_settlement']
    status: Literal['pending', 'sent', 'completed', 'failed']
    asset: Literal['BTC', 'ETH', 'USDC', 'USDT']
    network: Literal['bitcoin', 'ethereum', 'tron']
    amount: str
    """
    An integer in the asset's smallest unit, as a string.
    """
    fee: str
    """
    An integer in the asset's smallest unit, as a string.
    """
    wallet_address: str
    transaction_id: Optional[str]
    failure: Optional[Failure]
    livemode: bool
    created_at: str
    completed_at: Optional[str]


class CreateCryptoSettlement(TypedDict):
    asset: str
    """
    One of BTC, ETH, USDC, USDT.
    """
    network: str
    """
    One of bitcoin, ethereum, tron.
    """
    amount: NotRequired[Optional[str]]


class CryptoSettlementList(TypedDict):
    object: Literal['list']
    data: list[CryptoSettlement]
    has_more: bool
    next_cursor: Optional[str]


class SimulatePayment(TypedDict):
    event: Literal['authorized', 'settled', 'failed', 'expired', 'reversed', 'reversal_failed', 'clawed_back', 'dispute_opened', 'dispute_updated', 'dispute_withdrawn', 'dispute_reinstated', 'dispute_won', 'dispute_lost']
    code: NotRequired[Optional[str]]
    reason: NotRequired[Optional[str]]
    dispute_id: NotRequired[Optional[str]]
    amount: NotRequired[Optional[int]]
    dispute_status: NotRequired[Optional[Literal['needs_response', 'under_review']]]
    fee: NotRequired[Optional[int]]


class SimulateRefund(TypedDict):
    event: Literal['settled', 'failed']
    code: NotRequired[Optional[str]]
    reason: NotRequired[Optional[str]]


class SimulatePayout(TypedDict):
    event: Literal['submitted', 'sent', 'completed', 'failed', 'returned', 'called_duplicate', 'debit_reversed', 'return_reversed', 'payee_verified']
    code: NotRequired[Optional[str]]
    reason: NotRequired[Optional[str]]
    result: NotRequired[Optional[Literal['match', 'close_match', 'no_match', 'not_possible']]]


class SimulateCryptoPayment(TypedDict):
    event: NotRequired[Optional[Literal['deposit', 'received', 'underpaid', 'held', 'deposit_undone', 'expired']]]
    amount: NotRequired[Optional[str]]
    confirmations: NotRequired[Optional[int]]
    transaction_id: NotRequired[Optional[str]]
    code: NotRequired[Optional[str]]
    reason: NotRequired[Optional[str]]


class SimulateCryptoSettlement(TypedDict):
    event: Literal['sent', 'completed', 'failed']
    code: NotRequired[Optional[str]]
    reason: NotRequired[Optional[str]]


class Clock(TypedDict):
    object: Literal['clock']
    now: str
    """
    Time of the account.
    """
    offset_seconds: int
    """
    Seconds ahead of the real time.
    """
    state: Literal['standing', 'advancing']
    target: Optional[str]
    """
    Where the advance ends; null otherwise.
    """
    behind: list[str]
    """
    Resources and events that did not finish what was due.
    """


class AdvanceClock(TypedDict):
    advance: NotRequired[str]
    to: NotRequired[str]


class Data(TypedDict):
    payment_id: str
    test: NotRequired[Literal[True]]
    """
    Only in a test event, which you send yourself.
    """


class PaymentAwaitingCustomerEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['payment.awaiting_customer']
    created: str
    livemode: bool
    data: Data


class PaymentAuthorizedEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['payment.authorized']
    created: str
    livemode: bool
    data: Data


class PaymentSettledEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['payment.settled']
    created: str
    livemode: bool
    data: Data


class PaymentFailedEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['payment.failed']
    created: str
    livemode: bool
    data: Data


class PaymentCancelledEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['payment.cancelled']
    created: str
    livemode: bool
    data: Data


class PaymentExpiredEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['payment.expired']
    created: str
    livemode: bool
    data: Data


class Data6(TypedDict):
    refund_id: str
    payment_id: str
    test: NotRequired[Literal[True]]
    """
    Only in a test event, which you send yourself.
    """


class RefundSettledEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['refund.settled']
    created: str
    livemode: bool
    data: Data6


class RefundFailedEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['refund.failed']
    created: str
    livemode: bool
    data: Data6


class Data8(TypedDict):
    payout_id: str
    test: NotRequired[Literal[True]]
    """
    Only in a test event, which you send yourself.
    """


class PayoutSubmittedEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['payout.submitted']
    created: str
    livemode: bool
    data: Data8


class PayoutSentEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['payout.sent']
    created: str
    livemode: bool
    data: Data8


class PayoutCompletedEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['payout.completed']
    created: str
    livemode: bool
    data: Data8


class PayoutFailedEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['payout.failed']
    created: str
    livemode: bool
    data: Data8


class PayoutReturnedEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['payout.returned']
    created: str
    livemode: bool
    data: Data8


class Data13(TypedDict):
    crypto_payment_id: str
    test: NotRequired[Literal[True]]
    """
    Only in a test event, which you send yourself.
    """


class CryptoPaymentReceivedEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['crypto.payment.received']
    created: str
    livemode: bool
    data: Data13


class CryptoPaymentUnderpaidEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['crypto.payment.underpaid']
    created: str
    livemode: bool
    data: Data13


class CryptoPaymentHeldEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['crypto.payment.held']
    created: str
    livemode: bool
    data: Data13


class CryptoPaymentExpiredEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['crypto.payment.expired']
    created: str
    livemode: bool
    data: Data13


class Data17(TypedDict):
    crypto_settlement_id: str
    test: NotRequired[Literal[True]]
    """
    Only in a test event, which you send yourself.
    """


class CryptoSettlementCompletedEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['crypto.settlement.completed']
    created: str
    livemode: bool
    data: Data17


class CryptoSettlementFailedEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['crypto.settlement.failed']
    created: str
    livemode: bool
    data: Data17


class Data19(TypedDict):
    dispute_id: str
    payment_id: str
    test: NotRequired[Literal[True]]
    """
    Only in a test event, which you send yourself.
    """


class DisputeOpenedEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['dispute.opened']
    created: str
    livemode: bool
    data: Data19


class DisputeUpdatedEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['dispute.updated']
    created: str
    livemode: bool
    data: Data19


class DisputeClosedEvent(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    type: Literal['dispute.closed']
    created: str
    livemode: bool
    data: Data19


class ListPaymentsQuery(TypedDict):
    limit: NotRequired[int]
    """
    Rows of a page; 25 when left out.
    """
    status: NotRequired[Literal['created', 'awaiting_customer', 'authorized', 'settled', 'failed', 'cancelled', 'expired']]
    """
    Only those in this state.
    """
    created_before: NotRequired[str]
    """
    Only those made before this time. The last `next_cursor` goes on from there: as text, since most date types cut its nine fractional digits.
    """
    method: NotRequired[Literal['ideal', 'bancontact', 'mbway', 'przelewy24', 'visa', 'mastercard', 'amex', 'multibanco', 'paysafecard']]
    """
    Only those by this method.
    """
    reference: NotRequired[str]
    """
    Only those with exactly this reference.
    """


class ListPaymentRefundsQuery(TypedDict):
    limit: NotRequired[int]
    """
    Rows of a page; 25 when left out.
    """
    status: NotRequired[Literal['processing', 'settled', 'failed']]
    """
    Only those in this state.
    """
    created_before: NotRequired[str]
    """
    Only those made before this time. The last `next_cursor` goes on from there: as text, since most date types cut its nine fractional digits.
    """


class ListRefundsQuery(TypedDict):
    limit: NotRequired[int]
    """
    Rows of a page; 25 when left out.
    """
    status: NotRequired[Literal['processing', 'settled', 'failed']]
    """
    Only those in this state.
    """
    created_before: NotRequired[str]
    """
    Only those made before this time. The last `next_cursor` goes on from there: as text, since most date types cut its nine fractional digits.
    """


class ListDisputesQuery(TypedDict):
    limit: NotRequired[int]
    """
    Rows of a page; 25 when left out.
    """
    status: NotRequired[Literal['needs_response', 'under_review', 'won', 'lost', 'accepted']]
    """
    Only those in this state.
    """
    created_before: NotRequired[str]
    """
    Only those made before this time. The last `next_cursor` goes on from there: as text, since most date types cut its nine fractional digits.
    """
    payment_id: NotRequired[str]
    """
    Only those of this payment.
    """


class ListPayoutsQuery(TypedDict):
    limit: NotRequired[int]
    """
    Rows of a page; 25 when left out.
    """
    status: NotRequired[Literal['created', 'submitted', 'sent', 'completed', 'failed', 'returned']]
    """
    Only those in this state.
    """
    created_before: NotRequired[str]
    """
    Only those made before this time. The last `next_cursor` goes on from there: as text, since most date types cut its nine fractional digits.
    """


class ListBalanceTransactionsQuery(TypedDict):
    limit: NotRequired[int]
    """
    Rows of a page; 25 when left out.
    """
    created_before: NotRequired[str]
    """
    Only those made before this time. The last `next_cursor` goes on from there: as text, since most date types cut its nine fractional digits.
    """
    balance_account: NotRequired[str]
    """
    Only those of this balance account.
    """
    currency: NotRequired[str]
    """
    ISO 4217.
    """
    asset: NotRequired[Literal['BTC', 'ETH', 'USDC', 'USDT']]
    """
    Only those in this asset.
    """
    type: NotRequired[Literal['payment', 'refund', 'refund_failure', 'payout', 'payout_failure', 'payout_return', 'chargeback', 'chargeback_reversal', 'funding', 'adjustment', 'crypto_payment', 'crypto_settlement', 'crypto_settlement_failure']]
    """
    Only those of this type.
    """


class ListEventsQuery(TypedDict):
    limit: NotRequired[int]
    """
    Rows of a page; 25 when left out.
    """
    created_before: NotRequired[str]
    """
    Only those made before this time. The last `next_cursor` goes on from there: as text, since most date types cut its nine fractional digits.
    """
    type: NotRequired[Literal['payment.awaiting_customer', 'payment.authorized', 'payment.settled', 'payment.failed', 'payment.cancelled', 'payment.expired', 'refund.settled', 'refund.failed', 'payout.submitted', 'payout.sent', 'payout.completed', 'payout.failed', 'payout.returned', 'crypto.payment.received', 'crypto.payment.underpaid', 'crypto.payment.held', 'crypto.payment.expired', 'crypto.settlement.completed', 'crypto.settlement.failed', 'dispute.opened', 'dispute.updated', 'dispute.closed']]
    """
    Only those of this type.
    """
    resource_id: NotRequired[str]
    """
    Only those with this id in their data.
    """
    after: NotRequired[str]
    """
    Oldest first, the events after this one. The last `next_cursor` goes on from there.
    """


class ListWebhookEndpointsQuery(TypedDict):
    limit: NotRequired[int]
    """
    Rows of a page; 25 when left out.
    """
    created_before: NotRequired[str]
    """
    Only those made before this time. The last `next_cursor` goes on from there: as text, since most date types cut its nine fractional digits.
    """


class ListRequestsQuery(TypedDict):
    limit: NotRequired[int]
    """
    Rows of a page; 25 when left out.
    """
    created_before: NotRequired[str]
    """
    Only those made before this time. The last `next_cursor` goes on from there: as text, since most date types cut its nine fractional digits.
    """


class ListCryptoPaymentsQuery(TypedDict):
    limit: NotRequired[int]
    """
    Rows of a page; 25 when left out.
    """
    status: NotRequired[Literal['awaiting_deposit', 'underpaid', 'held', 'received', 'expired']]
    """
    Only those in this state.
    """
    created_before: NotRequired[str]
    """
    Only those made before this time. The last `next_cursor` goes on from there: as text, since most date types cut its nine fractional digits.
    """


class ListCryptoSettlementsQuery(TypedDict):
    limit: NotRequired[int]
    """
    Rows of a page; 25 when left out.
    """
    status: NotRequired[Literal['pending', 'sent', 'completed', 'failed']]
    """
    Only those in this state.
    """
    created_before: NotRequired[str]
    """
    Only those made before this time. The last `next_cursor` goes on from there: as text, since most date types cut its nine fractional digits.
    """


WebhookEvent: TypeAlias = Union[
    PaymentAwaitingCustomerEvent,
    PaymentAuthorizedEvent,
    PaymentSettledEvent,
    PaymentFailedEvent,
    PaymentCancelledEvent,
    PaymentExpiredEvent,
    RefundSettledEvent,
    RefundFailedEvent,
    PayoutSubmittedEvent,
    PayoutSentEvent,
    PayoutCompletedEvent,
    PayoutFailedEvent,
    PayoutReturnedEvent,
    CryptoPaymentReceivedEvent,
    CryptoPaymentUnderpaidEvent,
    CryptoPaymentHeldEvent,
    CryptoPaymentExpiredEvent,
    CryptoSettlementCompletedEvent,
    CryptoSettlementFailedEvent,
    DisputeOpenedEvent,
    DisputeUpdatedEvent,
    DisputeClosedEvent,
]


ErrorCode: TypeAlias = Literal['account_frozen', 'api_key_address_refused', 'api_key_expired', 'api_key_invalid', 'api_key_missing', 'api_key_revoked', 'api_key_scope_insufficient', 'asset_not_available', 'asset_not_supported', 'balance_account_not_found', 'body_too_large', 'books_refused', 'cannot_cancel', 'clock_advancing', 'clock_too_busy', 'crypto_not_enabled', 'crypto_payment_not_found', 'crypto_settlement_not_found', 'dispute_closed', 'dispute_not_found', 'endpoint_disabled', 'endpoint_limit_reached', 'event_not_found', 'evidence_not_supported', 'idempotency_key_invalid', 'idempotency_key_required', 'idempotency_key_reused', 'idempotency_request_in_progress', 'insufficient_balance', 'internal_error', 'invalid_amount', 'invalid_cursor', 'invalid_json', 'invalid_request', 'method_requirements_not_met', 'payment_disputed', 'payment_not_found', 'payment_not_settled', 'payout_limit_exceeded', 'payout_not_found', 'rail_requirements_not_met', 'rate_limited', 'recipient_deleted', 'recipient_not_found', 'recipient_type_mismatch', 'refund_amount_exceeds_balance', 'refund_not_found', 'refund_not_supported', 'refund_window_expired', 'sandbox_only', 'temporarily_unavailable', 'unsupported_media_type', 'wallet_not_registered', 'webhook_endpoint_not_found']


class Payment(TypedDict):
    id: str
    object: Literal['payment']
    status: Literal['created', 'awaiting_customer', 'authorized', 'settled', 'failed', 'cancelled', 'expired']
    amount: int
    """
    Minor units: 10.50 is 1050.
    """
    currency: str
    method: Literal['ideal', 'bancontact', 'mbway', 'przelewy24', 'visa', 'mastercard', 'amex', 'multibanco', 'paysafecard']
    country: Optional[str]
    reference: Optional[str]
    redirect_url: str
    """
    Redirect the customer here. Opens once and expires. Do not use it in an iframe or e-mail it.
    """
    customer: Customer
    failure: Optional[Failure]
    livemode: bool
    metadata: dict[str, Any]
    amount_settled: Optional[int]
    """
    What came; null until it settles.
    """
    disputed: int
    """
    In disputes that are open or lost.
    """
    authorized_at: Optional[str]
    settled_at: Optional[str]
    cancelled_at: Optional[str]
    created_at: str
    updated_at: str


class CreatePayment(TypedDict):
    method: str
    """
    A method id from the catalog.
    """
    amount: int
    """
    Minor units: 10.50 is 1050.
    """
    currency: str
    """
    ISO 4217.
    """
    success_url: str
    error_url: str
    country: NotRequired[Optional[str]]
    reference: NotRequired[Optional[str]]
    customer: NotRequired[Optional[CustomerRequest]]
    metadata: NotRequired[Optional[dict[str, Any]]]


class PaymentList(TypedDict):
    object: Literal['list']
    data: list[Payment]
    has_more: bool
    next_cursor: Optional[str]


class RefundList(TypedDict):
    object: Literal['list']
    data: list[Refund]
    has_more: bool
    next_cursor: Optional[str]


class Payout(TypedDict):
    id: str
    object: Literal['payout']
    status: Literal['created', 'submitted', 'sent', 'completed', 'failed', 'returned']
    amount: int
    """
    Minor units: 10.50 is 1050.
    """
    currency: str
    method: Literal['card_payout', 'sepa_credit_transfer', 'sepa_instant', 'faster_payments']
    recipient_id: str
    reference: Optional[str]
    metadata: dict[str, Any]
    failure: Optional[Failure]
    returned: Optional[PayoutReturn]
    fee: int
    """
    Charged besides the amount.
    """
    amount_returned: Optional[int]
    """
    What came back; null before.
    """
    verification: Optional[PayeeVerification]
    """
    What the bank has said of the recipient’s name; null before, and on other rails.
    """
    livemode: bool
    created_at: str
    completed_at: Optional[str]


class PayoutList(TypedDict):
    object: Literal['list']
    data: list[Payout]
    has_more: bool
    next_cursor: Optional[str]


class PayoutMethodList(TypedDict):
    object: Literal['list']
    data: list[PayoutMethod]


class BalanceList(TypedDict):
    object: Literal['list']
    data: list[Union[CurrencyBalance, AssetBalance]]


class CurrencyBalanceTransaction(TypedDict):
    id: str
    object: Literal['balance_transaction']
    type: Literal['payment', 'refund', 'refund_failure', 'payout', 'payout_failure', 'payout_return', 'chargeback', 'chargeback_reversal', 'funding', 'adjustment', 'crypto_payment', 'crypto_settlement', 'crypto_settlement_failure']
    balance_account: str
    currency: str
    """
    ISO 4217.
    """
    amount: int
    """
    Minor units.
    """
    fee: int
    """
    Minor units.
    """
    net: int
    """
    Minor units.
    """
    available_on: str
    source: BalanceTransactionSource
    created_at: str


class Event(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    object: Literal['event']
    type: Literal['payment.awaiting_customer', 'payment.authorized', 'payment.settled', 'payment.failed', 'payment.cancelled', 'payment.expired', 'refund.settled', 'refund.failed', 'payout.submitted', 'payout.sent', 'payout.completed', 'payout.failed', 'payout.returned', 'crypto.payment.received', 'crypto.payment.underpaid', 'crypto.payment.held', 'crypto.payment.expired', 'crypto.settlement.completed', 'crypto.settlement.failed', 'dispute.opened', 'dispute.updated', 'dispute.closed']
    created: str
    livemode: bool
    data: dict[str, Union[str, Literal[True]]]
    deliveries: list[Delivery]
    """
    One per endpoint.
    """


class DeliveryWithLog(TypedDict):
    endpoint_id: str
    status: Literal['pending', 'delivered', 'exhausted', 'no_endpoint', 'not_subscribed', 'disabled']
    attempts: int
    """
    Over all runs.
    """
    next_attempt_at: Optional[str]
    log: list[DeliveryAttempt]
    """
    The latest attempts, the oldest first.
    """


class ApiRequestList(TypedDict):
    object: Literal['list']
    data: list[ApiRequest]
    has_more: bool
    next_cursor: Optional[str]


class PaymentMethod(TypedDict):
    method: Literal['ideal', 'bancontact', 'mbway', 'przelewy24', 'visa', 'mastercard', 'amex', 'multibanco', 'paysafecard']
    display_name: str
    currencies: list[str]
    countries: list[str]
    refunds: RefundRules
    supports_recurring: bool
    requires_redirect: bool
    async_settlement: bool
    required_fields: list[str]
    chargebacks: bool
    notes: Optional[str]


class AvailablePaymentMethodList(TypedDict):
    object: Literal['list']
    data: list[AvailablePaymentMethod]


class CryptoPayment(TypedDict):
    id: str
    object: Literal['crypto_payment']
    status: Literal['awaiting_deposit', 'underpaid', 'held', 'received', 'expired']
    amount: int
    """
    Minor units: 10.50 is 1050.
    """
    currency: str
    asset: Literal['BTC', 'ETH', 'USDC', 'USDT']
    network: Literal['bitcoin', 'ethereum', 'tron']
    amount_due: str
    """
    An integer in the asset's smallest unit, as a string.
    """
    amount_received: str
    """
    Confirmed deposits that count.
    """
    address: str
    payment_uri: str
    """
    BIP-21 or EIP-681, for wallets.
    """
    redirect_url: str
    """
    The payer's page.
    """
    deposits: list[CryptoDeposit]
    reference: Optional[str]
    livemode: bool
    metadata: dict[str, Any]
    expires_at: str
    received_at: Optional[str]
    created_at: str
    updated_at: str


class CryptoPaymentList(TypedDict):
    object: Literal['list']
    data: list[CryptoPayment]
    has_more: bool
    next_cursor: Optional[str]


class BalanceTransactionList(TypedDict):
    object: Literal['list']
    data: list[Union[CurrencyBalanceTransaction, AssetBalanceTransaction]]
    has_more: bool
    next_cursor: Optional[str]


class EventList(TypedDict):
    object: Literal['list']
    data: list[Event]
    has_more: bool
    next_cursor: Optional[str]


class EventWithLog(TypedDict):
    id: str
    """
    Deduplicate on it.
    """
    object: Literal['event']
    type: Literal['payment.awaiting_customer', 'payment.authorized', 'payment.settled', 'payment.failed', 'payment.cancelled', 'payment.expired', 'refund.settled', 'refund.failed', 'payout.submitted', 'payout.sent', 'payout.completed', 'payout.failed', 'payout.returned', 'crypto.payment.received', 'crypto.payment.underpaid', 'crypto.payment.held', 'crypto.payment.expired', 'crypto.settlement.completed', 'crypto.settlement.failed', 'dispute.opened', 'dispute.updated', 'dispute.closed']
    created: str
    livemode: bool
    data: dict[str, Union[str, Literal[True]]]
    deliveries: list[DeliveryWithLog]


class PaymentMethodList(TypedDict):
    object: Literal['list']
    data: list[PaymentMethod]
