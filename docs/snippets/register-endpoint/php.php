<?php

['BASE' => $base, 'KEY' => $key] = getenv();
$curl = curl_init("$base/v1/webhook-endpoints");
curl_setopt_array($curl, [
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_TIMEOUT => 30,
    CURLOPT_HTTPHEADER => [
        "Authorization: Bearer $key",
        'Content-Type: application/json',
        'Idempotency-Key: my-server',
    ],
    CURLOPT_POSTFIELDS => json_encode([
        'url' => 'http://localhost:9000/webhooks',
    ]),
]);
$endpoint = json_decode(curl_exec($curl), true);
if (curl_getinfo($curl, CURLINFO_RESPONSE_CODE) !== 201) {
    throw new RuntimeException(
        $endpoint['error']['code'] ?? curl_error($curl),
    );
}
echo "{$endpoint['id']} {$endpoint['signing_secret']}\n";
