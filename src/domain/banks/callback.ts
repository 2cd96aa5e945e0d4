import {
  CRYPTO_PAYMENT_CALLBACKS,
  CRYPTO_SETTLEMENT_CALLBACKS,
  type CryptoCallback,
} from '../crypto/callback';
import { DISPUTE_IN_FLIGHT, type OpenDisputeStatus } from '../dispute/dispute';
import { DISPUTE_CALLBACKS } from '../dispute/report';
import {
  bankReference,
  choice,
  currencyCode,
  day,
  Faults,
  identifier,
  instant,
  integer,
  object,
  type Rule,
  text,
} from '../shape';

/** Allows only additions: connector teams rely on the names. */
export const PAYMENT_CALLBACKS = [
  'authorized',
  'settled',
  'failed',
  'expired',
  'reversed',
  'reversal_failed',
  'clawed_back',
  ...DISPUTE_CALLBACKS,
] as const;
export type PaymentCallbackName = (typeof PAYMENT_CALLBACKS)[number];

export const REFUND_CALLBACKS = ['settled', 'failed'] as const;
export type RefundCallbackName = (typeof REFUND_CALLBACKS)[number];

export const PAYOUT_CALLBACKS = [
  'submitted',
  'sent',
  'completed',
  'failed',
  'returned',
  'called_duplicate',
  'debit_reversed',
  'return_reversed',
  'payee_verified',
] as const;
export type PayoutCallbackName = (typeof PAYOUT_CALLBACKS)[number];

/** Results of a bank's check whether a name is that of the account. @see docs/sepa.md#verification-of-payee */
export const PAYEE_RESULTS = ['match', 'close_match', 'no_match', 'not_possible'] as const;
export type PayeeResult = (typeof PAYEE_RESULTS)[number];

export const BANK_RESOURCES = ['payment', 'refund', 'payout'] as const;
export type BankResource = (typeof BANK_RESOURCES)[number];

export const CRYPTO_RESOURCES = ['crypto_payment', 'crypto_settlement'] as const;
export type CryptoResource = (typeof CRYPTO_RESOURCES)[number];

/** Display order. The bank names a payment and its own dispute, never ours. */
export const CALLBACK_RESOURCES = [...BANK_RESOURCES, 'dispute', ...CRYPTO_RESOURCES] as const;
export type CallbackResource = (typeof CALLBACK_RESOURCES)[number];

export const CALLBACKS = {
  payment: PAYMENT_CALLBACKS,
  refund: REFUND_CALLBACKS,
  payout: PAYOUT_CALLBACKS,
  dispute: DISPUTE_CALLBACKS,
  crypto_payment: CRYPTO_PAYMENT_CALLBACKS,
  crypto_settlement: CRYPTO_SETTLEMENT_CALLBACKS,
} as const satisfies Record<CallbackResource, readonly string[]>;
export type CallbackName = (typeof CALLBACKS)[CallbackResource][number];
export type CryptoCallbackName = (typeof CALLBACKS)[CryptoResource][number];

export type AnyCallback = BankCallback | CryptoCallback;

/** Payload of every signal; a `callback_id` is applied once. */
export interface BankCallback {
  callback_id: string;
  /** ISO 8601 with an offset. */
  occurred_at: string;
  bank_reference?: string | undefined;
  code?: string | undefined;
  /** Never personal: Temporal's history contains it. */
  reason?: string | undefined;
  /** Minor units; absent: the requested amount; 0: none, of a dispute only. */
  amount?: number | undefined;
  /** ISO 4217. */
  currency?: string | undefined;
  /** `YYYY-MM-DD`. */
  value_date?: string | undefined;
  /** `YYYY-MM-DD` from which the settled money can be used; absent: at once. */
  available_on?: string | undefined;
  dispute_id?: string | undefined;
  dispute_status?: OpenDisputeStatus | undefined;
  /** ISO 8601 with an offset. */
  evidence_due_at?: string | undefined;
  /**
   * Minor units, which the acquirer keeps of what `settled`, charges for a dispute, or returns with a
   * won one.
   */
  fee?: number | undefined;
  /** Result of `payee_verified`, as of `occurred_at`. */
  result?: PayeeResult | undefined;
}

/** Minor units. @see docs/api.md#money-json-text */
export const AMOUNT_MAX = 99_999_999_999;

/**
 * @returns undefined if the reported money does not differ from the request
 * @see docs/ledger.md#money-that-goes-wrong
 */
export function describeDifference(
  { amount, currency }: Pick<BankCallback, 'amount' | 'currency'>,
  request: { amount: number; currency: string },
): string | undefined {
  const report = { amount: amount ?? request.amount, currency: currency ?? request.currency };
  if (report.amount === request.amount && report.currency === request.currency) return undefined;
  const [reportText, requestText] = [report, request].map(
    (money) => `${money.amount} ${money.currency}`,
  );
  return `the bank reports ${reportText} instead of ${requestText} (minor units)`;
}

