import { isPaymentMethodId, methodRules } from './payment/catalog';
import { isRailId } from './payout/rails';

/** Methods and functions of a connector, as its process reports them. */
export interface Capabilities {
  /** Methods, rails and pairs of assets, sorted. */
  serves: readonly string[];
  /** Activities that it has, such as `sendPayout`, sorted. */
  functions: readonly string[];
  /** Version of the contract that it keeps; missing in reports from before it was reported. */
  contract?: number;
}

/**
 * Version of the contract between service and connectors, which additions do not change.
 * @see docs/connectors.md#instructions-over-http
 */
export const CONTRACT_VERSION = 1;

/** Returns the version of the contract that a connector keeps. */
export function getContract({ contract = CONTRACT_VERSION }: Capabilities): number {
  return contract;
}

/** Time between two reports of a process. */
export const REPORT_MS = 10_000;

/** Age of the last report from which a connector counts as silent. */
const SILENT_MS = 3 * REPORT_MS;

export function isSilent(seen_at: Date, now: Date): boolean {
  return now.getTime() - seen_at.getTime() > SILENT_MS;
}

const PAYMENTS = ['openSession', 'closeSession', 'voidPayment', 'reversePayment'];
const REFUNDS = ['sendRefund', 'lookUpRefund'];
const PAYOUTS = ['sendPayout', 'lookUpPayout'];
const ASSETS = ['quoteRate', 'giveAddress', 'screenSource', 'sendSettlement', 'lookUpSettlement'];

/**
 * Lists what a connector lacks for a method, rail or asset: the name itself where it does not serve
 * it, or else the functions.
 * @see docs/connectors.md#instructions
 */
export function listMissing(method: string, { serves, functions }: Capabilities): string[] {
  if (!serves.includes(method)) return [method];
  return listNeeded(method).filter((name) => !functions.includes(name));
}

function listNeeded(method: string): readonly string[] {
  if (isRailId(method)) return PAYOUTS;
  if (!isPaymentMethodId(method)) return ASSETS;
  const isRefundable = methodRules(method).refunds.kind === 'standard';
  return isRefundable ? [...PAYMENTS, ...REFUNDS] : PAYMENTS;
}
