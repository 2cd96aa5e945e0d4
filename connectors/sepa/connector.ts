import { resolve } from 'node:path';
import { Gauge } from 'prom-client';
import { describeMetric } from '../../src/base/metrics';
import type { AwaitedFile } from '../../src/domain/banks/capabilities';
import { latestCutOff } from '../../src/domain/payout/rails';
import { createEncrypter } from '../../src/encryption/encrypter';
import { createDetailsDecrypter } from '../../src/encryption/recipient-keys';
import { findHolder, followPairs } from '../../src/encryption/recipient-pairs';
import {
  countResults,
  openSepaBook,
  type SepaBook,
  sepaDatabase,
} from '../../src/service/banks/sepa/book';
import { checkMessage } from '../../src/statements/schema';
import type { PayoutStore } from '../../src/store/payouts';
import { createRecipientDecrypter, createReferenceReader } from '../contract/recipients';
import { type RunConfig, startConnector } from '../kit/connector';
import type { ConnectorProcess } from '../kit/process';
import { openRestoreGuard, type RestoreGuard, type SentBook } from '../kit/restore-guard';
import { type CutDeps, cutFiles, cutOnRequest, isCutDue, putBack, uploadFiles } from './cutting';
import { defineSepa, type SepaDefinition, type SepaParts } from './definition';
import { makeDirectories, writeWhole } from './files';
import { type InboxDeps, takeFiles } from './inbox';
import { collectReports, endReports, takeReleased } from './lines';
import { PAIN_001 } from './pain001';

type SettingsOf<D> = D extends { settings: infer S } ? S : never;
type Config = RunConfig<SettingsOf<SepaDefinition>>;

/** Their files and answers are a matter of seconds. */
const INSTANT_POLL_SECONDS = 1;

/** Replaced by tests, to stop between two steps. */
type Changes = Partial<CutDeps & Pick<InboxDeps, 'growsMs'>>;

export async function startSepa(config: Config, own: ConnectorProcess, changes: Changes = {}) {
  const { settings } = config;
  const { restoreGuard, ...parts } = await createParts(config, own, changes);
  const isInstant = settings.SEPA_INSTANT === 'yes';
  const { poll, ...definition } = defineSepa(() => parts, isInstant);
  const seconds = Math.min(settings.SEPA_POLL_SECONDS, isInstant ? INSTANT_POLL_SECONDS : Infinity);
  return await startConnector(
    { ...definition, ...(poll && { poll: { ...poll, seconds } }) },
    config,
    own,
    { restoreGuard },
  );
}

