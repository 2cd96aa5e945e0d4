import { ActivityFailure, setHandler, Trigger } from '@temporalio/workflow';
import { holdsMoney } from '../../src/domain/banks/movement';
import { omitUndefined } from '../../src/domain/defined';
import {
  CANCELLATIONS,
  type CancelledBy,
  isCancellable,
  isFinal,
  PAYMENT_FAILURES,
  PAYMENT_STATUSES,
  type PaymentAct,
  type PaymentInput,
  type PaymentResume,
  type PaymentStart,
  type PaymentState,
  type PaymentStatus,
  pathTo,
  paymentWorkflowId,
} from '../../src/domain/payment/payment';
import { now } from '../shared/clock';
import {
  getResource,
  listen,
  openMailbox,
  receiveMissed,
  uncancelled,
  untilOpened,
} from '../shared/inbox';
import { type Acts, handleCommon, type Lifecycle, runLifecycle } from '../shared/lifecycle';
import { type ActRules, stateFault } from '../shared/operator-acts';
import { writeLocally, writeScheduled } from '../shared/persist';
import { refuse, rejectUpdate } from '../shared/refusal';
import { isReported, note } from '../shared/state';
import * as bank from './bank';
import { applyCallback } from './callbacks';
import {
  bookChargeback,
  bookResolution,
  bookReversal,
  findRemainingReason,
  forwardAct,
  liftDispute,
  pickSettled,
} from './money';
import {
  cancel,
  getState,
  messages,
  newPayment,
  type Payment,
  type PaymentItem,
  type PaymentKind,
  type PaymentMailbox,
  readState,
  record,
  settlementDue,
} from './state';

/** @see docs/api.md#states */
export async function payment(start: PaymentStart): Promise<PaymentState> {
  const mail: PaymentMailbox = openMailbox(start);
  listen(rules, mail, start, async () => {
    const opened = await untilOpened(mail);
    const { opening } = opened;
    return opening === undefined ? getState(opened) : { ...getState(opened), opening };
  });
  const { payment_id } = start;
  const enqueue = async (by: CancelledBy): Promise<PaymentState> => {
    const answer = new Trigger<PaymentState>();
    mail.inbox.push({ kind: 'cancel', by, answer });
    return await answer;
  };
  setHandler(
    cancel,
    uncancelled(({ by }) => enqueue(by)),
    {
      description: 'Cancels the payment: {"by": "merchant"}. Refused once the customer has paid.',
      validator: (input) => {
        const by: unknown = Object(input).by;
        if (by !== 'merchant' && by !== 'customer') {
          refuse('invalid_request', 'by: must be "merchant" or "customer"');
        }
        const { status } = readState(mail, payment_id);
        if (!isCancellable(status)) refuse('cannot_cancel', `The payment is ${status}.`);
        if (holdsMoney(getResource(mail) ?? {})) refuse('cannot_cancel', IN_SUSPENSE);
      },
    },
  );
  await runLifecycle(rules, mail, async () => {
    const resource = 'resume' in start ? await load(mail, start) : await open(mail, start);
    return { outcome: 'accepted', resource };
  });
  return readState(mail, payment_id);
}

const rules: Lifecycle<PaymentKind, Payment, PaymentItem> = {
  kind: 'payment',
  noun: 'payment',
  workflowId: paymentWorkflowId,
  messages,
  record,
  handle: async (payment, item) => {
    switch (item.kind) {
      case 'cancel':
        return await cancelPayment(payment, item);
      case 'session':
        return await applySession(payment, item);
      case 'closed':
        return await bank.applyClosing(payment, item);
      case 'voided':
        return await bank.applyVoid(payment, item);
      case 'sent_back':
        return await bank.applySentBack(payment, item);
      case 'operator':
        if (item.what === 'dispute_won' && payment.status === 'settled') {
          if (await forwardAct(payment, item)) return;
        }
        return await handleCommon(rules, payment, item);
      default:
        return await handleCommon(rules, payment, item);
    }
  },
  applyCallback: (payment, { name, callback, signature }) =>
    applyCallback(payment, name, callback, signature),
  actFault: (payment, what) => {
    if (what === 'give_up_closing' && payment.instructing.size > 0) return undefined;
    return stateFault(ACTS, payment.status, what);
  },
  acts: {
    mark_settled: async (payment, audit, item) => {
      const change = pickSettled(payment, item);
      if (typeof change === 'string') return change;
      const path = pathTo(payment.status, 'settled');
      const { movement } = item;
      await record.transition(payment, path, { change, audit, movement, scheduled: true });
      return undefined;
    },
    mark_failed: async (payment, audit) => {
      const change = { failure: PAYMENT_FAILURES.operator };
      await record.transition(payment, ['failed'], { change, audit, scheduled: true });
      return undefined;
    },
    claw_back: bookChargeback,
    dispute_won: liftDispute,
    mark_reversed: bookReversal,
    resolve_movement: bookResolution,
    give_up_closing: async (payment, audit) => {
      const { closing, instructing } = payment;
      if (!closing && instructing.size === 0) {
        return 'No session, void or reversal of the payment is open at the bank.';
      }
      // What was to go back stays in suspense.
      const attention = instructing.size === 0 ? findRemainingReason(payment) : payment.attention;
      await record.recordAct(payment, audit, attention);
      payment.giveUpClosing();
      for (const giveUp of instructing.values()) giveUp();
      return undefined;
    },
  } satisfies Acts<PaymentKind, Payment>,
  isFinal: (payment) => isFinal(payment.status) && isIdle(payment),
  isIdle,
  nextDue: (payment) => {
    const { status, facts, isOverdueReported } = payment;
    if (isCancellable(status)) {
      if (holdsMoney(payment)) return undefined;
      return { at: facts.expires_at_ms, summary: 'Payment expires', act: () => expire(payment) };
    }
    if (status !== 'authorized' || isOverdueReported) return undefined;
    const act = () => record.flagOverdue(payment, 'settlement_overdue');
    return { at: settlementDue(payment), summary: 'Settlement is due', act };
  },
  endsSoon: ({ facts }) => facts.settles_soon === true,
  getState,
  getResult: readState,
};

