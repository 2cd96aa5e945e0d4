import { CancellationScope, condition, setHandler, Trigger } from '@temporalio/workflow';
import { isCancellable, isFinal } from '../../src/domain/payment';
import {
  type PaymentState,
  readOperatorAct,
  readSnoozeAct,
} from '../../src/domain/payment-workflow';
import { take } from '../shared/mailbox';
import { enqueueAct, listenToAct, type SentAct } from '../shared/operator-acts';
import { refuse } from '../shared/refusal';
import { type PaymentAct, type PaymentLife, stateOf } from './life';
import {
  callbackSignals,
  cancelUpdate,
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
export function listen(life: PaymentLife): void {
  setHandler(stateQuery, () => stateOf(life), { description: DESCRIPTIONS.state });
  setHandler(openUpdate, () => CancellationScope.nonCancellable(() => untilStored(life)), {
    description: DESCRIPTIONS.open,
  });
  for (const { name, signal } of callbackSignals) {
    setHandler(signal, (raw) => take(life, name, raw), { description: DESCRIPTIONS[name] });
  }
  setHandler(cancelUpdate, ({ by }) => CancellationScope.nonCancellable(() => cancel(life, by)), {
    description: DESCRIPTIONS.cancel,
    validator: (input) => {
      const by: unknown = Object(input).by;
      if (by !== 'merchant' && by !== 'customer') {
        refuse('invalid_request', 'by: must be "merchant" or "customer"');
      }
      if (!isCancellable(life.status)) refuse('cannot_cancel', `The payment is ${life.status}.`);
    },
  });
  listenToOperators(life);
}

async function untilStored(life: PaymentLife): Promise<PaymentState> {
  await condition(() => life.stored);
  return stateOf(life);
}

async function cancel(life: PaymentLife, by: 'merchant' | 'customer'): Promise<PaymentState> {
  const answer = new Trigger<PaymentState>();
  life.inbox.push({ kind: 'cancel', by, answer });
  return await answer;
}

function listenToOperators(life: PaymentLife): void {
  const enqueue = (what: PaymentAct) => (act: SentAct) =>
    CancellationScope.nonCancellable(() =>
      enqueueAct<PaymentAct, PaymentState>(life.inbox, what, act),
    );
  const final = () =>
    isFinal(life.status)
      ? `The payment is ${life.status}; a final state is never left.`
      : undefined;
  for (const [what, update] of [
    ['mark_settled', markSettledUpdate],
    ['mark_failed', markFailedUpdate],
  ] as const) {
    listenToAct(update, {
      description: DESCRIPTIONS[what],
      read: readOperatorAct,
      wrongState: final,
      enqueue: enqueue(what),
    });
  }
  listenToAct(snoozeUpdate, {
    description: DESCRIPTIONS.snooze,
    read: readSnoozeAct,
    wrongState: () =>
      life.status === 'authorized'
        ? undefined
        : `Only an authorised payment can be snoozed; it is ${life.status}.`,
    enqueue: enqueue('snooze'),
  });
}
