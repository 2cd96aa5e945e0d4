import { resolve } from 'node:path';
import { Gauge } from 'prom-client';
import { describeMetric } from '../../src/base/metrics';
import { latestCutOff } from '../../src/domain/payout/target2';
import { createEncrypter } from '../../src/encryption/encrypter';
import { createDetailsDecrypter } from '../../src/encryption/recipient-keys';
import { findHolder, followPairs } from '../../src/encryption/recipient-pairs';
import { openSepaBook, type SepaBook, sepaDatabase } from '../../src/service/banks/sepa/book';
import { checkMessage } from '../../src/statements/schema';
import { createRecipientDecrypter, createReferenceReader } from '../contract/recipients';
import { type RunConfig, startConnector } from '../kit/connector';
import type { ConnectorProcess } from '../kit/process';
import { openRestoreGuard, type RestoreGuard, type SentBook } from '../kit/restore-guard';
import { createReleaseReport, listOverdueFiles } from './apply';
import { type CutDeps, cutFiles, isCutDue, uploadFiles } from './cutting';
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
    upload: async (file, bytes, verified) => {
      if (!verified) return await writeWhole(out, file, bytes);
      // In another folder, the bank may have it already.
      if (!verifiedDir) throw new Error(`${file} was cut for SEPA_VERIFIED_DIR, which is not set.`);
      await writeWhole(verifiedDir, file, bytes);
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

/** @see src/service/banks/sepa/files.ts */
async function cutOnRequest(deps: CutDeps): Promise<void> {
  const { requests } = deps.book;
  const waiting = await requests.find({ files: null }).toArray();
  if (waiting.length === 0) return;
  const files = await cutFiles(deps, { instant: false, all: true });
  files.push(...(await cutFiles(deps, { instant: true, all: true })));
  const ids = waiting.map(({ _id }) => _id);
  await requests.updateMany({ _id: { $in: ids } }, { $set: { files } });
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
