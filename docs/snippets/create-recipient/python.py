import os

from durable_payments import Client

client = Client(os.environ["KEY"], os.environ["BASE"])

recipient = client.recipients.create(
    {
        "type": "bank_account",
        "first_name": "Ada",
        "last_name": "Lovelace",
        "iban": "NL91 ABNA 0417 1643 00",
        "address_line1": "Keizersgracht 1",
        "city": "Amsterdam",
        "postal_code": "1015 CN",
    },
    idempotency_key="ada",
)
print(recipient["id"])