async function createParts(
  { settings, environment, name, KEYS_DIR, MONGODB_DB, CONNECTOR_STATE_DIR }: Config,
  own: ConnectorProcess,
  changes: Changes,
): Promise<SepaParts & { restoreGuard: RestoreGuard }> {
  const { mongo, stores, guard, log, now, registry } = own;
  const { SEPA_OUT_DIR: out, SEPA_IN_DIR: dir, SEPA_IBAN: iban } = settings;
  const { SEPA_VERIFIED_DIR: verifiedDir } = settings;
  const folders = [out, dir, ...(verifiedDir ? [verifiedDir] : [])];
  if (new Set(folders.map((folder) => resolve(folder))).size < folders.length) {
    const message = 'SEPA_OUT_DIR, SEPA_IN_DIR and SEPA_VERIFIED_DIR are not three folders';
    throw new Error(`${message}: each needs its own.`);
  }
  for (const folder of folders) await makeDirectories(folder, ['.']);
  const db = mongo.db(sepaDatabase(MONGODB_DB, name));
  const book = openSepaBook(db);
  await book.ensureIndexes();
  const sent = createSentBook(book);
  const place = { environment, dir: CONNECTOR_STATE_DIR, db, book: sent };
  const restoreGuard = await openRestoreGuard(own, place);
  const decrypter = createDetailsDecrypter(KEYS_DIR, environment, name);
  const decryptRecipient = createRecipientDecrypter({
    ...stores,
    ...{ encrypter: decrypter, connector: name, log },
  });
  const readReference = createReferenceReader({ payouts: stores.payouts });
  const holder = findHolder(KEYS_DIR, environment, name);
  const cut: CutDeps = {
    ...{ mongo, book, restoreGuard, log, now, cutOff: settings.SEPA_CUT_OFF },
    ...{ fileMin: settings.SEPA_FILE_MIN, verifies: Boolean(verifiedDir) },
    debtor: {
      ...{ iban, bic: settings.SEPA_BIC ?? null, name: settings.SEPA_NAME },
      address: settings.SEPA_ADDRESS ?? null,
    },
    encrypter: createEncrypter(followPairs(KEYS_DIR, holder, 'private')),
    mayStillSend: guard.mayStillSend,
    readPayee: async (payout_id) => ({
      details: await decryptRecipient(payout_id),
      reference: await readReference(payout_id),
    }),
    validate: (xml) => checkMessage(Buffer.from(xml, 'utf8'), PAIN_001),
    upload: async (file, bytes, verified, mayLeave) => {
      if (!verified) return await writeWhole(out, file, bytes, mayLeave);
      // In another folder, the bank may have it already.
      if (!verifiedDir) throw new Error(`${file} was cut for SEPA_VERIFIED_DIR, which is not set.`);
      return await writeWhole(verifiedDir, file, bytes, mayLeave);
    },
    ...changes,
  };
  const { SEPA_INSTANT_FINAL: instantFinal } = settings;
  const inbox: InboxDeps = { book, dir, iban, instantFinal, log, now, ...changes };
  const overdue = settings.SEPA_INSTANT_OVERDUE_SECONDS;
  const reportReleases = createReleaseReport(
    book,
    environment === 'live',
    () => listOverdueFiles(inbox, stores.payouts, overdue),
    (rows) => stores.capabilities.reportAwaited(name, rows),
  );
  const cutWhenDue = async () => {
    const cutOff = new Date(latestCutOff(cut.now().getTime(), cut.cutOff));
    if (await isCutDue(cut, { before: cutOff, instant: false })) {
      await cutFiles(cut, { instant: false, all: false });
    }
  };
  const cutInstant = async () => {
    // By the clock that dates what is added.
    const before = new Date(now().getTime() - settings.SEPA_INSTANT_SECONDS * 1_000);
    if (await isCutDue(cut, { before, instant: true })) {
      await cutFiles(cut, { instant: true, all: false });
    }
  };
  const sending = [
    () => takeReleased(book, stores.payouts),
    () => uploadFiles(cut),
    () => cutOnRequest(cut),
    cutInstant,
    cutWhenDue,
  ];
  const refused = new Gauge({
    ...describeMetric('payments_sepa_files_refused'),
    registers: [registry],
  });
  const countRefused = async () =>
    refused.set({ connector: name }, await book.inbound.countDocuments({ attention: true }));
  const others = [() => takeFiles(inbox), countRefused, reportReleases, () => eraseBytes(cut)];
  return {
    book,
    restoreGuard,
    putBack: (file_id) => putBack(cut, file_id),
    work: async (delivered) => {
      if (delivered !== null) await endReports(book, delivered);
      const errors: unknown[] = [];
      // What the bank answers is taken also while nothing is sent.
      const steps = (await restoreGuard.check()) === null ? [...sending, ...others] : others;
      for (const step of steps) await step().catch((error: unknown) => errors.push(error));
      const { reports, batch, more } = await collectReports(book);
      // What is known is delivered before a failure makes it wait.
      if (errors.length > 0 && reports.length === 0) throw errors[0];
      return { reports, cursor: batch ?? delivered, more };
    },
  };
}

/** @see docs/sepa.md#personal-data */
const BYTES_DAYS = 90;
const DAY_MS = 86_400_000;

/** Payouts of the files stay in the book. */
async function eraseBytes({ book, now }: CutDeps): Promise<void> {
  const before = new Date(now().getTime() - BYTES_DAYS * DAY_MS);
  await book.files.updateMany(
    { state: { $in: ['booked', 'refused'] }, ended_at: { $lt: before }, bytes: { $ne: null } },
    { $set: { bytes: null } },
  );
  await book.requests.deleteMany({ at: { $lt: before } });
}

