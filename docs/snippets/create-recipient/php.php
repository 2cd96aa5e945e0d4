<?php

['BASE' => $base, 'KEY' => $key] = getenv();
$curl = curl_init("$base/v1/payout-recipients");
curl_setopt_array($curl, [
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_TIMEOUT => 30,
    CURLOPT_HTTPHEADER => [
        "Authorization: Bearer $key",
        'Content-Type: application/json',
        'Idempotency-Key: ada',
    ],
    CURLOPT_POSTFIELDS => json_encode([
        'type' => 'bank_account',
        'first_name' => 'Ada',
        'last_name' => 'Lovelace',
        'iban' => 'NL91 ABNA 0417 1643 00',
        'address_line1' => 'Keizersgracht 1',
        'city' => 'Amsterdam',
        'postal_code' => '1015 CN',
    ]),
]);
$recipient = json_decode(curl_exec($curl), true);
if (curl_getinfo($curl, CURLINFO_RESPONSE_CODE) !== 201) {
    throw new RuntimeException(
        $recipient['error']['code'] ?? curl_error($curl),
    );
}
echo "{$recipient['id']}\n";
