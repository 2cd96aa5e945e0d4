import type { ClientSession } from 'mongodb';
import { reportId } from '../src/domain/payment/receipt';
import { isSentAgain, type SentAgain } from '../src/domain/sent-again';
import { bookId } from '../src/ledger/entries';
import { buildLateRefund, buildSentAgain } from '../src/ledger/resource-entries';
import type { PayoutDocument } from '../src/store/payouts';
import type { RefundDocument } from '../src/store/refunds';
import { buildLockRequest, splitDebit, withDebitLock } from './shared/debit';
import type { MoneyReport } from './shared/record-inputs';
import type { RecordDeps } from './shared/record-table';

type RefundSentReport = MoneyReport & { refund_id: string };
type PayoutSentReport = MoneyReport & { payout_id: string };

interface SentResult<Reason extends string> {
  sent: string[];
  reason: Reason | null;
}

type RefundSent = SentResult<'settled_after_failed' | 'second_completion'>;
type PayoutSent = SentResult<'second_completion'>;

/** Posts what a bank sent after the end. */
export function createSentAgain(deps: RecordDeps) {
  return {
    recordRefundSent: (input: RefundSentReport): Promise<RefundSent> =>
      recordRefundSent(deps, input),
    recordPayoutSent: (input: PayoutSentReport): Promise<PayoutSent> =>
      recordPayoutSent(deps, input),
  };
}

async function recordRefundSent(deps: RecordDeps, input: RefundSentReport): Promise<RefundSent> {
  const { refund_id, at } = input;
  const { refunds, ledger } = deps.stores;
  const refund = await readRefund(deps, refund_id);
  const sent = buildSent(refund, input);
  const isFirstLate = ({ status, sent_late, currency }: RefundDocument) =>
    status === 'failed' && !sent_late && sent.currency === currency;
  await inBook(deps, refund, sent, at, async (session) => {
    const current = await refunds.get(refund_id, session);
    if (current === null) return;
    if (isFirstLate(current)) return await postLate(deps, current, sent, input, session);
    if (current.sent_late?.id === sent.id || !isOther(current, input)) return;
    if (!(await refunds.recordSentAgain(refund_id, sent, session))) return;
    await ledger.post(buildSentAgain('refund_sent_again', current, sent, input), session);
  });
  const { sent_late, sent_again = [] } = await readRefund(deps, refund_id);
  const ids = [...(sent_late ? [sent_late.id] : []), ...sent_again.map(({ id }) => id)];
  const isAgain = sent_again.some(({ id }) => id === sent.id);
  if (isAgain && refund.status === 'settled') return { sent: ids, reason: 'second_completion' };
  const isLate = isAgain || sent_late?.id === sent.id;
  return { sent: ids, reason: isLate ? 'settled_after_failed' : null };
}

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
): Promise<void> {
  const { amount } = sent;
  const parts = await splitDebit(stores.ledger, refund, amount, session);
  if (!(await stores.refunds.recordSentLate(refund._id, { ...sent, ...parts }, session))) return;
  const { payment_id } = refund;
  await stores.payments.takeLateRefund({ payment_id, amount }, session);
  await stores.ledger.post(buildLateRefund(refund, parts, time), session);
}

async function recordPayoutSent(deps: RecordDeps, input: PayoutSentReport): Promise<PayoutSent> {
  const { payout_id, at } = input;
  const { payouts, ledger } = deps.stores;
  const payout = await readPayout(deps, payout_id);
  const sent = buildSent(payout, input);
  await inBook(deps, payout, sent, at, async (session) => {
    const current = await payouts.get(payout_id, session);
    if (current === null || !isSentAgain(current, input)) return;
    if (!(await payouts.recordSentAgain(payout_id, sent, session))) return;
    await ledger.post(buildSentAgain('payout_sent_again', current, sent, input), session);
  });
  const ids = ((await readPayout(deps, payout_id)).sent_again ?? []).map(({ id }) => id);
  return { sent: ids, reason: ids.includes(sent.id) ? 'second_completion' : null };
}

function buildSent(resource: RefundDocument | PayoutDocument, report: MoneyReport): SentAgain {
  const { at, amount = resource.amount, currency = resource.currency } = report;
  return { id: reportId(report), amount, currency, at };
}

/** Commits also where it changes nothing: only then a majority has what it read. */
async function inBook(
  deps: RecordDeps,
  resource: RefundDocument | PayoutDocument,
  { currency }: Pick<SentAgain, 'currency'>,
  at: string,
  work: (session: ClientSession) => Promise<void>,
): Promise<void> {
  await withDebitLock(deps, buildLockRequest(bookId({ ...resource, currency }), at), work);
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
