import type { CallbackResource } from '../domain/callback';
import type { Deposit } from '../domain/deposit';
import { amountInJson } from '../domain/money';
import type { PostingDocument } from '../ledger/documents';
import { integerOf } from '../ledger/integers';
import { LEGS } from '../ledger/legs';
import { LIFECYCLES, type Resource } from '../lifecycles';
import type { Stores } from '../store';
import type { AuditEntry } from '../store/attention';
import type { CallbackDocument } from '../store/callbacks';
import type { CryptoPaymentDocument } from '../store/crypto-payments';
import type { CryptoSettlementDocument } from '../store/crypto-settlements';
import type { EventDocument } from '../store/events';
import type { PaymentDocument } from '../store/payments';
import type { PayoutDocument } from '../store/payouts';
import type { RecipientDocument } from '../store/recipients';
import type { RefundDocument } from '../store/refunds';
import { findResource } from './resources';

const ROWS_MAX = 100;

/** Fields that are shown. All others stay inside, such as customers and URLs with tokens. */
const COMMON = ['account_id', 'livemode', 'status', 'version', 'amount'] as const;
const TIMES = ['created_at', 'updated_at'] as const;
const BANK = ['method', 'connector', 'bank_reference'] as const;
const OPERATOR_FIELDS = ['attention', 'failure', 'request_id'] as const;
const PAYMENT_FIELDS = [
  ...COMMON,
  'refunded',
  'currency',
  'country',
  'reference',
  ...BANK,
  ...OPERATOR_FIELDS,
  ...TIMES,
  'opened_at',
  'expires_at',
  'authorized_at',
  'settled_at',
  'cancelled_at',
] satisfies (keyof PaymentDocument)[];
const REFUND_FIELDS = [
  ...COMMON,
  'currency',
  'payment_id',
  'payment_bank_reference',
  ...BANK,
  ...OPERATOR_FIELDS,
  ...TIMES,
  'due_at',
  'settled_at',
] satisfies (keyof RefundDocument)[];
const PAYOUT_FIELDS = [
  ...COMMON,
  'fee',
  'currency',
  'balance_account',
  'recipient_id',
  'reference',
  ...BANK,
  ...OPERATOR_FIELDS,
  'returned',
  ...TIMES,
  'due_at',
  'sent_at',
  'completed_at',
] satisfies (keyof PayoutDocument)[];
const COIN = ['asset', 'network'] as const;
const CRYPTO_PAYMENT_FIELDS = [
  ...COMMON,
  'currency',
  ...COIN,
  'amount_due',
  'amount_received',
  'rate',
  'address',
  'reference',
  ...BANK,
  ...OPERATOR_FIELDS,
  ...TIMES,
  'expires_at',
  'received_at',
] satisfies (keyof CryptoPaymentDocument)[];
const CRYPTO_SETTLEMENT_FIELDS = [
  ...COMMON,
  'fee',
  'currency',
  ...COIN,
  'wallet_address',
  'transaction_id',
  ...BANK,
  ...OPERATOR_FIELDS,
  ...TIMES,
  'due_at',
  'completed_at',
] satisfies (keyof CryptoSettlementDocument)[];
const FIELDS: Record<CallbackResource, readonly string[]> = {
  payment: PAYMENT_FIELDS,
  refund: REFUND_FIELDS,
  payout: PAYOUT_FIELDS,
  crypto_payment: CRYPTO_PAYMENT_FIELDS,
  crypto_settlement: CRYPTO_SETTLEMENT_FIELDS,
};

/** Fields that are shown of the few that have them. */
const RARE = ['settled_amount', 'returned_amount', 'disputed_at'] satisfies (
  | keyof PaymentDocument
  | keyof PayoutDocument
)[];

/** Everything that MongoDB holds of one resource and an operator may see. */
export type ResourcePage = Awaited<ReturnType<typeof readPage>>;

