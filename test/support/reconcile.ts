import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inTransaction } from '../../src/base/mongo';
import { sandboxIban } from '../../src/domain/sandbox/movement';
import { toBigInt } from '../../src/ledger/integers';
import { readTrialBalance } from '../../src/ledger-check/trial-balance';
import {
  createMovementStore,
  type MovementDocument,
  sandboxBankDatabase,
} from '../../src/service/banks/sandbox-bank/movements';
import { writeDayStatements } from '../../src/service/banks/sandbox-bank/statements';
import { importStatementPath } from '../../src/service/banks/statements/import';
import { reconcileAccounts } from '../../src/service/banks/statements/reconciliation';
import type { Stores } from '../../src/store';
import { operatorsAudit } from './audit';
import { retryUntilDone } from './insist';
import type { Records } from './records';

const CLEARING = /^clearing\.(.+)$/;

/**
 * Lets a bank move what the lines of all journal entries say, and imports its statements: each
 * movement has its entry, each entry its movement, and the trial balance has no finding but money in
 * suspense, about which nobody has decided.
 * @returns the number of movements
 */
export async function reconcile({ mongo, db, stores }: Pick<Records, 'mongo' | 'db' | 'stores'>) {
  const now = () => new Date();
  const database = db.databaseName;
  const own = mongo.db(sandboxBankDatabase(database));
  const movements = createMovementStore(own, now);
  await retryUntilDone(() => movements.ensureIndexes());
  const dataDir = mkdtempSync(join(tmpdir(), 'reconcile-'));
  try {
    const rows = await listMovements(stores, now());
    const connectors = new Set(rows.map(({ connector }) => connector));
    expect(connectors.size).toBe(1);
    const [connector = ''] = connectors;
    await movements.collection.insertMany(rows.map(({ connector: _, ...row }) => row));
    const deps = { mongo, stores, now, database, dataDir, audit: operatorsAudit(stores) };
    const source = { connector, livemode: false };
    for (const { file, currency } of await writeDayStatements(
      deps,
      now().toISOString().slice(0, 10),
    )) {
      const account = { ...source, iban: sandboxIban(currency), currency };
      await inTransaction(mongo, (session) =>
        stores.bankAccounts.insert(
          { _id: `ba_${currency}`, ...account, created_at: now().toISOString(), closing: null },
          session,
        ),
      );
      await importStatementPath(deps, file, source);
    }
    const shown = await reconcileAccounts(deps, source);
    const open = shown.flatMap(({ ours_only, theirs_only, different }) => [
      ...[...ours_only, ...theirs_only, ...different],
    ]);
    // A correction by hand is matched by hand.
    const corrections = await stores.ledger.collections.states
      .find({ kind: 'reversed', uncleared: { $exists: true } })
      .toArray();
    const { findings } = await readTrialBalance(mongo, database, { now });
    expect(open).toMatchObject(corrections.map(() => ({ kind: 'reversed' })));
    const differences = findings.filter(({ code }) => code !== 'suspense');
    expect(differences.flatMap(({ ids }) => ids).sort()).toEqual(
      corrections.map(({ _id }) => _id).sort(),
    );
    return rows.length;
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
    await retryUntilDone(() => own.dropDatabase());
  }
}

/** Lists a movement for each line of an entry on the account of a bank. */
async function listMovements({ ledger }: Pick<Stores, 'ledger'>, booked_at: Date) {
  const rows: (MovementDocument & { connector: string })[] = [];
  for await (const { _id, kind, resource_id, book, lines } of ledger.collections.entries.find()) {
    for (const { account, amount } of lines) {
      const [, connector] = CLEARING.exec(account) ?? [];
      if (connector === undefined || kind === 'reversed') continue;
      rows.push({
        ...{ _id, decision: _id, resource: 'payment', name: 'settled', resource_id, connector },
        ...{ amount: -Number(toBigInt(amount)), currency: book.slice(book.lastIndexOf(':') + 1) },
        ...{ bank_reference: `SBX${rows.length}`, booked_at, statement: null },
        day: booked_at.toISOString().slice(0, 10),
      });
    }
  }
  return rows;
}
