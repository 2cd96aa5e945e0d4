import {
  ActivityFailure,
  CancellationScope,
  continueAsNew,
  setHandler,
  Trigger,
} from '@temporalio/workflow';
import { assertNever } from '../../src/domain/assert';
import { omitUndefined } from '../../src/domain/defined';
import { holdsMoney } from '../../src/domain/movement/movement';
import {
  CANCELLATIONS,
  type CancelledBy,
  isCancellable,
  isFinal,
  PAYMENT_FAILURES,
  PAYMENT_STATUSES,
  type PaymentAct,
  type PaymentStatus,
  pathTo,
  paymentWorkflowId,
} from '../../src/domain/payment/payment';
import type {
  PaymentInput,
  PaymentResume,
  PaymentStart,
  PaymentState,
} from '../../src/domain/payment/workflow';
import { now } from '../shared/clock';
import {
  getResource,
  listen,
  openMailbox,
  receiveMissed,
  uncancelled,
  untilOpened,
} from '../shared/inbox';
import { type Due, runUntilFinal } from '../shared/loop';
import {
  type ActRules,
  authorize,
  buildAudit,
  type OperatorItem,
  stateFault,
} from '../shared/operator-acts';
import { writeLocally, writeScheduled } from '../shared/persist';
import { assertIdentity, refuse, rejectUpdate } from '../shared/refusal';
import { isReported, note } from '../shared/state';
import * as bank from './bank';
import { applyCallback } from './callbacks';
import { messages } from './messages';
import {
  bookChargeback,
  bookResolution,
  bookReversal,
  forwardAct,
  liftDispute,
  pickSettled,
} from './money';
import {
  buildOpened,
  getState,
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
  listen<PaymentKind, Payment>(mail, messages, {
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
        applyCallback(payment, item.name, item.callback, item.signature),
      );
    case 'malformed':
      note(payment, `unreadable callback ${item.name}: ${item.fault}`);
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

function actFault(payment: Payment, what: PaymentAct): string | undefined {
  if (what === 'give_up_closing' && payment.instructing.size > 0) return undefined;
  return stateFault(ACTS, payment.status, what);
}

/** Decides again: the state may have changed since the update was accepted. */
async function applyAct(
  payment: Payment,
  item: OperatorItem<PaymentAct, PaymentState>,
): Promise<void> {
  const { what, hours, answer } = item;
  const fault = actFault(payment, what);
  if (fault !== undefined) return rejectUpdate(answer, 'wrong_state', fault);
  if (what === 'dispute_won' && (await forwardAct(payment, item))) return;
  if (!(await authorize('payment', record, payment, item))) return;
  const { act } = item;
  record.logActivity(payment, `operator ${act.operator}: ${what} (${act.reason})`);
  const audit = buildAudit(item);
  switch (what) {
    case 'mark_settled': {
      const change = pickSettled(payment, item);
      if (typeof change === 'string') return rejectUpdate(answer, 'wrong_state', change);
      const path = pathTo(payment.status, 'settled');
      const { movement } = item;
      await record.transition(payment, path, { change, audit, movement, scheduled: true });
      break;
    }
    case 'mark_failed': {
      const change = { failure: PAYMENT_FAILURES.operator };
      await record.transition(payment, ['failed'], { change, audit, scheduled: true });
      break;
    }
    case 'claw_back': {
      const refusalReason = await bookChargeback(payment, audit, item);
      if (refusalReason !== undefined) return rejectUpdate(answer, 'wrong_state', refusalReason);
      break;
    }
    case 'dispute_won': {
      const refusalReason = await liftDispute(payment, audit, item);
      if (refusalReason !== undefined) return rejectUpdate(answer, 'wrong_state', refusalReason);
      break;
    }
    case 'mark_reversed': {
      const refusalReason = await bookReversal(payment, audit, item);
      if (refusalReason !== undefined) return rejectUpdate(answer, 'wrong_state', refusalReason);
      break;
    }
    case 'resolve_movement': {
      const refusalReason = await bookResolution(payment, audit, item);
      if (refusalReason !== undefined) return rejectUpdate(answer, 'wrong_state', refusalReason);
      break;
    }
    case 'give_up_closing': {
      const { closing, instructing, attention } = payment;
      if (!closing && instructing.size === 0) {
        const message = 'No session, void or reversal of the payment is open at the bank.';
        return rejectUpdate(answer, 'wrong_state', message);
      }
      // What was to go back stays in suspense.
      await record.recordAct(payment, audit, instructing.size === 0 ? null : attention);
      payment.giveUpClosing();
      for (const giveUp of instructing.values()) giveUp();
      break;
    }
    case 'snooze':
      await record.snooze(payment, audit, hours);
      break;
    case 'acknowledge': {
      const refused = await record.acknowledge(payment, audit, item.attention);
      if (refused) return rejectUpdate(answer, refused.code, refused.message);
      break;
    }
    default:
      assertNever(what);
  }
  answer.resolve(getState(payment));
}

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