/** Reads a page. @throws CliFailure `payment_not_found`, `refund_not_found`, … */
export async function readPage(stores: Stores, kind: CallbackResource, id: string) {
  const found = await findResource(stores, kind, id);
  const { account_id, livemode } = found;
  const [events, postings, callbacks, related] = await Promise.all([
    stores.events.list({ account_id, livemode, resource_id: id, limit: ROWS_MAX }),
    stores.ledger.forResource(id),
    stores.callbacks.forResource(id),
    relatedTo(stores, found),
  ]);
  return {
    resource: factsOf(kind, found),
    ...related,
    events: events.reverse().map(presentEvent),
    postings: postings.sort(byTimeAndKind).map(presentPosting),
    callbacks: callbacks.map(presentCallback),
    audit: found.audit.map(presentAudit),
  };
}

function factsOf(kind: CallbackResource, resource: Resource): Record<string, unknown> {
  const all = new Map<string, unknown>(Object.entries(resource));
  const named = FIELDS[kind].map((field) => [field, all.get(field) ?? null]);
  const rare = RARE.filter((field) => all.get(field)).map((field) => [field, all.get(field)]);
  const workflow_id = LIFECYCLES[kind].workflowId(resource._id);
  return { id: resource._id, workflow_id, ...Object.fromEntries([...named, ...rare]) };
}

interface Related {
  /** Deposits of a crypto payment, in the order in which they were seen. */
  deposits?: Deposit[];
  /** Facts of a payout's recipient that do not identify a person. */
  recipient?: Pick<RecipientDocument, 'type' | 'scheme' | 'last4' | 'deleted_at'> | null;
  /** Refunds of a payment, newest first. */
  refunds?: ReturnType<typeof presentRefund>[];
}

async function relatedTo({ refunds, recipients }: Stores, resource: Resource): Promise<Related> {
  if ('recipient_id' in resource) {
    const found = await recipients.get(resource.recipient_id);
    if (found === null) return { recipient: null };
    const { type, scheme, last4, deleted_at } = found;
    return { recipient: { type, scheme, last4, ...(deleted_at ? { deleted_at } : {}) } };
  }
  if ('deposits' in resource) return { deposits: resource.deposits };
  if ('payment_id' in resource || 'wallet_address' in resource) return {};
  const { _id: payment_id, account_id, livemode } = resource;
  const rows = await refunds.list({ account_id, livemode, payment_id, limit: ROWS_MAX });
  return { refunds: rows.map(presentRefund) };
}

function presentRefund({ _id, status, amount, created_at, attention }: RefundDocument) {
  return { id: _id, status, amount, created_at, attention };
}

function presentEvent({ _id, type, created, delivery }: EventDocument) {
  const { status, attempts, next_attempt_at } = delivery;
  return { id: _id, type, created, delivery: { status, attempts, next_attempt_at } };
}

const ORDER: readonly string[] = Object.keys(LEGS);

/** Sorts by time; steps of one move share it, and stand in the order of the kinds. */
function byTimeAndKind(a: PostingDocument, b: PostingDocument): number {
  if (a.at !== b.at) return a.at < b.at ? -1 : 1;
  return ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind);
}

function presentPosting({ _id, kind, at, book, legs }: PostingDocument) {
  const plain = legs.map(({ account, amount }) => ({
    account,
    amount: amountInJson(exact(amount)),
  }));
  return { id: _id, kind, at, book, legs: plain };
}

/** Amount as it is kept; of a posting that was read without 64-bit integers. */
function exact(amount: PostingDocument['legs'][number]['amount']): bigint {
  return integerOf(amount) ?? BigInt(String(amount));
}

function presentCallback(callback: CallbackDocument) {
  const { connector, name, body, received_at, signalled_at, unapplied, parked } = callback;
  const { callback_id, occurred_at, bank_reference = null, code = null, reason = null } = body;
  return {
    callback_id,
    connector,
    name,
    occurred_at,
    received_at,
    signalled_at,
    bank_reference,
    code,
    reason,
    unapplied,
    parked,
  };
}

function presentAudit({ who, when, what, why, before, after }: AuditEntry) {
  return { who, when, what, why, before, after };
}
