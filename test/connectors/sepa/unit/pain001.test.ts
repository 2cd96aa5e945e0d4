import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { Document } from 'sepa';
import { type Address, parseAddress, parseDebtorName } from '../../../../connectors/sepa/debtor';
import {
  PAIN_001,
  type PaymentFile,
  type Transfer,
  writePain001,
} from '../../../../connectors/sepa/pain001';
import { buildTransfer, findTransferFaults } from '../../../../connectors/sepa/transfer';
import type { RecipientDetails } from '../../../../src/domain/payout/recipient';
import { checkMessage } from '../../../../src/statements/xml';

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
const write = (...payouts: Payout[]) =>
  writePain001({
    id: ID,
    created_at: new Date('2026-11-26T14:00:00.123Z'),
    execution_day: '2026-11-26',
    debtor: DEBTOR,
    transfers: payouts.map(({ details, reference, ...line }) =>
      buildTransfer(line, { details, reference }),
    ),
  });
const check = (xml: string) => checkMessage(Buffer.from(xml), PAIN_001);

test('a file is one batch of one account, with ids without dashes and Latin texts', async () => {
  const xml = write(buildPayout({ amount: 123_456, reference: 'Lön 11' }));
  await check(xml);
  const totals = '<NbOfTxs>1</NbOfTxs><CtrlSum>1234.56</CtrlSum>';
  expect(xml).toContain(
    `<GrpHdr><MsgId>${ID}</MsgId><CreDtTm>2026-11-26T14:00:00Z</CreDtTm>${totals}`,
  );
  expect(xml).toContain(`<PmtInfId>${ID}</PmtInfId><PmtMtd>TRF</PmtMtd>`);
  expect(xml).toContain('<ReqdExctnDt><Dt>2026-11-26</Dt></ReqdExctnDt>');
  const short = PAYOUT.replaceAll('-', '');
  expect(xml).toContain(
    `<CdtTrfTxInf><PmtId><InstrId>${short}</InstrId><EndToEndId>${short}</EndToEndId></PmtId>` +
      '<Amt><InstdAmt Ccy="EUR">1234.56</InstdAmt></Amt><Cdtr><Nm>Zoe Weiss</Nm><PstlAdr>' +
      '<StrtNm>12 Long Lane</StrtNm><PstCd>EC1A 9PT</PstCd><TwnNm>London</TwnNm><Ctry>GB</Ctry>' +
      '</PstlAdr></Cdtr><CdtrAcct><Id><IBAN>DE89370400440532013000</IBAN></Id></CdtrAcct>' +
      '<RmtInf><Ustrd>Lon 11</Ustrd></RmtInf></CdtTrfTxInf>',
  );
});

test('a file has no address of a recipient without a country', () => {
  const xml = write(buildPayout({ details: { ...DETAILS, country: null } }));
  expect(xml).toContain('<Cdtr><Nm>Zoe Weiss</Nm></Cdtr>');
  expect(xml).toContain('<InstdAmt Ccy="EUR">0.01</InstdAmt>');
});

test('the schema refuses an id with dashes, and a file that is cut off', async () => {
  const xml = write(buildPayout());
  await expect(check(xml.replace(ID, PAYOUT))).rejects.toThrow(`not valid ${PAIN_001}: see MsgId`);
  await expect(check(xml.slice(0, -20))).rejects.toThrow('not complete');
});

test('a file of 10,000 payouts is valid', async () => {
  const payouts = Array.from({ length: 10_000 }, () => buildPayout({ _id: randomUUID() }));
  await check(write(...payouts));
});

test('every file of payouts without faults is valid', async () => {
  const letters = 'abcdefghijKLMNOP0123456789 /?:().,+-éßŁøñ'.split('');
  const unit = fc.oneof(
    { weight: 200, arbitrary: fc.constantFrom(...letters) },
    { weight: 1, arbitrary: fc.constantFrom('&', '<', '>', '€', '"', '\u0001', '\n', '李', '’') },
  );
  const text = (maxLength: number) => fc.string({ unit, minLength: 1, maxLength });
  const name = text(100).filter((each) => each.trim() !== '');
  const nullable = (max: number) => fc.option(text(max), { nil: null });
  const changes = fc.record({
    first_name: name,
    last_name: name,
    address_line1: nullable(100),
    city: nullable(60),
    postal_code: nullable(20),
    country: fc.constantFrom('DE', 'GB', null),
    bic: fc.constantFrom('DEUTDEFF', 'DEUTDEFF500', null),
  });
  const payout = fc.record({
    _id: fc.uuid(),
    amount: fc.integer({ min: 1, max: 99_999_999_999 }),
    reference: nullable(200),
    details: changes.map((change) => ({ ...DETAILS, ...change })),
  });
  let valid = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(payout, { minLength: 1, maxLength: 5 }), async (payouts) => {
      const sendable = payouts.filter(
        ({ amount, ...payee }) => findTransferFaults(payee, amount).length === 0,
      );
      if (sendable.length === 0) return;
      valid += 1;
      await check(write(...sendable));
    }),
    { numRuns: 300 },
  );
  expect(valid).toBeGreaterThan(20);
});

