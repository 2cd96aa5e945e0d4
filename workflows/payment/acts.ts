import { assertNever } from '../../src/domain/assert';
import {
  isFinal,
  PAYMENT_FAILURES,
  PAYMENT_STATUSES,
  type PaymentAct,
  type PaymentStatus,
  pathTo,
} from '../../src/domain/payment/payment';
import type { PaymentState } from '../../src/domain/payment/workflow';
import {
  type ActRules,
  authorize,
  buildAudit,
  type OperatorItem,
  stateFault,
} from '../shared/operator-acts';
import { rejectUpdate } from '../shared/refusal';
import { bookChargeback, bookResolution, bookReversal, liftDispute, pickSettled } from './money';
import { getState, type Payment, record } from './state';

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

export function actFault(payment: Payment, what: PaymentAct): string | undefined {
  if (what === 'give_up_closing' && payment.instructing.size > 0) return undefined;
  return stateFault(ACTS, payment.status, what);
}

/** Decides again: the state may have changed since the update was accepted. */
export async function applyAct(
  payment: Payment,
  item: OperatorItem<PaymentAct, PaymentState>,
): Promise<void> {
  const { what, hours, answer } = item;
  const fault = actFault(payment, what);
  if (fault !== undefined) return rejectUpdate(answer, 'wrong_state', fault);
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
