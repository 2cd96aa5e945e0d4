import { BankFailure, type MadeLine, type MadeTransfer, type StatementDay } from '../kit';
import { type Params, readStripe, type StripeTools, walkList } from './api';
import { FEES, TRANSFERS } from './codes';
import { Balance, BalanceTransaction, Head, Payout } from './objects';

/** Statements of the Stripe balance, which has none. @see docs/stripe.md#the-balance */

/** Stripe books some charges up to an hour after them. */
export const READY_HOURS = 2;

/** Text of a bank statement, unless the payout has one of its own. */
const DESCRIPTOR = 'STRIPE';

/** Stripe learns a payout’s trace ID up to ten days after it has arrived. */
const TRACED_S = 21 * 86_400;

const PAGES_MAX = 1_500;

/**
 * Reads what was booked on a day, and how the balance of now leads back to its end.
 * @throws BankFailure where it does not, at the first statement: something moves just now
 */
export async function makeStatement(
  { account, currency, since, end, opening: previous, isBooked, isCompared }: StatementDay,
  tools: StripeTools,
) {
  const { id } = await readStripe(tools, { path: 'account' }, Head);
  if (id !== account) throw new BankFailure(`The key is of ${id}, and not of ${account}.`);
  const gte = since.getTime() / 1_000;
  const until = end.getTime() / 1_000;
  const created = isCompared ? { gte } : { gte, lt: until };
  const before = await readBalance(tools, currency);
  const params = { created, currency: currency.toLowerCase() };
  const all = (await listTransactions(tools, params))
    .filter((each) => each.balance_type === 'payments' && !isBooked(each.id))
    // The oldest first.
    .reverse();
  const ofDay = all.filter((each) => each.created < until);
  const after = all.filter((each) => each.created >= until);
  const lines: MadeLine[] = [];
  for (const each of ofDay) if (each.net !== 0) lines.push(await buildLine(tools, each));
  if (previous === null) {
    if ((await readBalance(tools, currency)) !== before) throw new BankFailure('Money moves now.');
    const closing = before - sum(after);
    return { opening: closing - sum(ofDay), closing, lines };
  }
  const closing = previous + sum(ofDay);
  const isExplained = !isCompared || leadsTo(closing, after, before);
  return { opening: previous, closing: isExplained ? closing : before - sum(after), lines };
}

async function listTransactions(tools: StripeTools, params: Params): Promise<BalanceTransaction[]> {
  const list = { path: 'balance_transactions', params, pagesMax: PAGES_MAX };
  const all: BalanceTransaction[] = [];
  for await (const each of walkList(tools, list, BalanceTransaction)) all.push(each);
  return all;
}

const sum = (some: readonly BalanceTransaction[]) => some.reduce((all, { net }) => all + net, 0);

/** Whether a balance was reached; what came while it was read may be in it, or not. */
function leadsTo(closing: number, after: readonly BalanceTransaction[], balance: number): boolean {
  let reached = closing;
  return [{ net: 0 }, ...after].some(({ net }) => {
    reached += net;
    return reached === balance;
  });
}

async function readBalance(tools: StripeTools, currency: string): Promise<number> {
  const { available, pending } = await readStripe(tools, { path: 'balance' }, Balance);
  return [...available, ...pending]
    .filter((each) => each.currency === currency.toLowerCase())
    .reduce((total, { amount }) => total + amount, 0);
}

async function buildLine(
  tools: StripeTools,
  { id: bank_reference, amount, fee, type: kind, source }: BalanceTransaction,
): Promise<MadeLine> {
  const line = { bank_reference, amount, fee, kind, is_fee: FEES.includes(kind) };
  if (!source || !TRANSFERS.includes(kind)) return line;
  if (kind !== 'payout') return { ...line, transfer: [source, DESCRIPTOR] };
  const payout = await readStripe(tools, { path: `payouts/${source}` }, Payout);
  const value_date = new Date(payout.arrival_date * 1_000).toISOString().slice(0, 10);
  return { ...line, value_date, transfer: listNames(payout) };
}

function listNames({ id, statement_descriptor, trace_id }: Payout): string[] {
  return [id, statement_descriptor || DESCRIPTOR, trace_id?.value ?? []].flat();
}

/** Lists payouts with their trace IDs, and what the automatic ones contain, once Stripe knows it. */
export async function listTransfers(
  isRead: (bank_reference: string) => boolean,
  tools: StripeTools,
): Promise<MadeTransfer[]> {
  const gte = Math.floor(tools.now().getTime() / 1_000) - TRACED_S;
  const transfers: MadeTransfer[] = [];
  const list = { path: 'payouts', params: { created: { gte } } };
  for await (const payout of walkList(tools, list, Payout)) {
    const { balance_transaction: bank_reference } = payout;
    if (!bank_reference) continue;
    const isKnown = payout.automatic && payout.reconciliation_status === 'completed';
    const parts = isKnown && !isRead(bank_reference) ? await readParts(tools, payout) : undefined;
    transfers.push({ bank_reference, names: listNames(payout), ...(parts && { parts }) });
  }
  return transfers;
}

/** @returns undefined where the parts are not what was paid out */
async function readParts(tools: StripeTools, payout: Payout): Promise<string[] | undefined> {
  const all = await listTransactions(tools, { payout: payout.id });
  const parts = all.filter(({ id }) => id !== payout.balance_transaction);
  if (sum(parts) === payout.amount) return parts.map(({ id }) => id);
  tools.log.error({ object: payout.id }, 'the parts of a payout are not what Stripe has paid out');
  return undefined;
}
