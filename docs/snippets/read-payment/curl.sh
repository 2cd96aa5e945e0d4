curl -sS "$BASE/v1/payments/$PAYMENT_ID" -H "Authorization: Bearer $KEY"