/** Says by their `MsgId` which files the book knows as sent. */
function createSentBook({ files }: Pick<SepaBook, 'files'>): SentBook {
  return {
    // The bytes of a file that was cut may have left before a kill.
    hasSent: async () => (await files.findOne({ state: { $ne: 'open' } })) !== null,
    listUnknown: async (sent) => {
      const ids = sent.map(({ id }) => id);
      const found = await files.find({ _id: { $in: ids } }, { projection: { state: 1 } }).toArray();
      const states = new Map(found.map(({ _id, state }) => [_id, state]));
      return sent.flatMap(({ id, hasLeft }) => {
        const state = states.get(id) ?? 'open';
        // A kill before the file was noted as sent leaves it cut, and its bytes come again.
        const isKnown = state !== 'open' && !(hasLeft && state === 'cut');
        return isKnown ? [] : [id];
      });
    },
  };
}

const AWAITED_MAX = 100;

/**
 * Lists instant files with payouts that have no result in time: of the bank, or of an operator. One
 * that cannot leave is late from its cut on.
 * @see docs/sepa.md#instant
 */
async function listOverdueFiles(
  { book, now }: Pick<InboxDeps, 'book' | 'now'>,
  payouts: Pick<PayoutStore, 'listUnsent'>,
  seconds: number,
): Promise<Omit<AwaitedFile, 'livemode'>[]> {
  const states = ['cut', 'sent', 'acknowledged'] as const;
  const open = book.files
    .find({ instant: true, state: { $in: [...states] } })
    .sort({ created_at: 1 })
    .limit(AWAITED_MAX);
  const rows: Omit<AwaitedFile, 'livemode'>[] = [];
  for (const { _id: file_id, sent_at, created_at } of await open.toArray()) {
    const since = (sent_at ?? created_at).getTime() + seconds * 1_000;
    if (since > now().getTime()) continue;
    const lines = await book.lines.find({ file_id, state: 'in_file' }).toArray();
    const unsent = new Set(await payouts.listUnsent(lines.map(({ _id }) => _id)));
    const late = lines.filter(({ _id }) => unsent.has(_id));
    if (late.length === 0) continue;
    const amount = late.reduce((sum, line) => sum + line.amount, 0);
    const results = await countResults(book.lines, { file_id });
    const reason = 'file_overdue' as const;
    rows.push({ file_id, reason, since, payouts: late.length, amount, results });
  }
  return rows;
}

/**
 * Reports which files wait for a release or are overdue, to the service, where it has changed. A
 * booking ends the wait for a release.
 * @param report returns whether it has stored them
 */
function createReleaseReport(
  { lines, files }: Pick<SepaBook, 'lines' | 'files'>,
  livemode: boolean,
  listOverdue: () => Promise<Omit<AwaitedFile, 'livemode'>[]>,
  report: (rows: AwaitedFile[]) => Promise<boolean>,
): () => Promise<void> {
  let reported = '';
  return async () => {
    const rows: AwaitedFile[] = [];
    const awaited = { 'awaiting_release.since': { $type: 'date' as const } };
    const held = files.find(awaited).sort({ 'awaiting_release.since': 1 }).limit(AWAITED_MAX);
    for (const { _id, state, payouts, amount, awaiting_release } of await held.toArray()) {
      const ended = { file_id: _id, state: { $in: ['executed', 'booked', 'returned'] as const } };
      const isOver = state === 'booked' || state === 'refused';
      if (isOver || (await lines.findOne({ ...ended })) !== null) {
        await files.updateOne({ _id }, { $unset: { awaiting_release: '' } });
      } else if (awaiting_release !== undefined) {
        const results = await countResults(lines, { file_id: _id });
        const since = awaiting_release.since.getTime();
        const reason = 'awaiting_release' as const;
        rows.push({ file_id: _id, reason, livemode, since, payouts, amount, results });
      }
    }
    rows.push(...(await listOverdue()).map((row) => ({ ...row, livemode })));
    const text = JSON.stringify(rows);
    if (text !== reported && (await report(rows))) reported = text;
  };
}
