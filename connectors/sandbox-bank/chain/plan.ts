import { assertNever } from '../../../src/domain/assert';
import type {
  CryptoPaymentCallbackName,
  CryptoSettlementCallbackName,
} from '../../../src/domain/crypto-callback';
import { BLOCK_MS, REQUIRED_CONFIRMATIONS } from './blocks';
import type { PayerBehaviour, SettlementBehaviour } from './magic-amounts';

/** Step in the life of a transaction, which is reported. */
export interface Step {
  name: CryptoPaymentCallbackName | CryptoSettlementCallbackName;
  /** Time since the step before it. */
  after_ms: number;
  /** Blocks that confirm it, its own included. */
  confirmations?: number;
  /** Branch of the chain; a reorganisation begins another one. */
  branch?: number;
  /** Whether it was planned by autoplay, and so gives way to a simulation. */
  autoplay?: true;
  code?: string;
  reason?: string;
}

/** Ways that a deposit can go. */
export type Course = 'confirms' | 'undone_early' | 'undone_late' | 'never_confirms';

const SEEN: Step = { name: 'deposit', after_ms: 0, confirmations: 0, branch: 0 };

/** Confirmations that tick by, up to the one with which the deposit counts. */
function ticks(branch: number): Step[] {
  return Array.from({ length: REQUIRED_CONFIRMATIONS }, (_, before) => ({
    name: 'deposit',
    after_ms: BLOCK_MS,
    confirmations: before + 1,
    branch,
  }));
}

/**
 * Plans what happens to a deposit; pure.
 * @param ticking whether confirmations follow by themselves
 */
export function planDeposit(course: Course, ticking: boolean): Step[] {
  const undone: Step = { name: 'deposit_undone', after_ms: BLOCK_MS };
  const [first, ...later] = ticks(0);
  if (first === undefined || !ticking) return [SEEN];
  switch (course) {
    case 'confirms':
      return [SEEN, first, ...later];
    case 'undone_early':
      return [SEEN, first, undone, ...ticks(1)];
    case 'undone_late':
      return [SEEN, first, ...later, { ...undone, after_ms: FOLLOWS_AFTER_MS }];
    case 'never_confirms':
      return [SEEN];
    default:
      return assertNever(course);
  }
}

/** Deposit that a magic amount makes the payer send. */
export interface PlannedDeposit {
  /** Smallest units. */
  amount: bigint;
  after_ms: number;
  course: Course;
  /** Whether it comes from a source that fails the screening. */
  listed: boolean;
}

/** Time that a payer takes who acts by itself; the create has been answered then. */
const PAYS_AFTER_MS = 2_000;
/** Time until the rest: the first half counts by then. */
const REST_AFTER_MS = PAYS_AFTER_MS + 6_000;
/** Pause before what follows by itself. */
const FOLLOWS_AFTER_MS = 3_000;

/**
 * Plans what the payer sends by itself; pure.
 * @param due smallest units
 */
export function planPayer(behaviour: PayerBehaviour, due: bigint): PlannedDeposit[] {
  const whole: PlannedDeposit = {
    amount: due,
    after_ms: PAYS_AFTER_MS,
    course: 'confirms',
    listed: false,
  };
  const half = due / 2n;
  switch (behaviour) {
    case 'waits_for_a_person':
    case 'declined':
      return [];
    case 'pays':
      return [whole];
    case 'pays_half':
      return [{ ...whole, amount: half }];
    case 'pays_in_two':
      return [
        { ...whole, amount: half },
        { ...whole, amount: due - half, after_ms: REST_AFTER_MS },
      ];
    case 'pays_double':
      return [{ ...whole, amount: due * 2n }];
    case 'listed_source':
      return [{ ...whole, listed: true }];
    case 'undone_early':
    case 'undone_late':
    case 'never_confirms':
      return [{ ...whole, course: behaviour }];
    default:
      return assertNever(behaviour);
  }
}

/**
 * Plans what happens to a settlement after the answer to its instruction; pure.
 * @param autoplay whether a completion follows by itself
 */
export function planSettlement(behaviour: SettlementBehaviour, autoplay: boolean): Step[] {
  const completed: Step = { name: 'completed', after_ms: FOLLOWS_AFTER_MS, autoplay: true };
  const ends = autoplay ? [completed] : [];
  switch (behaviour) {
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
      return assertNever(behaviour);
  }
}
