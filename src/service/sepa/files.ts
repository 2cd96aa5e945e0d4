import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { inTransaction } from '../../base/mongo';
import { omitUndefined } from '../../domain/defined';
import { ServiceError } from '../../domain/errors';
import type { ServiceDeps, WriteDeps } from '../deps';
import { type LineState, openSepaBook, type SepaFile, type SepaLine, sepaDatabase } from './book';

const ANSWER_MS_MAX = 30_000;
const LOOK_AGAIN_MS = 200;

export interface SepaDeps extends Pick<ServiceDeps, 'mongo' | 'now'> {
  /** Service database. */
  database: string;
  connector: string;
}

/** Shown on the command line, without the bytes. */
export interface ShownFile {
  id: string;
  state: SepaFile['state'];
  name: string;
  account: string;
  execution_day: string | null;
  payouts: number;
  /** Minor units of EUR. */
  amount: number;
  created_at: string;
  sent_at: string | null;
  ended_at: string | null;
  bank_status: string | null;
  /** ISO code. */
  refusal_code: string | null;
}

interface ShownLine {
  payout_id: string;
  state: LineState;
  amount: number;
  code: string | null;
  value_date: string | null;
  bank_reference: string | null;
  contradictions: number;
}

function openBook({ mongo, database, connector }: SepaDeps) {
  return openSepaBook(mongo.db(sepaDatabase(database, connector)));
}

/** Newest first; the open batch shows the payouts that wait. */
export async function listFiles(deps: SepaDeps, limit: number) {
  const { files, lines } = openBook(deps);
  const projection = { bytes: 0 } as const;
  const found = await files
    .find({ state: { $ne: 'open' } }, { projection })
    .sort({ created_at: -1 })
    .limit(limit + 1)
    .toArray();
  const [waiting] = await lines
    .aggregate<{ payouts: number; amount: number }>([
      { $match: { state: { $in: ['open', 'assigned'] } } },
      { $group: { _id: null, payouts: { $sum: 1 }, amount: { $sum: '$amount' } } },
    ])
    .toArray();
  return {
    rows: found.slice(0, limit).map(presentFile),
    has_more: found.length > limit,
    open: { payouts: waiting?.payouts ?? 0, amount: waiting?.amount ?? 0 },
  };
}

/** @throws ServiceError `sepa_file_not_found` */
export async function showFile(deps: SepaDeps, id: string, limit: number) {
  const { lines } = openBook(deps);
  const file = await findFile(deps, id);
  const found = await lines
    .find({ $or: [{ file_id: file._id }, { former_files: file._id }] })
    .sort({ added_at: 1, _id: 1 })
    .limit(limit + 1)
    .toArray();
  const rows = found.slice(0, limit).map(presentLine);
  return { file: presentFile(file), rows, has_more: found.length > limit };
}

/** @throws ServiceError `sepa_file_not_found` */
export async function isLiveFile(deps: SepaDeps, id: string): Promise<boolean> {
  const { _id } = await findFile(deps, id);
  const carried = { $or: [{ file_id: _id }, { former_files: _id }] };
  return (await openBook(deps).lines.findOne({ ...carried, livemode: true })) !== null;
}

/** Required on live. */
interface ResendAct {
  operator?: string | undefined;
  reason?: string | undefined;
}

/**
 * Frees the payouts of a refused file for the next one, which has a new id.
 * @returns number of freed payouts; 0 in a repeat
 * @throws ServiceError `sepa_file_not_found`, `sepa_file_not_refused`, `operator_required`
 * @see docs/sepa.md#a-refused-file
 */
export async function resendFile(
  deps: SepaDeps & Pick<WriteDeps, 'audit'>,
  id: string,
  { operator, reason }: ResendAct = {},
): Promise<number> {
  const { lines } = openBook(deps);
  const { _id, state, payouts: count } = await findFile(deps, id);
  const livemode = await isLiveFile(deps, _id);
  if (livemode && (operator === undefined || reason === undefined)) {
    const message = 'On live, OPERATOR_KEY and --reason say who sends it again and why.';
    throw new ServiceError('operator_required', message);
  }
  if (state !== 'refused') {
    throw new ServiceError(
      'sepa_file_not_refused',
      `The file ${_id} is ${state}: only the payouts of a refused file may be sent again.`,
    );
  }
  return await inTransaction(deps.mongo, async (session) => {
    const freed = await lines.updateMany(
      // An interrupted refusal may have left some of them in the file.
      { file_id: _id, state: { $in: ['waiting', 'in_file'] }, booked: null },
      { $set: { state: 'open', file_id: null, wait_until: null }, $push: { former_files: _id } },
      { session },
    );
    const payouts = freed.modifiedCount;
    if (payouts === 0) return payouts;
    const about = { account_id: null, livemode, target: _id };
    const note = omitUndefined({ operator, reason });
    const after = { connector: deps.connector, payouts, of: count, ...note };
    await deps.audit({ act: 'sepa_file.resent', ...about, after }, session);
    return payouts;
  });
}

/**
 * @returns ids of the files; none if nothing waits
 * @throws ServiceError `connector_silent`
 */
export async function requestCut(deps: SepaDeps, waitMs = ANSWER_MS_MAX): Promise<string[]> {
  const { requests } = openBook(deps);
  const _id = randomUUID();
  await requests.insertOne({ _id, at: deps.now(), files: null });
  const giveUpAt = Date.now() + waitMs;
  while (Date.now() < giveUpAt) {
    const answered = await requests.findOne({ _id, files: { $ne: null } });
    if (answered?.files) return answered.files;
    await sleep(LOOK_AGAIN_MS);
  }
  const withdrawn = await requests.findOneAndDelete({ _id });
  if (withdrawn?.files) return withdrawn.files;
  throw new ServiceError(
    'connector_silent',
    `The connector ${deps.connector} does not answer: is it running? The request is withdrawn.`,
  );
}

async function findFile(deps: SepaDeps, id: string): Promise<SepaFile> {
  const file = await openBook(deps).files.findOne({ _id: id.toLowerCase() });
  if (file !== null) return file;
  throw new ServiceError('sepa_file_not_found', `${deps.connector} has no file ${id}.`);
}

function presentFile(file: SepaFile): ShownFile {
  const { _id: id, state, name, iban, payouts, amount, bank_status, refusal } = file;
  return {
    ...{ id, state, name, account: iban, execution_day: file.execution_day || null },
    ...{ payouts, amount, created_at: file.created_at.toISOString() },
    sent_at: file.sent_at?.toISOString() ?? null,
    ended_at: file.ended_at?.toISOString() ?? null,
    ...{ bank_status, refusal_code: refusal?.code ?? null },
  };
}

function presentLine(line: SepaLine): ShownLine {
  const { _id: payout_id, state, amount, failure, booked, returned, others } = line;
  return {
    ...{ payout_id, state, amount, code: returned?.code ?? failure?.code ?? null },
    value_date: (returned ?? booked)?.value_date ?? null,
    bank_reference: booked?.bank_reference ?? null,
    contradictions: others.length,
  };
}
