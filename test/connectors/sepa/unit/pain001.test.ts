import { randomUUID } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { writeWhole } from '../../../../connectors/sepa/files';
import {
  buildTransfer,
  findTransferFaults,
  PAIN_001,
  type PaymentFile,
  parseAddress,
  parseDebtorName,
  writePain001,
} from '../../../../connectors/sepa/pain001';
import type { RecipientDetails } from '../../../../src/domain/payout/recipient';
import { checkMessage } from '../../../../src/statements/schema';

const DEBTOR = {
  iban: 'NL41MOCK0000000001',
  bic: 'MOCKNL2A',
  name: 'ACME Corporation',
  address: { street: 'Keizersgracht 1', postal_code: '1015 CJ', town: 'Amsterdam', country: 'NL' },
};
const DETAILS: RecipientDetails = {
  ...{ type: 'bank_account', first_name: 'Zoë', last_name: 'Weiß', iban: 'DE89370400440532013000' },
  ...{ card_number: null, expiry_month: null, expiry_year: null, date_of_birth: null, bic: null },
  ...{ sort_code: null, account_number: null, email: null, parent_payment_reference: null },
  ...{ address_line1: '12 Long Lane', city: 'London', postal_code: 'EC1A 9PT', country: 'GB' },
  reference: null,
};
const ID = '0b7d6d524a3f4a5d9b530f0f6d1a3c11';
const PAYOUT = '7b1e2c90-6a41-4c65-9a0b-2f64d50cf0aa';

interface Payout {
  _id: string;
  amount: number;
  details: RecipientDetails;
  reference: string | null;
}

const buildPayout = (change: Partial<Payout> = {}) => ({
  ...{ _id: PAYOUT, amount: 1, details: DETAILS, reference: null },
  ...change,
});
const buildFile = (payouts: readonly Payout[]): PaymentFile => ({
  ...{ id: ID, created_at: new Date('2026-11-26T14:00:00.123Z'), execution_day: '2026-11-26' },
  instant: false,
  debtor: DEBTOR,
  transfers: payouts.map(({ details, reference, ...line }) =>
    buildTransfer(line, { details, reference }),
  ),
});
const check = (xml: string) => checkMessage(Buffer.from(xml), PAIN_001);

/** File of one payout, as text without its first and last elements. */
function write(debtor: PaymentFile['debtor'], change: Partial<Payout>): string {
  const xml = writePain001({ ...buildFile([buildPayout(change)]), debtor });
  return xml.replace(/^.*?<CstmrCdtTrfInitn>/s, '').replace(/<.CstmrCdtTrfInitn>.*/s, '');
}
const SHORT = PAYOUT.replaceAll('-', '');

