import { DISPUTE_STATES, type DisputeReport, decideDispute } from '../src/domain/payment/dispute';
import {
  type Chargeback,
  type ChargebackResult,
  type DisputeLift,
  liftDispute,
  postChargeback,
} from './dispute-acts';
import {
  type BankBooking,
  closeDispute,
  type DisputeResult,
  inBook,
  openDispute,
} from './dispute-entries';
import type { Booking } from './payment-money';
import type { RecordDeps } from './shared/record-table';

export type DisputeReportInput = BankBooking &
  DisputeReport & {
    /** Posted before: later refunds may have left less. */
    rebuilding?: true;
  };

/** @see docs/ledger.md#money-that-goes-wrong */
export function createPaymentDisputes(deps: RecordDeps) {
  const { payments } = deps.stores;
  return {
    recordDispute: async ({ payment_id, at }: Booking): Promise<void> => {
      await payments.dispute(payment_id, at);
    },
    recordDisputeReport: async (input: DisputeReportInput): Promise<DisputeResult> => {
      const result = await recordDisputeReport(deps, input);
      if (result.outcome === 'posted') {
        await payments.noteApplied(input.payment_id, input.callback_id);
      }
      return result;
    },
    /** Merchant owes what the balance lacks. */
    clawBack: (input: Chargeback): Promise<ChargebackResult> => postChargeback(deps, input),
    liftDispute: (input: DisputeLift): Promise<DisputeResult> => liftDispute(deps, input),
  };
}

function recordDisputeReport(deps: RecordDeps, input: DisputeReportInput): Promise<DisputeResult> {
  return inBook(deps, input, async (payment, session): Promise<DisputeResult> => {
    const { callback_id, at, rebuilding } = input;
    const decision = decideDispute(rebuilding ? { ...payment, refunded: 0 } : payment, input);
    switch (decision.kind) {
      case 'open': {
        const { id, amount, fee } = decision;
        const dispute = { id, kind: 'dispute_opened', step: id, amount, fee } as const;
        const opening = { ...dispute, state: 'opened', opened_by: callback_id } as const;
        await openDispute(deps, payment, opening, input, session);
        return { outcome: 'posted' };
      }
      case 'close': {
        const { dispute, won, fee_returned } = decision;
        const closing = { state: DISPUTE_STATES[input.name], won, fee_returned };
        const change = { ...closing, closed_at: at, closed_by: callback_id };
        await closeDispute(deps, payment, { dispute, change }, input, session);
        return { outcome: 'posted' };
      }
      case 'repeated':
        return { outcome: decision.isOwn ? 'posted' : 'repeated' };
      default:
        return { outcome: 'refused', why: decision.why };
    }
  });
}
