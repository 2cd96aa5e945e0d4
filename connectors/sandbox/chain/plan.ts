import { assertNever } from '../../../src/domain/assert';
import type { CryptoCallbackName } from '../../../src/domain/callback/callback';
import { BLOCK_MS, REQUIRED_CONFIRMATIONS } from './blocks';
import type { PayerBehavior, SettlementBehavior } from './magic-amounts';

export interface Step {
  name: CryptoCallbackName;
  /** Time since the previous step. */
  after_ms: number;
  /** Blocks that confirm it, including its own. */
  confirmations?: number;
  /** Branch of the chain; a reorganization starts another one. */
  branch?: number;
  /** Whether autoplay planned it, so that a simulation takes precedence. */
  autoplay?: true;
  code?: string;
  reason?: string;
}

export type Course = 'confirms' | 'undone_early' | 'undone_late' | 'never_confirms';

const SEEN: Step = { name: 'deposit', after_ms: 0, confirmations: 0, branch: 0 };
const IN_BLOCK: Step = { ...SEEN, confirmations: 1 };

function count(branch: number, blocks: number): Step {
  const after_ms = blocks * BLOCK_MS;
  return { name: 'deposit', after_ms, confirmations: REQUIRED_CONFIRMATIONS, branch };
}

/** Plans the steps of a deposit. @param ticking whether confirmations follow automatically */
export function planDeposit(course: Course, ticking: boolean): Step[] {
  const reorg: Step = { name: 'deposit_undone', after_ms: BLOCK_MS };
  const counted = count(0, REQUIRED_CONFIRMATIONS);
  if (!ticking) return [SEEN];
  switch (course) {
    case 'confirms':
      return [SEEN, counted];
    case 'undone_early': {
      const again = { ...IN_BLOCK, after_ms: BLOCK_MS, branch: 1 };
      return [IN_BLOCK, reorg, again, count(1, REQUIRED_CONFIRMATIONS - 1)];
    }
    case 'undone_late':
      return [SEEN, counted, { ...reorg, after_ms: FOLLOWS_AFTER_MS }];
    case 'never_confirms':
      return [SEEN];
    default:
      return assertNever(course);
  }
}

export interface PlannedDeposit {
  /** Smallest units. */
  amount: bigint;
  after_ms: number;
  course: Course;
  listed: boolean;
}

/** Delay before the payer acts, by when the create has been answered. */
const PAYS_AFTER_MS = 2_000;
/** Delay of the rest, by when the first half counts. */
const REST_AFTER_MS = PAYS_AFTER_MS + 6_000;
const FOLLOWS_AFTER_MS = 3_000;

/** Plans the deposits of the payer. @param due smallest units */
export function planPayer(behavior: PayerBehavior, due: bigint): PlannedDeposit[] {
  const fullDeposit: PlannedDeposit = {
    amount: due,
    after_ms: PAYS_AFTER_MS,
    course: 'confirms',
    listed: false,
  };
  const half = due / 2n;
  switch (behavior) {
    case 'waits_for_a_person':
    case 'declined':
      return [];
    case 'pays':
      return [fullDeposit];
    case 'pays_half':
      return [{ ...fullDeposit, amount: half }];
    case 'pays_in_two':
      return [
        { ...fullDeposit, amount: half },
        { ...fullDeposit, amount: due - half, after_ms: REST_AFTER_MS },
      ];
    case 'pays_double':
      return [{ ...fullDeposit, amount: due * 2n }];
    case 'listed_source':
      return [{ ...fullDeposit, listed: true }];
    case 'undone_early':
    case 'undone_late':
    case 'never_confirms':
      return [{ ...fullDeposit, course: behavior }];
    default:
      return assertNever(behavior);
  }
}

export function planSettlement(behavior: SettlementBehavior, autoplay: boolean): Step[] {
  const completed: Step = { name: 'completed', after_ms: FOLLOWS_AFTER_MS, autoplay: true };
  const ends = autoplay ? [completed] : [];
  switch (behavior) {
    case 'refused':
    case 'silent':
      return [];
    case 'fails_later':
      return [
        {
          name: 'failed',
          after_ms: FOLLOWS_AFTER_MS,
          code: 'transaction_dropped',
          reason: 'The chain dropped the transaction: nothing has left.',
        },
      ];
    case 'waits':
      return [{ name: 'sent', after_ms: FOLLOWS_AFTER_MS }, ...ends];
    case 'normal':
    case 'answer_lost':
    case 'instruction_lost':
      return ends;
    default:
      return assertNever(behavior);
  }
}
