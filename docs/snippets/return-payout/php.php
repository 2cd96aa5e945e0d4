<?php

['BASE' => $base, 'KEY' => $key, 'PAYOUT_ID' => $payoutId] = getenv();
$curl = curl_init("$base/v1/sandbox/payouts/$payoutId/simulate");
curl_setopt_array($curl, [
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_TIMEOUT => 30,
    CURLOPT_HTTPHEADER => [
        "Authorization: Bearer $key",
        'Content-Type: application/json',
    ],
    CURLOPT_POSTFIELDS => json_encode([
        'event' => 'returned',
        'code' => 'AC04',
        'reason' => 'Account closed',
    ]),
]);
$payout = json_decode(curl_exec($curl), true);
if (curl_getinfo($curl, CURLINFO_RESPONSE_CODE) !== 200) {
    throw new RuntimeException(
        $payout['error']['code'] ?? curl_error($curl),
    );
}
echo "{$payout['status']}\n";
