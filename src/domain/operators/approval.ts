import {
  isInSuspense,
  listTakeable,
  type Movement,
  type Outcome,
  sumRests,
} from '../banks/movement';
import { bookCurrency, parseBookCurrency } from '../crypto/assets';
import type { Deposit } from '../crypto/deposit';
import { type ActTarget, actOnDeposits } from '../crypto/deposit-acts';
import type { CryptoPaymentAct } from '../crypto/payment';
import type { CryptoSettlementAct } from '../crypto/settlement';
import type { DisputeAct } from '../dispute/dispute';
import { isCurrency } from '../money/money';
import type { PaymentAct } from '../payment/payment';
import type { PayoutAct } from '../payout/payout';
import type { RefundAct } from '../refund/refund';
import { normalizeName } from './operator-act';

/** Facts of a resource, an entry or a statement line that decide how much an act credits. */
export interface CreditFacts {
  /** Merchant; of a statement line, the bank account. */
  account_id: string;
  /** ISO 4217; of an asset, its name and network decide. */
  currency: string;
  /** Minor units, or an asset's smallest as text. */
  amount: number | string;
  fee?: number | string;
  /** Lines of the entry that is reversed. */
  lines?: readonly { amount: number | bigint }[];
  movements?: readonly Movement[];
  /** Chargebacks that operators posted. */
  chargebacks?: readonly { amount: number; name: string }[];
  deposits?: readonly Deposit[];
  asset?: string;
  network?: string;
}

export interface NamedFacts extends ActTarget {
  /** Minor units. */
  amount?: number | undefined;
  fee?: number | undefined;
  dispute_id?: string | undefined;
  movement?: string | undefined;
  as?: Outcome | undefined;
}

/** Largest entry line, in minor or smallest units. */
type Credit = (facts: CreditFacts, named: NamedFacts) => bigint;

const absoluteAmount: Credit = ({ amount }) => absolute(BigInt(amount));
const largest: Credit = ({ lines = [] }) =>
  lines.reduce((most, { amount }) => {
    const each = absolute(BigInt(amount));
    return each > most ? each : most;
  }, 0n);
const whole: Credit = ({ amount }) => BigInt(amount);
const withFee: Credit = ({ amount, fee = 0 }) => BigInt(amount) + BigInt(fee);
const namedOrWhole: Credit = ({ amount }, named) => BigInt(named.amount ?? amount);

const settled: Credit = ({ amount, movements = [], currency }, named) => {
  const takeable = { direction: 'in', currency, id: named.movement } as const;
  const held = Number(sumRests(listTakeable(movements, takeable)));
  return BigInt(Math.max(held, named.amount ?? (held > 0 ? held : Number(amount))));
};

/**
 * Lists what `resolve_movement` may decide about, each in the book of its currency.
 * @param free outcome that needs nobody else
 */
function listDecided(
  { movements = [] }: CreditFacts,
  { movement, as }: NamedFacts,
  free: Outcome = 'customer',
): Movement[] {
  if (as === undefined || as === free) return [];
  return movements.filter(
    (each) => isInSuspense(each) && (movement === undefined || each.id === movement),
  );
}

const resolved: Credit = (facts, named) => {
  const held = listDecided(facts, named);
  return held.length === 0 ? 0n : BigInt(named.amount ?? sumRests(held));
};

const won: Credit = ({ chargebacks = [] }, { dispute_id }) => {
  const possible = chargebacks.filter(
    ({ name }) => dispute_id === undefined || name === dispute_id,
  );
  return BigInt(Math.max(0, ...possible.map(({ amount }) => amount)));
};

const wonWithFee: Credit = ({ amount }, { fee = 0 }) => BigInt(amount) + BigInt(fee);

/** The status of a deposit does not matter for the amount that changes. */
function deposited(act: 'release' | 'accept' | 'credit_late' | 'confirm'): Credit {
  return ({ deposits = [], movements = [] }, target) => {
    const change = actOnDeposits({ deposits, movements }, act, target);
    const after = change.kind === 'changed' ? change.deposits : deposits;
    const changed = after.filter((deposit) => !deposits.includes(deposit));
    return changed.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
  };
}

/** Counts what went back, too: no connector looks it up on the chain. */
const resolvedDeposit: Credit = (facts, named) => sumRests(listDecided(facts, named, 'merchant'));

