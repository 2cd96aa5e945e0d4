import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { parseResourceId } from '../../../src/domain/banks/statement';
import { CURRENCIES, decimalMoney, parseDecimalMoney } from '../../../src/domain/money/money';
import { readStatementFile } from '../../../src/statements/read';
import { type CamtEntry, camt, TEST_DAY, TEST_IBAN, txDtls } from '../../support/camt';

const ID = '0d1f2e3c4b5a69788796a5b4c3d2e1f0';

const read = (file: Buffer | string) => readStatementFile(Buffer.from(file));

async function readLines(entries: readonly CamtEntry[], currency = 'EUR') {
  const { statements } = await read(camt([{ entries, currency }]));
  return statements.flatMap(({ lines }) => lines);
}

const booked = {
  ...{ day: TEST_DAY, value_date: TEST_DAY, currency: 'EUR', kind: 'PMNT.RCDT.ESCT' },
  ...{ reference: null, bank_reference: null, fee: 0, batch: null, is_fee: false, entry: 1 },
};

const HEADER = 'statement_id,iban,currency,opening,closing,day,amount';
const START = `S-1,${TEST_IBAN},EUR,`;

/** Between those with a schema of their own, and after them. */
const VERSIONS = ['02', '08', '10', '13', '14'];

describe.each(VERSIONS.map((version) => `camt.053.001.${version}`))('a %s', (message) => {
  test('has its account, balances, days and lines', async () => {
    const entries = [
      { amount: 1000, reference: ID, bank_reference: 'B-1' },
      { amount: -250, reference: 'NOTPROVIDED', value_date: '2026-11-23', code: 'PMNT.ICDT.ESCT' },
      { amount: 77, status: 'PDNG' },
    ];
    const { format, statements } = await read(camt([{ opening: -5, entries }], { message }));
    expect(format).toBe(message);
    expect(statements).toEqual([
      {
        ...{ statement_id: 'S-1', iban: TEST_IBAN, currency: 'EUR', sequence: null },
        ...{ balances: { opening: -5, closing: 745 }, from_day: TEST_DAY, to_day: TEST_DAY },
        lines: [
          { ...booked, amount: 1000, reference: ID, bank_reference: 'B-1' },
          {
            ...{ ...booked, amount: -250, value_date: '2026-11-23', entry: 2 },
            kind: 'PMNT.ICDT.ESCT',
          },
        ],
      },
    ]);
  });
});

test.each(VERSIONS.map((version) => `camt.054.001.${version}`))(
  'a %s has no balances, and often not the currency of its account',
  async (message) => {
    const entries = [{ amount: 5, bank_reference: 'B-1' }];
    const file = camt([{ id: 'N-1', entries }], { message }).toString();
    const { statements } = await read(file.replace('<Ccy>EUR</Ccy>', ''));
    const head = { statement_id: 'N-1', currency: 'EUR', balances: null };
    expect(statements).toMatchObject([{ ...head, lines: entries }]);
  },
);

