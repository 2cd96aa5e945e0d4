import { readBankMessage } from '../../../../connectors/sepa/messages';
import { buildReports } from '../../../../connectors/sepa/reporting';
import { FILE_BYTES_MAX } from '../../../../src/statements/read';
import { camt, TEST_DAY, TEST_IBAN } from '../../../support/camt';

const PAYOUT = '7b1e2c90-6a41-4c65-9a0b-2f64d50cf0aa';
const OTHER = '00000000-6a41-4c65-9a0b-2f64d50cf0aa';
const FILE = '0b7d6d524a3f4a5d9b530f0f6d1a3c11';
const short = (id: string) => id.replaceAll('-', '');
const read = (text: string | Buffer) => readBankMessage(Buffer.from(text));

function status(version: string, group: string, batches: string): string {
  return (
    `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.${version}"><CstmrPmtStsRpt>` +
    '<GrpHdr><MsgId>S-1</MsgId><CreDtTm>2026-10-05T10:00:00</CreDtTm></GrpHdr><OrgnlGrpInfAndSts>' +
    `<OrgnlMsgId>${FILE}</OrgnlMsgId><OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId>${group}` +
    `</OrgnlGrpInfAndSts>${batches}</CstmrPmtStsRpt></Document>`
  );
}

const reason = (code: string) =>
  `<StsRsnInf><Rsn><Cd>${code}</Cd></Rsn><AddtlInf>Ada Lovelace</AddtlInf></StsRsnInf>`;

test.each(['03', '10', '12', '15'])(
  'pain.002.001.%s names what each payout became',
  async (version) => {
    const transactions = [
      `<TxInfAndSts><OrgnlEndToEndId>${short(PAYOUT)}</OrgnlEndToEndId><TxSts>RJCT</TxSts>${reason('AC04')}</TxInfAndSts>`,
      `<TxInfAndSts><OrgnlInstrId>${short(OTHER)}</OrgnlInstrId><OrgnlEndToEndId>X</OrgnlEndToEndId><TxSts>ACCP</TxSts></TxInfAndSts>`,
      '<TxInfAndSts><OrgnlEndToEndId>FOREIGN</OrgnlEndToEndId><TxSts>RJCT</TxSts></TxInfAndSts>',
    ];
    const batch = `<OrgnlPmtInfAndSts><OrgnlPmtInfId>${FILE}</OrgnlPmtInfId>${transactions.join('')}</OrgnlPmtInfAndSts>`;
    const message = await read(status(version, '<GrpSts>PART</GrpSts>', batch));
    expect(message).toEqual({
      ...{ kind: 'status', message: `pain.002.001.${version}` },
      reports: [
        {
          ...{ file_id: FILE, status: 'PART', code: null },
          payouts: [
            { payout_id: PAYOUT, status: 'RJCT', code: 'AC04' },
            { payout_id: OTHER, status: 'ACCP', code: null },
          ],
        },
      ],
    });
    expect(JSON.stringify(message)).not.toContain('Ada');
  },
);

test('a batch that is rejected without a word about payouts is the file', async () => {
  const batch = `<OrgnlPmtInfAndSts><OrgnlPmtInfId>${FILE}</OrgnlPmtInfId><PmtInfSts>RJCT</PmtInfSts>${reason('AM10')}</OrgnlPmtInfAndSts>`;
  expect(await read(status('10', '', batch))).toMatchObject({
    reports: [{ status: 'RJCT', code: 'AM10', payouts: [] }],
  });
});

test('a reason in the bank’s own words is no code', async () => {
  const words = '<StsRsnInf><Rsn><Prtry>Call Ada Lovelace</Prtry></Rsn></StsRsnInf>';
  const message = await read(status('10', `<GrpSts>RJCT</GrpSts>${words}`, ''));
  expect(message).toMatchObject({ reports: [{ status: 'RJCT', code: null }] });
});

