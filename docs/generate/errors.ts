import {
  ERROR_CODES,
  type ErrorCode,
  isErrorCode,
  type NotFoundCode,
} from '../../src/domain/errors';
import { code, codes, list } from './markdown';

const CHECK_ID = 'check the ID, and the environment of the key';
const CORRECT = 'correct what `message` and `details` name';
const REPAY_OTHERWISE = 'repay the customer in another way';
const OTHER_KEY = 'use another key';
const LESS_OR_LATER = 'lower the amount, or wait';
const FOR_CONNECTORS = 'for [connectors](connectors.md#callbacks-over-http) only';

/** Advice to the caller; a new code does not compile without one. */
const ADVICE: Record<Exclude<ErrorCode, NotFoundCode>, string> = {
  invalid_request: CORRECT,
  invalid_json: CORRECT,
  invalid_amount: CORRECT,
  invalid_cursor: CORRECT,
  idempotency_key_required: CORRECT,
  idempotency_key_invalid: CORRECT,
  api_key_missing: 'send `Authorization: Bearer …`',
  api_key_invalid: OTHER_KEY,
  api_key_revoked: OTHER_KEY,
  signature_invalid: FOR_CONNECTORS,
  api_key_expired: OTHER_KEY,
  account_frozen: 'contact us',
  api_key_address_refused: 'call from a network of the key',
  api_key_scope_insufficient: 'use a key with the named scope; to simulate, a sandbox key',
  crypto_not_enabled: 'ask us to enable crypto',
  sandbox_only: 'use a sandbox key',
  route_not_found: CORRECT,
  method_not_allowed: CORRECT,
  body_too_large: CORRECT,
  unsupported_media_type: CORRECT,
  clock_advancing: 'wait until the clock is `standing`, or stop it',
  clock_too_busy: 'end or cancel some of the 5,000 resources in progress, or use another account',
  callback_conflict: FOR_CONNECTORS,
  idempotency_request_in_progress: 'repeat with the same key after `Retry-After`',
  idempotency_key_reused: 'use a new key',
  method_requirements_not_met: CORRECT,
  cannot_cancel: 'it is paid or final',
  refund_not_supported: REPAY_OTHERWISE,
  payment_disputed: 'it is disputed or charged back',
  payment_not_settled: 'wait, or cancel it',
  refund_window_expired: REPAY_OTHERWISE,
  refund_amount_exceeds_balance: CORRECT,
  balance_account_not_found: CORRECT,
  rail_requirements_not_met: CORRECT,
  recipient_deleted: 'create the recipient again',
  recipient_type_mismatch: CORRECT,
  insufficient_balance: LESS_OR_LATER,
  asset_not_supported: CORRECT,
  asset_not_available: 'it has no connector here, or no rate',
  wallet_not_registered: '[register](dashboard.md#crypto) a wallet',
  dispute_closed: 'it has ended, its deadline is over, or its evidence is sent',
  evidence_not_supported: 'answer the bank in another way',
  endpoint_disabled: 'enable the endpoint',
  endpoint_limit_reached: 'delete an endpoint',
  payout_limit_exceeded: LESS_OR_LATER,
  rate_limited: 'repeat after `Retry-After`; nothing was done',
  books_refused: 'nothing moved, and the key is free: report the `request_id`',
  internal_error: 'repeat with the same key; report the `request_id`',
  temporarily_unavailable: 'outcome unknown: repeat with the same key after `Retry-After`',
};

/** Every error code and what to do about it, by type; codes with the same advice share a line. */
export function errorList(): string {
  const advice = new Map<string, string>(Object.entries(ADVICE));
  const names = Object.keys(ERROR_CODES).filter(isErrorCode);
  return [...groupBy(names, (name) => ERROR_CODES[name].type)]
    .map(([type, own]) => {
      const lines = groupBy(own, (name) => advice.get(name) ?? CHECK_ID);
      const items = [...lines].map(([text, same]) => `${nameCodes(same)}: ${text}`);
      return `${code(type)}\n\n${list(items)}`;
    })
    .join('\n\n');
}

/** Codes with their status, which follows the last of several. */
function nameCodes(names: ErrorCode[]): string {
  return [...groupBy(names, (name) => ERROR_CODES[name].status)]
    .map(([status, same]) => `${codes(same)}, ${status}`)
    .join('; ');
}

function groupBy<Key>(names: ErrorCode[], getKey: (name: ErrorCode) => Key) {
  const groups = new Map<Key, ErrorCode[]>();
  for (const name of names) {
    const key = getKey(name);
    groups.set(key, [...(groups.get(key) ?? []), name]);
  }
  return groups;
}
