import { randomUUID } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { parseBookCurrency } from '../../../domain/crypto/assets';
import { ServiceError } from '../../../domain/errors';
import { formatMoney } from '../../../domain/money';
import { type Against, readConnector } from '../../../ledger/against';
import type { BookDocument } from '../../../ledger/documents';
import { ENTRY_LINES } from '../../../ledger/entry-lines';
import type { Routes } from '../../../routing';
import { assertServes } from '../../banks/connectors';
import type { WriteDeps } from '../../deps';
import { buildEntryDetails, postCorrection } from './correction';
import type { Note, PostedBalance } from './fund';

export { parseAgainst } from '../../../ledger/against';

interface BalanceAmount {
  account_id: string;
  balance_account: string;
  /** ISO 4217, or an asset's book currency. */
  currency: string;
  /** Minor units, or an asset's smallest as a bigint; below 0 debits. */
  amount: number | bigint;
}

export interface Adjustment extends BalanceAmount {
  livemode: boolean;
  against: Against;
  /** Bank's name of the movement, with `clearing:CONNECTOR`. */
  bank_reference?: string | undefined;
  /** The merchant owes what the balance does not hold. */
  owed?: boolean | undefined;
}

/** @throws ServiceError `invalid_usage`, `connector_unknown` */
export function assertOpposite(
  routes: Routes,
  {
    livemode,
    against,
    bank_reference,
    owed,
    amount,
    currency,
  }: Omit<Adjustment, keyof BalanceAmount> & Pick<Adjustment, 'amount' | 'currency'>,
): void {
  const isOwable = amount < 0 && against !== 'receivable' && !parseBookCurrency(currency);
  if (owed && !isOwable) {
    const message = 'Only a debit of a currency, not --against receivable, can be --owed.';
    throw new ServiceError('invalid_usage', message);
  }
  const connector = readConnector(against);
  if (connector !== undefined) assertServes(routes, { connector, livemode });
  else if (bank_reference !== undefined) {
    const message = 'A bank reference needs --against clearing:CONNECTOR.';
    throw new ServiceError('invalid_usage', message);
  }
}

/**
 * Corrects a balance, or collects debt from it. A repeat with the same id posts nothing.
 * @see docs/ledger.md#money-that-goes-wrong
 * @throws ServiceError `insufficient_balance`, `nothing_owed`, `operation_id_used`,
 * `bank_reference_used`, `approval_decided`
 */
export async function adjustBalance(
  deps: WriteDeps,
  adjustment: Adjustment,
  note: Note,
  id: string = `adjust_${randomUUID()}`,
): Promise<PostedBalance> {
  const { account_id, livemode, balance_account, currency, amount, against } = adjustment;
  const owner = { account_id, livemode, currency };
  const lines = ENTRY_LINES.adjusted(balance_account, amount, against);
  const { bank_reference } = adjustment;
  const entry = {
    kind: 'adjusted',
    resource_id: id,
    ...owner,
    bank_reference,
    lines,
  } as const;
  if (against === 'receivable') await assertOwed(deps, owner, entry.resource_id, Number(amount));
  const { approval_id, count: writeMore } = note;
  const details = await buildEntryDetails(deps, owner, note);
  const splitDebit = async (session: ClientSession) => {
    const balance = await deps.stores.ledger.balance(owner, balance_account, session);
    const held = Math.max(0, Number(balance?.available ?? 0));
    const rest = Math.max(0, -Number(amount) - held);
    return ENTRY_LINES.adjusted(balance_account, amount, against, rest);
  };
  const split = adjustment.owed ? { splitDebit } : {};
  const posting = { balance_account, approval_id, writeMore, ...split };
  return await postCorrection(deps, { ...entry, ...details }, posting);
}

async function assertOwed(
  { stores }: WriteDeps,
  { account_id, livemode, currency }: Pick<BookDocument, 'account_id' | 'livemode' | 'currency'>,
  id: string,
  amount: number,
): Promise<void> {
  const isRepeat = (await stores.ledger.findEntry(`adjusted:${id}`)) !== null;
  if (isRepeat) return;
  const { receivables: rows } = await stores.ledger.balancesAndReceivables(account_id, livemode);
  const owed = rows.find((row) => row.currency === currency)?.owed ?? 0;
  if (amount < 0 && -amount <= owed) return;
  const text = formatMoney(owed, currency);
  throw new ServiceError(
    'nothing_owed',
    `The merchant owes ${text}: an amount from -1 to -${owed} collects it.`,
  );
}