test('pacs.004 is a return of the amount before its charges', async () => {
  const message = await read(
    '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pacs.004.001.09"><PmtRtr><GrpHdr>' +
      '<MsgId>R-1</MsgId><CreDtTm>2026-10-07T10:00:00</CreDtTm><NbOfTxs>1</NbOfTxs><SttlmInf>' +
      '<SttlmMtd>CLRG</SttlmMtd></SttlmInf></GrpHdr><TxInf><RtrId>MB-RTR-5</RtrId>' +
      `<OrgnlEndToEndId>${short(PAYOUT)}</OrgnlEndToEndId>` +
      '<RtrdIntrBkSttlmAmt Ccy="EUR">9.50</RtrdIntrBkSttlmAmt>' +
      '<IntrBkSttlmDt>2026-10-07</IntrBkSttlmDt><ChrgsInf><Amt Ccy="EUR">0.50</Amt><Agt>' +
      '<FinInstnId><BICFI>MOCKNL2A</BICFI></FinInstnId></Agt></ChrgsInf><RtrRsnInf><Rsn>' +
      '<Cd>MD07</Cd></Rsn></RtrRsnInf></TxInf></PmtRtr></Document>',
  );
  expect(message).toEqual({
    ...{ kind: 'returns', message: 'pacs.004.001.09' },
    movements: [
      {
        ...{
          payout_id: PAYOUT,
          kind: 'returned',
          source: 'interbank',
          amount: 1_000,
          currency: 'EUR',
          code: 'MD07',
        },
        ...{ value_date: '2026-10-07', bank_reference: 'MB-RTR-5' },
      },
    ],
  });
});

test('camt.053 has the bookings and returns of our payouts among all others', async () => {
  const refs = `<Refs><EndToEndId>${short(PAYOUT)}</EndToEndId></Refs>`;
  const entries = [
    { amount: -1_000, reference: short(PAYOUT), bank_reference: 'B-1' },
    {
      ...{ amount: 1_000, bank_reference: 'B-2' },
      details: `<TxDtls>${refs}<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf></TxDtls>`,
    },
    { amount: -77, reference: 'RENT' },
    { amount: -5, code: 'PMNT.MDOP.CHRG' },
    { amount: -300, reference: short(OTHER), status: 'PDNG' },
  ];
  const message = await read(camt([{ opening: 5_000, closing: 4_918, entries }]));
  const movement = {
    ...{ payout_id: PAYOUT, source: 'statement', amount: 1_000, currency: 'EUR' },
    value_date: TEST_DAY,
  };
  expect(message).toMatchObject({
    statements: [{ iban: TEST_IBAN }],
    movements: [
      { ...movement, kind: 'booked', bank_reference: 'B-1', code: null },
      { ...movement, kind: 'returned', bank_reference: 'B-2', code: 'AC04' },
    ],
  });
});

test.each([
  ['a bomb of entities', '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', 'document type'],
  [
    'an unknown version',
    status('10', '', '').replaceAll('pain.002.001.10', 'pain.002.001.99'),
    'pain.002.001.99',
  ],
  [
    'our own file',
    status('10', '', '').replaceAll('pain.002.001.10', 'pain.001.001.09'),
    'pain.001.001.09',
  ],
  ['an element that the schema does not have', status('10', '<Foo/>', ''), 'Foo'],
  ['half a file', status('10', '', '').slice(0, 200), 'not complete'],
])('%s is refused in words', async (_what, text, words) => {
  await expect(read(text)).rejects.toThrow(words);
});

test('the limit of a file is that of statements', () => {
  expect(FILE_BYTES_MAX).toBe(64 * 1024 * 1024);
});

const LINE = { _id: PAYOUT, amount: 1_000, currency: 'EUR', others: [] };
const booked = {
  ...{ amount: 1_000, currency: 'EUR', value_date: '2026-10-05', bank_reference: 'B-1' },
  ...{ references: [], code: null },
  at: '2026-10-05T10:00:00.000Z',
};

test('the reports of a payout have one id for each fact, in the order of the facts', () => {
  const returned = { ...booked, amount: 990, code: 'AC04', value_date: null };
  const reports = buildReports({ ...LINE, booked, returned, failure: null });
  expect(reports.map(({ name, callback }) => [name, callback])).toEqual([
    [
      'completed',
      {
        ...{ callback_id: `sepa:booked:${PAYOUT}`, occurred_at: booked.at },
        ...{ bank_reference: 'B-1', value_date: '2026-10-05' },
      },
    ],
    [
      'returned',
      {
        ...{
          callback_id: `sepa:returned:${PAYOUT}`,
          occurred_at: booked.at,
          bank_reference: 'B-1',
        },
        ...{ amount: 990, currency: 'EUR', code: 'AC04' },
        reason: 'The recipient’s bank sent the transfer back.',
      },
    ],
  ]);
});

test('a rejection without a code has none, so that the service names its own', () => {
  const failure = { code: null, message: 'The bank rejected the transfer.', at: booked.at };
  const [report] = buildReports({ ...LINE, booked: null, returned: null, failure });
  expect(report).toEqual({
    ...{ resource: 'payout', resource_id: PAYOUT, name: 'failed' },
    callback: {
      ...{ callback_id: `sepa:failed:${PAYOUT}`, occurred_at: booked.at },
      reason: 'The bank rejected the transfer.',
    },
  });
});
