import { inTransaction } from '../../../base/mongo';
import { ServiceError } from '../../../domain/errors';
import { ENTRY_LINES } from '../../../ledger/entry-lines';
import type { StatementDocument } from '../../../store/statements';
import type { WriteDeps } from '../../deps';
import { buildOpening } from './import';
import { type LineAct, showStatement } from './lines';
import { buildLineEntry } from './matching';

/** Lines of one transaction. */
const BATCH = 200;

/**
 * Gives up an import that was interrupted: its lines are reversed, and the account takes other
 * statements, this one too. A repeat continues, and changes nothing after the end.
 * @see docs/statements.md#files
 * @throws ServiceError `statement_not_found`, `statement_ambiguous`, `statement_complete`,
 * `operator_required`
 */
export async function abandonStatement(
  deps: WriteDeps,
  id: string,
  { operator, reason }: LineAct,
): Promise<StatementDocument> {
  const { stores, now } = deps;
  const { statement } = await showStatement(deps, id, { limit: 1 });
  if (statement.livemode && (operator === undefined || reason === undefined)) {
    const message = 'On live, OPERATOR_KEY and --reason say who gives it up and why.';
    throw new ServiceError('operator_required', message);
  }
  // From now on, no import adds lines.
  if (!(await stores.statements.abandon(statement._id, now().toISOString()))) {
    const message = `Statement ${statement.statement_id} is imported to its end.`;
    throw new ServiceError('statement_complete', message);
  }
  while (await abandonBatch(deps, statement)) {
    // Each batch is a transaction.
  }
  await end(deps, statement, { operator, reason });
  return (await stores.statements.get(statement._id)) ?? statement;
}

/** @returns false when no line is left */
async function abandonBatch(
  { mongo, stores: { ledger, statements }, now }: WriteDeps,
  { _id, kind }: StatementDocument,
): Promise<boolean> {
  return await inTransaction(mongo, async (session) => {
    const rows = await statements.listLeft(_id, BATCH, session);
    if (rows.length === 0) return false;
    if (kind === 'statement') {
      const entries = rows.map((row) => {
        const unmatched = row.amount - row.parts.clearing - row.parts.bank_fees;
        const lines = ENTRY_LINES.bank_line_abandoned({ ...row.parts, unmatched });
        return buildLineEntry('bank_line_abandoned', row, lines, { now });
      });
      await ledger.postAll(entries, session);
      const cleared = rows.flatMap((row) => row.entries);
      if (cleared.length > 0) await ledger.unclear(cleared, session);
    }
    await statements.abandonLines(rows, session);
    return true;
  });
}

async function end(
  { mongo, stores, now, audit }: WriteDeps,
  { _id, bank_account_id, statement_id, livemode, opening, ...document }: StatementDocument,
  act: LineAct,
): Promise<void> {
  const { bankAccounts, ledger } = stores;
  await inTransaction(mongo, async (session) => {
    const account = await bankAccounts.get(bank_account_id, session);
    const isNotification = document.kind === 'notification';
    const isDone = isNotification
      ? document.abandoned_at !== undefined
      : account?.importing?._id !== _id;
    if (account === null || isDone) return;
    if (account.closing === null && !isNotification && opening) {
      const posted = { ...document, _id, from_day: document.from_day };
      const entry = buildOpening(account, -opening, posted, now);
      await ledger.post({ ...entry, step: `${_id}:abandoned` }, session);
    }
    await bankAccounts.endImport(bank_account_id, _id, undefined, session);
    const after = { statement_id, lines: document.lines, ...act };
    const about = { account_id: null, livemode, target: _id };
    await audit({ act: 'statement.abandoned', ...about, after }, session);
  });
}
