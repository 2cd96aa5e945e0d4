import { inTransaction } from '../src/base/mongo';
import { reportId } from '../src/domain/payment/receipt';
import { buildHeldReturn, holdsReturn, isNewReturn } from '../src/domain/payout/held-return';
import { buildReturnHeld } from '../src/ledger/resource-entries';
import type { PayoutDocument } from '../src/store/payouts';
import type { MoneyReport } from './shared/record-inputs';
import type { RecordDeps } from './shared/record-table';

interface ReturnReport extends MoneyReport {
  payout_id: string;
}

interface ReturnHeld {
  held: string[];
  holds: boolean;
}

/** Posts what came back otherwise than it went. */
export function createPayoutReturns(deps: RecordDeps) {
  return {
    recordReturnHeld: (input: ReturnReport): Promise<ReturnHeld> => recordReturnHeld(deps, input),
  };
}

async function recordReturnHeld(deps: RecordDeps, input: ReturnReport): Promise<ReturnHeld> {
  const { mongo, stores } = deps;
  const { payout_id } = input;
  await inTransaction(mongo, async (session) => {
    const payout = await stores.payouts.get(payout_id, session);
    if (payout === null || !isNewReturn(payout, input)) return;
    const { amount = payout.amount, currency = payout.currency, at } = input;
    const held = buildHeldReturn(payout, { id: reportId(input), amount, currency, at });
    if (!(await stores.payouts.recordReturnHeld(payout_id, held, session))) return;
    await stores.ledger.post(buildReturnHeld(payout, held, input), session);
  });
  const payout = await readPayout(deps, payout_id);
  return { held: (payout.returns_held ?? []).map(({ id }) => id), holds: holdsReturn(payout) };
}

async function readPayout({ stores }: RecordDeps, id: string): Promise<PayoutDocument> {
  const payout = await stores.payouts.get(id);
  if (payout === null) throw new Error(`The record of ${id} is not there.`);
  return payout;
}
