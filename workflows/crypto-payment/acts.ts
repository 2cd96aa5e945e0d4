import {
  type ActTarget,
  actOnDeposits,
  depositActFault,
} from '../../src/domain/crypto/deposit-acts';
import {
  CRYPTO_PAYMENT_IN_FLIGHT,
  CRYPTO_PAYMENT_STATUSES,
  type CryptoPaymentAct,
  type CryptoPaymentStatus,
} from '../../src/domain/crypto/payment';
import type { CryptoPaymentState } from '../../src/domain/crypto/workflow';
import {
  type ActRules,
  authorize,
  buildAudit,
  type OperatorItem,
  stateFault,
} from '../shared/operator-acts';
import { findRefusal, rejectUpdate } from '../shared/refusal';
import { applyChange, getDepositSet, isOpen, orReload, updateAttention } from './deposits';
import { type CryptoPayment, getState, record } from './state';

const neverLeft = (status: CryptoPaymentStatus) =>
  `The payment is ${status}; nothing is awaited any more.`;

/** Deposits decide, too. */
const ACTS: ActRules<CryptoPaymentAct, CryptoPaymentStatus> = {
  release: { from: CRYPTO_PAYMENT_STATUSES, refusal: neverLeft },
  reject: { from: CRYPTO_PAYMENT_STATUSES, refusal: neverLeft },
  accept: {
    from: ['underpaid'],
    refusal: (status) =>
      `The payment is ${status}; only an underpaid one can be accepted as it is.`,
  },
  return: {
    from: ['underpaid'],
    refusal: (status) => `The payment is ${status}; only an underpaid one can be returned.`,
  },
  credit_late: { from: CRYPTO_PAYMENT_STATUSES, refusal: neverLeft },
  mark_sent_back: { from: CRYPTO_PAYMENT_STATUSES, refusal: neverLeft },
  write_off: { from: CRYPTO_PAYMENT_STATUSES, refusal: neverLeft },
  debit_reorged: { from: CRYPTO_PAYMENT_STATUSES, refusal: neverLeft },
  confirm: { from: CRYPTO_PAYMENT_STATUSES, refusal: neverLeft },
  snooze: { from: CRYPTO_PAYMENT_IN_FLIGHT, refusal: neverLeft },
};

export function actFault(
  payment: CryptoPayment,
  what: CryptoPaymentAct,
  target?: ActTarget,
): string | undefined {
  return (
    stateFault(ACTS, payment.status, what) ??
    depositActFault(getDepositSet(payment), what, isOpen(payment), target)
  );
}

/** Decides again, since the state may have changed. */
export async function applyAct(
  payment: CryptoPayment,
  item: OperatorItem<CryptoPaymentAct, CryptoPaymentState>,
): Promise<void> {
  const { what, hours, answer, target = {} } = item;
  const fault = actFault(payment, what, target);
  if (fault !== undefined) return rejectUpdate(answer, 'wrong_state', fault);
  if (isTransactionMissing(payment, what, target)) {
    const message = 'transaction_id: the transaction that sent it back is required on live';
    return rejectUpdate(answer, 'invalid_request', message);
  }
  if (!(await authorize('crypto_payment', record, payment, item))) return;
  const { act } = item;
  record.logActivity(payment, `operator ${act.operator}: ${what} (${act.reason})`);
  const audit = buildAudit(item);
  if (what === 'snooze') await orReload(payment, record.snooze(payment, audit, hours));
  else if (what === 'acknowledge') {
    const refused = await orReload(payment, record.acknowledge(payment, audit, item.attention));
    if (refused) return rejectUpdate(answer, refused.code, refused.message);
    await updateAttention(payment);
  } else {
    try {
      const change = actOnDeposits(getDepositSet(payment), what, target);
      await applyChange(payment, change, { audit });
    } catch (error) {
      if (findRefusal(error, 'insufficient_balance') === undefined) throw error;
      const message = 'The merchant’s balance does not hold it any more; nothing was booked.';
      return rejectUpdate(answer, 'insufficient_balance', message);
    }
  }
  answer.resolve(getState(payment));
}

function isTransactionMissing(
  { facts }: CryptoPayment,
  what: CryptoPaymentAct,
  { transaction_id }: ActTarget,
): boolean {
  return what === 'mark_sent_back' && facts.livemode && transaction_id === undefined;
}
