"""Everything that one API key can do, by resource."""

from __future__ import annotations

from typing import Optional

from . import _resources as resources
from ._api import Api
from ._attempt import Transport


class Client:
    """``api_key`` selects the account and the environment, ``base_url`` the installation.

    ``timeout``: seconds for one attempt. ``retries_max``: attempts after the first one.
    ``transport`` stands in for ``urllib``. A client may be shared by threads.
    """

    def __init__(
        self,
        api_key: str,
        base_url: str,
        *,
        timeout: float = 30.0,
        retries_max: int = 4,
        transport: Optional[Transport] = None,
    ) -> None:
        api = Api(api_key, base_url, timeout, retries_max, transport)
        self.payments = resources.Payments(api)
        self.refunds = resources.Refunds(api)
        self.disputes = resources.Disputes(api)
        self.recipients = resources.Recipients(api)
        self.payouts = resources.Payouts(api)
        self.balances = resources.Balances(api)
        self.balance_transactions = resources.BalanceTransactions(api)
        self.payment_methods = resources.PaymentMethods(api)
        self.events = resources.Events(api)
        self.webhook_endpoints = resources.WebhookEndpoints(api)
        self.requests = resources.Requests(api)
        self.crypto = resources.Crypto(api)
        self.sandbox = resources.Sandbox(api)
