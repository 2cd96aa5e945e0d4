import type { CallbackResource } from './domain/banks/callback';
import { RESOURCES, type ResourceKind } from './domain/resources';
import type { Stores } from './store';
import type { CryptoPaymentDocument } from './store/crypto-payments';
import type { CryptoSettlementDocument } from './store/crypto-settlements';
import type { DisputeDocument } from './store/disputes';
import type { PaymentDocument } from './store/payments';
import type { PayoutDocument } from './store/payouts';
import type { RefundDocument } from './store/refunds';
import type { InFlightPage, StoredVersion } from './store/resource';

export { isInFlight, KINDS } from './domain/resources';

export interface Documents {
  payment: PaymentDocument;
  refund: RefundDocument;
  payout: PayoutDocument;
  dispute: DisputeDocument;
  crypto_payment: CryptoPaymentDocument;
  crypto_settlement: CryptoSettlementDocument;
}
export type Resource = Documents[CallbackResource];
export type ResourceStores = Pick<Stores, ResourceKind['collection'] | 'movements'>;

interface Lifecycle extends ResourceKind {
  /** None identifies a customer. */
  fields: readonly string[];
  get: (stores: ResourceStores, id: string) => Promise<Resource | null>;
  listStates: (stores: ResourceStores, ids: readonly string[]) => Promise<StoredVersion[]>;
  /** Pages through resources in progress, by id. */
  page: (stores: ResourceStores, after: string, limit: number) => Promise<Resource[]>;
  /** Pages through a sandbox account's resources in progress, by id. */
  pageOf: (stores: ResourceStores, account_id: string, page: InFlightPage) => Promise<string[]>;
  /** Counts a sandbox account's resources in progress, up to a limit. */
  countOf: (stores: ResourceStores, account_id: string, limit: number) => Promise<number>;
}

export const LIFECYCLES: Record<CallbackResource, Lifecycle> = {
  payment: addStore('payment', [
    'refunded',
    'disputed',
    'country',
    'reference',
    'opened_at',
    'expires_at',
    'authorized_at',
    'settled_at',
    'cancelled_at',
  ] satisfies (keyof PaymentDocument)[]),
  refund: addStore('refund', [
    'payment_id',
    'payment_bank_reference',
    'due_at',
    'settled_at',
  ] satisfies (keyof RefundDocument)[]),
  payout: addStore('payout', [
    'fee',
    'balance_account',
    'recipient_id',
    'reference',
    'returned',
    'due_at',
    'sent_at',
    'completed_at',
    'verification',
  ] satisfies (keyof PayoutDocument)[]),
  dispute: addStore('dispute', [
    'payment_id',
    'name',
    'fee',
    'reason',
    'evidence_due_at',
    'evidence_submitted_at',
    'closed_at',
    'transfers',
  ] satisfies (keyof DisputeDocument)[]),
  crypto_payment: addStore('crypto_payment', [
    'asset',
    'network',
    'amount_due',
    'amount_received',
    'rate',
    'address',
    'reference',
    'expires_at',
    'received_at',
  ] satisfies (keyof CryptoPaymentDocument)[]),
  crypto_settlement: addStore('crypto_settlement', [
    'fee',
    'network_fee',
    'asset',
    'network',
    'wallet_address',
    'transaction_id',
    'due_at',
    'completed_at',
  ] satisfies (keyof CryptoSettlementDocument)[]),
};

function addStore(kind: CallbackResource, fields: readonly string[]): Lifecycle {
  const { collection } = RESOURCES[kind];
  return {
    ...RESOURCES[kind],
    fields,
    get: (stores, id) => stores[collection].get(id),
    listStates: (stores, ids) => stores[collection].listStates(ids),
    page: (stores, after, limit) => stores[collection].inFlight(after, limit).toArray(),
    pageOf: (stores, account_id, page) => stores[collection].inFlightOf(account_id, page),
    countOf: (stores, account_id, limit) => stores[collection].countInFlightOf(account_id, limit),
  };
}
