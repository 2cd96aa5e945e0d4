import { ApplicationFailure, condition, setHandler, Trigger } from '@temporalio/workflow';
import { type PaymentCallbackName, readCallback } from '../src/domain/callback';
import { isCancellable, isFinal } from '../src/domain/payment';
import {
  type OperatorAct,
  type PaymentState,
  readOperatorAct,
  readSnoozeAct,
} from '../src/domain/payment-workflow';
import { Faults } from '../src/domain/shape';
import { type PaymentLife, stateOf } from './payment-life';
import {
  callbackSignals,
  cancelUpdate,
  DESCRIPTIONS,
  markFailedUpdate,
  markSettledUpdate,
  openUpdate,
  snoozeUpdate,
  stateQuery,
} from './payment-messages';

/** Signals enqueue, updates enqueue and wait; nothing is decided here. */
export function listen(life: PaymentLife): void {
  setHandler(stateQuery, () => stateOf(life), { description: DESCRIPTIONS.state });
  setHandler(openUpdate, () => untilStored(life), { description: DESCRIPTIONS.open });
  for (const { name, signal } of callbackSignals) {
    setHandler(signal, (raw) => take(life, name, raw), { description: DESCRIPTIONS[name] });
  }
  setHandler(cancelUpdate, ({ by }) => cancel(life, by), {
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

/** A malformed callback is kept and shown; it never throws. */
function take(life: PaymentLife, name: PaymentCallbackName, raw: unknown): void {
  const callback = readCallback(raw);
  if (callback instanceof Faults) {
    life.inbox.push({ kind: 'malformed', name, fault: callback.text });
  } else if (!life.seen.has(callback.callback_id)) {
    life.seen.add(callback.callback_id);
    life.inbox.push({ kind: 'callback', name, callback });
  }
}

async function cancel(life: PaymentLife, by: 'merchant' | 'customer'): Promise<PaymentState> {
  const answer = new Trigger<PaymentState>();
  life.inbox.push({ kind: 'cancel', by, answer });
  return await answer;
}

function listenToOperators(life: PaymentLife): void {
  for (const [what, update] of [
    ['mark_settled', markSettledUpdate],
    ['mark_failed', markFailedUpdate],
  ] as const) {
    setHandler(update, (act) => enqueueAct(life, what, act), {
      description: DESCRIPTIONS[what],
      validator: (act) => {
        wellFormed(readOperatorAct(act));
        if (isFinal(life.status)) {
          refuse('wrong_state', `The payment is ${life.status}; a final state is never left.`);
        }
      },
    });
  }
  setHandler(snoozeUpdate, (act) => enqueueAct(life, 'snooze', act, act.hours), {
    description: DESCRIPTIONS.snooze,
    validator: (act) => {
      wellFormed(readSnoozeAct(act));
      if (life.status !== 'authorized') {
        refuse('wrong_state', `Only an authorised payment can be snoozed; it is ${life.status}.`);
      }
    },
  });
}

async function enqueueAct(
  life: PaymentLife,
  what: 'mark_settled' | 'mark_failed' | 'snooze',
  act: OperatorAct,
  hours?: number,
): Promise<PaymentState> {
  const answer = new Trigger<PaymentState>();
  const { operator, reason } = act;
  life.inbox.push({
    kind: 'operator',
    what,
    act: { operator, reason },
    ...(hours === undefined ? {} : { hours }),
    answer,
  });
  return await answer;
}

function wellFormed(read: object): void {
  if (read instanceof Faults) refuse('invalid_request', read.text);
}

/** @throws ApplicationFailure whose type is the code; it fails the update, not the workflow. */
export function refuse(code: string, message: string): never {
  throw ApplicationFailure.nonRetryable(message, code);
}
