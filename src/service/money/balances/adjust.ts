import { randomUUID } from 'node:crypto';
import type { ClientSession } from 'mongodb';
import { parseBookCurrency } from '../../../domain/crypto/assets';
import { ServiceError } from '../../../domain/errors';
import { formatMoney, MAIN_BALANCE } from '../../../domain/money/money';
import { type EntryLine, type NewEntry, operationId, PLATFORM } from '../../../ledger/entries';
import { ENTRY_LINES } from '../../../ledger/entry-lines';
import type { Routes } from '../../../routing';
import type { Owner, WriteDeps } from '../../access';
import { assertServes } from '../../banks/connectors';
import { buildNote, type Note, type PostedBalance, type PostOptions, postOnce } from './fund';

export { parseAgainst } from '../../../ledger/ledger-accounts';

import { MAKES_STATEMENTS } from '../../../domain/banks/capabilities';
import { addDays } from '../../../domain/banks/statement';
import {
  type Against,
  IN_TRANSIT,
  PLATFORM_ACCOUNTS,
  type PlatformKind,
  readConnector,
} from '../../../ledger/ledger-accounts';
import { explainShortage, InsufficientBalance } from '../../../ledger/locks';
import { TRANSFER_DAYS } from '../../../ledger/uncleared';
import { accountNow } from '../../merchants/clock';

export interface Adjustment {
  account_id: string;
  livemode: boolean;
  balance_account: string;
  /** ISO 4217, or an asset's book currency. */
  currency: string;
  /** Minor units, or an asset's smallest as a bigint; below 0 debits. */
  amount: number | bigint;
  against: Against;
  /** Bank's name of the movement, with `clearing:CONNECTOR`. */
  bank_reference?: string | undefined;
  /** The merchant owes what the balance does not hold. */
  owed?: boolean | undefined;
}

/** @throws ServiceError `invalid_usage`, `connector_unknown` */
export function assertOpposite(
  routes: Routes,
  adjustment: Omit<Adjustment, 'account_id' | 'balance_account'>,
): void {
  const { livemode, against, bank_reference, owed, amount, currency } = adjustment;
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
  const { ledger } = deps.stores;
  const owner = { account_id, livemode, currency };
  const lines = ENTRY_LINES.adjusted(balance_account, amount, against);
  const { bank_reference } = adjustment;
  const entry = { kind: 'adjusted', resource_id: id, ...owner, bank_reference, lines } as const;
  if (against === 'receivable' && (await ledger.findEntry(operationId(entry))) === null) {
    const { receivables } = await ledger.balancesAndReceivables(account_id, livemode);
    const owed = receivables.find((row) => row.currency === currency)?.owed ?? 0;
    if (amount >= 0 || -Number(amount) > owed) {
      const text = formatMoney(owed, currency);
      const message = `The merchant owes ${text}: an amount from -1 to -${owed} collects it.`;
      throw new ServiceError('nothing_owed', message);
    }
  }
  const { approval_id, count: writeMore } = note;
  const details = await buildEntryDetails(deps, owner, note);
  const splitDebit = async (session: ClientSession) => {
    const balance = await ledger.balance(owner, balance_account, session);
    const held = Math.max(0, Number(balance?.available ?? 0));
    const rest = Math.max(0, -Number(amount) - held);
    return ENTRY_LINES.adjusted(balance_account, amount, against, rest);
  };
  const split = adjustment.owed ? { splitDebit } : {};
  const posting = { balance_account, approval_id, writeMore, ...split };
  return await postCorrection(deps, { ...entry, ...details }, posting);
}

export async function buildEntryDetails(deps: WriteDeps, owner: Owner, note: Note) {
  return { at: (await accountNow(deps, owner)).toISOString(), note: buildNote(note) };
}

/**
 * Posts an entry with its audit line; a repeat posts nothing.
 * @throws ServiceError `insufficient_balance`, `operation_id_used`, `bank_reference_used`,
 * `approval_decided`
 */