function absolute(amount: bigint): bigint {
  return amount < 0n ? -amount : amount;
}

interface Acts {
  balance: 'fund' | 'adjust' | 'reverse';
  platform: 'post';
  statement: 'match' | 'unmatch' | 'clear';
  sepa_file: 'resend';
  payment: PaymentAct;
  refund: RefundAct;
  payout: PayoutAct;
  dispute: DisputeAct;
  crypto_payment: CryptoPaymentAct;
  crypto_settlement: CryptoSettlementAct;
}

/** Credit, or write-off, of each operator's act; null: none. @see docs/operators.md#approvals */
export const CREDITS: {
  readonly [Kind in keyof Acts]: Readonly<Record<Acts[Kind], Credit | null>>;
} = {
  balance: { fund: absoluteAmount, adjust: absoluteAmount, reverse: largest },
  platform: { post: absoluteAmount },
  // The amount of `match` is the charge, which matching books by itself, too; of `clear` what came.
  statement: { match: absoluteAmount, unmatch: null, clear: absoluteAmount },
  // Credits nobody: what it sends again may be paid twice.
  sepa_file: { resend: absoluteAmount },
  payment: {
    mark_settled: settled,
    mark_failed: null,
    claw_back: null,
    give_up_closing: null,
    dispute_won: won,
    mark_reversed: null,
    resolve_movement: resolved,
    snooze: null,
    acknowledge: null,
  },
  // `mark_settled` credits what the bank did not send.
  refund: {
    mark_settled: whole,
    mark_failed: whole,
    resolve_movement: resolved,
    snooze: null,
    acknowledge: null,
  },
  payout: {
    resubmit: null,
    mark_failed: withFee,
    mark_completed: null,
    mark_returned: namedOrWhole,
    release_unverified: null,
    resolve_movement: resolved,
    snooze: null,
    acknowledge: null,
  },
  dispute: {
    // What the merchant gives up.
    accept: whole,
    dispute_won: wonWithFee,
    snooze: null,
    acknowledge: null,
  },
  crypto_payment: {
    release: deposited('release'),
    reject: null,
    accept: deposited('accept'),
    return: null,
    credit_late: deposited('credit_late'),
    resolve_movement: resolvedDeposit,
    confirm: deposited('confirm'),
    snooze: null,
    acknowledge: null,
  },
  crypto_settlement: {
    resubmit: null,
    mark_failed: withFee,
    mark_completed: null,
    resolve_movement: resolved,
    snooze: null,
    acknowledge: null,
  },
};

export type CreditingKind = keyof Acts;

function findCredit(kind: CreditingKind, act: string): Credit | null {
  const credits: Partial<Record<string, Credit | null>> = CREDITS[kind];
  return credits[act] ?? null;
}

export function mayCredit(kind: CreditingKind, act: string): boolean {
  return findCredit(kind, act) !== null;
}

export interface Credited {
  /** Minor units, or an asset's smallest. */
  amount: bigint;
  /** ISO 4217, or an asset's book currency. */
  currency: string;
  /** Merchant; of a statement line, the bank account. */
  account_id: string;
}

export function computeCredit(
  kind: CreditingKind,
  act: string,
  facts: CreditFacts,
  named: NamedFacts = {},
): Credited {
  const { asset, network, account_id } = facts;
  const isAsset = asset !== undefined && network !== undefined;
  const [moved = facts] = listDecided(facts, named);
  const currency = isAsset ? bookCurrency({ asset, network }) : moved.currency;
  return { amount: findCredit(kind, act)?.(facts, named) ?? 0n, currency, account_id };
}

/** Acts that move no money. */
const WITHOUT_KEY: readonly string[] = ['snooze', 'acknowledge'];

export function needsKey(act: string): boolean {
  return !WITHOUT_KEY.includes(act);
}

/** Minor units; `others`: any currency not named. */
export interface CurrencyLimits {
  named: Readonly<Partial<Record<string, number>>>;
  others: number;
}

/** Limits of sums over `WINDOW_MS`, above which a second operator approves. */
export interface ApprovalLimits {
  /** Limits of one operator, one merchant, one bank account. */
  each: CurrencyLimits;
  /** Limits of the installation. */
  all: CurrencyLimits;
}

