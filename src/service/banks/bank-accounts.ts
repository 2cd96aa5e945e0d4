import { randomUUID } from 'node:crypto';
import { inTransaction, isDuplicateKey } from '../../base/mongo';
import { omitUndefined } from '../../domain/defined';
import { ServiceError } from '../../domain/errors';
import { isIban, normalizeIban } from '../../domain/iban';
import type { Numbering } from '../../domain/statement';
import type { Routes } from '../../routing';
import type { BankAccountDocument } from '../../store/bank-accounts';
import type { WriteDeps } from '../deps';
import { assertServes } from './connectors';

export interface NewBankAccount {
  connector: string;
  livemode: boolean;
  /** With or without spaces. */
  iban: string;
  /** ISO 4217. */
  currency: string;
}

export interface BankAccountFilter {
  connector?: string | undefined;
  livemode?: boolean | undefined;
  iban?: string | undefined;
}

/**
 * A repeat returns the stored account.
 * @throws ServiceError `iban_invalid`, `connector_name_invalid`, `connector_unknown`
 */
export async function addBankAccount(
  deps: WriteDeps & Routes,
  account: NewBankAccount,
): Promise<BankAccountDocument> {
  const { mongo, stores, audit, now } = deps;
  assertServes(deps, account);
  if (!isIban(account.iban)) {
    throw new ServiceError('iban_invalid', 'The IBAN is wrong: its check digits do not fit.');
  }
  const { connector, livemode, currency } = account;
  const key = { connector, livemode, iban: normalizeIban(account.iban), currency };
  // This may be the first write of the installation.
  await stores.bankAccounts.ensureIndexes();
  const fresh = {
    ...{ _id: `ba_${randomUUID()}`, ...key },
    ...{ created_at: now().toISOString(), closing: null },
  };
  const change = { act: 'bank_account.added', account_id: null, livemode } as const;
  const after = { connector, iban: key.iban, currency };
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

/**
 * Says how the bank counts its statements; jumps that are noted stay.
 * @throws ServiceError `bank_account_not_found`
 */
export async function updateBankAccount(
  { mongo, stores, audit }: WriteDeps,
  id: string,
  { numbering }: { numbering: Numbering },
): Promise<BankAccountDocument> {
  return await inTransaction(mongo, async (session) => {
    const account = await stores.bankAccounts.get(id, session);
    if (account === null) {
      const message = `There is no bank account ${id}: \`bank-account list\` shows those there are.`;
      throw new ServiceError('bank_account_not_found', message);
    }
    const { livemode, numbering: before = null } = account;
    const changed = { as: numbering, learned: false };
    await stores.bankAccounts.setNumbering(id, { numbering: changed }, session);
    const about = { account_id: null, livemode, target: id };
    const values = { before: { numbering: before?.as ?? 'none' }, after: { numbering } };
    await audit({ act: 'bank_account.updated', ...about, ...values }, session);
    return { ...account, numbering: changed };
  });
}

/** Oldest first; an IBAN may have an account for each currency. */
export async function listBankAccounts(
  { stores }: Pick<WriteDeps, 'stores'>,
  { iban, ...filter }: BankAccountFilter = {},
): Promise<BankAccountDocument[]> {
  const key = iban === undefined ? filter : { ...filter, iban: normalizeIban(iban) };
  return await stores.bankAccounts.list(omitUndefined(key));
}
