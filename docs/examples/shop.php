<?php
// Creates a payment and verifies webhooks, with PHP's own functions (curl).
//   php shop.php create BASE_URL API_KEY
//   php shop.php verify SIGNING_SECRET SERVICE_SIGNATURE < BODY

/** Repeats a call whose outcome is unknown with the same key, which never creates a second payment. */
function createPayment(string $baseUrl, string $apiKey, array $payment, string $idempotencyKey): array
{
    for ($attempt = 1; ; $attempt++) {
        $call = curl_init("$baseUrl/v1/payments");
        curl_setopt_array($call, [
            CURLOPT_POST => true,
            CURLOPT_POSTFIELDS => json_encode($payment, JSON_THROW_ON_ERROR),
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_TIMEOUT => 30,
            CURLOPT_HTTPHEADER => [
                "Authorization: Bearer $apiKey",
                'Content-Type: application/json',
                "Idempotency-Key: $idempotencyKey",
            ],
        ]);
        $text = curl_exec($call);
        $status = curl_getinfo($call, CURLINFO_RESPONSE_CODE); // 0 when no answer came
        $body = json_decode((string) $text, true);
        if ($status === 201) {
            return $body;
        }
        $mayRepeat = $status === 0 || $status === 409 || $status === 429 || $status >= 500;
        if (!$mayRepeat || $attempt === 5) {
            throw new RuntimeException($body['error']['code'] ?? "status $status");
        }
        sleep($attempt);
    }
}

/** `$body` is exactly what was received: file_get_contents('php://input'). */
function isGenuine(string $body, string $signature, string $secret): bool
{
    if (!preg_match('/^t=(\d{1,12}),v1=([0-9a-f]{64})$/D', $signature, $parts)) {
        return false;
    }
    [, $t, $v1] = $parts;
    return hash_equals(hash_hmac('sha256', "$t.$body", $secret), $v1) && abs(time() - (int) $t) <= 300;
}

// Only as the main script: your shop includes the file for its functions.
if (PHP_SAPI === 'cli' && realpath($_SERVER['SCRIPT_FILENAME']) === __FILE__) {
    [, $command, $first, $second] = $argv;
    if ($command === 'create') {
        $payment = createPayment($first, $second, [
            'method' => 'ideal',
            'amount' => 1050,
            'currency' => 'EUR',
            'country' => 'NL',
            'success_url' => 'https://shop.example/thanks',
            'error_url' => 'https://shop.example/sorry',
            'reference' => 'order-1001',
        ], 'order-1001-php');
        echo "{$payment['redirect_url']}\n";
    } else {
        $body = stream_get_contents(STDIN);
        echo isGenuine($body, $second, $first) ? json_decode($body, true)['type'] . "\n" : "refused\n";
    }
}
