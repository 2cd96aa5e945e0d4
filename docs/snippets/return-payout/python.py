import os

from durable_payments import Client

client = Client(os.environ["KEY"], os.environ["BASE"])

payout = client.sandbox.simulate_payout(
    os.environ["PAYOUT_ID"],
    {"event": "returned", "code": "AC04", "reason": "Account closed"},
)
print(payout["status"])
