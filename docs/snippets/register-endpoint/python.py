import os

from durable_payments import Client

client = Client(os.environ["KEY"], os.environ["BASE"])

endpoint = client.webhook_endpoints.create(
    {"url": "http://localhost:9000/webhooks"},
    idempotency_key="my-server",
)
print(endpoint["id"], endpoint["signing_secret"])
