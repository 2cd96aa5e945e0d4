import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientSession, Filter } from 'mongodb';
import { inTransaction } from '../../../base/mongo';
import { omitUndefined } from '../../../domain/defined';
import { ServiceError } from '../../../domain/errors';
import {
  type ApprovalLimits,
  type ApprovalRequired,
  computeCredit,
  requireApproval,
} from '../../../domain/operators/approval';
import type { VerifiedOperator } from '../../../domain/operators/operator-act';
import type { ServiceDeps, WriteDeps } from '../../access';
import {
  finishApproval,
  isAboveLimit,
  readLimits,
  requestApproval,
} from '../../operators/approvals/request';
import { toFirstRows } from '../../paging';
import { assertNoted } from '../connectors';
import {
  countResults,
  openSepaBook,
  type SepaBook,
  type SepaFile,
  type SepaLine,
  sepaDatabase,
} from './book';

const ANSWER_MS_MAX = 30_000;
const LOOK_AGAIN_MS = 200;

/** Act of an approval. */
export const RESEND_ACT = 'sepa_file.resend';

export interface SepaDeps extends Pick<ServiceDeps, 'mongo' | 'now'> {
  /** Service database. */
  database: string;
  connector: string;
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
  const { rows, has_more } = toFirstRows(found, limit);
  return {
    rows: rows.map(presentFile),
    has_more,
    open: { payouts: waiting?.payouts ?? 0, amount: waiting?.amount ?? 0 },
  };
}

/** @throws ServiceError `sepa_file_not_found` */
export async function showFile(deps: SepaDeps, id: string, limit: number) {
  const { lines } = openBook(deps);
  const file = await findFile(deps, id);
  const found = await lines
    .find(buildCarried(file))
    .sort({ added_at: 1, _id: 1 })
    .limit(limit + 1)
    .toArray();
  const { rows, has_more } = toFirstRows(found, limit);
  const { statuses = [], released = null } = file;
  const results = await countResults(lines, buildCarried(file));
  const shown = { ...presentFile(file), released, statuses: statuses.toReversed(), results };
  const presented = rows.map(({ _id: payout_id, state, amount, booked, returned, ...line }) => {
    const { code = line.withdrawn ?? null } = returned ?? line.failure ?? line.duplicate ?? {};
    return {
      ...{ payout_id, state, amount, code, verification: line.verification ?? null },
      value_date: (returned ?? booked)?.value_date ?? null,
      bank_reference: booked?.bank_reference ?? null,
      contradictions: line.others.length,
    };
  });
  return { file: shown, rows: presented, has_more };
}

/** @throws ServiceError `sepa_file_not_found` */
export async function isLiveFile(deps: SepaDeps, id: string): Promise<boolean> {
  const carried = buildCarried(await findFile(deps, id));
  return (await openBook(deps).lines.findOne({ ...carried, livemode: true })) !== null;
}

/** Selects what is, or was, in a file. */
function buildCarried({ _id }: SepaFile) {
  return { $or: [{ file_id: _id }, { former_files: _id }] };
}

export interface ResendAct {
  /** With the reason required on live. */
  operator?: string | undefined;
  reason?: string | undefined;
  /** Required of a file that the bank may execute. */
  bank_confirmed_not_executed?: boolean | undefined;
  approved_by?: string | undefined;
  approval_id?: string | undefined;
}

type ResendDeps = SepaDeps & Pick<WriteDeps, 'audit' | 'stores'>;

/**
 * Frees the payouts of a refused file, or those that the bank calls duplicates, for the next file,
 * which has a new id, except those whose recipients are not verified where their account holds them.
 * @returns number of freed payouts; 0 in a repeat
 * @throws ServiceError `sepa_file_not_found`, `sepa_file_not_refused`, `held_by_bank`,
 *   `operator_required`, `approval_decided`, `approval_differs`
 * @see docs/sepa.md#a-refused-file
 */