export function describeFailure(
  { code, reason }: Pick<AnyCallback, 'code' | 'reason'>,
  defaultFailure: { code: string; message: string },
) {
  return { code: code ?? defaultFailure.code, message: reason ?? defaultFailure.message };
}

/** Reports of a dispute that may move no money. */
export const MONEYLESS: readonly string[] = ['dispute_opened', 'dispute_won', 'dispute_lost'];

const DAY_MS = 86_400_000;

/** Days from the report until settled money can be used. */
const AVAILABLE_DAYS_MAX = 90;

export const AVAILABLE_TOO_LATE = `must be at most ${AVAILABLE_DAYS_MAX} days after occurred_at`;

/** A wrong date would keep the money from the merchant for as long. */
export function isAvailableTooLate({
  available_on,
  occurred_at,
}: Pick<BankCallback, 'available_on' | 'occurred_at'>): boolean {
  const last = Date.parse(occurred_at) + AVAILABLE_DAYS_MAX * DAY_MS;
  return available_on !== undefined && Date.parse(available_on) > last;
}

/** @param name by which an amount must be more than 0; absent: any may be 0 */
export function readCallback(raw: unknown, name?: string): BankCallback | Faults {
  const mayBeNone = name === undefined || MONEYLESS.includes(name);
  const callback = object<BankCallback>(raw, {
    callback_id: identifier,
    occurred_at: instant,
    bank_reference: bankReference,
    code: text({ max: 100, optional: true }),
    reason: text({ max: 500, optional: true }),
    amount: integer({ min: mayBeNone ? 0 : 1, max: AMOUNT_MAX, optional: true }),
    currency: currencyCode,
    value_date: day,
    available_on: day,
    dispute_id: text({ min: 1, max: 200, optional: true }),
    dispute_status: choice(DISPUTE_IN_FLIGHT, { optional: true }),
    evidence_due_at: (value) => (value === undefined ? undefined : instant(value)),
    fee: integer({ min: 0, max: AMOUNT_MAX, optional: true }),
    result: choice(PAYEE_RESULTS, { optional: true }),
  });
  if (callback instanceof Faults || !isAvailableTooLate(callback)) return callback;
  return new Faults(`available_on: ${AVAILABLE_TOO_LATE}`);
}

/** Field `mac` of a signal's payload. @see docs/connectors.md#prove-who-sends */
export interface CallbackSignature {
  key_id: string;
  /** Hex HMAC-SHA256. */
  v1: string;
}

/** Signalled to its workflow, and applied by no run. */
export interface MissedCallback {
  name: CallbackName;
  body: AnyCallback;
  signature?: CallbackSignature;
}

export interface SignedCallback {
  connector: string;
  resource: CallbackResource;
  resource_id: string;
  name: CallbackName;
  callback: AnyCallback;
}

/** `checked` verifies only signed callbacks; `required` refuses unsigned ones. */
export type VerificationMode = 'checked' | 'required';

export function getVerificationMode(livemode: boolean): VerificationMode {
  return livemode ? 'required' : 'checked';
}

export const VERIFICATION_FAULTS = {
  unsigned: 'it has no signature',
  unknown_key: 'its connector has no such key',
  revoked_key: 'its key is revoked',
  mac_differs: 'its signature does not match the report or the secret',
} as const;
export type VerificationFault = keyof typeof VERIFICATION_FAULTS;

/** A new format of the signed text needs a new label. */
const LABEL = 'payments-callback-v1';

/**
 * Builds the text to sign: five lines and canonical JSON (RFC 8785), without a final line break.
 * @see docs/connectors.md#prove-who-sends
 */
export function callbackText(report: SignedCallback): string {
  const { connector, resource, resource_id, name, callback } = report;
  const fields = Object.keys(callback).filter((field) => field !== 'mac');
  const facts = JSON.stringify(callback, fields.sort());
  return [LABEL, connector, resource, resource_id, name, facts].join('\n');
}

const hmac: Rule = (value) =>
  typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)
    ? undefined
    : 'must be 64 hexadecimal digits';

export function readSignature(raw: unknown): CallbackSignature | undefined | Faults {
  const rawSignature: unknown = Object(raw).mac;
  if (rawSignature === undefined) return undefined;
  const rules = { key_id: text({ min: 1, max: 100 }), v1: hmac };
  const signature = object<CallbackSignature>(rawSignature, rules);
  return signature instanceof Faults ? new Faults(`mac: ${signature.text}`) : signature;
}
