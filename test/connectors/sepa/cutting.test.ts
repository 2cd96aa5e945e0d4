import { randomUUID } from 'node:crypto';
import {
  type CutDeps,
  cutFiles,
  cutOnRequest,
  isCutDue,
  uploadFiles,
} from '../../../connectors/sepa/cutting';
import { addLine, takeReleased } from '../../../connectors/sepa/lines';
import { applyMovements } from '../../../connectors/sepa/movements';
import { createLogger } from '../../../src/base/log';
import type { RecipientDetails } from '../../../src/domain/payout/recipient';
import type { Encrypted } from '../../../src/encryption/encrypter';
import { openSepaBook, sepaDatabase } from '../../../src/service/banks/sepa/book';
import { useDatabase } from '../../support/database';
import { useFixture } from '../../support/fixture';
import { DAY, IBAN } from './bank-files';

const database = useDatabase();
const book = useFixture(
  async () => {
    const db = database.mongo.db(sepaDatabase(database.db.databaseName, 'sepa'));
    const opened = openSepaBook(db);
    await opened.ensureIndexes();
    return { ...opened, drop: () => db.dropDatabase() };
  },
  ({ drop }) => drop(),
);

const DETAILS: RecipientDetails = {
  ...{ type: 'bank_account', first_name: 'Ada', last_name: 'Lovelace', country: null, email: null },
  ...{ iban: 'DE89370400440532013000', bic: null, sort_code: null, account_number: null },
  ...{ card_number: null, expiry_month: null, expiry_year: null, date_of_birth: null },
  ...{ address_line1: null, city: null, postal_code: null, reference: null },
  parent_payment_reference: null,
};
const MONEY = { version: 1, amount: 1_000, currency: 'EUR', livemode: false };
const BATCH = { instant: false, all: false };
const clock = { now: new Date('2026-11-20T12:00:00Z') };
const sent: string[] = [];

function buildDeps(changes: Partial<CutDeps> = {}): CutDeps {
  return {
    ...{ mongo: database.mongo, book, cutOff: 900, fileMin: 1, verifies: false },
    restoreGuard: {
      confirm: async () => {},
      leaving: async () => {},
      left: async () => {},
      hasLeft: async () => false,
      mayHaveLeft: async () => false,
    },
    debtor: { iban: IBAN, bic: null, name: 'ACME Corporation', address: null },
    encrypter: { encrypt: async (text) => text as Encrypted, decrypt: async (text) => text },
    mayStillSend: async () => true,
    readPayee: async () => ({ details: DETAILS, reference: null }),
    validate: async () => {},
    upload: async (name, _bytes, _verified, mayLeave) => {
      const isSent = await mayLeave();
      if (isSent) sent.push(name);
      return isSent;
    },
    log: createLogger('sepa', 'silent'),
    now: () => clock.now,
    ...changes,
  };
}

async function add(method = 'sepa_credit_transfer'): Promise<string> {
  const payout_id = randomUUID();
  await addLine(book, { payout_id, ...MONEY, method }, clock.now);
  return payout_id;
}

const line = (_id: string) => book.lines.findOne({ _id });
const away = async (): Promise<boolean> => {
  throw new Error('The folder is away.');
};

test('a payout that another process assigns to a file while that is stored has the next file', async () => {
  const early = await add();
  let [late, second]: [string, Promise<string[]> | undefined] = ['', undefined];
  const first: Promise<string[]> = cutFiles(
    buildDeps({
      validate: async () => {
        late = await add();
        await new Promise<void>((reached) => {
          const validate = async () => {
            reached();
            await first;
          };
          second = cutFiles(buildDeps({ validate }), BATCH);
        });
      },
    }),
    BATCH,
  );
  const [file] = await first;
  await expect(second).rejects.toThrow('Another process has changed the file');
  expect(await line(early)).toMatchObject({ state: 'in_file', file_id: file });
  clock.now = new Date(clock.now.getTime() + 3 * 60_000);
  expect(await isCutDue(buildDeps(), { before: clock.now, instant: false })).toBe(true);
  const [next] = await cutFiles(buildDeps(), BATCH);
  expect(await line(late)).toMatchObject({ state: 'in_file', file_id: next });
  expect(next).not.toBe(file);
});

test('a file that cannot leave yet is named to the operator who asks for it', async () => {
  const payout = await add();
  const [file] = await cutFiles(buildDeps({ upload: away }), { ...BATCH, all: true });
  expect(await line(payout)).toMatchObject({ state: 'in_file', file_id: file });
  await uploadFiles(buildDeps());
  expect(await book.files.findOne({ _id: String(file) })).toMatchObject({ state: 'sent' });
});