export async function postCorrection(
  deps: WriteDeps,
  entry: NewEntry,
  posting: PostOptions,
): Promise<PostedBalance> {
  const { kind, currency, lines, note } = entry;
  const act = kind === 'reversed' ? 'balance.reversed' : 'balance.adjusted';
  const changes = lines.map((line) => `${line.account} ${line.amount}`);
  const { approval_id } = posting;
  const after = { currency, lines: changes, ...note, approval_id };
  try {
    return await postOnce(deps, entry, { act, after }, posting);
  } catch (error) {
    if (!(error instanceof InsufficientBalance)) throw error;
    const { balance_account, amount } = findCredit(lines);
    const debit = { balance_account, currency, amount: -amount };
    const isHeld = lines.some(({ account }) => account.startsWith('suspense.'));
    const opposite = isHeld ? 'Less is in suspense.' : 'The merchant owes less by now.';
    const { code, message } =
      amount < 0
        ? await explainShortage(deps.stores.ledger, entry, debit)
        : ({ code: 'insufficient_balance', message: opposite } as const);
    throw new ServiceError(code, `${message} Nothing was posted.`);
  }
}

export function findCredit(lines: readonly EntryLine[]): {
  balance_account: string;
  amount: number | bigint;
} {
  for (const { account, amount } of lines) {
    const name = /^balances\.(.+)\.available$/.exec(account)?.[1];
    if (name !== undefined) return { balance_account: name, amount };
  }
  return { balance_account: MAIN_BALANCE, amount: 0 };
}

export const PLATFORM_KINDS = Object.keys(PLATFORM_ACCOUNTS) as PlatformKind[];

interface PlatformMovement {
  livemode: boolean;
  connector: string;
  kind: PlatformKind;
  currency: string;
  /** Minor units as the statement has them: above 0 comes in. */
  amount: number;
  bank_reference: string;
}

/**
 * Posts what a bank moved of the service's own money. A repeat with the same id posts nothing.
 * @see docs/ledger.md#the-services-own-money
 * @throws ServiceError `transfer_by_statement`, `operation_id_used`, `bank_reference_used`,
 * `approval_decided`
 */
export async function postPlatform(
  deps: WriteDeps,
  { livemode, connector, kind, currency, amount, bank_reference }: PlatformMovement,
  note: Note,
  id: string,
): Promise<PostedBalance> {
  const owner = { account_id: PLATFORM, livemode, currency };
  const { functions = [] } = (await deps.stores.capabilities.get(connector)) ?? {};
  if (PLATFORM_ACCOUNTS[kind] === IN_TRANSIT && functions.includes(MAKES_STATEMENTS)) {
    const message =
      `The statements of ${connector} post its ends of transfers themselves: post only the other end, at the ` +
      'connector of its bank.';
    throw new ServiceError('transfer_by_statement', message);
  }
  const lines = ENTRY_LINES.platform_posted(connector, kind, amount);
  const details = await buildEntryDetails(deps, owner, note);
  const posted = { kind: 'platform_posted', resource_id: id, ...owner, bank_reference } as const;
  const isTransfer = PLATFORM_ACCOUNTS[kind] === IN_TRANSIT;
  const day = details.at.slice(0, 10);
  const end = { day, until: addDays(day, TRANSFER_DAYS), names: [] };
  const transfer = isTransfer ? end : undefined;
  const { approval_id, count } = note;
  const money = { connector, kind, currency, amount, bank_reference };
  const after = { ...money, ...details.note, approval_id };
  const change = { act: 'platform.posted', after } as const;
  const writeMore = async (session: ClientSession): Promise<void> => {
    await count?.(session);
    if (!isTransfer) return;
    const { ledger } = deps.stores;
    const [other] = await ledger.listOpenTransfers({ livemode, currency }, [-amount], session);
    const ids = [operationId(posted), other?.entry_id ?? ''] as const;
    if (other !== undefined) await ledger.joinTransfer(ids, session);
  };
  // Its book has no balance account.
  const options = { balance_account: MAIN_BALANCE, approval_id, writeMore };
  return await postOnce(deps, { ...posted, ...details, lines, transfer }, change, options);
}