test('a file is one batch of one account, with ids without dashes and Latin texts', () => {
  const details = { ...DETAILS, bic: 'COBADEFFXXX' };
  const totals = '<NbOfTxs>1</NbOfTxs><CtrlSum>1234.56</CtrlSum>';
  expect(write(DEBTOR, { amount: 123_456, reference: 'Lön 11', details })).toBe(
    `<GrpHdr><MsgId>${ID}</MsgId><CreDtTm>2026-11-26T14:00:00Z</CreDtTm>${totals}` +
      '<InitgPty><Nm>ACME Corporation</Nm></InitgPty></GrpHdr>' +
      `<PmtInf><PmtInfId>${ID}</PmtInfId><PmtMtd>TRF</PmtMtd><BtchBookg>false</BtchBookg>` +
      `${totals}<PmtTpInf><SvcLvl><Cd>SEPA</Cd></SvcLvl></PmtTpInf>` +
      '<ReqdExctnDt><Dt>2026-11-26</Dt></ReqdExctnDt><Dbtr><Nm>ACME Corporation</Nm><PstlAdr>' +
      '<StrtNm>Keizersgracht 1</StrtNm><PstCd>1015 CJ</PstCd><TwnNm>Amsterdam</TwnNm>' +
      '<Ctry>NL</Ctry></PstlAdr></Dbtr><DbtrAcct><Id><IBAN>NL41MOCK0000000001</IBAN></Id>' +
      '</DbtrAcct><DbtrAgt><FinInstnId><BICFI>MOCKNL2A</BICFI></FinInstnId></DbtrAgt>' +
      `<ChrgBr>SLEV</ChrgBr><CdtTrfTxInf><PmtId><InstrId>${SHORT}</InstrId><EndToEndId>${SHORT}` +
      '</EndToEndId></PmtId><Amt><InstdAmt Ccy="EUR">1234.56</InstdAmt></Amt><CdtrAgt><FinInstnId>' +
      '<BICFI>COBADEFFXXX</BICFI></FinInstnId></CdtrAgt><Cdtr><Nm>Zoe Weiss</Nm><PstlAdr>' +
      '<StrtNm>12 Long Lane</StrtNm><PstCd>EC1A 9PT</PstCd><TwnNm>London</TwnNm><Ctry>GB</Ctry>' +
      '</PstlAdr></Cdtr><CdtrAcct><Id><IBAN>DE89370400440532013000</IBAN></Id></CdtrAcct>' +
      '<RmtInf><Ustrd>Lon 11</Ustrd></RmtInf></CdtTrfTxInf></PmtInf>',
  );
});

test('a file lacks what is not known: a BIC, an address without a country, a text', () => {
  const text = write(
    { ...DEBTOR, bic: null, address: null },
    { details: { ...DETAILS, country: null } },
  );
  expect(text).toContain('<Dbtr><Nm>ACME Corporation</Nm></Dbtr>');
  expect(text).toContain('<DbtrAgt><FinInstnId><Othr><Id>NOTPROVIDED</Id></Othr></FinInstnId>');
  expect(text).toContain(
    '<Amt><InstdAmt Ccy="EUR">0.01</InstdAmt></Amt><Cdtr><Nm>Zoe Weiss</Nm></Cdtr><CdtrAcct><Id>' +
      '<IBAN>DE89370400440532013000</IBAN></Id></CdtrAcct></CdtTrfTxInf></PmtInf>',
  );
});

test('an instant file of 10,000 payouts says so, has their sum, and is valid', async () => {
  const payouts = Array.from({ length: 10_000 }, (_, at) =>
    buildPayout({ _id: randomUUID(), amount: at + 1 }),
  );
  const xml = writePain001({ ...buildFile(payouts), instant: true });
  expect(xml.match(/<NbOfTxs>10000<.NbOfTxs><CtrlSum>500050.00</g)).toHaveLength(2);
  expect(xml).toContain(
    '<PmtTpInf><SvcLvl><Cd>SEPA</Cd></SvcLvl><LclInstrm><Cd>INST</Cd></LclInstrm></PmtTpInf>',
  );
  await check(xml);
});

/** Letters of payouts: one of 200 cannot be in a file. */
const unit = fc.oneof(
  { weight: 200, arbitrary: fc.constantFrom(...'abcdefghijKLMNOP0123456789 /?:().,+-éßŁøñ') },
  { weight: 1, arbitrary: fc.constantFrom(...'&_{`<>€"\u0001\n李’') },
);
const text = (maxLength: number) => fc.string({ unit, minLength: 1, maxLength });
const name = text(40).filter((each) => each.trim() !== '');
const optional = (max: number) => fc.option(text(max), { nil: null });
const account = fc.constantFrom(
  ...['COBADEFFXXX', 'COBADEFF', null].map((bic) => ({ iban: 'DE89370400440532013000', bic })),
  { iban: 'FR1420041010050500013M02606', bic: 'BNPAFRPP' },
);
const texts = fc.record({
  ...{ first_name: name, last_name: name, address_line1: optional(80), city: optional(40) },
  ...{ postal_code: optional(18), country: fc.constantFrom('DE', 'GB', null) },
});
const payout = fc.record({
  _id: fc.uuid(),
  amount: fc.integer({ min: 1, max: 99_999_999_999 }),
  reference: optional(150),
  details: fc.tuple(texts, account).map(([payee, bank]) => ({ ...DETAILS, ...payee, ...bank })),
});
const debtors = [DEBTOR, { ...DEBTOR, bic: null, address: null }];