export async function resendFile(
  deps: ResendDeps,
  id: string,
  { operator, reason, approval_id, ...proof }: ResendAct = {},
): Promise<number> {
  const { lines, files } = openBook(deps);
  const { livemode, file, filter } = await prepareResend(deps, id, proof);
  const { _id, payouts: count } = file;
  assertNoted({ livemode }, { operator, reason }, 'sends it again');
  const unverified = await listHeld(deps, filter);
  const approval = approval_id === undefined ? null : await deps.stores.approvals.get(approval_id);
  return await inTransaction(deps.mongo, async (session) => {
    // The bank may have refused, or called duplicates, more of it since the request.
    if (approval && (await sumAmounts({ lines }, filter, session)) > Number(approval.amount)) {
      const message = `More of the file ${_id} waits by now than was approved: request it again.`;
      throw new ServiceError('approval_differs', message);
    }
    const free = async (ids: Filter<SepaLine>, state: SepaLine['state']) => {
      const $set = { state, file_id: null, wait_until: null, duplicate: null };
      const update = { $set, $unset: { withdrawn: '' as const }, $push: { former_files: _id } };
      return (await lines.updateMany({ $and: [filter, ids] }, update, { session })).modifiedCount;
    };
    const held = await free({ _id: { $in: unverified } }, 'unverified');
    const payouts = await free({ _id: { $nin: unverified } }, 'open');
    await finishApproval(deps.stores, approval_id, 'sent again', session);
    if (payouts + held === 0) return payouts;
    const remaining = await lines.findOne({ file_id: _id }, { session });
    // One that has none left has ended, as if it had been refused.
    if (remaining === null) {
      const ended = { state: 'refused', ended_at: deps.now() } as const;
      await files.updateOne({ _id, state: { $ne: 'refused' } }, { $set: ended }, { session });
    }
    const about = { account_id: null, livemode, target: _id };
    const note = omitUndefined({ operator, reason, ...proof, approval_id });
    const after = { connector: deps.connector, payouts, held, of: count, ...note };
    await deps.audit({ act: 'sepa_file.resent', ...about, after }, session);
    return payouts;
  });
}

/**
 * Frees them as `resendFile`, or requests the approval of a second operator where the bank may have
 * executed more on live than the limit.
 * @see docs/operators.md#approvals
 * @throws ServiceError those of `resendFile`; `operation_id_used`
 */
export async function resendOrRequest(
  deps: ResendDeps,
  id: string,
  act: ResendAct,
  { verified, limits }: { verified: VerifiedOperator | undefined; limits: ApprovalLimits },
): Promise<number | ApprovalRequired> {
  const { livemode, file, filter } = await prepareResend(deps, id, act);
  const { operator, reason } = act;
  if (!livemode || !file.may_be_executed || operator === undefined || reason === undefined) {
    return await resendFile(deps, id, act);
  }
  const { connector } = deps;
  const amount = await sumAmounts(openBook(deps), filter);
  const facts = { amount, currency: 'EUR', account_id: `connector:${connector}` };
  const sent = computeCredit('sepa_file', 'resend', facts);
  const both = [limits, await readLimits(deps)];
  if (!(await isAboveLimit(deps, both, operator, [sent]))) return await resendFile(deps, id, act);
  // Without it, what the bank has withdrawn alone is sent again.
  const isConfirmed = act.bank_confirmed_not_executed === true;
  const input = { connector, ...(isConfirmed && { bank_confirmed_not_executed: true }) };
  const subject = { act: RESEND_ACT, resource: null, target: file._id, input };
  const request = { ...subject, ...sent, account_id: null, operator, verified, reason };
  return requireApproval(await requestApproval(deps, deps.audit, request));
}

async function sumAmounts(
  { lines }: Pick<SepaBook, 'lines'>,
  filter: Filter<SepaLine>,
  session?: ClientSession,
): Promise<number> {
  const total = { $group: { _id: null, amount: { $sum: '$amount' } } };
  const [sum] = await lines
    .aggregate<{ amount: number }>([{ $match: filter }, total], { session })
    .toArray();
  return sum?.amount ?? 0;
}

async function prepareResend(
  deps: SepaDeps,
  id: string,
  { bank_confirmed_not_executed }: Pick<ResendAct, 'bank_confirmed_not_executed'>,
) {
  const file = await findFile(deps, id);
  const { _id, state, may_be_executed } = file;
  const { lines } = openBook(deps);
  const isRefused = state === 'refused';
  const isAlone = { $or: [{ duplicate: { $ne: null } }, { withdrawn: { $exists: true } }] };
  const own = { file_id: _id, ...(isRefused ? {} : isAlone) };
  // A repeat finds what it has freed.
  const known = { $or: [own, { former_files: _id }] };
  if (!isRefused && (await lines.findOne(known)) === null) {
    throw new ServiceError(
      'sepa_file_not_refused',
      `The file ${_id} is ${state}: only the payouts of a refused file, or those that the bank ` +
        'calls duplicates or has withdrawn, may be sent again.',
    );
  }
  // An interrupted refusal may have left some of them in the file.
  const waiting = {
    ...own,
    state: { $in: ['waiting' as const, 'in_file' as const] },
    booked: null,
  };
  // One that had arrived before may be executed all the same.
  const withdrawn = { ...waiting, withdrawn: { $exists: true }, duplicate: null };
  const isProved = !may_be_executed || bank_confirmed_not_executed === true;
  if (!isProved && (await lines.findOne(withdrawn)) === null) {
    const message =
      `The bank has accepted the file ${_id}, or calls it a duplicate, and may execute it. Once it ` +
      'has confirmed that it executes nothing of it, add --bank-confirmed-not-executed.';
    throw new ServiceError('held_by_bank', message);
  }
  const filter: Filter<SepaLine> = isProved ? waiting : withdrawn;
  return { livemode: await isLiveFile(deps, _id), file, filter };
}

