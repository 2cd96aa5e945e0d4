<?php

$secret = getenv('SIGNING_SECRET');
$body = file_get_contents('php://input'); // exactly as received
$signature = $_SERVER['HTTP_SERVICE_SIGNATURE'] ?? '';

$isGenuine = $secret
    && preg_match('/^t=(\d{1,12}),v1=([0-9a-f]{64})$/D', $signature, $parts)
    && hash_equals(hash_hmac('sha256', "$parts[1].$body", $secret), $parts[2])
    && abs(time() - (int) $parts[1]) <= 300;
if (!$isGenuine) {
    http_response_code(400);
    exit;
}

$event = json_decode($body, true);
error_log("{$event['type']} {$event['id']}");
http_response_code(204);