describe('a statement of several pages', () => {
  const writePage = (number: number, isLast: boolean, from: string, until: string) => {
    const entries = [{ amount: number, bank_reference: `B-${number}` }];
    const paging = `<StmtPgntn><PgNb>${number}</PgNb><LastPgInd>${isLast}</LastPgInd></StmtPgntn>`;
    return camt([{ opening: 5, closing: 11, entries }])
      .toString()
      .replace('</Id>', `</Id>${paging}`)
      .replace('OPBD', from)
      .replace('CLBD', until);
  };
  const pages = [
    writePage(1, false, 'OPBD', 'ITBD'),
    writePage(2, false, 'ITBD', 'ITBD'),
    writePage(3, true, 'ITBD', 'CLBD'),
  ];
  const join = (...numbers: number[]) => {
    const [first = '', ...more] = numbers.map((number) => pages[number - 1] ?? '');
    const texts = more.map((file) => file.match(/<Stmt>.*<\/Stmt>/s)?.[0] ?? '');
    return first.replace('</Stmt>', `</Stmt>${texts.join('')}`);
  };

  test('is one statement, whatever the order of its pages', async () => {
    const { statements } = await read(join(3, 1, 2));
    const lines = [1, 2, 3].map((entry) => ({
      ...{ entry, amount: entry, bank_reference: `B-${entry}` },
    }));
    expect(statements).toMatchObject([{ balances: { opening: 5, closing: 11 }, lines }]);
  });

  test.each([
    ['2 and 3', [2, 3], /lacks page 1/],
    ['1 and 3', [1, 3], /lacks page 2/],
    ['1 and 2', [1, 2], /lacks its last page/],
    ['1 twice and 2', [1, 1, 2], /lacks page 2/],
    ['2 alone', [2], /lacks page 1/],
  ])('is refused if it has the pages %s of three', async (_, numbers, message) => {
    const refusal = { code: 'file_invalid', message: expect.stringMatching(message) };
    await expect(read(join(...numbers))).rejects.toMatchObject(refusal);
  });

  test('has the fault of its page, or that it lacks one, next to other statements of the file', async () => {
    const wrong = join(1, 2, 3).replace(/(>0.02<.Amt><CdtDbtInd>)CRDT/, '$1CREDIT');
    const message = expect.stringMatching(/not valid camt.053.001.08: see CdtDbtInd/);
    await expect(read(wrong)).rejects.toMatchObject({ code: 'file_invalid', message });
    const other = camt([{ id: 'S-2', iban: 'GB82WEST12345698765432' }]).toString();
    const { statements } = await read(other + join(1, 3));
    const lacks = { message: expect.stringMatching(/S-1 lacks page 2/) };
    expect(statements).toMatchObject([
      { statement_id: 'S-2' },
      { statement_id: 'S-1', iban: TEST_IBAN, lines: [], fault: lacks },
    ]);
  });
});

describe('an entry of a camt.053', () => {
  const batch = txDtls('EUR', 600, 'A') + txDtls('EUR', 400, 'B');
  const writeCharge = (more: string) =>
    `<Chrgs><Rcrd><Amt Ccy="EUR">0.10</Amt>${more}</Rcrd></Chrgs>`;

  test('is split into the parts of a batch that adds up', async () => {
    const entry = { amount: 1000, bank_reference: 'B-1', details: batch };
    const part = { ...booked, bank_reference: 'B-1', batch: 2 };
    expect(await readLines([entry])).toEqual([
      { ...part, amount: 600, reference: 'A', position: '1.1' },
      { ...part, amount: 400, reference: 'B', position: '1.2' },
    ]);
  });

  test('stays one line where the parts do not add up, or are only counted', async () => {
    const short = { amount: 1000, details: txDtls('EUR', 600, 'A') + txDtls('EUR', 399, 'B') };
    const counted = { amount: 9, details: '<Btch><NbOfTxs>3</NbOfTxs></Btch>' };
    expect(await readLines([short, counted])).toEqual([
      { ...booked, amount: 1000, batch: 2 },
      { ...booked, amount: 9, batch: 3, entry: 2 },
    ]);
  });

  test('has as its fee the charges that are part of its amount', async () => {
    const gross = '<AmtDtls><TxAmt><Amt Ccy="EUR">10.00</Amt></TxAmt></AmtDtls>';
    const lines = await readLines([
      { amount: 990, more: writeCharge('<ChrgInclInd>true</ChrgInclInd>') },
      { amount: 990, more: writeCharge('<ChrgInclInd>false</ChrgInclInd>') },
      { amount: 990, more: writeCharge('') },
      { amount: -1010, more: gross + writeCharge('') },
    ]);
    expect(lines.map(({ fee }) => fee)).toEqual([10, 0, 0, 10]);
  });

  test('of a batch that is paid less its charges has a line for the charges', async () => {
    const more = writeCharge('<ChrgInclInd>true</ChrgInclInd>');
    const lines = await readLines([{ amount: 990, more, details: batch }]);
    expect(lines.map(({ amount, is_fee, fee }) => [amount, is_fee, fee])).toEqual([
      [600, false, 0],
      [400, false, 0],
      [-10, true, 0],
    ]);
  });

  test('is a return by its reason, with the reference of the original, or a reversal', async () => {
    const proprietary = `<Prtry><Tp>OrgnlEndToEndId</Tp><Ref>${ID}</Ref></Prtry>`;
    const details =
      `<TxDtls><Refs><EndToEndId>RTN</EndToEndId>${proprietary}</Refs>` +
      '<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf></TxDtls>';
    expect(
      await readLines([
        { amount: 5, code: 'PMNT.ICDT.RRTN', details },
        { amount: 6, reversal: true, reference: ID },
      ]),
    ).toEqual([
      { ...booked, amount: 5, reference: ID, kind: 'PMNT.ICDT.RRTN return AC04' },
      { ...booked, amount: 6, reference: ID, kind: 'PMNT.RCDT.ESCT reversal', entry: 2 },
    ]);
  });

  test('may be a charge of the bank, and is left out with an amount of 0', async () => {
    const lines = await readLines([{ amount: 0 }, { amount: -5, code: 'PMNT.MDOP.CHRG' }]);
    expect(lines.map(({ amount, is_fee }) => [amount, is_fee])).toEqual([[-5, true]]);
  });

  test.each(['JPY', 'KWD'])('has the digits of %s', async (currency) => {
    expect(await readLines([{ amount: 1234 }], currency)).toMatchObject([{ amount: 1234 }]);
  });
});

