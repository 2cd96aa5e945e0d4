curl -sS "$BASE/v1/refunds" \
  -H "Authorization: Bearer $KEY" \
  -H 'Content-Type: application/json' \
  -H 'Idempotency-Key: refund-1001' \
  -d '{"payment_id": "'"$PAYMENT_ID"'", "amount": 250}'
