import { deriveUuid } from '../../../base/ids';
import { inTransaction } from '../../../base/mongo';
import { ServiceError } from '../../../domain/errors';
import type { Routes } from '../../../routing';
import { BANK_FILE_REFUSED, type RefusalDocument } from '../../../store/statement-refusals';
import type { WriteDeps } from '../../deps';
import { toFirstRows } from '../../paging';
import { addBankAccount } from '../bank-accounts';
import { assertNoted } from '../connectors';
import { openSepaBook, type SepaBook, type SepaInbound, sepaDatabase } from './book';
import { presentName } from './file-names';
import type { SepaDeps } from './files';

/** Refused files that are attention reasons at once. */
const NOTED_MAX = 1_000;

/** Newest first. */
export async function listInbound(
  deps: SepaDeps,
  { refused, limit }: { refused: boolean; limit: number },
) {
  const found = await openInbound(deps)
    .find(refused ? { refusal: { $ne: null } } : {})
    .sort({ taken_at: -1, _id: 1 })
    .limit(limit + 1)
    .toArray();
  const { rows, has_more } = toFirstRows(found, limit);
  return { rows: rows.map(presentInbound), has_more };
}

/**
 * Says that a refused file need not be taken, so that it calls nobody anymore. A repeat changes
 * nothing.
 * @throws ServiceError `sepa_file_not_found`, `sepa_file_not_refused`, `operator_required`
 */
export async function dismissInbound(
  deps: SepaDeps & Pick<WriteDeps, 'audit' | 'stores'>,
  { file_id, livemode }: { file_id: string; livemode: boolean },
  { operator, reason }: { operator: string; reason: string },
) {
  const { mongo, stores, audit, connector, now } = deps;
  assertNoted({ livemode }, { operator, reason }, 'dismisses it');
  const inbound = openInbound(deps);
  return await inTransaction(mongo, async (session) => {
    const file = await inbound.findOne({ _id: file_id.toLowerCase() }, { session });
    if (file === null) {
      throw new ServiceError('sepa_file_not_found', `${connector} has taken no file ${file_id}.`);
    }
    const { _id, refusal, dismissed } = file;
    if (refusal === null) {
      const message = `The file ${_id} was taken: there is nothing to dismiss.`;
      throw new ServiceError('sepa_file_not_refused', message);
    }
    if (dismissed !== undefined) return presentInbound(file);
    const at = now();
    const noted = { operator, reason, at };
    const change = { $set: { dismissed: noted }, $unset: { attention: true } } as const;
    await inbound.updateOne({ _id }, change, { session });
    const { statements } = stores;
    const [row] = await statements.listByIds([nameRow({ connector, livemode }, file)]);
    const acknowledged = { ...noted, at: at.toISOString() };
    if (row !== undefined) await statements.acknowledgeRefusal(row, acknowledged, session);
    const about = { account_id: null, livemode, target: _id };
    const after = { connector, code: refusal.code, operator, reason };
    await audit({ act: 'sepa_file.dismissed', ...about, after }, session);
    return presentInbound({ ...file, dismissed: noted });
  });
}

/**
 * Makes refused files attention reasons of their account, and ends the reasons of others. One that an
 * operator acknowledged, or whose statement came otherwise, calls nobody anymore.
 */
export async function noteRefused(
  deps: WriteDeps & Routes & { connector: string; livemode: boolean; iban: string },
  { inbound }: Pick<SepaBook, 'inbound'>,
): Promise<void> {
  const { connector, livemode, iban } = deps;
  const { statements } = deps.stores;
  const about = { connector, livemode };
  const open = await inbound
    .find({ attention: true })
    .sort({ taken_at: 1, _id: 1 })
    .limit(NOTED_MAX)
    .toArray();
  const ids = open.map((file) => nameRow(about, file));
  const stored = new Map((await statements.listByIds(ids)).map((row) => [row._id, row]));
  const times = new Set([...stored.values()].map(({ since }) => since));
  for (const [at, file] of open.entries()) {
    const { _id: id, taken_at, refusal, statement } = file;
    const _id = ids[at] ?? '';
    const row = stored.get(_id);
    if (row?.attention === false) {
      await inbound.updateOne({ _id: id, taken_at }, { $unset: { attention: true } });
    }
    if (row !== undefined || refusal === null) continue;
    const currency = 'EUR';
    const { _id: bank_account_id } = await addBankAccount(deps, { ...about, iban, currency });
    let since = taken_at.getTime();
    // A reason is known by its account and time.
    while (times.has(since)) since += 1;
    times.add(since);
    const { code, message } = refusal;
    await statements.refuse({
      ...{ _id, ...about, bank_account_id, sha256: id, code: BANK_FILE_REFUSED, message },
      ...{ statement_id: null, day: statement?.refused_day ?? null, amount: null, currency, since },
      ...{ attention: true, acknowledged: null },
      ...(statement?.refused_kind && { kind: statement.refused_kind }),
      file: { id, name: presentName(file.received_as ?? file.name), code },
    });
  }
  await statements.endOtherFiles(about, ids);
}

function openInbound({ mongo, database, connector }: SepaDeps) {
  return openSepaBook(mongo.db(sepaDatabase(database, connector))).inbound;
}

/** Names another row where the file is refused again, or otherwise. */
function nameRow(
  { connector, livemode }: Pick<RefusalDocument, 'connector' | 'livemode'>,
  { _id, taken_at, refusal }: SepaInbound,
): string {
  const identity = [connector, livemode, _id, taken_at.getTime(), refusal?.code];
  return `sr_${deriveUuid(JSON.stringify(identity))}`;
}

function presentInbound(file: SepaInbound) {
  const { _id: id, name, folder, message: kind, refusal, dismissed } = file;
  return {
    ...{ id, name: presentName(name), folder, kind },
    ...{ code: refusal?.code ?? null, message: refusal?.message ?? null },
    taken_at: file.taken_at.toISOString(),
    dismissed: dismissed ? { ...dismissed, at: dismissed.at.toISOString() } : null,
  };
}
