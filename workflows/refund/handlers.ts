import { CancellationScope, condition, setHandler } from '@temporalio/workflow';
import { readOperatorAct, readSnoozeAct } from '../../src/domain/payment-workflow';
import { isFinalRefund } from '../../src/domain/refund';
import type { RefundState } from '../../src/domain/refund-workflow';
import { take } from '../shared/mailbox';
import { enqueueAct, listenToAct, type SentAct } from '../shared/operator-acts';
import { refuse } from '../shared/refusal';
import { type RefundAct, type RefundLife, resultOf, stateOf } from './life';
import {
  callbackSignals,
  DESCRIPTIONS,
  markFailedUpdate,
  markSettledUpdate,
  openUpdate,
  snoozeUpdate,
  stateQuery,
} from './messages';

/**
 * Signals enqueue, updates enqueue and wait; nothing is decided here. Handlers run outside the main
 * function's scope, and a cancel request that is not heeded must not fail who waits either.
 */
export function listen(life: RefundLife): void {
  setHandler(stateQuery, () => resultOf(life), { description: DESCRIPTIONS.state });
  setHandler(openUpdate, () => CancellationScope.nonCancellable(() => untilOpened(life)), {
    description: DESCRIPTIONS.open,
  });
  for (const { name, signal } of callbackSignals) {
    setHandler(signal, (raw) => take(life, name, raw), { description: DESCRIPTIONS[name] });
  }
  listenToOperators(life);
}

async function untilOpened(life: RefundLife): Promise<RefundState> {
  await condition(() => life.stored || life.refusal !== undefined);
  if (life.refusal !== undefined) refuse(life.refusal.code, life.refusal.message);
  return stateOf(life);
}

function listenToOperators(life: RefundLife): void {
  const enqueue = (what: RefundAct) => (act: SentAct) =>
    CancellationScope.nonCancellable(() =>
      enqueueAct<RefundAct, RefundState>(life.inbox, what, act),
    );
  const wrongState = () => {
    if (!life.stored) return 'The refund has not been accepted.';
    if (!isFinalRefund(life.status)) return undefined;
    return `The refund is ${life.status}; a final state is never left.`;
  };
  for (const [what, update] of [
    ['mark_settled', markSettledUpdate],
    ['mark_failed', markFailedUpdate],
  ] as const) {
    listenToAct(update, {
      description: DESCRIPTIONS[what],
      read: readOperatorAct,
      wrongState,
      enqueue: enqueue(what),
    });
  }
  listenToAct(snoozeUpdate, {
    description: DESCRIPTIONS.snooze,
    read: readSnoozeAct,
    wrongState,
    enqueue: enqueue('snooze'),
  });
}
