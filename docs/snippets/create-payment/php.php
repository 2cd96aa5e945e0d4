<?php

['BASE' => $base, 'KEY' => $key] = getenv();
$curl = curl_init("$base/v1/payments");
curl_setopt_array($curl, [
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_TIMEOUT => 30,
    CURLOPT_HTTPHEADER => [
        "Authorization: Bearer $key",
        'Content-Type: application/json',
        'Idempotency-Key: order-1001',
    ],
    CURLOPT_POSTFIELDS => json_encode([
        'method' => 'ideal',
        'amount' => 1050,
        'currency' => 'EUR',
        'country' => 'NL',
        'reference' => 'order-1001',
        'success_url' => 'https://example.com/thanks',
        'error_url' => 'https://example.com/sorry',
    ]),
]);
$payment = json_decode(curl_exec($curl), true);
if (curl_getinfo($curl, CURLINFO_RESPONSE_CODE) !== 201) {
    throw new RuntimeException(
        $payment['error']['code'] ?? curl_error($curl),
    );
}
echo "{$payment['id']} {$payment['redirect_url']}\n";
