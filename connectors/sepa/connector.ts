import { resolve } from 'node:path';
import { latestCutOff } from '../../src/domain/payout/target2';
import { createEncrypter } from '../../src/encryption/encrypter';
import { createDetailsDecrypter } from '../../src/encryption/recipient-keys';
import { findHolder, followPairs } from '../../src/encryption/recipient-pairs';
import { openSepaBook, type SepaBook, sepaDatabase } from '../../src/service/banks/sepa/book';
import { checkMessage } from '../../src/statements/xml';
import { createRecipientDecrypter, createReferenceReader } from '../contract/recipients';
import { type RunConfig, startConnector } from '../kit/connector';
import type { ConnectorProcess } from '../kit/process';
import { openRestoreGuard, type RestoreGuard, type SentBook } from '../kit/restore-guard';
import { createReleaseReport } from './apply';
import { type CutDeps, cutFiles, isCutDue, uploadFiles } from './cutting';
import { defineSepa, type SepaDefinition, type SepaParts } from './definition';
import { makeDirectories, writeWhole } from './files';
import { type InboxDeps, takeFiles } from './inbox';
import { collectReports, endReports, takeReleased } from './lines';
import { PAIN_001 } from './pain001';

type SettingsOf<D> = D extends { settings: infer S } ? S : never;
type Config = RunConfig<SettingsOf<SepaDefinition>>;

/** Replaced by tests, to stop between two steps. */
type Changes = Partial<CutDeps & Pick<InboxDeps, 'growsMs'>>;

export async function startSepa(config: Config, own: ConnectorProcess, changes: Changes = {}) {
  const { settings } = config;
  const { restoreGuard, ...parts } = await createParts(config, own, changes);
  const { poll, ...definition } = defineSepa(() => parts);
  const seconds = settings.SEPA_POLL_SECONDS;
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
  const { mongo, stores, guard, log, now } = own;
  const { SEPA_OUT_DIR: out, SEPA_IN_DIR: dir, SEPA_IBAN: iban } = settings;
  if (resolve(out) === resolve(dir)) {
    throw new Error('SEPA_OUT_DIR and SEPA_IN_DIR are the same folder: each needs its own.');
  }
  await makeDirectories(out, ['.']);
  await makeDirectories(dir, ['.']);
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
    upload: (file, bytes) => writeWhole(out, file, bytes),
    ...changes,
  };
  const inbox: InboxDeps = { book, dir, iban, log, now, ...changes };
  const reportReleases = createReleaseReport(book, environment === 'live', (rows) =>
    stores.capabilities.reportAwaited(name, rows),
  );
  const cutWhenDue = async () => {
    const cutOff = new Date(latestCutOff(cut.now().getTime(), cut.cutOff));
    if (await isCutDue(cut, cutOff)) await cutFiles(cut);
  };
  const sending = [
    () => takeReleased(book, stores.payouts),
    () => uploadFiles(cut),
    () => cutOnRequest(cut),
    cutWhenDue,
  ];
  const others = [() => takeFiles(inbox), reportReleases, () => eraseBytes(cut)];
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
  const files = await cutFiles(deps, true);
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
