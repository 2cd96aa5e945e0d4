import { randomUUID } from 'node:crypto';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { verifyLedger } from '../../src/ledger-check/verify';
import { importStatements } from '../../src/service/statements/import';
import { reconcileAccounts } from '../../src/service/statements/reconciliation';
import { operatorsAudit } from '../support/audit';
import { readBalances } from '../support/book';
import { type CamtStatement, camt, TEST_DAY } from '../support/camt';
import { useDatabase } from '../support/database';

/** Country, length of the account and digits that make a valid IBAN. */
function makeIban(): string {
  const account = `${Date.now()}${Math.trunc(Math.random() * 1e5)}`.slice(-18).padStart(18, '0');
  const check = 98n - (BigInt(`${account}131400`) % 97n);
  return `DE${String(check).padStart(2, '0')}${account}`;
}

/** Bank accounts with entries of ours and statements; each test has an account of its own. */
export function useStatements() {
  const database = useDatabase();
  const deps = () => {
    const { mongo, stores } = database;
    const now = () => new Date(`${TEST_DAY}T23:59:59.999Z`);
    return { mongo, stores, audit: operatorsAudit(stores), now };
  };

  const openAccount = async (currency = 'EUR', livemode = false) => {
    const { mongo, stores } = database;
    // Entries belong to no IBAN, so that each account has a connector for itself.
    const connector = `bank_${randomUUID().slice(0, 8)}`;
    const iban = makeIban();
    const own = { connector, livemode };
    const account = {
      ...{ _id: `ba_${randomUUID()}`, ...own, iban, currency },
      ...{ created_at: `${TEST_DAY}T00:00:00.000Z`, closing: null },
    };
    await mongo.withSession((session) => stores.bankAccounts.insert(account, session));
    const scope = { ...own, currency };
    const book = `${account._id}:${livemode ? 'live' : 'sandbox'}:${currency}`;

    const post = async (
      amount: number,
      { day = TEST_DAY, bank_reference }: { day?: string; bank_reference?: string } = {},
    ) => {
      const resource_id = randomUUID();
      const owner = { account_id: `acct_${connector}`, livemode, currency };
      const legs =
        amount > 0
          ? ENTRY_LINES.payment_settled(connector, amount)
          : ENTRY_LINES.payout_captured('main', connector, -amount, 0);
      const kind = amount > 0 ? 'payment_settled' : 'payout_captured';
      const entry = { kind, resource_id, ...owner, legs, at: `${day}T10:00:00.000Z` } as const;
      await mongo.withSession((session) =>
        session.withTransaction(() =>
          stores.ledger.post({ ...entry, value_date: day, bank_reference }, session),
        ),
      );
      const entry_id = `${kind}:${resource_id}`;
      return { entry_id, amount, reference: resource_id.replaceAll('-', '') };
    };

    return {
      account,
      iban,
      connector,
      post,
      write: (statement: CamtStatement, more: { message?: string } = {}) =>
        camt([{ iban, currency, ...statement }], more),
      import: (file: Buffer) => importStatements(deps(), file, own),
      reconcile: async (day?: string) => {
        const [shown] = await reconcileAccounts(deps(), { ...own, iban, day });
        if (shown === undefined) throw new Error('not shown');
        return shown;
      },
      uncleared: async () =>
        (await stores.ledger.listUncleared({ ...scope, limit: 100 })).map((e) => e.entry_id),
      balance: async (path: string) => (await readBalances(stores, book))(path) ?? 0,
      stored: async () => {
        const count = (name: string, filter: object = { bank_account_id: account._id }) =>
          database.db.collection(name).countDocuments(filter);
        const entries = await count('ledger_postings', { book });
        return {
          entries,
          statements: await count('statements'),
          lines: await count('statement_lines'),
        };
      },
      /** Differences between the book of the account and its entries. */
      verify: async () =>
        (await verifyLedger(database.mongo, database.db.databaseName, { book })).differences,
      lines: () =>
        database.db
          .collection('statement_lines')
          .find({ bank_account_id: account._id })
          .sort({ _id: 1 })
          .toArray(),
    };
  };
  return { openAccount, deps, database };
}
