import { createHash } from 'node:crypto';
import type { CryptoCallbackName } from '../../../src/domain/banks/callback';
import type { Network } from '../../../src/domain/crypto/assets';
import type { BehaviorIn } from '../magic-amounts';
import type { CRYPTO_MAGIC_AMOUNTS, SETTLEMENT_MAGIC_AMOUNTS } from './magic-amounts';

const BLOCK_MS = 1_000;

/** Includes the deposit's own block. */
export const REQUIRED_CONFIRMATIONS = 3;

export function heightAt(now: Date): number {
  return Math.floor(now.getTime() / BLOCK_MS);
}

/** Differs on each branch of the chain. */
export function blockHash(network: Network, height: number, branch: number): string {
  return deriveHash(network, `block:${height}:${branch}`);
}

export function transactionId(network: Network, name: string): string {
  return deriveHash(network, `transaction:${name}`);
}

function deriveHash(network: Network, name: string): string {
  const hex = createHash('sha256').update(`sandbox-chain:${network}:${name}`).digest('hex');
  return network === 'ethereum' ? `0x${hex}` : hex;
}

type PayerBehavior = BehaviorIn<typeof CRYPTO_MAGIC_AMOUNTS>;
export type SettlementBehavior = BehaviorIn<typeof SETTLEMENT_MAGIC_AMOUNTS>;

export interface Step {
  name: CryptoCallbackName;
  after_ms: number;
  confirmations?: number;
  /** A reorganization starts another branch. */
  branch?: number;
  /** Yields to a simulation. */
  autoplay?: true;
  code?: string;
  reason?: string;
}

export type Course = 'confirms' | 'reorged_early' | 'reorged_late' | 'never_confirms';

const FOLLOWS_AFTER_MS = 3_000;
const SEEN: Step = { name: 'deposit', after_ms: 0, confirmations: 0, branch: 0 };
const IN_BLOCK: Step = { ...SEEN, confirmations: 1 };
const REORG: Step = { name: 'deposit_undone', after_ms: BLOCK_MS };
const COUNTED: Step = {
  name: 'deposit',
  after_ms: REQUIRED_CONFIRMATIONS * BLOCK_MS,
  confirmations: REQUIRED_CONFIRMATIONS,
  branch: 0,
};

const DEPOSIT_PLANS: Record<Course, Step[]> = {
  confirms: [SEEN, COUNTED],
  reorged_early: [
    IN_BLOCK,
    REORG,
    { ...IN_BLOCK, after_ms: BLOCK_MS, branch: 1 },
    { ...COUNTED, after_ms: (REQUIRED_CONFIRMATIONS - 1) * BLOCK_MS, branch: 1 },
  ],
  reorged_late: [SEEN, COUNTED, { ...REORG, after_ms: FOLLOWS_AFTER_MS }],
  never_confirms: [SEEN],
};

export function planDeposit(course: Course, ticking: boolean): Step[] {
  return ticking ? DEPOSIT_PLANS[course] : [SEEN];
}

interface PlannedDeposit {
  /** Smallest units. */
  amount: bigint;
  after_ms: number;
  course: Course;
  listed: boolean;
}

/** The create has been answered by then. */
const PAYS_AFTER_MS = 2_000;
/** The first half counts by then. */
const REST_AFTER_MS = PAYS_AFTER_MS + 6_000;

/** @param due smallest units */
export function planPayer(behavior: PayerBehavior, due: bigint): PlannedDeposit[] {
  const full = { amount: due, after_ms: PAYS_AFTER_MS, course: 'confirms', listed: false } as const;
  const half = due / 2n;
  const plans: Record<PayerBehavior, PlannedDeposit[]> = {
    normal: [],
    declined: [],
    pays: [full],
    pays_half: [{ ...full, amount: half }],
    pays_in_two: [
      { ...full, amount: half },
      { ...full, amount: due - half, after_ms: REST_AFTER_MS },
    ],
    pays_double: [{ ...full, amount: due * 2n }],
    listed_source: [{ ...full, listed: true }],
    reorged_early: [{ ...full, course: 'reorged_early' }],
    reorged_late: [{ ...full, course: 'reorged_late' }],
    never_confirms: [{ ...full, course: 'never_confirms' }],
  };
  return plans[behavior];
}

const DROPPED: Step = {
  name: 'failed',
  after_ms: FOLLOWS_AFTER_MS,
  code: 'transaction_dropped',
  reason: 'The chain dropped the transaction: nothing has left.',
};

export function planSettlement(behavior: SettlementBehavior, autoplay: boolean): Step[] {
  const completed: Step = { name: 'completed', after_ms: FOLLOWS_AFTER_MS, autoplay: true };
  const ends = autoplay ? [completed] : [];
  const plans: Record<SettlementBehavior, Step[]> = {
    normal: ends,
    answer_lost: ends,
    instruction_lost: ends,
    refused: [],
    silent: [],
    fails_later: [DROPPED],
    waits: [{ name: 'sent', after_ms: FOLLOWS_AFTER_MS }, ...ends],
  };
  return plans[behavior];
}
