curl -sS "$BASE/v1/payout-recipients" \
  -H "Authorization: Bearer $KEY" \
  -H 'Content-Type: application/json' \
  -H 'Idempotency-Key: ada' \
  -d '{"type": "bank_account", "first_name": "Ada", "last_name": "Lovelace",
       "iban": "NL91 ABNA 0417 1643 00", "address_line1": "Keizersgracht 1",
       "city": "Amsterdam", "postal_code": "1015 CN"}'