/**
 * Lists those that wait for an operator's release, since the bank could not confirm their recipients.
 * @see docs/sepa.md#verification-of-payee
 */
async function listHeld(deps: ResendDeps, filter: Filter<SepaLine>): Promise<string[]> {
  const unverified = { 'verification.result': { $nin: [null, 'match' as const] } };
  const lines = await openBook(deps)
    .lines.find({ $and: [filter, unverified] })
    .toArray();
  if (lines.length === 0) return [];
  const { payouts, accounts } = deps.stores;
  const ids = lines.map(({ _id }) => _id);
  const found = new Map((await payouts.listVerifications(ids)).map((each) => [each._id, each]));
  const holding = new Set(
    await accounts.listHolding([...new Set([...found.values()].map((each) => each.account_id))]),
  );
  const isHeld = ({ _id, verification: checked }: SepaLine) => {
    const { account_id, verification } = found.get(_id) ?? {};
    const isReleased = verification?.released && verification.checked_at === checked?.checked_at;
    return holding.has(account_id ?? '') && !isReleased;
  };
  return lines.filter(isHeld).map(({ _id }) => _id);
}

interface ReleaseNote {
  /** With the reason required on live. */
  operator?: string | undefined;
  reason?: string | undefined;
}

/**
 * Notes that somebody has released a file at the bank, which then has no attention reason.
 * @returns whether it waited; false in a repeat
 * @throws ServiceError `sepa_file_not_found`, `sepa_file_not_awaited`, `operator_required`
 */
export async function noteRelease(
  deps: ResendDeps,
  id: string,
  { operator, reason }: ReleaseNote,
): Promise<boolean> {
  const { files } = openBook(deps);
  const { _id, awaiting_release, released, state } = await findFile(deps, id);
  const livemode = await isLiveFile(deps, _id);
  assertNoted({ livemode }, { operator, reason }, 'has released it');
  if (awaiting_release === undefined) {
    if (released !== undefined) return false;
    const message = `The file ${_id} is ${state}, and waits for no release.`;
    throw new ServiceError('sepa_file_not_awaited', message);
  }
  const { checked_at } = awaiting_release;
  return await inTransaction(deps.mongo, async (session) => {
    const note = omitUndefined({ operator, reason });
    const noted = await files.updateOne(
      { _id, 'awaiting_release.checked_at': checked_at },
      {
        $set: { released: { checked_at, at: deps.now().toISOString(), ...note } },
        $unset: { awaiting_release: '' },
      },
      { session },
    );
    // It ended meanwhile.
    if (noted.modifiedCount === 0) return false;
    await deps.stores.capabilities.removeAwaited(deps.connector, _id, session);
    const about = { account_id: null, livemode, target: _id };
    const after = { connector: deps.connector, checked_at, ...note };
    await deps.audit({ act: 'sepa_file.released', ...about, after }, session);
    return true;
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
  const { cut = [] } = withdrawn ?? {};
  const known = cut.length === 0 ? '' : ` It has cut ${cut.join(', ')}, and not the rest.`;
  throw new ServiceError(
    'connector_silent',
    `The connector ${deps.connector} does not answer: is it running? The request is withdrawn.${known}`,
  );
}

async function findFile(deps: SepaDeps, id: string): Promise<SepaFile> {
  const file = await openBook(deps).files.findOne({ _id: id.toLowerCase() });
  if (file !== null) return file;
  throw new ServiceError('sepa_file_not_found', `${deps.connector} has no file ${id}.`);
}

function presentFile(file: SepaFile) {
  const { _id: id, state, name, iban, payouts, amount } = file;
  const { bank_status, may_be_executed, refusal, awaiting_release } = file;
  const { instant = false, verified = false } = file;
  return {
    ...{ id, state, name, account: iban, execution_day: file.execution_day || null },
    ...{ instant, verified, payouts, amount, created_at: file.created_at.toISOString() },
    sent_at: file.sent_at?.toISOString() ?? null,
    ended_at: file.ended_at?.toISOString() ?? null,
    awaiting_release: awaiting_release?.since.toISOString() ?? null,
    ...{ bank_status, may_be_executed, refusal_code: refusal?.code ?? null },
  };
}
