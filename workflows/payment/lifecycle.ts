import { CancellationScope, continueAsNew, setHandler, Trigger } from '@temporalio/workflow';
import { assertNever } from '../../src/domain/assert';
import { holdsMoney } from '../../src/domain/movement/movement';
import {
  CANCELLATIONS,
  type CancelledBy,
  isCancellable,
  isFinal,
  pathTo,
  paymentWorkflowId,
} from '../../src/domain/payment/payment';
import type { PaymentResume, PaymentStart, PaymentState } from '../../src/domain/payment/workflow';
import { getResource, listen, openMailbox, uncancelled, untilOpened } from '../shared/inbox';
import { type Due, runUntilFinal } from '../shared/loop';
import { assertIdentity, refuse, rejectUpdate } from '../shared/refusal';
import { note } from '../shared/state';
import { actFault, applyAct } from './acts';
import * as bank from './bank';
import { applyCallback } from './callbacks';
import { messages } from './messages';
import { applySession, load, open } from './opening';
import {
  buildOpened,
  getState,
  type Payment,
  type PaymentItem,
  type PaymentMailbox,
  readState,
  record,
  settlementDue,
} from './state';

/** @see docs/api.md#states */
export async function payment(start: PaymentStart): Promise<PaymentState> {
  assertIdentity('payment_id', Object(start).payment_id, paymentWorkflowId);
  const { payment_id } = start;
  const mail: PaymentMailbox = openMailbox(start);
  takeMessages(mail, start);
  // A cancel request from the Temporal UI must not interrupt a booking.
  return await CancellationScope.nonCancellable(async () => {
    const payment = 'resume' in start ? await load(mail, start) : await open(mail, start);
    mail.opening = { outcome: 'accepted', resource: payment };
    await runUntilFinal({
      inbox: mail.inbox,
      clock: mail.clock,
      handle: (item) => handle(payment, item),
      reportGivenUp: (what, refused) => record.flagGivenUp(payment, what, refused),
      isFinal: () => isFinal(payment.status) && !payment.closing && payment.instructing.size === 0,
      nextDue: () => nextDue(payment),
      endsSoon: payment.facts.settles_soon === true,
      isIdle: () => !payment.closing && payment.instructing.size === 0,
      continueInNewRun: () =>
        continueAsNew<Resuming>({ payment_id, resume: true, request_id: payment.facts.request_id }),
    });
    return getState(payment);
  });
}

type Resuming = (start: PaymentResume) => Promise<PaymentState>;

function takeMessages(mail: PaymentMailbox, start: PaymentStart): void {
  listen(mail, messages, {
    noun: 'payment',
    resumed: 'resume' in start,
    state: () => readState(mail, start.payment_id),
    opened: async () => buildOpened(await untilOpened(mail)),
    actFault,
  });
  const enqueue = async (by: CancelledBy): Promise<PaymentState> => {
    const answer = new Trigger<PaymentState>();
    mail.inbox.push({ kind: 'cancel', by, answer });
    return await answer;
  };
  setHandler(
    messages.cancel,
    uncancelled(({ by }) => enqueue(by)),
    {
      description: messages.descriptions.cancel,
      validator: (input) => {
        const by: unknown = Object(input).by;
        if (by !== 'merchant' && by !== 'customer') {
          refuse('invalid_request', 'by: must be "merchant" or "customer"');
        }
        const { status } = readState(mail, start.payment_id);
        if (!isCancellable(status)) refuse('cannot_cancel', `The payment is ${status}.`);
        if (holdsMoney(getResource(mail) ?? {})) refuse('cannot_cancel', IN_SUSPENSE);
      },
    },
  );
}

/** Returns when all changes of the item are written. */
async function handle(payment: Payment, item: PaymentItem): Promise<void> {
  switch (item.kind) {
    case 'callback':
      return await record.applyVerified(payment, item, () =>
        applyCallback(payment, item.name, item.callback),
      );
    case 'malformed':
      note(payment, `unreadable callback \`${item.name}\`: ${item.fault}`);
      return await record.flagMalformed(payment);
    case 'cancel':
      return await cancel(payment, item);
    case 'session':
      return await applySession(payment, item);
    case 'closed':
      return await bank.applyClosing(payment, item);
    case 'voided':
      return await bank.applyVoid(payment, item);
    case 'sent_back':
      return await bank.applySentBack(payment, item);
    case 'operator':
      return await applyAct(payment, item);
    default:
      assertNever(item);
  }
}

type Item<Kind extends PaymentItem['kind']> = Extract<PaymentItem, { kind: Kind }>;
const IN_SUSPENSE = 'Money of the payment is in suspense, and an operator decides about it.';

/** Closes the session first: where the customer was faster, the payment is not cancelled. */
async function cancel(payment: Payment, item: Item<'cancel'>): Promise<void> {
  const { by, answer } = item;
  if (isCancellable(payment.status) && holdsMoney(payment)) {
    return rejectUpdate(answer, 'cannot_cancel', IN_SUSPENSE);
  }
  const closed = isCancellable(payment.status) ? await bank.closeAtBank(payment, '3s') : undefined;
  if (closed === 'unreachable' && hasUnprocessedPayment(payment)) {
    payment.inbox.push(item);
    return;
  }
  if (closed === 'already_authorized') {
    await record.transition(payment, pathTo(payment.status, 'authorized'));
  } else if (closed) {
    await record.transition(payment, ['cancelled'], { change: { failure: CANCELLATIONS[by] } });
  }
  if (payment.status === 'cancelled') answer.resolve(getState(payment));
  else rejectUpdate(answer, 'cannot_cancel', `The payment is ${payment.status}.`);
  if (closed === 'unreachable') await bank.closeInBackground(payment);
}

function hasUnprocessedPayment({ inbox }: Payment): boolean {
  return inbox.some(
    (item) => item.kind === 'callback' && (item.name === 'authorized' || item.name === 'settled'),
  );
}

function nextDue(payment: Payment): Due | undefined {
  const { status, facts, isOverdueReported } = payment;
  if (isCancellable(status)) {
    if (holdsMoney(payment)) return undefined;
    return { at: facts.expires_at_ms, summary: 'Payment expires', act: () => expire(payment) };
  }
  if (status !== 'authorized' || isOverdueReported) return undefined;
  const act = () => record.flagOverdue(payment, 'settlement_overdue');
  return { at: settlementDue(payment), summary: 'Settlement is due', act };
}

async function expire(payment: Payment): Promise<void> {
  const closed = await bank.closeAtBank(payment, '5 minutes');
  // Due again, should the callback change nothing.
  if (closed === 'unreachable' && hasUnprocessedPayment(payment)) return;
  const authorized = closed === 'already_authorized';
  await record.transition(payment, authorized ? pathTo(payment.status, 'authorized') : ['expired']);
  if (closed === 'unreachable') await bank.closeInBackground(payment);
}