function isIdle({ closing, instructing }: Payment): boolean {
  return !closing && instructing.size === 0;
}

type Item<Kind extends PaymentItem['kind']> = Extract<PaymentItem, { kind: Kind }>;
const IN_SUSPENSE = 'Money of the payment is in suspense, and an operator decides about it.';

/** Closes the session first: where the customer was faster, the payment is not cancelled. */
async function cancelPayment(payment: Payment, item: Item<'cancel'>): Promise<void> {
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

async function expire(payment: Payment): Promise<void> {
  const closed = await bank.closeAtBank(payment, '5 minutes');
  // Due again, should the callback change nothing.
  if (closed === 'unreachable' && hasUnprocessedPayment(payment)) return;
  const authorized = closed === 'already_authorized';
  await record.transition(payment, authorized ? pathTo(payment.status, 'authorized') : ['expired']);
  if (closed === 'unreachable') await bank.closeInBackground(payment);
}

const IN_FLIGHT = ['created', 'awaiting_customer', 'authorized'] as const;

const neverLeft = (status: PaymentStatus) =>
  `The payment is ${status}; a final state is never left.`;

const ACTS: ActRules<PaymentAct, PaymentStatus> = {
  mark_settled: { from: IN_FLIGHT, refusal: neverLeft },
  mark_failed: { from: IN_FLIGHT, refusal: neverLeft },
  claw_back: {
    from: ['settled'],
    refusal: (status) => `The payment is ${status}; only settled money can be taken back.`,
  },
  dispute_won: {
    from: ['settled'],
    refusal: (status) => `The payment is ${status}; only a settled payment can be disputed.`,
  },
  mark_reversed: { from: PAYMENT_STATUSES, refusal: neverLeft },
  resolve_movement: { from: PAYMENT_STATUSES, refusal: neverLeft },
  give_up_closing: {
    from: PAYMENT_STATUSES.filter(isFinal),
    refusal: (status) => `The payment is ${status}; it has not ended.`,
  },
  snooze: {
    from: ['authorized'],
    refusal: (status) => `Only an authorised payment can be snoozed; it is ${status}.`,
  },
};

async function open(mail: PaymentMailbox, input: PaymentInput): Promise<Payment> {
  const startedAt = now(mail);
  const { expires_in_seconds, clock, ...opening } = input;
  const { return_url, ...money } = opening;
  const facts = { ...money, expires_at_ms: startedAt + expires_in_seconds * 1_000 };
  const created_at = new Date(startedAt).toISOString();
  const expires_at = new Date(facts.expires_at_ms).toISOString();
  const session = await bank.quickSession(input, expires_at);
  const { opening: first, ...state } = await writeLocally((activities) =>
    activities.openPayment({ ...opening, created_at, expires_at, session: session ?? null }),
  );
  const snapshot = { facts, ...state, attention: null };
  const payment = newPayment(mail, facts.payment_id, snapshot, false);
  payment.opening = first;
  payment.enteredAt = startedAt;
  record.show(payment);
  if (session === undefined) awaitSession(payment, input, expires_at);
  // Opened earlier, when the bank was slow.
  else if (payment.status === 'created') mail.inbox.push({ kind: 'session', answer: session });
  return payment;
}

async function load(mail: PaymentMailbox, start: PaymentResume): Promise<Payment> {
  const { payment_id: resource_id, request_id } = start;
  const snapshot = await writeScheduled((activities) =>
    activities.loadPayment({ resource_id, request_id }),
  );
  const payment = newPayment(mail, resource_id, snapshot, true);
  payment.isOverdueReported = isReported(payment, 'settlement_overdue');
  receiveMissed(mail, messages, snapshot.missed);
  const { return_url, expires_at, authorized_at } = snapshot;
  if (payment.status === 'authorized' && authorized_at !== null) {
    payment.enteredAt = Date.parse(authorized_at);
  }
  if (payment.status === 'created' && return_url !== null) {
    awaitSession(payment, { ...payment.facts, return_url }, expires_at);
  }
  const ended = isFinal(payment.status);
  record.logActivity(payment, ended ? 'Started again after the end.' : 'Started again in flight.');
  await bank.resumeInstructions(payment);
  return payment;
}

function awaitSession(payment: Payment, input: bank.Opening, expires_at: string): void {
  note(payment, 'The bank is slow to open a session; the API has answered created.');
  void bank.patientSession(input, expires_at).then(
    (answer) => payment.inbox.push({ kind: 'session', answer }),
    (error) => {
      if (!(error instanceof ActivityFailure)) throw error;
      note(payment, 'The bank refused for good to open a session.');
    },
  );
}

async function applySession(
  payment: Payment,
  { answer }: Extract<PaymentItem, { kind: 'session' }>,
): Promise<void> {
  if (payment.status !== 'created') {
    // A callback came first: refunds need the bank's own name.
    if (answer.outcome === 'opened') payment.bankReference = answer.bank_reference ?? undefined;
    return;
  }
  if (answer.outcome === 'declined') {
    const failure = { code: answer.code, message: answer.message };
    return await record.transition(payment, ['failed'], { change: { failure }, scheduled: true });
  }
  const { bank_reference, session_url, instructions } = answer;
  const change = omitUndefined({ bank_reference, session_url, instructions });
  await record.transition(payment, ['awaiting_customer'], { change, scheduled: true });
}
