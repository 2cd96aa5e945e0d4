import { CancellationScope, condition, setHandler } from '@temporalio/workflow';
import { readOperatorAct, readSnoozeAct } from '../../src/domain/payment-workflow';
import type { PayoutState } from '../../src/domain/payout-workflow';
import { take } from '../shared/mailbox';
import { enqueueAct, listenToAct, type SentAct } from '../shared/operator-acts';
import { refuse } from '../shared/refusal';
import { actFault } from './acts';
import {
  isUnsent,
  type PayoutAct,
  type PayoutActed,
  type PayoutLife,
  resultOf,
  stateOf,
} from './life';
import {
  callbackSignals,
  DESCRIPTIONS,
  markCompletedUpdate,
  markFailedUpdate,
  markReturnedUpdate,
  openUpdate,
  resubmitUpdate,
  snoozeUpdate,
  stateQuery,
} from './messages';

/** How much longer the opening may take to become known. */
const GRACE_MS = 1_000;

/**
 * Signals enqueue, updates enqueue and wait; nothing is decided here. Handlers run outside the main
 * function's scope, and a cancel request that is not heeded must not fail who waits either.
 */
export function listen(life: PayoutLife): void {
  setHandler(stateQuery, () => resultOf(life), { description: DESCRIPTIONS.state });
  setHandler(openUpdate, () => CancellationScope.nonCancellable(() => untilOpened(life)), {
    description: DESCRIPTIONS.open,
  });
  for (const { name, signal } of callbackSignals) {
    setHandler(signal, (raw) => take(life, name, raw), { description: DESCRIPTIONS[name] });
  }
  listenToOperators(life);
}

/** Until the bank has sent it, but no longer than a request may take: then where it stands. */
async function untilOpened(life: PayoutLife): Promise<PayoutState> {
  const isKnown = () => life.stored || life.refusal !== undefined;
  const isSent = () => isKnown() && !(life.stored && isUnsent(life));
  // A timer would only start when the local activity that accepts has ended, and run on after it.
  await condition(() => life.attempted);
  const left = Math.max(1, life.acceptBy - Date.now());
  await condition(isSent, left, { summary: 'The API answers' });
  if (!isKnown()) await condition(isKnown, GRACE_MS, { summary: 'The API answers' });
  if (life.refusal !== undefined) refuse(life.refusal.code, life.refusal.message);
  if (!life.stored) {
    refuse('temporarily_unavailable', 'It is not known yet whether the payout was accepted.');
  }
  return stateOf(life);
}

function listenToOperators(life: PayoutLife): void {
  const enqueue = (what: PayoutAct) => (act: SentAct) =>
    CancellationScope.nonCancellable(() =>
      enqueueAct<PayoutAct, PayoutActed>(life.inbox, what, act),
    );
  // A validator can't wait until the state is loaded; the loop looks again.
  const wrongState = (what: PayoutAct) => () => {
    if (life.stored) return actFault(life, what);
    return life.resumed ? undefined : 'The payout has not been accepted.';
  };
  for (const [what, update] of [
    ['resubmit', resubmitUpdate],
    ['mark_failed', markFailedUpdate],
    ['mark_returned', markReturnedUpdate],
    ['mark_completed', markCompletedUpdate],
  ] as const) {
    listenToAct(update, {
      description: DESCRIPTIONS[what],
      read: readOperatorAct,
      wrongState: wrongState(what),
      enqueue: enqueue(what),
    });
  }
  listenToAct(snoozeUpdate, {
    description: DESCRIPTIONS.snooze,
    read: readSnoozeAct,
    wrongState: wrongState('snooze'),
    enqueue: enqueue('snooze'),
  });
}
