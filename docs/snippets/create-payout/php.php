<?php

['BASE' => $base, 'KEY' => $key, 'RECIPIENT_ID' => $recipientId] = getenv();
$curl = curl_init("$base/v1/payouts");
curl_setopt_array($curl, [
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_TIMEOUT => 30,
    CURLOPT_HTTPHEADER => [
        "Authorization: Bearer $key",
        'Content-Type: application/json',
        'Idempotency-Key: payout-1001',
    ],
    CURLOPT_POSTFIELDS => json_encode([
        'recipient_id' => $recipientId,
        'method' => 'sepa_instant',
        'amount' => 5000,
        'currency' => 'EUR',
        'metadata' => ['balance_account' => 'marketing'],
    ]),
]);
$payout = json_decode(curl_exec($curl), true);
if (curl_getinfo($curl, CURLINFO_RESPONSE_CODE) !== 201) {
    throw new RuntimeException(
        $payout['error']['code'] ?? curl_error($curl),
    );
}
echo "{$payout['id']} {$payout['status']}\n";