test('every file of payouts without faults is valid', async () => {
  const payouts = fc.array(payout, { minLength: 10, maxLength: 50 });
  let valid = 0;
  await fc.assert(
    fc.asyncProperty(payouts, fc.constantFrom(...debtors), async (all, debtor) => {
      const sendable = all.filter(
        ({ amount, ...payee }) => findTransferFaults(payee, amount).length === 0,
      );
      if (sendable.length === 0) return;
      valid += 1;
      await check(writePain001({ ...buildFile(sendable), debtor }));
    }),
    { numRuns: 60 },
  );
  expect(valid).toBeGreaterThan(50);
});

test.each([
  ['Keizersgracht 1, 1015 CJ Amsterdam, NL', ['Keizersgracht 1', '1015 CJ', 'Amsterdam', 'NL']],
  ['Hauptstraße 5, 10115 Berlin, de', ['Hauptstrasse 5', '10115', 'Berlin', 'DE']],
  ['12 Long Lane, EC1A 9PT, London, GB', ['12 Long Lane', 'EC1A 9PT', 'London', 'GB']],
  ['Amsterdam, NL', [null, null, 'Amsterdam', 'NL']],
  ['Floor 2, Street 1, 75001 Paris, FR', ['Floor 2, Street 1', '75001', 'Paris', 'FR']],
])('the address "%s" is read', (line, [street, postal_code, town, country]) => {
  expect(parseAddress(line)).toEqual({ street, postal_code, town, country });
});

test.each(['Amsterdam', 'NL', '', 'Keizersgracht 1, Amsterdam, Netherlands', 'Улица 1, Sofia, BG'])(
  'the address "%s" is refused',
  (line) => {
    expect(parseAddress(line)).toBeUndefined();
  },
);

test('the name of a debtor is refused unless a transfer can carry it', () => {
  expect(parseDebtorName('Żabka Polska')).toBe('Zabka Polska');
  expect(parseDebtorName('A & B')).toBe('A + B');
  expect(parseDebtorName('A @ B')).toBeUndefined();
  expect(parseDebtorName('N'.repeat(71))).toBeUndefined();
});

describe('a file that is written whole', () => {
  const NAME = 'pain.001.xml';
  const DAY_MS = 86_400_000;

  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sepa-files-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  test('is whole for each of the processes that write it at once', async () => {
    const bytes = Buffer.alloc(4 * 1024 * 1024, 'x');
    const seen = new Set<number>();
    const write = async () => {
      await writeWhole(folder, NAME, bytes);
      seen.add(readFileSync(join(folder, NAME)).length);
    };
    await Promise.all(Array.from({ length: 8 }, write));
    expect([...seen]).toEqual([bytes.length]);
    expect(readdirSync(folder)).toEqual([NAME]);
  });

  test('leaves no part where the write fails', async () => {
    mkdirSync(join(folder, NAME, 'taken'), { recursive: true });
    await expect(writeWhole(folder, NAME, Buffer.from('text'))).rejects.toThrow();
    expect(readdirSync(folder)).toEqual([NAME]);
  });

  test('removes what killed processes left a day before, and nothing else', async () => {
    const [abandoned, growing] = ['.0123456789abcdef.part', `.${'0'.repeat(16)}.part`];
    const foreign = '.x.part';
    const before = (Date.now() - DAY_MS) / 1_000 - 60;
    for (const name of [abandoned, growing, foreign]) {
      writeFileSync(join(folder, name), '');
      if (name !== growing) utimesSync(join(folder, name), before, before);
    }
    await writeWhole(folder, NAME, Buffer.from('text'));
    expect(readdirSync(folder).toSorted()).toEqual([growing, foreign, NAME].toSorted());
  });
});
