import type { ClientSession } from 'mongodb';
import { reportId } from '../src/domain/payment/receipt';
import { isSentAgain, type SentAgain } from '../src/domain/sent-again';
import { bookId } from '../src/ledger/entries';
import { buildLateRefund, buildSentAgain } from '../src/ledger/resource-entries';
import type { PayoutDocument } from '../src/store/payouts';
import type { RefundDocument } from '../src/store/refunds';
import { buildLockRequest, splitDebit, withDebitLock } from './shared/debit';
import type { Known, MoneyReport } from './shared/record-inputs';
import type { RecordDeps, WriteAnswer } from './shared/record-table';
import { bookOnce } from './shared/written';

type RefundSentReport = MoneyReport & Known & { refund_id: string };
type PayoutSentReport = MoneyReport & Known & { payout_id: string };

interface SentReason<Reason extends string> {
  reason: Reason | null;
}

type RefundSent = SentReason<'settled_after_failed' | 'second_completion'>;
type PayoutSent = SentReason<'second_completion'>;

/** Posts what a bank sent after the end. Commits also where it changes nothing. */
export function createSentAgain(deps: RecordDeps) {
  return {
    recordRefundSent: (input: RefundSentReport) => recordRefundSent(deps, input),
    recordPayoutSent: (input: PayoutSentReport) => recordPayoutSent(deps, input),
  };
}

async function recordRefundSent(
  deps: RecordDeps,
  input: RefundSentReport,
): Promise<WriteAnswer<RefundDocument, RefundSent>> {
  const { refund_id: resource_id, at } = input;
  const { refunds, ledger } = deps.stores;
  const refund = await readRefund(deps, resource_id);
  const sent = buildSent(refund, input);
  const lockRequest = buildLockRequest(bookId({ ...refund, currency: sent.currency }), at);
  return await bookOnce<RefundDocument, RefundSent>(
    (work) => withDebitLock(deps, lockRequest, work),
    refunds,
    { resource_id, known: input },
    async (current, session) => {
      const { status, sent_late, sent_again = [], currency } = current;
      const isAgain = sent_again.some(({ id }) => id === sent.id);
      const again = { reason: status === 'settled' ? 'second_completion' : LATE } as const;
      if (status === 'failed' && !sent_late && sent.currency === currency) {
        const isNew = await postLate(deps, current, sent, input, session);
        return { answer: { reason: LATE }, isNew };
      }
      if (sent_late?.id === sent.id) return { answer: { reason: LATE }, isNew: false };
      if (isAgain) return { answer: again, isNew: false };
      if (!isOther(current, input)) return { answer: { reason: null }, isNew: false };
      await refunds.recordSentAgain(resource_id, sent, session);
      await ledger.post(buildSentAgain('refund_sent_again', current, sent, input), session);
      return { answer: again, isNew: true };
    },
  );
}

const LATE = 'settled_after_failed';

/** Whether the bank sent more than it should; a failed refund should have sent none. */
function isOther(refund: RefundDocument, input: MoneyReport): boolean {
  return refund.status === 'failed' || isSentAgain(refund, input);
}

/** Debits the payment again, so that the amount is not refunded twice. */
async function postLate(
  { stores }: RecordDeps,
  refund: RefundDocument,
  sent: SentAgain,
  time: MoneyReport,
  session: ClientSession,
): Promise<boolean> {
  const { amount } = sent;
  const parts = await splitDebit(stores.ledger, refund, amount, session);
  const late = { ...sent, ...parts };
  if (!(await stores.refunds.recordSentLate(refund._id, late, session))) return false;
  const { payment_id } = refund;
  await stores.payments.takeLateRefund({ payment_id, amount }, session);
  await stores.ledger.post(buildLateRefund(refund, parts, time), session);
  return true;
}

async function recordPayoutSent(
  deps: RecordDeps,
  input: PayoutSentReport,
): Promise<WriteAnswer<PayoutDocument, PayoutSent>> {
  const { payout_id: resource_id, at } = input;
  const { payouts, ledger } = deps.stores;
  const payout = await readPayout(deps, resource_id);
  const sent = buildSent(payout, input);
  const lockRequest = buildLockRequest(bookId({ ...payout, currency: sent.currency }), at);
  return await bookOnce<PayoutDocument, PayoutSent>(
    (work) => withDebitLock(deps, lockRequest, work),
    payouts,
    { resource_id, known: input },
    async (current, session) => {
      const again = { reason: 'second_completion' } as const;
      if (current.sent_again?.some(({ id }) => id === sent.id)) {
        return { answer: again, isNew: false };
      }
      if (!isSentAgain(current, input)) return { answer: { reason: null }, isNew: false };
      await payouts.recordSentAgain(resource_id, sent, session);
      await ledger.post(buildSentAgain('payout_sent_again', current, sent, input), session);
      return { answer: again, isNew: true };
    },
  );
}

function buildSent(resource: RefundDocument | PayoutDocument, report: MoneyReport): SentAgain {
  const { at, amount = resource.amount, currency = resource.currency } = report;
  return { id: reportId(report), amount, currency, at };
}

async function readRefund({ stores }: RecordDeps, id: string): Promise<RefundDocument> {
  const refund = await stores.refunds.get(id);
  if (refund === null) throw new Error(`The record of ${id} is not there.`);
  return refund;
}

async function readPayout({ stores }: RecordDeps, id: string): Promise<PayoutDocument> {
  const payout = await stores.payouts.get(id);
  if (payout === null) throw new Error(`The record of ${id} is not there.`);
  return payout;
}
