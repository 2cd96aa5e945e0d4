import { assertNever } from '../../src/domain/assert';
import type { AcceptedRequest } from '../../src/domain/creation';
import type { Stores } from '../../src/store';
import { KEY_LIFETIME_MS, REBUILT, rebuiltRecordKey } from '../../src/store/idempotency';
import type { RunHistory } from './history';
import type { Write } from './steps';

export type Opening = Extract<Write, { activity: `open${string}` | `abandon${string}` }>;

/** Matches no request. */
const NONE = '';

type IdempotencyStores = Pick<Stores, 'idempotency'>;

/**
 * Creates a missing record, without the merchant's texts. It takes its old key only during the
 * key's lifetime: later, another resource may have it.
 */
export async function ensureRecord(
  { idempotency }: IdempotencyStores,
  resource_id: string,
  opening: Opening,
  { memo, startedAt }: RunHistory,
): Promise<void> {
  if ((await idempotency.forResource(resource_id)) !== null) return;
  const now = new Date();
  const isOver = startedAt.getTime() + KEY_LIFETIME_MS < now.getTime();
  const { key, body: fingerprint } = isOver || !memo ? { key: resource_id, body: NONE } : memo;
  const { request_id } = opening.input;
  const request = buildRequest(opening);
  const record = { ...rebuiltRecordKey(opening.input, key), fingerprint, resource_id };
  await idempotency.reserveKey({ ...record, request, request_id }, now);
}

/** A repeated request would open another resource. */
export async function isKeyLost(
  { idempotency }: IdempotencyStores,
  resource_id: string,
): Promise<boolean> {
  return (await idempotency.forResource(resource_id))?.fingerprint === NONE;
}

export async function releaseRecord(stores: IdempotencyStores, resource_id: string): Promise<void> {
  const record = await stores.idempotency.forResource(resource_id);
  if (record?.operation === REBUILT) await stores.idempotency.release(resource_id);
}

function buildRequest(opening: Opening): AcceptedRequest {
  switch (opening.activity) {
    case 'openPayment': {
      const { created_at, expires_at, session, payment_id, request_id, ...more } = opening.input;
      const { return_url, ...routing } = more;
      const expires_in_seconds = (Date.parse(expires_at) - Date.parse(created_at)) / 1_000;
      // The service's own address, since the shop's are lost.
      const home = new URL('/', return_url).href;
      const customer = { reference: null, ciphertext: null };
      const urls = { success_url: home, error_url: home };
      const stored = { reference: null, customer, metadata: '{}', ...urls };
      return { stored, routing: { ...routing, expires_in_seconds } };
    }
    case 'openRefund':
    case 'abandonRefund': {
      const { refund_id, request_id, created_at, ...routing } = opening.input;
      return { refund: { reason: null }, routing };
    }
    case 'openPayout':
    case 'abandonPayout': {
      const { payout_id, request_id, created_at, accept_by_ms, ...routing } = opening.input;
      return { payout: { reference: null, metadata: '{}' }, routing };
    }
    case 'openCryptoPayment': {
      const { created_at, expires_at, amount_due, rate, address, ...more } = opening.input;
      const { required_confirmations, chain_id, token_contract, ...input } = more;
      const { crypto_payment_id, request_id, ...routing } = input;
      const expires_in_seconds = (Date.parse(expires_at) - Date.parse(created_at)) / 1_000;
      const crypto_payment = { reference: null, metadata: '{}' };
      return { crypto_payment, routing: { ...routing, expires_in_seconds } };
    }
    case 'openCryptoSettlement': {
      const { crypto_settlement_id, request_id, created_at, ...settlement } = opening.input;
      return { settlement };
    }
    default:
      return assertNever(opening);
  }
}