test('an operator who asks for a cut gets the files from before one that failed, too', async () => {
  const payouts = [await add(), await add('sepa_instant')];
  await book.requests.insertOne({ _id: 'requested', at: clock.now, files: null });
  const validate = async (xml: string): Promise<void> => {
    if (xml.includes('<Cd>INST</Cd>')) throw new Error('The schema is away.');
  };
  await expect(cutOnRequest(buildDeps({ validate }))).rejects.toThrow('The schema is away.');
  expect(await book.requests.findOne({ _id: 'requested' })).toMatchObject({ files: null });
  await cutOnRequest(buildDeps());
  const files = [];
  for (const payout of payouts) files.push((await line(payout))?.file_id);
  expect(await book.requests.findOne({ _id: 'requested' })).toMatchObject({ files });
});

describe('a payout that is held until its recipient is verified', () => {
  const verification = { result: 'no_match', checked_at: '2026-11-20T10:00:00.000Z' } as const;
  const hold = async (count: number, changes: object = {}): Promise<string[]> => {
    const first = await book.lines.findOne({});
    if (first === null) throw new Error('no line');
    const held = {
      ...first,
      state: 'unverified',
      file_id: null,
      verification,
      ...changes,
    } as const;
    const ids = Array.from({ length: count }, () => randomUUID()).toSorted();
    await book.lines.insertMany(ids.map((_id) => ({ ...held, _id })));
    return ids;
  };
  const take = (released: string) =>
    takeReleased(book, {
      listVerifications: async (ids) =>
        ids.map((_id) => ({
          ...{ _id, account_id: 'acct' },
          verification: { ...verification, ...(_id === released ? { released: true } : {}) },
        })),
    });

  test('goes on once the bank reports a match after all', async () => {
    const [payout = ''] = await hold(1, { verification: { ...verification, result: 'match' } });
    await take('none');
    expect(await line(payout)).toMatchObject({ state: 'open' });
  });

  test('goes on once it is released, however many are held', async () => {
    const released = (await hold(1_001)).at(-1) ?? '';
    await take(released);
    expect(await line(released)).toMatchObject({ state: 'open' });
    expect(await book.lines.countDocuments({ state: 'unverified' })).toBe(1_000);
  });
});

/** Cuts a file that waits, with a payout of a former file. */
async function cutAfterFormer(payout_id: string, sent_at: Date | null): Promise<string> {
  const former = randomUUID().replaceAll('-', '');
  await book.lines.updateOne({ _id: payout_id }, { $set: { former_files: [former] } });
  const [file = ''] = await cutFiles(buildDeps({ upload: away }), BATCH);
  const document = await book.files.findOne({ _id: file });
  if (document === null) throw new Error('no file');
  const ended = { _id: former, state: 'refused', ended_at: clock.now, sent_at } as const;
  await book.files.insertOne({ ...document, ...ended });
  return file;
}

async function bookPayout(payout_id: string): Promise<void> {
  const booked = { payout_id, kind: 'booked', source: 'statement', code: null } as const;
  const money = { amount: 1_000, currency: 'EUR', value_date: DAY, bank_reference: 'B-1' };
  await applyMovements(buildDeps(), [{ ...booked, ...money }]);
}

test('a booking proves that a file was at the bank where its former file never left', async () => {
  const [paid, other] = [await add(), await add()];
  const file = await cutAfterFormer(paid, null);
  await bookPayout(paid);
  const mayStillSend = async () => false;
  await uploadFiles(buildDeps({ mayStillSend }));
  expect(await book.files.findOne({ _id: file })).toMatchObject({ state: 'sent' });
  expect(await line(other)).toMatchObject({ state: 'in_file', file_id: file });
});

test('a file that waits for its folder never leaves with what a former file has paid', async () => {
  const [paid, other] = [await add(), await add()];
  const file = await cutAfterFormer(paid, clock.now);
  expect(await book.files.findOne({ _id: file })).toMatchObject({ state: 'cut', payouts: 2 });
  await bookPayout(paid);
  await uploadFiles(buildDeps());
  expect(await book.files.findOne({ _id: file })).toMatchObject({ state: 'refused' });
  const [next = ''] = await cutFiles(buildDeps(), BATCH);
  expect(await book.files.findOne({ _id: next })).toMatchObject({ state: 'sent', payouts: 1 });
  expect(sent.filter((name) => name.includes(file))).toEqual([]);
  expect(await line(paid)).toMatchObject({ state: 'booked', file_id: file });
  expect(await line(other)).toMatchObject({ state: 'in_file', file_id: next });
});
