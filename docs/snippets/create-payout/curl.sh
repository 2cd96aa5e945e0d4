curl -sS "$BASE/v1/payouts" \
  -H "Authorization: Bearer $KEY" \
  -H 'Content-Type: application/json' \
  -H 'Idempotency-Key: payout-1001' \
  -d '{"recipient_id": "'"$RECIPIENT_ID"'", "method": "sepa_instant",
       "amount": 5000, "currency": "EUR", "metadata": {"balance_account": "marketing"}}'
