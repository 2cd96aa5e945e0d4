import { readBankMessage } from '../../../../connectors/sepa/messages';
import { makeReference } from '../../../../connectors/sepa/payments';
import { isCreditorReference } from '../../../../src/domain/payment/creditor-reference';
import { type CamtEntry, camt, TEST_DAY, TEST_IBAN } from '../../../support/camt';

const PAYOUT = '7b1e2c90-6a41-4c65-9a0b-2f64d50cf0aa';
const OTHER = '00000000-6a41-4c65-9a0b-2f64d50cf0aa';
const FILE = '0b7d6d524a3f4a5d9b530f0f6d1a3c11';
const shorten = (id: string) => id.replaceAll('-', '');
const read = (text: string | Buffer) => readBankMessage(Buffer.from(text));

function writeStatus(version: string, group: string, batch = ''): string {
  return (
    `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.${version}"><CstmrPmtStsRpt>` +
    '<GrpHdr><MsgId>S-1</MsgId><CreDtTm>2026-10-05T10:00:00</CreDtTm></GrpHdr><OrgnlGrpInfAndSts>' +
    `<OrgnlMsgId>${FILE}</OrgnlMsgId><OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId>${group}` +
    `</OrgnlGrpInfAndSts>${batch}</CstmrPmtStsRpt></Document>`
  );
}

const writeBatch = (content: string) =>
  `<OrgnlPmtInfAndSts><OrgnlPmtInfId>${FILE}</OrgnlPmtInfId>${content}</OrgnlPmtInfAndSts>`;
const writeReason = (code: string) =>
  `<StsRsnInf><Rsn><Cd>${code}</Cd></Rsn><AddtlInf>Ada Lovelace</AddtlInf></StsRsnInf>`;

test.each(['03', '10', '12', '15'])(
  'pain.002.001.%s has the status and code of each payout of ours, and no name',
  async (version) => {
    const transactions = [
      `<OrgnlEndToEndId>${shorten(PAYOUT)}</OrgnlEndToEndId><TxSts>RJCT</TxSts>${writeReason('AC04')}`,
      `<OrgnlInstrId>${shorten(OTHER)}</OrgnlInstrId><OrgnlEndToEndId>X</OrgnlEndToEndId><TxSts>ACCP</TxSts>`,
      '<OrgnlEndToEndId>FOREIGN</OrgnlEndToEndId><TxSts>RJCT</TxSts>',
    ].map((content) => `<TxInfAndSts>${content}</TxInfAndSts>`);
    const batch = writeBatch(transactions.join(''));
    const message = await read(writeStatus(version, '<GrpSts>PART</GrpSts>', batch));
    const payouts = [
      { payout_id: PAYOUT, status: 'RJCT', code: 'AC04' },
      { payout_id: OTHER, status: 'ACCP', code: null },
    ];
    expect(message).toEqual({
      kind: 'status',
      message: `pain.002.001.${version}`,
      reports: [{ file_id: FILE, status: 'PART', code: null, payouts }],
    });
  },
);

test('the status of a batch that names no payout is the status of its file', async () => {
  const batch = writeBatch(`<PmtInfSts>RJCT</PmtInfSts>${writeReason('AM10')}`);
  expect(await read(writeStatus('10', '', batch))).toMatchObject({
    reports: [{ status: 'RJCT', code: 'AM10', payouts: [] }],
  });
});

test('a reason in the bank’s own words is not a code', async () => {
  const words = '<StsRsnInf><Rsn><Prtry>Call Ada Lovelace</Prtry></Rsn></StsRsnInf>';
  const message = await read(writeStatus('10', `<GrpSts>RJCT</GrpSts>${words}`));
  expect(message).toMatchObject({ reports: [{ status: 'RJCT', code: null }] });
});

test('pacs.004 has a return, with the amount before its charges', async () => {
  const message = await read(
    '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pacs.004.001.09"><PmtRtr><GrpHdr>' +
      '<MsgId>R-1</MsgId><CreDtTm>2026-10-07T10:00:00</CreDtTm><NbOfTxs>1</NbOfTxs><SttlmInf>' +
      '<SttlmMtd>CLRG</SttlmMtd></SttlmInf></GrpHdr><TxInf><RtrId>MB-RTR-5</RtrId>' +
      `<OrgnlEndToEndId>${shorten(PAYOUT)}</OrgnlEndToEndId>` +
      '<RtrdIntrBkSttlmAmt Ccy="EUR">9.50</RtrdIntrBkSttlmAmt>' +
      '<IntrBkSttlmDt>2026-10-07</IntrBkSttlmDt><ChrgsInf><Amt Ccy="EUR">0.50</Amt><Agt>' +
      '<FinInstnId><BICFI>MOCKNL2A</BICFI></FinInstnId></Agt></ChrgsInf><RtrRsnInf><Rsn>' +
      '<Cd>MD07</Cd></Rsn></RtrRsnInf></TxInf></PmtRtr></Document>',
  );
  const money = { amount: 1_000, currency: 'EUR', value_date: '2026-10-07' };
  const source = { source: 'interbank', bank_reference: 'MB-RTR-5', code: 'MD07' };
  expect(message).toEqual({
    kind: 'returns',
    message: 'pacs.004.001.09',
    movements: [{ payout_id: PAYOUT, kind: 'returned', ...money, ...source }],
  });
});

