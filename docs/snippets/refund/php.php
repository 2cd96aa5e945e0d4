<?php

['BASE' => $base, 'KEY' => $key, 'PAYMENT_ID' => $paymentId] = getenv();
$curl = curl_init("$base/v1/refunds");
curl_setopt_array($curl, [
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_TIMEOUT => 30,
    CURLOPT_HTTPHEADER => [
        "Authorization: Bearer $key",
        'Content-Type: application/json',
        'Idempotency-Key: refund-1001',
    ],
    CURLOPT_POSTFIELDS => json_encode([
        'payment_id' => $paymentId,
        'amount' => 250,
    ]),
]);
$refund = json_decode(curl_exec($curl), true);
if (curl_getinfo($curl, CURLINFO_RESPONSE_CODE) !== 201) {
    throw new RuntimeException(
        $refund['error']['code'] ?? curl_error($curl),
    );
}
echo "{$refund['id']} {$refund['status']}\n";
