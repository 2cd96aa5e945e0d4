import {
  ERROR_CODES,
  type ErrorCode,
  isErrorCode,
  type NotFoundCode,
} from '../../src/domain/errors';
import { code, codes, list } from './markdown';

const CHECK_ID = 'check the ID and the environment of the key';
const REPAY_OTHERWISE = 'repay the customer in another way';

/** Advice to the caller; a new code does not compile without one. */
const ADVICE: Record<Exclude<ErrorCode, NotFoundCode>, string> = {
  invalid_request: 'correct the fields in `details`',
  invalid_json: 'send one JSON object',
  invalid_amount: 'only the amount is wrong: send minor units',
  invalid_cursor: 'pass `next_cursor` unchanged',
  idempotency_key_required: 'send an `Idempotency-Key`',
  idempotency_key_invalid: 'send 1 to 255 printable ASCII characters, once',
  api_key_missing: 'send `Authorization: Bearer …`',
  api_key_invalid: 'check the key: it does not exist',
  api_key_revoked: 'use another key',
  signature_invalid: 'connectors only: sign the raw body with a valid key',
  api_key_expired: 'use another key',
  account_frozen: 'contact us; you can still read',
  api_key_address_refused: 'call from a network that the key allows',
  api_key_scope_insufficient: 'use a key with the named scope; to simulate, a sandbox key',
  crypto_not_enabled: 'ask us to enable crypto',
  sandbox_only: 'use a sandbox key',
  route_not_found: 'check the path and the slash at its end',
  method_not_allowed: 'use a method of the `Allow` header',
  body_too_large: 'send at most 64 KiB',
  unsupported_media_type: 'send uncompressed `application/json` in UTF-8',
  clock_advancing: 'wait until the clock is `standing`',
  callback_conflict: 'connectors only: give each fact its own `callback_id`',
  idempotency_request_in_progress: 'repeat with the same key after `Retry-After`',
  idempotency_key_reused: 'the message names the resource of this key; use a new key',
  method_requirements_not_met: 'see `details`',
  cannot_cancel: 'it is paid or final: read it',
  refund_not_supported: REPAY_OTHERWISE,
  payment_disputed: 'the bank disputes the payment, or charged it back',
  payment_not_settled: 'cancel it if unpaid; wait if paid',
  refund_window_expired: REPAY_OTHERWISE,
  refund_amount_exceeds_balance: 'the message states what remains',
  balance_account_not_found: 'name a funded balance account',
  rail_requirements_not_met: 'see `details`; use another recipient or rail',
  recipient_deleted: 'create the recipient again',
  recipient_type_mismatch: 'use a rail of the recipient’s type',
  insufficient_balance: 'lower the amount, or wait',
  asset_not_supported: 'use an asset with its network',
  asset_not_available: 'no connector serves it here, or there is no rate',
  wallet_not_registered: 'register a wallet; in live it takes effect after 24 hours',
  endpoint_disabled: 'enable the endpoint first',
  endpoint_limit_reached: 'delete an endpoint first',
  payout_limit_exceeded: 'pay out less today, or ask for a higher limit',
  rate_limited: 'wait for `Retry-After`; the call had no effect',
  internal_error: 'repeat with the same key; report the `request_id`',
  temporarily_unavailable: 'outcome unknown: repeat with the same key after `Retry-After`',
};

/** Every error code and what to do about it, by type; codes with the same advice share a line. */
export function errorList(): string {
  const advice = new Map<string, string>(Object.entries(ADVICE));
  const types = new Map<string, Map<string, string[]>>();
  for (const name of Object.keys(ERROR_CODES).filter(isErrorCode)) {
    const { status, type } = ERROR_CODES[name];
    const lines = types.get(type) ?? new Map<string, string[]>();
    const line = `${status}: ${advice.get(name) ?? CHECK_ID}`;
    types.set(type, lines.set(line, [...(lines.get(line) ?? []), name]));
  }
  const items = (lines: Map<string, string[]>) =>
    list([...lines].map(([line, names]) => `${codes(names)}, ${line}`));
  return [...types].map(([type, lines]) => `${code(type)}\n\n${items(lines)}`).join('\n\n');
}
