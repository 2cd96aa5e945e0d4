import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { parseAddress, parseDebtorName } from '../../../../connectors/sepa/debtor';
import { PAIN_001, writePain001 } from '../../../../connectors/sepa/pain001';
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

const write = (
  payouts: { _id: string; amount: number; details: RecipientDetails; reference: string | null }[],
) =>
  writePain001({
    ...{ id: ID, created_at: new Date('2026-11-26T14:00:00.123Z'), execution_day: '2026-11-26' },
    debtor: DEBTOR,
    transfers: payouts.map(({ details, reference, ...line }) =>
      buildTransfer(line, { details, reference }),
    ),
  });
const check = (xml: string) => checkMessage(Buffer.from(xml), PAIN_001);

test('a file is one batch of one account, with ids without dashes and Latin texts', async () => {
  const xml = write([{ _id: PAYOUT, amount: 123_456, details: DETAILS, reference: 'Lön 11' }]);
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

test('without a country no address is sent', () => {
  const details = { ...DETAILS, country: null };
  const xml = write([{ _id: PAYOUT, amount: 1, details, reference: null }]);
  expect(xml).toContain('<Cdtr><Nm>Zoe Weiss</Nm></Cdtr>');
  expect(xml).toContain('<InstdAmt Ccy="EUR">0.01</InstdAmt>');
});

test('the schema refuses an id with dashes, and a file that was changed', async () => {
  const xml = write([{ _id: PAYOUT, amount: 1, details: DETAILS, reference: null }]);
  await expect(check(xml.replace(ID, PAYOUT))).rejects.toThrow(`not valid ${PAIN_001}: see MsgId`);
  await expect(check(xml.slice(0, -20))).rejects.toThrow('not complete');
});

const unit = fc.oneof(
  {
    weight: 200,
    arbitrary: fc.constantFrom(...'abcdefghijKLMNOP0123456789 /?:().,+-éßŁøñ'.split('')),
  },
  { weight: 1, arbitrary: fc.constantFrom('&', '<', '>', '€', '"', '\u0001', '\n', '李', '’') },
);
const text = (max: number) => fc.string({ unit, minLength: 1, maxLength: max });
const nullable = (max: number) => fc.option(text(max), { nil: null });

test('every file of payouts without faults is valid; the others name their fields', async () => {
  const payout = fc.record({
    _id: fc.uuid(),
    amount: fc.integer({ min: 1, max: 99_999_999_999 }),
    reference: nullable(200),
    details: fc
      .record({
        first_name: text(100).filter((each) => each.trim() !== ''),
        last_name: text(100).filter((each) => each.trim() !== ''),
        address_line1: nullable(100),
        city: nullable(60),
        postal_code: nullable(20),
        country: fc.constantFrom('DE', 'GB', null),
        bic: fc.constantFrom('DEUTDEFF', 'DEUTDEFF500', null),
      })
      .map((changes) => ({ ...DETAILS, ...changes })),
  });
  let valid = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(payout, { minLength: 1, maxLength: 5 }), async (payouts) => {
      const sendable = payouts.filter(
        ({ amount, ...payee }) => findTransferFaults(payee, amount).length === 0,
      );
      if (sendable.length === 0) return;
      valid += 1;
      await check(write(sendable));
    }),
    { numRuns: 300 },
  );
  expect(valid).toBeGreaterThan(20);
});

test('a file of 10,000 payouts is valid', async () => {
  const payouts = Array.from({ length: 10_000 }, () => ({
    ...{ _id: randomUUID(), amount: 1_000, details: DETAILS, reference: 'Salary' },
  }));
  await check(write(payouts));
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

test('a debtor’s name must be one that a transfer carries', () => {
  expect(parseDebtorName('Żabka Polska')).toBe('Zabka Polska');
  expect(parseDebtorName('A & B')).toBeUndefined();
  expect(parseDebtorName('N'.repeat(71))).toBeUndefined();
});