test.each([
  ['Keizersgracht 1, 1015 CJ Amsterdam, NL', ['Keizersgracht 1', '1015 CJ', 'Amsterdam', 'NL']],
  ['Hauptstraße 5, 10115 Berlin, de', ['Hauptstrasse 5', '10115', 'Berlin', 'DE']],
  ['12 Long Lane, EC1A 9PT, London, GB', ['12 Long Lane', 'EC1A 9PT', 'London', 'GB']],
  ['Amsterdam, NL', [null, null, 'Amsterdam', 'NL']],
  ['Floor 2, Street 1, 75001 Paris, FR', ['Floor 2, Street 1', '75001', 'Paris', 'FR']],
])('reads the address "%s"', (line, [street, postal_code, town, country]) => {
  expect(parseAddress(line)).toEqual({ street, postal_code, town, country });
});

test.each(['Amsterdam', 'NL', '', 'Keizersgracht 1, Amsterdam, Netherlands', 'Улица 1, Sofia, BG'])(
  'refuses the address "%s"',
  (line) => {
    expect(parseAddress(line)).toBeUndefined();
  },
);

test('the name of a debtor is one that a transfer can carry', () => {
  expect(parseDebtorName('Żabka Polska')).toBe('Zabka Polska');
  expect(parseDebtorName('A & B')).toBeUndefined();
  expect(parseDebtorName('N'.repeat(71))).toBeUndefined();
});

/** Compares our files with those of a library that others wrote. @see docs/sepa.md#files-to-the-bank */
describe('the library `sepa`', () => {
  function fillParty(target: object, role: 'debtor' | 'creditor', party: Omit<Transfer, 'amount'>) {
    const { name, iban, bic, address } = party;
    const fields = new Map<string, unknown>(Object.entries({ Name: name, IBAN: iban }));
    fields.set('BIC', bic ?? '');
    if (address !== null) {
      const { street, postal_code, town, country } = address;
      fields.set('Street', street).set('Country', country);
      fields.set('City', [postal_code, town].filter((part) => part !== null).join(' '));
    }
    for (const [field, value] of fields) Object.assign(target, { [`${role}${field}`]: value });
  }

  /** Sets the ids last, since the library puts one before the other. */
  function writeByLibrary({ id, created_at, execution_day, debtor, transfers }: PaymentFile) {
    const document = new Document(PAIN_001);
    Object.assign(document.grpHdr, { id, created: created_at, initiatorName: debtor.name });
    const batch = document.createPaymentInfo();
    // Noon, since the library writes the day of the local time.
    batch.requestedExecutionDate = new Date(`${execution_day}T12:00:00`);
    batch.batchBooking = false;
    fillParty(batch, 'debtor', { payout_id: '', text: null, ...debtor });
    document.addPaymentInfo(batch);
    batch.id = id;
    for (const transfer of transfers) {
      const payment = batch.createTransaction();
      fillParty(payment, 'creditor', transfer);
      payment.amount = transfer.amount / 100;
      payment.remittanceInfo = transfer.text ?? '';
      payment.end2endId = transfer.payout_id.replaceAll('-', '');
      batch.addTransaction(payment);
      payment.id = payment.end2endId;
    }
    return document.toString();
  }

  /** Leaves out the time, and writes our parts of an address as the library's lines. */
  function normalize(xml: string): string {
    return xml
      .replace(/^.*?<Document[^>]*>/s, '')
      .replace(/<CreDtTm>.*?<\/CreDtTm>/, '')
      .replace(/<PstlAdr>(.*?)<\/PstlAdr>/gs, (_, parts: string) => {
        const pick = (name: string) =>
          [...parts.matchAll(new RegExp(`<${name}>([^<]*)<`, 'g'))].map(([, text]) => text);
        const place = [...pick('PstCd'), ...pick('TwnNm')].join(' ');
        const lines = [...pick('AdrLine'), ...pick('StrtNm'), place, ...pick('Ctry')];
        return lines.filter((line) => line !== '').join(', ');
      })
      .trim();
  }

  const unit = fc.constantFrom(...'abcXYZ019 /?:().,+-'.split(''));
  const text = (maxLength: number) =>
    fc
      .string({ unit, minLength: 1, maxLength })
      .map((value) => value.trim())
      .filter((value) => value !== '');
  const address: fc.Arbitrary<Address> = fc.record({
    street: text(30),
    postal_code: fc.option(text(8), { nil: null }),
    town: text(20),
    country: fc.constantFrom('DE', 'FR', 'NL'),
  });
  const account = fc.constantFrom(
    { iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' },
    { iban: 'DE89370400440532013000', bic: null },
    { iban: 'FR1420041010050500013M02606', bic: 'BNPAFRPP' },
  );
  const party = fc
    .record({ name: text(70), account, address: fc.option(address, { nil: null }) })
    .map(({ account: { iban, bic }, ...others }) => ({ ...others, iban, bic }));
  const amount = fc.integer({ min: 1, max: 99_999_999_999 });
  const transfer = fc
    // Without a text the library writes an empty element, which the schema refuses.
    .tuple(party, fc.record({ payout_id: fc.uuid(), amount, text: text(140) }))
    .map(([payee, line]) => ({ ...payee, ...line }));
  const file: fc.Arbitrary<PaymentFile> = fc.record({
    id: fc.uuid().map((id) => id.replaceAll('-', '')),
    created_at: fc.constant(new Date('2026-11-26T14:00:00Z')),
    execution_day: fc.constantFrom('2026-11-26', '2027-01-04'),
    debtor: party,
    transfers: fc.array(transfer, { minLength: 1, maxLength: 20 }),
  });

  test('makes the same file: each element, in the same order', () => {
    fc.assert(
      fc.property(file, (payments) => {
        expect(normalize(writePain001(payments))).toEqual(normalize(writeByLibrary(payments)));
      }),
      { numRuns: 200 },
    );
  });
});
