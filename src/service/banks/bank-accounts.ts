import { randomUUID } from 'node:crypto';
import { inTransaction, isDuplicateKey } from '../../base/mongo';
import { isIban, normalizeAccount, normalizeIban } from '../../domain/banks/iban';
import { sandboxIban } from '../../domain/banks/sandbox';
import { type Numbering, OPEN_DAYS } from '../../domain/banks/statement';
import { omitUndefined } from '../../domain/defined';
import { ServiceError } from '../../domain/errors';
import { type Routes, SANDBOX_CONNECTOR } from '../../routing';
import type { BankAccountDocument } from '../../store/bank-accounts';
import type { WriteDeps } from '../access';
import { assertServes } from './connectors';

export type NewBankAccount = {
  connector: string;
  livemode: boolean;
  /** ISO 4217. */
  currency: string;
} & NewAccountName;

/** IBAN with or without spaces, or what the bank calls an account that has none. */
type NewAccountName = { iban: string } | { account_id: string };

export interface BankAccountFilter {
  connector?: string | undefined;
  livemode?: boolean | undefined;
  iban?: string | undefined;
}

/**
 * A repeat returns the stored account.
 * @throws ServiceError `iban_invalid`, `account_id_invalid`, `connector_name_invalid`,
 * `connector_unknown`
 */
export async function addBankAccount(
  deps: WriteDeps & Routes,
  bank: NewBankAccount,
): Promise<BankAccountDocument> {
  const { mongo, stores, audit, now } = deps;
  assertServes(deps, bank);
  const { connector, livemode, currency } = bank;
  const key = { connector, livemode, iban: readAccount(bank), currency };
  // This may be the first write of the installation.
  await stores.bankAccounts.ensureIndexes();
  const fresh = {
    ...{ _id: `ba_${randomUUID()}`, ...key },
    ...{ created_at: now().toISOString(), closing: null },
  };
  const change = { act: 'bank_account.added', account_id: null, livemode } as const;
  const after = { connector, account: key.iban, currency };
  try {
    await inTransaction(mongo, async (session) => {
      await stores.bankAccounts.insert(fresh, session);
      await audit({ ...change, target: fresh._id, after }, session);
    });
    return fresh;
  } catch (error) {
    const [stored] = isDuplicateKey(error) ? await stores.bankAccounts.list(key) : [];
    if (stored === undefined) throw error;
    return stored;
  }
}

/** ISO 20022 `Max34Text` of `Othr/Id`. */
const ACCOUNT_ID = /^[!-~](?:[ -~]{0,32}[!-~])?$/;

function readAccount(account: NewAccountName): string {
  if ('iban' in account) {
    if (isIban(account.iban)) return normalizeIban(account.iban);
    throw new ServiceError('iban_invalid', 'The IBAN is wrong: its check digits do not fit.');
  }
  const id = normalizeAccount(account.account_id);
  if (ACCOUNT_ID.test(id)) return id;
  const message = 'The id of the account must have 1 to 34 printable ASCII characters.';
  throw new ServiceError('account_id_invalid', message);
}

export interface BankAccountSettings {
  numbering?: Numbering | undefined;
  open_days?: number | undefined;
  tolerance?: number | undefined;
}

/** Says what counts for an account, also by default. */
export function readBankAccountSettings({
  numbering,
  open_days = OPEN_DAYS,
  tolerance = 0,
}: BankAccountDocument) {
  return { numbering: numbering?.as ?? 'none', open_days, tolerance };
}

/**
 * Changes how the statements of an account are treated from now on.
 * @throws ServiceError `bank_account_not_found`
 */
export async function updateBankAccount(
  { mongo, stores, audit }: WriteDeps,
  id: string,
  { numbering: as, ...settings }: BankAccountSettings,
): Promise<BankAccountDocument> {
  return await inTransaction(mongo, async (session) => {
    const account = await stores.bankAccounts.get(id, session);
    if (account === null) {
      const message = `There is no bank account ${id}: \`bank-account list\` shows those there are.`;
      throw new ServiceError('bank_account_not_found', message);
    }
    const numbering = as && { as, learned: false };
    const change = omitUndefined({ ...settings, numbering });
    const changed = { ...account, ...change };
    await stores.bankAccounts.change(id, change, session);
    const about = { account_id: null, livemode: account.livemode, target: id };
    const [before, after] = [account, changed].map(readBankAccountSettings);
    await audit({ act: 'bank_account.updated', ...about, before, after }, session);
    return changed;
  });
}

/** Oldest first; an IBAN may have an account for each currency. */
export async function listBankAccounts(
  { stores }: Pick<WriteDeps, 'stores'>,
  { iban, ...filter }: BankAccountFilter = {},
): Promise<BankAccountDocument[]> {
  const key = iban === undefined ? filter : { ...filter, iban: normalizeAccount(iban) };
  return await stores.bankAccounts.list(omitUndefined(key));
}

/** Currencies of a new account's test funds. */
export const SANDBOX_CURRENCIES: readonly string[] = ['EUR', 'GBP', 'USD'];

export async function registerSandboxAccounts(
  deps: WriteDeps,
  currencies: Iterable<string>,
): Promise<void> {
  const account = { connector: SANDBOX_CONNECTOR, livemode: false };
  const registered = new Set((await listBankAccounts(deps, account)).map(({ iban }) => iban));
  for (const currency of new Set(currencies)) {
    const iban = sandboxIban(currency);
    if (registered.has(iban)) continue;
    await addBankAccount({ ...deps, liveConnectors: '' }, { ...account, iban, currency });
  }
}
