import { ERROR_CODES, type ErrorCode, isErrorCode } from '../../src/domain/errors';
import { code, codes, list } from './markdown';

const CHECK_ID = 'check the id, and that the key is of the same environment';
const ANOTHER_WAY = 'pay the customer back in another way';

/** What a caller does about each code: a new one does not compile without. */
const ADVICE: Record<ErrorCode, string> = {
  invalid_request: 'correct the fields in `details`',
  invalid_json: 'send one well-formed JSON object',
  invalid_amount: 'only the amount is wrong: send an integer in minor units',
  invalid_cursor: 'pass `next_cursor` unchanged',
  idempotency_key_required: 'send an `Idempotency-Key`',
  idempotency_key_invalid: 'send one value of 1 to 255 printable ASCII characters',
  api_key_missing: 'send `Authorization: Bearer …`',
  api_key_invalid: 'check the key: it is not known',
  api_key_revoked: 'use another key',
  signature_invalid: 'connectors only: sign the raw body with a key that is not revoked',
  api_key_expired: 'use another key',
  account_frozen: 'ask us why: reads work, and what is under way goes on',
  api_key_address_refused: 'call from a network that the key is for',
  api_key_scope_insufficient: 'use a key with the scope named; simulate with a sandbox key',
  crypto_not_enabled: 'ask for crypto to be enabled on the account',
  crypto_payment_not_found: CHECK_ID,
  crypto_settlement_not_found: CHECK_ID,
  payment_not_found: CHECK_ID,
  payout_not_found: CHECK_ID,
  recipient_not_found: CHECK_ID,
  refund_not_found: CHECK_ID,
  route_not_found: 'check the path; a slash at its end counts',
  method_not_allowed: 'the `Allow` header names what the path takes',
  body_too_large: 'stay within 64 KiB',
  unsupported_media_type: 'send `application/json` in UTF-8, not compressed',
  callback_conflict: 'connectors only: give each fact a `callback_id` of its own',
  idempotency_request_in_progress: 'repeat with the same key after `Retry-After`',
  idempotency_key_reused: 'the message names the resource that has this key; take a new key',
  method_requirements_not_met: 'see `details`; ask the customer for what is missing',
  cannot_cancel: 'read the payment: it is paid or has ended',
  refund_not_supported: ANOTHER_WAY,
  payment_disputed: 'the bank takes the payment back: nothing is left to refund',
  payment_not_settled: 'cancel a payment that is not paid; wait for one that is',
  refund_window_expired: ANOTHER_WAY,
  refund_amount_exceeds_balance: 'the message states what remains; list the payment’s refunds',
  balance_account_not_found: 'name a balance account that was funded in this environment',
  rail_requirements_not_met: 'see `details`; make another recipient or take another rail',
  recipient_deleted: 'make the recipient anew',
  recipient_type_mismatch: 'take a rail of the recipient’s type',
  insufficient_balance: 'draw less, or wait until the balance has grown',
  asset_not_supported: 'take an asset on its own network',
  asset_not_available: 'take another asset: no connector serves this one here, or it gave no rate',
  wallet_not_registered: 'register a wallet on this network; on live it counts after 24 hours',
  payout_limit_exceeded: 'pay out less today, or ask us for more',
  rate_limited: 'wait for `Retry-After`; the call did nothing',
  internal_error: 'repeat with the same key; report the `request_id`',
  temporarily_unavailable: 'outcome unknown: repeat with the same key after `Retry-After`',
};

/** Every error code and what to do about it, by type; codes with the same advice share a line. */
export function errorList(): string {
  const types = new Map<string, Map<string, string[]>>();
  for (const name of Object.keys(ERROR_CODES).filter(isErrorCode)) {
    const { status, type } = ERROR_CODES[name];
    const lines = types.get(type) ?? new Map<string, string[]>();
    const line = `${status}: ${ADVICE[name]}`;
    types.set(type, lines.set(line, [...(lines.get(line) ?? []), name]));
  }
  const items = (lines: Map<string, string[]>) =>
    list([...lines].map(([line, names]) => `${codes(names)}, ${line}`));
  return [...types].map(([type, lines]) => `${code(type)}\n\n${items(lines)}`).join('\n\n');
}