/** About 1,000 euros each. */
const DEFAULT_LIMIT: CurrencyLimits = {
  named: {
    ...{ EUR: 100_000, GBP: 100_000, USD: 100_000, CHF: 100_000 },
    ...{ AUD: 150_000, CAD: 150_000, NZD: 150_000, JPY: 150_000 },
    ...{ PLN: 400_000, RON: 500_000, DKK: 700_000, NOK: 1_000_000, SEK: 1_000_000 },
    ...{ MXN: 2_000_000, CZK: 2_500_000, HUF: 40_000_000 },
  },
  others: 0,
};

const DAY_FACTOR = 10;

const LIMIT = /^\d{1,12}$/;

/**
 * Parses `100000`, for every currency, or `EUR=100000,JPY=150000`, where any other currency always
 * needs a second operator.
 * @returns undefined for any other text
 */
export function parseCurrencyLimits(text: string): CurrencyLimits | undefined {
  if (LIMIT.test(text)) return { named: {}, others: Number(text) };
  const named: Record<string, number> = {};
  for (const part of text.split(',')) {
    const [currency = '', limit = '', ...more] = part.trim().split('=');
    if (!isCurrency(currency) || !LIMIT.test(limit) || more.length > 0) return undefined;
    if (currency in named) return undefined;
    named[currency] = Number(limit);
  }
  return { named, others: 0 };
}

/** Texts of APPROVAL_LIMIT and APPROVAL_LIMIT_DAY; what does not parse has its default. */
export interface LimitTexts {
  limit?: string | undefined;
  day?: string | undefined;
}

export function readApprovalLimits({ limit = '', day = '' }: LimitTexts = {}): ApprovalLimits {
  const each = parseCurrencyLimits(limit) ?? DEFAULT_LIMIT;
  const ofDay = ([currency, most = 0]: [string, number?]) => [currency, most * DAY_FACTOR];
  const byDefault = {
    named: Object.fromEntries(Object.entries(each.named).map(ofDay)),
    others: each.others * DAY_FACTOR,
  };
  return { each, all: parseCurrencyLimits(day) ?? byDefault };
}

/** Code of an activity that does nothing, since another act has reached a limit meanwhile. */
export const LIMIT_REACHED = 'limit_reached';

/** An act counts for so long, and for up to `WINDOW_PART_MS` more. */
export const WINDOW_MS = 24 * 3_600_000;
export const WINDOW_PART_MS = 5 * 60_000;

/** Whose sums an act counts in, apart from the installation's. */
export interface SumOwners {
  /** Name, verified or typed. */
  operator?: string | undefined;
  account_id?: string | undefined;
}

export interface Scope {
  /** Such as `operator:mia EUR`. */
  id: string;
  /** Minor units. */
  limit: number;
}

/** The least limit counts. An asset has none but 0. */
export function listScopes(
  { operator, account_id }: SumOwners,
  currency: string,
  limits: readonly ApprovalLimits[],
): Scope[] {
  const isAsset = parseBookCurrency(currency) !== undefined;
  const least = (which: keyof ApprovalLimits) => {
    const each = limits.map((limit) => limit[which].named[currency] ?? limit[which].others);
    return isAsset ? 0 : Math.min(...each);
  };
  const owners = [
    ...(operator === undefined ? [] : [`operator:${normalizeName(operator)}`]),
    ...(account_id === undefined ? [] : [`account:${account_id}`]),
  ];
  const own = owners.map((owner) => ({ id: `${owner} ${currency}`, limit: least('each') }));
  return [...own, { id: `all ${currency}`, limit: least('all') }];
}

export type ApprovalState =
  | 'requested'
  | 'approved'
  | 'rejected'
  | 'expired'
  | 'done'
  /** Approved, and not possible any more. */
  | 'refused';

export const OPEN_APPROVALS = ['requested', 'approved'] as const satisfies ApprovalState[];

/** A request without a decision then expires. */
export const APPROVAL_MS = 24 * 3_600_000;

export interface ApprovalRequired {
  status: 'approval_required';
  approval_id: string;
}

export function requireApproval(approval_id: string): ApprovalRequired {
  return { status: 'approval_required', approval_id };
}

export function isApprovalRequired(answer: object): answer is ApprovalRequired {
  return 'approval_id' in answer;
}