test('the references of a line become identifiers, one to one', async () => {
  const plain = "aZ09 ._:/@+-(),'?";
  const long = 'Ω'.repeat(34);
  const texts = ['A&amp;B', 'A%26B', 'A#1.1', 'A!~*', 'é', plain, `${long}Ω`, `${long}Ψ`];
  const lines = await readLines(
    texts.map((text) => ({ amount: 5, reference: text, bank_reference: text })),
  );
  const names = lines.map(({ bank_reference }) => bank_reference);
  const encoded = ['A%26B', 'A%2526B', 'A%231.1', 'A%21%7E%2A', '%C3%A9', plain];
  expect(names.slice(0, 6)).toEqual(encoded);
  expect(new Set(names).size).toBe(texts.length);
  for (const name of names) expect(name).toMatch(/^[a-z0-9 ._:/@+(),'?%-]{1,100}$/i);
  expect(lines.map(({ reference }) => reference)).toEqual(names);
});

test('no name of a person is read from a statement', async () => {
  const party = '<RltdPties><Dbtr><Pty><Nm>Ana Secret</Nm></Pty></Dbtr></RltdPties>';
  const remittance = '<RmtInf><Ustrd>for Ana Secret</Ustrd></RmtInf>';
  const details = `<TxDtls>${party}${remittance}<AddtlTxInf>Ana Secret</AddtlTxInf></TxDtls>`;
  const file = await read(camt([{ entries: [{ amount: 5, details }] }]));
  expect(JSON.stringify(file)).not.toContain('Secret');
  const tooLong = details.replace('Ana Secret', 'Ana Secret '.repeat(20));
  const noticed = await read(camt([{ entries: [{ amount: 5, details: tooLong }] }]));
  expect(JSON.stringify(noticed)).not.toContain('Secret');
});

test.each([
  [',', '\n'],
  [';', '\r\n'],
])('CSV with %j and line ends %j has statements, lines and empty days', async (separator, end) => {
  const text = [
    `\ufeff"${HEADER.replace(',', '",')},value_date,reference,bank_reference,fee,kind`,
    `${START}0.00,14.90,2026-11-19,10.00,2026-11-20,"ORDER ""7""",B-1,,`,
    `${START}0.00,14.90,2026-11-20,4.9,,,,0.10,transfer`,
    `S-2,${TEST_IBAN},EUR,14.90,14.90,2026-11-21,,,,,,`,
    `S-3,${TEST_IBAN},EUR,14.90,-0.10,2026-11-22,-15,,,,,fee`,
    '',
  ].join(end);
  const { format, statements } = await read(text.replaceAll(',', separator));
  expect(format).toBe('csv');
  const order = { amount: 1000, reference: 'ORDER %227%22', bank_reference: 'B-1' };
  const charge = { amount: -1500, kind: 'fee', is_fee: true, value_date: null };
  const transfer = { amount: 490, kind: 'transfer', fee: 10, value_date: null, entry: 2 };
  expect(statements).toMatchObject([
    { statement_id: 'S-1', balances: { opening: 0, closing: 1490 }, from_day: '2026-11-19' },
    { statement_id: 'S-2', balances: { opening: 1490, closing: 1490 }, to_day: '2026-11-21' },
    { statement_id: 'S-3', balances: { opening: 1490, closing: -10 } },
  ]);
  expect(statements.map(({ lines }) => lines)).toEqual([
    [
      { ...booked, ...order, kind: '', day: '2026-11-19' },
      { ...booked, ...transfer },
    ],
    [],
    [{ ...booked, ...charge, day: '2026-11-22' }],
  ]);
});

const good = camt([{ entries: [{ amount: 1000, reference: ID }] }]).toString();
const addDocumentType = (type: string) => good.replace('<Document', `${type}<Document`);
const BOMB = '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>';
const XXE = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>';
const UTF_16 = addDocumentType(XXE).replace('UTF-8', 'UTF-16');
const ENTRY_AMOUNT = '>10.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>';
const writeRows = (...rows: string[]) => [HEADER, ...rows.map((row) => START + row), ''].join('\n');

test.each<[string, string | Buffer]>([
  ['that is cut off', good.slice(0, -40)],
  ['that is cut off within an entry', good.slice(0, good.indexOf('</Ntry>'))],
  ['that is empty', ''],
  ['that goes on after its end', `${good}<more/>`],
  ['with entities', addDocumentType(BOMB)],
  ['with external entities', addDocumentType(XXE)],
  ['with a document type in UTF-16', Buffer.from(`\ufeff${UTF_16}`, 'utf16le')],
  ['that its schema refuses', good.replace('<Id>S-1</Id>', '')],
  ['with an unknown code', good.replace('CRDT', 'CREDIT')],
  ['without a closing balance', good.replace('CLBD', 'CLAV')],
  ['with a fraction of a cent', good.replace(ENTRY_AMOUNT, ENTRY_AMOUNT.replace('00', '001'))],
  ['without the columns', 'a,b\n1,2\n'],
  ['with an unknown column', `${HEADER},name\n`],
  ['with a column twice', `${HEADER},day\n`],
  ['without rows', writeRows()],
  ['with a row cut off', `${HEADER}\n${START}0,1,2026-11`],
  ['with a quote left open', `${HEADER}\n"${START}0,1,2026-11-20,1\n`],
  ['with a day that does not exist', writeRows('0,1,2026-02-30,1')],
  ['with a comma in an amount', writeRows('0,1,2026-11-20,"1,00"')],
  ['with too many digits', writeRows('0,1,2026-11-20,1.005')],
  ['with an exponent', writeRows('0,1,2026-11-20,1e3')],
  ['whose balances differ from row to row', writeRows('0,2,2026-11-20,1', '0,3,2026-11-20,1')],
])('a file %s is refused', async (_, file) => {
  const refusal = { name: 'InvalidStatement', code: 'file_invalid' };
  await expect(read(file)).rejects.toMatchObject(refusal);
});

const dollars = good.replace('<Ntry><Amt Ccy="EUR"', '<Ntry><Amt Ccy="USD"');
test.each<[string, string | Buffer]>([
  ['format_not_supported', good.replace('.001.08', '.001.99')],
  ['format_not_supported', '<Document xmlns="urn:x"/>'],
  ['format_not_supported', Buffer.from([0x80, 0x81])],
  ['file_invalid', Buffer.alloc(64 * 1024 * 1024)],
  ['wrong_currency', dollars],
  ['wrong_currency', good.replaceAll('EUR', 'XTS')],
  ['wrong_currency', writeRows('0,1,2026-11-20,1').replace('EUR', 'XXX')],
  ['file_too_large', Buffer.alloc(64 * 1024 * 1024 + 1)],
])('a file is refused with the code %s', async (code, file) => {
  await expect(read(file)).rejects.toMatchObject({ name: 'InvalidStatement', code });
});

test('an account without IBAN is named as its bank does, and two accounts may number their statements alike', async () => {
  const other = '<Othr><Id>4711-ab</Id></Othr>';
  const { statements } = await read(good.replace(/<IBAN>.*<\/IBAN>/, other));
  expect(statements).toMatchObject([{ statement_id: 'S-1', iban: '4711-ab' }]);
  const rows = [TEST_IBAN, '4711-ab'].map((account) => `S-1,${account},EUR,0,1,2026-11-20,1`);
  const accounts = (await read([HEADER, ...rows].join('\n'))).statements;
  expect(accounts.map(({ iban }) => iban)).toEqual([TEST_IBAN, '4711-ab']);
});

test('a statement that cannot be read has its fault, next to those that can', async () => {
  const wrong = camt([{}, { id: 'S-2', iban: 'GB82WEST12345698765432' }])
    .toString()
    .replace(/CLBD(?=(?:(?!CLBD).)*$)/s, 'ITBD');
  const { statements } = await read(wrong);
  expect(statements).toMatchObject([
    { statement_id: 'S-1' },
    { statement_id: 'S-2', lines: [], fault: { code: 'file_invalid' } },
  ]);
});

test('a decimal is read exactly or not at all, in each currency', () => {
  const amount = fc.nat({ max: Number.MAX_SAFE_INTEGER });
  fc.assert(
    fc.property(fc.constantFrom(...CURRENCIES), amount, (currency, minor) => {
      const text = decimalMoney(minor, currency);
      expect(parseDecimalMoney(text, currency)).toBe(minor);
      const longer = text.includes('.') ? `${text}0` : `${text}.0`;
      expect(parseDecimalMoney(longer, currency)).toBe(minor);
      expect(parseDecimalMoney(longer.replace(/0$/, '0000001'), currency)).toBeUndefined();
    }),
  );
  for (const text of ['', '.', '-1', '1e3', '1,0', ' 1', '90071992547409.93', '0x1', 'NaN']) {
    expect(parseDecimalMoney(text, 'EUR')).toBeUndefined();
  }
});

test('the ID of a resource is read with and without dashes', () => {
  const uuid = '0d1f2e3c-4b5a-6978-8796-a5b4c3d2e1f0';
  expect([ID, ID.toUpperCase(), uuid].map(parseResourceId)).toEqual([uuid, uuid, uuid]);
  expect([null, '', 'RF18', `${ID}0`].map(parseResourceId)).toEqual([null, null, null, null]);
});

test('the schema has the checksum of its README', () => {
  const folder = join(__dirname, '../../../src/statements/xsd');
  const readBytes = (name: string) => readFileSync(join(folder, name));
  const rows = readBytes('README.md')
    .toString()
    .matchAll(/`(\w{64})` \| `(\S+)`/g);
  const sums = readdirSync(folder)
    .filter((name) => name.endsWith('.xsd'))
    .map((name) => [createHash('sha256').update(readBytes(name)).digest('hex'), name]);
  expect([...rows].map(([, sum, name]) => [sum, name])).toEqual(sums);
});
