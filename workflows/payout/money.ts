import {
  type BankCallback,
  describeDifference,
  type PayoutCallbackName,
} from '../../src/domain/callback/callback';
import { omitUndefined } from '../../src/domain/defined';
import { isUnsent, type PayoutAttention } from '../../src/domain/payout/payout';
import { timestamp } from '../shared/clock';
import { holdSent, takeSentBack } from '../shared/sent-held';
import { type Payout, record } from './state';

export async function bookUnapplied(
  payout: Payout,
  name: PayoutCallbackName,
  callback: BankCallback,
): Promise<PayoutAttention | null> {
  if (name === 'returned') await holdReturn(payout, callback);
  if (isSentOtherwise(payout, name, callback)) {
    await holdSent(record, 'payout', payout, { ...callback, says: name });
  }
  if (payout.status === 'failed' && (name === 'failed' || name === 'returned')) {
    await takeSentBack(record, 'payout', payout, callback);
  }
  const { callback_id, bank_reference, amount, currency, value_date } = callback;
  if (name !== 'completed' || payout.status !== 'completed' || !bank_reference) return null;
  const report = {
    ...{ payout_id: payout.id, at: timestamp(payout), callback_id, bank_reference },
    ...omitUndefined({ amount, currency, value_date }),
  };
  const { reason } = await record.book(
    payout,
    (known) => (activities) => activities.recordPayoutSent({ ...report, ...known }),
  );
  return reason;
}

function isSentOtherwise(
  { status, facts }: Payout,
  name: PayoutCallbackName,
  callback: BankCallback,
): name is 'sent' | 'completed' {
  if (name !== 'sent' && name !== 'completed') return false;
  if (status === 'failed') return true;
  const isAfresh = isUnsent(status) || (status === 'sent' && name === 'completed');
  return isAfresh && describeDifference(callback, facts) !== undefined;
}

async function holdReturn(payout: Payout, callback: BankCallback): Promise<void> {
  const { callback_id, bank_reference, amount, currency, value_date } = callback;
  const isNamed = amount !== undefined || !payout.holdsReturn;
  if (payout.status === 'failed' || !isNamed) return;
  const report = {
    ...{ payout_id: payout.id, at: timestamp(payout), callback_id },
    ...omitUndefined({ bank_reference: bank_reference || undefined, amount, currency, value_date }),
  };
  const { holds } = await record.book(
    payout,
    (known) => (activities) => activities.recordReturnHeld({ ...report, ...known }),
  );
  payout.holdsReturn = holds;
}
