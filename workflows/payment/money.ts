import type {
  BankCallback,
  CallbackSignature,
  PaymentCallbackName,
} from '../../src/domain/banks/callback';
import {
  computeRest,
  holdsMoney,
  isGoingBack,
  isInSuspense,
  listTakeable,
  type Movement,
  type MovementReason,
  type MovementReport,
  reversalId,
  sumRests,
} from '../../src/domain/banks/movement';
import { omitUndefined } from '../../src/domain/defined';
import type { DisputeCallbackName } from '../../src/domain/dispute/report';
import { requireApproval } from '../../src/domain/operators/approval';
import {
  isFinal,
  type PaymentAttention,
  type PaymentState,
} from '../../src/domain/payment/payment';
import { timestamp } from '../shared/clock';
import {
  bookReturn,
  buildBookedAct,
  buildReport,
  findNamed,
  findReason,
  holdMovement,
  keepsReason,
  markBack,
  resolveMovement,
} from '../shared/movement';
import { type AuditedAct, datedAudit, type OperatorItem } from '../shared/operator-acts';
import { writeScheduled } from '../shared/persist';
import { rejectUpdate } from '../shared/refusal';
import { note } from '../shared/state';
import { reverseLateFunds } from './bank';
import { getState, type Payment, record } from './state';

/** Builds the report of what came, with what the acquirer keeps of it, and until when. */
export function buildReceipt(callback: BankCallback): MovementReport {
  const { fee, available_on } = callback;
  return { ...buildReport('in', callback), ...omitUndefined({ fee, available_on }) };
}

/** @returns movement of the report, new or known */
export async function holdReceipt(
  payment: Payment,
  reason: MovementReason,
  callback: BankCallback,
): Promise<Movement | undefined> {
  const suspension = { direction: 'in', reason } as const;
  const report = buildReceipt(callback);
  return (await holdMovement(record, 'payment', payment, report, suspension)).movement;
}

/** Applies the bank's report that money in suspense is back with the customer. */
export async function applyReversal(
  payment: Payment,
  name: PaymentCallbackName,
  callback: BankCallback,
): Promise<void> {
  const outcome = await bookReturn(record, 'payment', payment, buildReport('out', callback));
  const { movements, facts } = payment;
  if (outcome === 'returned') {
    const isLate = movements.some(({ reason }) => reason === 'late');
    const reason = findReason(movements) ?? (isLate ? 'late_settlement_reversed' : null);
    return await record.setAttention(payment, reason as PaymentAttention | null);
  }
  const held = movements
    .filter(isInSuspense)
    .map((movement) => `${computeRest(movement)} ${movement.currency}`)
    .join(', ');
  const back = `${callback.amount ?? facts.amount} ${callback.currency ?? facts.currency}`;
  const why =
    outcome === 'repeated'
      ? 'this money is back already'
      : `the bank sent ${back} back, and ${held || 'nothing'} is in suspense (minor units)`;
  await record.recordUnapplied(payment, name, callback, why);
  if (outcome === 'repeated') return;
  // The bank has what the merchant has been credited.
  if (payment.status === 'settled' && !holdsMoney(payment))
    return await dispute(payment, 'clawed_back');
  await record.setAttention(payment, 'amount_differs');
}

export async function dispute(payment: Payment, attention: PaymentAttention): Promise<void> {
  const { id: payment_id } = payment;
  const at = timestamp(payment);
  await record.book(payment, 'recordDispute', { payment_id, at });
  await record.setAttention(payment, attention);
}

/** Finds the reason that an act leaves: what is in suspense keeps its own. */
export function findRemainingReason(payment: Payment): PaymentAttention | null {
  const { attention, movements } = payment;
  const isOfLate = attention?.startsWith('late_') === true && holdsMoney(payment);
  if (isOfLate || keepsReason(payment, movements)) return attention;
  return findReason(movements) as PaymentAttention | null;
}

export async function bookChargeback(
  payment: Payment,
  audit: AuditedAct,
  { amount, operation_id }: Pick<OperatorItem<string, unknown>, 'amount' | 'operation_id'>,
): Promise<string | undefined> {
  const { id: payment_id } = payment;
  const attention = findRemainingReason(payment);
  const act = { ...buildAct(payment, audit), attention };
  const chargeback = {
    payment_id,
    amount: amount ?? null,
    ...act,
    ...omitUndefined({ operation_id }),
  };
  const answer = await record.book(payment, 'clawBack', chargeback);
  if (answer.outcome === 'already_posted')
    return 'The chargeback of the payment is posted already.';
  if (answer.outcome === 'amount_needed') {
    const { taken, left } = answer;
    return `Disputes have taken ${taken} already; say by "amount" what is taken of the other ${left} (minor units).`;
  }
  if (answer.outcome === 'amount_too_large') {
    const { settled, left = settled } = answer;
    const before = settled === left ? '' : `, and ${settled - left} is taken back`;
    return `The payment has brought ${settled}${before}; no more can be taken back (minor units).`;
  }
  record.enterReason(payment, attention);
  note(payment, `chargeback: ${answer.held} from the balance, ${answer.owed} owed (minor units)`);
  record.show(payment);
  return undefined;
}

/** Entry by the account's time, audit line by the real one. */
function buildAct(payment: Payment, audit: AuditedAct) {
  const { id, at: acted_at, ...act } = datedAudit(audit);
  return { id, at: timestamp(payment), acted_at, audit: act };
}

