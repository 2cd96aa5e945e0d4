<?php

['BASE' => $base, 'KEY' => $key, 'PAYMENT_ID' => $paymentId] = getenv();
$curl = curl_init("$base/v1/sandbox/payments/$paymentId/simulate");
curl_setopt_array($curl, [
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_TIMEOUT => 30,
    CURLOPT_HTTPHEADER => [
        "Authorization: Bearer $key",
        'Content-Type: application/json',
    ],
    CURLOPT_POSTFIELDS => json_encode(['event' => 'settled']),
]);
$payment = json_decode(curl_exec($curl), true);
if (curl_getinfo($curl, CURLINFO_RESPONSE_CODE) !== 200) {
    throw new RuntimeException(
        $payment['error']['code'] ?? curl_error($curl),
    );
}
echo "{$payment['status']}\n";
