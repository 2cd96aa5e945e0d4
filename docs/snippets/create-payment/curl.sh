curl -sS "$BASE/v1/payments" \
  -H "Authorization: Bearer $KEY" \
  -H 'Content-Type: application/json' \
  -H 'Idempotency-Key: order-1001' \
  -d '{"method": "ideal", "amount": 1050, "currency": "EUR", "country": "NL",
       "reference": "order-1001",
       "success_url": "https://example.com/thanks",
       "error_url": "https://example.com/sorry"}'
