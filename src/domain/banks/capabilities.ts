import { isPaymentMethodId, methodRules } from '../payment/catalog';
import { isRailId } from '../payout/rails';
import type { PayeeResult } from './callback';

/** Reported by a connector's process. */
export interface Capabilities {
  /** Sorted methods, rails and asset pairs. */
  serves: readonly string[];
  /** Sorted activities, such as `sendPayout`. */
  functions: readonly string[];
  /** Contract version. */
  contract: number;
  /** The bank has another name for a payout where it is completed. */
  reference_per_step?: boolean;
  /** Minor units, of each currency; a larger fee of a dispute is not posted. */
  dispute_fee_max?: number | null | undefined;
  /** Number of reports of the bank that were refused. */
  set_aside?: number;
}

/** Why a connector sends nothing. @see docs/connectors.md#after-a-restore */
export interface ConnectorStop {
  id: string;
  /** Part of a sentence. */
  reason: string;
  /** ISO 8601, ms. */
  at: string;
}

/** File that its bank may hold until somebody releases it there. */
export interface AwaitedFile {
  file_id: string;
  /** `file_overdue`: an instant file of which the bank has not said all. */
  reason: 'awaiting_release' | 'file_overdue';
  livemode: boolean;
  /** Ms since the epoch. */
  since: number;
  payouts: number;
  /** Minor units of EUR. */
  amount: number;
  /** Numbers of payouts. */
  results: PayeeCounts;
}

export type PayeeCounts = Record<PayeeResult, number>;

/** Function of a connector that makes the statements of its accounts. */
export const MAKES_STATEMENTS = 'makeStatement';

/** Additions do not change it. @see docs/connectors.md#instructions-over-http */
export const CONTRACT_VERSION = 1;

export const REPORT_MS = 10_000;

/** Age of the last report. */
const SILENT_MS = 3 * REPORT_MS;

export function isSilent(seen_at: Date, now: Date): boolean {
  return now.getTime() - seen_at.getTime() > SILENT_MS;
}

const PAYMENTS = ['openSession', 'closeSession', 'voidPayment', 'reversePayment'];
const REFUNDS = ['sendRefund', 'lookUpRefund'];
const PAYOUTS = ['sendPayout', 'lookUpPayout'];
const ASSETS = ['quoteRate', 'giveAddress', 'screenSource', 'sendSettlement', 'lookUpSettlement'];

/**
 * Lists missing functions, or the name itself where it is not served.
 * @see docs/connectors.md#instructions
 */
export function listMissing(
  method: string,
  { serves, functions }: Pick<Capabilities, 'serves' | 'functions'>,
): string[] {
  if (!serves.includes(method)) return [method];
  const lacks = (name: string) => !functions.includes(name);
  if (isRailId(method)) return PAYOUTS.filter(lacks);
  if (!isPaymentMethodId(method)) return ASSETS.filter(lacks);
  const isRefundable = methodRules(method).refunds.kind === 'standard';
  return [...PAYMENTS, ...(isRefundable ? REFUNDS : [])].filter(lacks);
}

/** Null: any. */
export interface RuleScope {
  livemode: boolean;
  /** Method, rail, or asset pair such as `eth_ethereum`. */
  method: string;
  currency: string | null;
  account_id: string | null;
}

/** Applies to new resources. @see docs/connectors.md#route-by-rules */
export interface RoutingRule extends RuleScope {
  connector: string;
}

/** Keyed by `getRuleId`. */
export type RuleMap<Rule extends RoutingRule> = ReadonlyMap<string, Rule>;

/** A scope has one rule. */
export function getRuleId({ livemode, method, currency, account_id }: RuleScope): string {
  return [livemode ? 'live' : 'sandbox', method, currency ?? ANY, account_id ?? ANY].join(':');
}

const ANY = '*';

/** Order: account and currency, account, currency, neither. */
export function findRule<Rule extends RoutingRule>(
  rules: RuleMap<Rule>,
  resource: {
    livemode: boolean;
    method: string;
    currency?: string | undefined;
    account_id: string;
  },
): Rule | undefined {
  const { livemode, method, currency = null, account_id } = resource;
  const scopes = [
    { account_id, currency },
    { account_id, currency: null },
    { account_id: null, currency },
    { account_id: null, currency: null },
  ];
  for (const scope of scopes) {
    const rule = rules.get(getRuleId({ livemode, method, ...scope }));
    if (rule !== undefined) return rule;
  }
  return undefined;
}