test('camt.053 has the bookings and returns of our payouts, and nothing of other entries', async () => {
  const refs = `<Refs><EndToEndId>${shorten(PAYOUT)}</EndToEndId></Refs>`;
  const details = `<TxDtls>${refs}<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf></TxDtls>`;
  const entries = [
    { amount: -1_000, reference: shorten(PAYOUT), bank_reference: 'B-1' },
    { amount: 1_000, bank_reference: 'B-2', details },
    { amount: -77, reference: 'RENT' },
    { amount: -5, code: 'PMNT.MDOP.CHRG' },
    { amount: -300, reference: shorten(OTHER), status: 'PDNG' },
  ];
  const message = await read(camt([{ opening: 5_000, closing: 4_918, entries }]));
  const money = { amount: 1_000, currency: 'EUR', value_date: TEST_DAY };
  const movement = { payout_id: PAYOUT, source: 'statement', ...money };
  expect(message).toMatchObject({
    statements: [{ iban: TEST_IBAN }],
    movements: [
      { ...movement, kind: 'booked', bank_reference: 'B-1', code: null },
      { ...movement, kind: 'returned', bank_reference: 'B-2', code: 'AC04' },
    ],
  });
});

const renameMessage = (name: string) => writeStatus('10', '').replaceAll('pain.002.001.10', name);

test.each([
  ['a bomb of entities', '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', 'document type'],
  ['an unknown version', renameMessage('pain.002.001.99'), 'pain.002.001.99'],
  ['our own file', renameMessage('pain.001.001.09'), 'pain.001.001.09'],
  ['an element that is not in the schema', writeStatus('10', '<Foo/>'), 'Foo'],
  ['half a file', writeStatus('10', '').slice(0, 200), 'not complete'],
])('refuses %s in words', async (_, text, words) => {
  await expect(read(text)).rejects.toThrow(words);
});

const REFERENCE = makeReference(PAYOUT, 0);

test('each payment has a reference of its own, which is always the same', () => {
  expect(isCreditorReference(REFERENCE)).toBe(true);
  expect(makeReference(PAYOUT, 0)).toBe(REFERENCE);
  expect(makeReference(PAYOUT, 1)).not.toBe(REFERENCE);
  expect(makeReference(OTHER, 0)).not.toBe(REFERENCE);
});

describe('a transfer to us', () => {
  const writeText = (...lines: string[]) => lines.map((line) => `<Ustrd>${line}</Ustrd>`).join('');
  const structured = `<Strd><CdtrRefInf><Ref>${REFERENCE}</Ref></CdtrRefInf></Strd>`;
  const writeTransfer = (remittance: string, more = '') => ({
    details:
      '<TxDtls><Refs><EndToEndId>NOTPROVIDED</EndToEndId></Refs><RltdPties><Dbtr><Pty>' +
      `<Nm>Ada Lovelace</Nm></Pty></Dbtr></RltdPties><RmtInf>${remittance}</RmtInf>${more}</TxDtls>`,
  });
  const note = `Thank you for the flowers ${REFERENCE} Ada`;
  const named = writeTransfer(writeText(REFERENCE));
  const returned = '<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>';

  async function readCredits(entry: Partial<CamtEntry>, message = 'camt.054.001.08') {
    const entries = [{ amount: 1_000, bank_reference: 'B-1', ...entry }];
    const found = await readBankMessage(camt([{ entries }], { message }));
    if (found.kind !== 'statements') throw new Error(found.kind);
    expect(JSON.stringify(found)).not.toMatch(/Ada|Lovelace|flowers/);
    return found.credits;
  }

  const money = { amount: 1_000, currency: 'EUR', value_date: TEST_DAY };
  const credit = { reference: REFERENCE, bank_reference: 'B-1', ...money };

  test.each([
    ['in the text', writeText(note)],
    ['in a text that is cut at 35', writeText(note.slice(0, 35), note.slice(35))],
    ['in the field for it', structured],
    ['in both', writeText(note) + structured],
  ])('is a credit by its reference: %s', async (_, remittance) => {
    const credits = await readCredits(writeTransfer(remittance));
    expect(credits).toEqual([{ ...credit, source: 'notification' }]);
  });

  test('is a credit by its reference as EndToEndId of a statement', async () => {
    const credits = await readCredits({ reference: REFERENCE }, 'camt.053.001.08');
    expect(credits).toEqual([{ ...credit, source: 'statement' }]);
  });

  test.each<[string, Partial<CamtEntry>]>([
    ['without a reference', writeTransfer(writeText('flowers'))],
    ['with two references', writeTransfer(writeText(REFERENCE, makeReference('other', 0)))],
    ['that leaves', { ...named, amount: -1_000 }],
    ['that comes back', writeTransfer(writeText(REFERENCE), returned)],
    ['that is reversed', { ...named, reversal: true }],
    ['that is not booked', { ...named, status: 'PDNG' }],
  ])('%s is not a credit', async (_, entry) => {
    expect(await readCredits(entry)).toEqual([]);
  });
});
