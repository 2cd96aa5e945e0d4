import { MAIN_BALANCE } from '../../../domain/account/balance-account';
import { ServiceError } from '../../../domain/errors';
import type { EntryLine, NewEntry } from '../../../ledger/entries';
import { explainShortage, InsufficientBalance } from '../../../ledger/insufficient-balance';
import type { Owner, WriteDeps } from '../../deps';
import { accountNow } from '../../merchants/clock';
import { buildNote, type Note, type PostedBalance, type PostOptions, postOnce } from './fund';

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
    throw error instanceof InsufficientBalance ? await refuseShortage(deps, entry) : error;
  }
}

async function refuseShortage({ stores }: WriteDeps, entry: NewEntry): Promise<ServiceError> {
  const { currency } = entry;
  const { balance_account, amount } = findCredit(entry.lines);
  const debit = { balance_account, currency, amount: -amount };
  const { code, message } =
    amount < 0
      ? await explainShortage(stores.ledger, entry, debit)
      : ({ code: 'insufficient_balance', message: explainOpposite(entry) } as const);
  return new ServiceError(code, `${message} Nothing was posted.`);
}

function explainOpposite({ lines }: NewEntry): string {
  const isHeld = lines.some(({ account }) => account.startsWith('suspense.'));
  return isHeld ? 'Less is in suspense.' : 'The merchant owes less by now.';
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
