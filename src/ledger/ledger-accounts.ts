import { isBalanceAccountName } from '../domain/money/money';

export const available = (name: string) => `balances.${checkName(name)}.available`;
/** Money that is settled, and can be used from a day on: `YYYY-MM-DD`. */
export const due = (name: string, day: string) => `due.${checkName(name)}.${day}`;
export const reserved = (name: string) => `balances.${checkName(name)}.reserved`;
export const clearing = (connector: string) => `clearing.${checkName(connector)}`;
export const FUNDING = 'external.funding';
export const REFUNDS = 'transit.refunds';
export const FEES = 'income.fees';
export const ACQUIRER_FEES = 'income.acquirer_fees';
export const LATE = 'suspense.late';
export const DEPOSITS = 'suspense.deposits';
export const ADJUSTMENTS = 'external.adjustments';
export const RECEIVABLE = 'receivable.merchant';

const HELD = 'suspense.held';

export const SENT = 'suspense.sent';

export const BANK_FEES = 'expense.bank_fees';

export const UNMATCHED = 'suspense.unmatched';

export const IN_TRANSIT = 'platform.in_transit';

/** Accounts of the service's own book, by the kind of `platform post`. */
export const PLATFORM_ACCOUNTS = {
  fee_sweep: 'platform.fees',
  interest: 'platform.interest',
  transfer: IN_TRANSIT,
  acquirer_payout: IN_TRANSIT,
} as const;
export type PlatformKind = keyof typeof PLATFORM_ACCOUNTS;

/** Opposite side of an operator's correction. */
export type Against = keyof typeof AGAINST | `clearing:${string}`;

const AGAINST = {
  adjustments: ADJUSTMENTS,
  receivable: RECEIVABLE,
  suspense: HELD,
  bank_fees: BANK_FEES,
} as const;

const isNamed = (name: string): name is keyof typeof AGAINST => Object.hasOwn(AGAINST, name);

export function parseAgainst(text: string): Against | undefined {
  if (isNamed(text)) return text;
  const connector = readConnector(text);
  return connector !== undefined && isBalanceAccountName(connector)
    ? `clearing:${connector}`
    : undefined;
}

export function readConnector(against: string): string | undefined {
  return /^clearing:(.+)$/.exec(against)?.[1];
}

export function getOppositeAccount(against: Against): string {
  return isNamed(against) ? AGAINST[against] : clearing(readConnector(against) ?? '');
}

/** @returns the balance, and the day from which it can be used: '' now; undefined of another account */
export function readAvailable(account: string): { name: string; day: string } | undefined {
  const [, now, later, day = ''] =
    /^(?:balances\.([^.]+)\.available|due\.([^.]+)\.([^.]+))$/.exec(account) ?? [];
  const name = now ?? later;
  return name === undefined ? undefined : { name, day };
}

/** @returns the connector whose money an account is; undefined of another account */
export function readClearing(account: string): string | undefined {
  return /^clearing\.(.+)$/.exec(account)?.[1];
}

type Bound = 'not_negative' | 'not_positive' | null;

/** Side of 0 on which each balance stays; null: both. `*` is any name. */
export const LEDGER_ACCOUNTS: Readonly<Record<string, Bound>> = {
  'balances.*.available': 'not_negative',
  'balances.*.reserved': 'not_negative',
  'due.*.*': 'not_negative',
  [REFUNDS]: 'not_negative',
  [LATE]: 'not_negative',
  [HELD]: 'not_negative',
  [DEPOSITS]: 'not_negative',
  [SENT]: null,
  [UNMATCHED]: null,
  [RECEIVABLE]: 'not_positive',
  'clearing.*': null,
  clearing: null,
  cash: null,
  'income.*': null,
  'expense.*': null,
  'external.*': null,
  'platform.*': null,
};

export function mustNotBeNegative(account: string): boolean {
  return findBound(account) === 'not_negative';
}

export function mustNotBePositive(account: string): boolean {
  return findBound(account) === 'not_positive';
}

function findBound(account: string): Bound {
  const named = account.replace(/^balances\.[^.]+\./, 'balances.*.').replace(/^due\..+/, 'due.*.*');
  return LEDGER_ACCOUNTS[named] ?? null;
}

function checkName(name: string): string {
  if (!isBalanceAccountName(name)) throw new RangeError(`No name of a ledger account: ${name}`);
  return name;
}
