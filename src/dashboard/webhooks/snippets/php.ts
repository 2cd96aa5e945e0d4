export const PHP = String.raw`<?php
// PHP 8. $header: Service-Signature, $body: file_get_contents('php://input'), $secret: whsec_…
function isGenuine(string $header, string $body, string $secret): bool
{
    if (!preg_match('/^t=(\d{1,12}),v1=([0-9a-f]{64})\z/', $header, $match)) {
        return false;
    }
    [, $t, $v1] = $match;
    if (abs(time() - (int) $t) > 300) {
        return false;
    }
    return hash_equals(hash_hmac('sha256', $t . '.' . $body, $secret), $v1);
}
`;