export async function liftDispute(
  payment: Payment,
  audit: AuditedAct,
  { dispute_id }: Pick<OperatorItem<string, unknown>, 'dispute_id'>,
): Promise<string | undefined> {
  const { id: payment_id } = payment;
  const attention = findRemainingReason(payment);
  const act = { ...buildAct(payment, audit), attention };
  const lift = { payment_id, ...act, dispute_id: dispute_id ?? null };
  const answer = await record.book(payment, 'liftDispute', lift);
  if (answer.outcome === 'refused') return answer.why;
  record.enterReason(payment, attention);
  record.logActivity(payment, 'dispute won');
  return undefined;
}

/** Sends an act to the dispute that is meant, if it is a bank's. @returns whether it is answered */
export async function forwardAct(
  payment: Payment,
  { act, dispute_id, fee, answer }: OperatorItem<string, PaymentState>,
): Promise<boolean> {
  const { id: payment_id } = payment;
  const { id } = datedAudit({ who: '', what: '', why: '' });
  const forwarded = { payment_id, dispute_id: dispute_id ?? null, id };
  const payload = { ...act, ...omitUndefined({ fee }) };
  const result = await writeScheduled((activities) =>
    activities.forwardDisputeAct({ ...forwarded, act: payload }),
  );
  switch (result.outcome) {
    case 'own':
      return false;
    case 'done':
      answer.resolve(getState(payment));
      break;
    case 'approval_required':
      answer.resolve(requireApproval(result.approval_id));
      break;
    default:
      rejectUpdate(answer, result.code, result.message);
  }
  record.logActivity(payment, `dispute_won of a dispute: ${result.outcome}`);
  return true;
}

/** Passes a report on to its dispute. One of no dispute is left to operators. */
export async function forwardReport(
  payment: Payment,
  name: DisputeCallbackName,
  callback: BankCallback,
  signature: CallbackSignature | undefined,
): Promise<void> {
  const { id: payment_id, facts } = payment;
  const { request_id } = facts;
  const report = { payment_id, name, callback, request_id, ...omitUndefined({ signature }) };
  const answer = await writeScheduled((activities) => activities.forwardDispute(report));
  if (answer.outcome === 'forwarded') return record.show(payment);
  await record.recordUnapplied(payment, name, callback, answer.why);
  await record.setAttention(payment, 'dispute_differs');
}

type Decided = Pick<OperatorItem<string, unknown>, 'movement' | 'as' | 'amount'>;

/** Records that money in suspense is back with the customer, as an operator knows. */
export async function bookReversal(
  payment: Payment,
  audit: AuditedAct,
  { movement: named }: Decided,
): Promise<string | undefined> {
  if (payment.instructing.size > 0) return INSTRUCTED;
  const movement = findNamed(payment, named);
  if (typeof movement === 'string') return movement;
  const back = { as: 'customer' } as const;
  const fault = await markBack(record, 'payment', payment, audit, movement, back);
  record.show(payment);
  return fault;
}

const INSTRUCTED =
  'The bank is instructed to send the money back. Wait for its answer, or send `give_up_closing`.';

/** Decides who has, or bears, what is in suspense. */
export async function bookResolution(
  payment: Payment,
  audit: AuditedAct,
  item: Decided,
): Promise<string | undefined> {
  const movement = findNamed(payment, item.movement);
  if (typeof movement === 'string') return movement;
  if (payment.instructing.has(reversalId(payment.id, payment.movements, movement.id))) {
    return INSTRUCTED;
  }
  if (item.as !== 'customer') {
    const fault = await resolveMovement(
      record,
      'payment',
      payment,
      audit,
      item,
      ({ status, facts }, { currency }) =>
        isFinal(status) || currency !== facts.currency ? undefined : 'mark_settled',
    );
    record.show(payment);
    return fault;
  }
  // A task that was lost may have recorded the decision, and instructed nobody.
  const isLost = payment.attention === 'late_money_pending' && payment.instructing.size === 0;
  // A further instruction has the same id, and would do nothing.
  if (isGoingBack(movement) && !isLost) {
    return `The bank was instructed to send the movement ${movement.id} back, and is not instructed again. ${BY_HAND}`;
  }
  if (item.amount !== undefined) return 'The bank sends back all that is in suspense, and no part.';
  const act = { ...buildBookedAct(payment, audit, movement), attention: 'late_money_pending' };
  const about = { kind: 'payment', resource_id: payment.id, at: timestamp(payment) } as const;
  const input = { ...about, ...act, movement: movement.id, as: item.as, amount: null };
  const result = await record.book(payment, 'resolveMovement', input);
  payment.movements = result.movements;
  if (result.outcome === 'refused') return result.why;
  record.enterReason(payment, 'late_money_pending');
  await reverseLateFunds(
    payment,
    result.movements.find(({ id }) => id === movement.id),
  );
  return undefined;
}

const BY_HAND =
  'If the customer does not get the money, return it by hand, then send `mark_reversed`.';

/** @param amount minor units that really came, by default what is in suspense */
export function pickSettled(
  { movements, facts }: Payment,
  { amount, movement: id }: Pick<Decided, 'amount' | 'movement'>,
): { settled_amount?: number; available_on?: string } | string {
  const { currency } = facts;
  const held = listTakeable(movements, { direction: 'in', currency, id });
  const available_on = held
    .flatMap((each) => each.available_on ?? [])
    .sort()
    .at(-1);
  const days = omitUndefined({ available_on });
  if (held.length > 0) return { settled_amount: amount ?? Number(sumRests(held)), ...days };
  if (id !== undefined) return `No movement ${id} of the payment's currency is in suspense.`;
  return omitUndefined({ settled_amount: amount });
}
