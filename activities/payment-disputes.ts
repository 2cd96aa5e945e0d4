import type { ClientSession } from 'mongodb';
import { inTransaction } from '../src/base/mongo';
import { DISPUTE_STATES, type DisputeReport, decideDispute } from '../src/domain/payment/dispute';
import type { PaymentDocument } from '../src/store/payments';
import {
  type Chargeback,
  type ChargebackResult,
  type DisputeLift,
  keep,
  liftDispute,
  postChargeback,
} from './dispute-acts';
import {
  type BankBooking,
  type Booking,
  closeDispute,
  type DisputeAnswer,
  type DisputeResult,
  inBook,
  openDispute,
} from './dispute-entries';
import type { RecordDeps, WriteAnswer } from './shared/record-table';
import { bookOnce, type Work } from './shared/written';

export type DisputeReportInput = BankBooking &
  DisputeReport & {
    /** Posted before: later refunds may have left less. */
    rebuilding?: true;
  };

/** @see docs/ledger.md#money-that-goes-wrong */
export function createPaymentDisputes(deps: RecordDeps) {
  const { payments } = deps.stores;
  return {
    recordDispute: (input: Booking): Promise<WriteAnswer<PaymentDocument>> =>
      bookOnce<PaymentDocument, object>(
        deps,
        (work) => inTransaction(deps.mongo, work),
        payments,
        { resource_id: input.payment_id, known: input },
        async ({ _id }, session) => {
          const { matchedCount } = await payments.dispute(_id, input.at, session);
          return { answer: {}, isNew: matchedCount === 1 };
        },
      ),
    recordDisputeReport: (input: DisputeReportInput): Promise<DisputeResult> =>
      inBook(deps, input, async (payment, session) => {
        const work = await bookReport(deps, payment, input, session);
        if (work.isNew) await payments.noteApplied(payment._id, input.callback_id, session);
        return work;
      }),
    /** Merchant owes what the balance lacks. */
    clawBack: (input: Chargeback): Promise<ChargebackResult> => postChargeback(deps, input),
    liftDispute: (input: DisputeLift): Promise<DisputeResult> => liftDispute(deps, input),
  };
}

async function bookReport(
  deps: RecordDeps,
  payment: PaymentDocument,
  input: DisputeReportInput,
  session: ClientSession,
): Promise<Work<DisputeAnswer>> {
  const { callback_id, at, rebuilding } = input;
  const decision = decideDispute(rebuilding ? { ...payment, refunded: 0 } : payment, input);
  switch (decision.kind) {
    case 'open': {
      const { id, amount, fee } = decision;
      const dispute = { id, kind: 'dispute_opened', step: id, amount, fee } as const;
      const opening = { ...dispute, state: 'opened', opened_by: callback_id } as const;
      await openDispute(deps, payment, opening, input, session);
      return POSTED;
    }
    case 'close': {
      const { dispute, won, fee_returned } = decision;
      const closing = { state: DISPUTE_STATES[input.name], won, fee_returned };
      const change = { ...closing, closed_at: at, closed_by: callback_id };
      await closeDispute(deps, payment, { dispute, change }, input, session);
      return POSTED;
    }
    case 'repeated':
      return keep({ outcome: decision.isOwn ? 'posted' : 'repeated' });
    default:
      return keep({ outcome: 'refused', why: decision.why });
  }
}

const POSTED = { answer: { outcome: 'posted' }, isNew: true } as const;
