curl -sS "$BASE/v1/payments" \
  -H "Authorization: Bearer $KEY" \
  -H 'Content-Type: application/json' \
  -H 'Idempotency-Key: order-1002' \
  -d '{"method": "ideal", "amount": 66602, "currency": "EUR", "country": "NL",
       "success_url": "https://example.com/thanks",
       "error_url": "https://example.com/sorry"}'
