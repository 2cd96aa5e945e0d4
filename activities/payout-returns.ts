import { inTransaction } from '../src/base/mongo';
import { reportId } from '../src/domain/payment/receipt';
import { buildHeldReturn, holdsReturn, isNewReturn } from '../src/domain/payout/held-return';
import { buildReturnHeld } from '../src/ledger/resource-entries';
import type { PayoutDocument } from '../src/store/payouts';
import type { Known, MoneyReport } from './shared/record-inputs';
import type { RecordDeps, WriteAnswer } from './shared/record-table';
import { bookOnce } from './shared/written';

interface ReturnReport extends MoneyReport, Known {
  payout_id: string;
}

interface ReturnHeld {
  holds: boolean;
}

/** Posts what came back otherwise than it went. */
export function createPayoutReturns({ mongo, stores }: RecordDeps) {
  const { payouts, ledger } = stores;
  return {
    recordReturnHeld: (input: ReturnReport): Promise<WriteAnswer<PayoutDocument, ReturnHeld>> =>
      bookOnce<PayoutDocument, ReturnHeld>(
        (work) => inTransaction(mongo, work),
        payouts,
        { resource_id: input.payout_id, known: input },
        async (payout, session) => {
          const isKnown = { answer: { holds: holdsReturn(payout) }, isNew: false };
          if (!isNewReturn(payout, input)) return isKnown;
          const { amount = payout.amount, currency = payout.currency, at } = input;
          const held = buildHeldReturn(payout, { id: reportId(input), amount, currency, at });
          if (!(await payouts.recordReturnHeld(payout._id, held, session))) return isKnown;
          await ledger.post(buildReturnHeld(payout, held, input), session);
          const returns_held = [...(payout.returns_held ?? []), held];
          return { answer: { holds: holdsReturn({ ...payout, returns_held }) }, isNew: true };
        },
      ),
  };
}
