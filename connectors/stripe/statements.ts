import { BankFailure, type MadeLine, type StatementDay } from '../kit';
import { readStripe, type StripeTools, walkList } from './api';
import { Balance, BalanceTransaction, Head } from './objects';

/** Statements of the Stripe balance, which has none. @see docs/stripe.md#the-balance */

/** Stripe books some charges up to an hour after them. */
export const READY_HOURS = 2;

/** Charges that are a transaction of their own. */
const FEES: readonly string[] = ['stripe_fee', 'stripe_fx_fee', 'tax_fee'];

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
  const list = { path: 'balance_transactions', params, pagesMax: PAGES_MAX };
  const all: BalanceTransaction[] = [];
  for await (const each of walkList(tools, list, BalanceTransaction)) {
    if (each.balance_type === 'payments' && !isBooked(each.id)) all.push(each);
  }
  // The oldest first.
  all.reverse();
  const ofDay = all.filter((each) => each.created < until);
  const after = all.filter((each) => each.created >= until);
  const lines = ofDay.filter(({ net }) => net !== 0).map(buildLine);
  if (previous === null) {
    if ((await readBalance(tools, currency)) !== before) throw new BankFailure('Money moves now.');
    const closing = before - sum(after);
    return { opening: closing - sum(ofDay), closing, lines };
  }
  const closing = previous + sum(ofDay);
  const isExplained = !isCompared || leadsTo(closing, after, before);
  return { opening: previous, closing: isExplained ? closing : before - sum(after), lines };
}

const sum = (some: readonly BalanceTransaction[]) => some.reduce((all, { net }) => all + net, 0);

/** Whether a balance was reached; what came while it was read may be in it, or not. */
function leadsTo(closing: number, after: readonly BalanceTransaction[], balance: number): boolean {
  let reached = closing;
  if (reached === balance) return true;
  return after.some(({ net }) => {
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

function buildLine({ id: bank_reference, amount, fee, type: kind }: BalanceTransaction): MadeLine {
  return { bank_reference, amount, fee, kind, is_fee: FEES.includes(kind) };
}
