import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { CURRENCIES } from '../../../src/domain/currencies';
import { decimalMoney, parseDecimalMoney } from '../../../src/domain/money';
import { parseResourceId } from '../../../src/domain/statement';
import { FILE_BYTES_MAX, readStatementFile } from '../../../src/statements/read';
import { type CamtEntry, camt, TEST_DAY, TEST_IBAN, txDtls } from '../../support/camt';

const ID = '0d1f2e3c4b5a69788796a5b4c3d2e1f0';

async function read(file: Buffer | string) {
  return await readStatementFile(Buffer.from(file));
}

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
  'a %s has no balances, and often no currency of its account',
  async (message) => {
    const file = camt([{ id: 'N-1', entries: [{ amount: 5, bank_reference: 'B-1' }] }], {
      message,
    });
    const { statements } = await read(file.toString().replace('<Ccy>EUR</Ccy>', ''));
    expect(statements).toMatchObject([
      {
        statement_id: 'N-1',
        currency: 'EUR',
        balances: null,
        lines: [{ amount: 5, bank_reference: 'B-1' }],
      },
    ]);
  },
);

describe('a statement of several pages', () => {
  const page = (number: number, isLast: boolean, from: string, until: string, amount: number) =>
    camt([{ opening: 5, closing: 11, entries: [{ amount, bank_reference: `B-${number}` }] }])
      .toString()
      .replace(
        '</Id>',
        `</Id><StmtPgntn><PgNb>${number}</PgNb><LastPgInd>${isLast}</LastPgInd></StmtPgntn>`,
      )
      .replace('OPBD', from)
      .replace('CLBD', until);
  const pages = {
    first: page(1, false, 'OPBD', 'ITBD', 1),
    middle: page(2, false, 'ITBD', 'ITBD', 2),
    last: page(3, true, 'ITBD', 'CLBD', 3),
  };
  const join = (...files: string[]) => {
    const [first = '', ...more] = files;
    const texts = more.map((file) => file.match(/<Stmt>.*<\/Stmt>/s)?.[0] ?? '');
    return first.replace('</Stmt>', `</Stmt>${texts.join('')}`);
  };

  test('is one statement, whatever their order', async () => {
    const { first, middle, last } = pages;
    const { statements } = await read(join(last, first, middle));
    expect(statements).toMatchObject([
      {
        balances: { opening: 5, closing: 11 },
        lines: [
          { amount: 1, bank_reference: 'B-1', entry: 1 },
          { amount: 2, bank_reference: 'B-2', entry: 2 },
          { amount: 3, bank_reference: 'B-3', entry: 3 },
        ],
      },
    ]);
  });

  test.each([
    ['the first', [pages.middle, pages.last], /lacks page 1/],
    ['a middle one', [pages.first, pages.last], /lacks page 2/],
    ['the last', [pages.first, pages.middle], /lacks its last page/],
    ['none, but one comes twice', [pages.first, pages.first, pages.middle], /lacks page 2/],
    ['all but one', [pages.middle], /lacks page 1/],
  ])('is refused where it lacks %s', async (_which, files, message) => {
    await expect(read(join(...files))).rejects.toMatchObject({
      code: 'file_invalid',
      message: expect.stringMatching(message),
    });
  });
});

describe('an entry of a camt.053', () => {
  test('is split into the parts of a batch that adds up', async () => {
    const details = txDtls('EUR', 600, 'A') + txDtls('EUR', 400, 'B');
    expect(await readLines([{ amount: 1000, bank_reference: 'B-1', details }])).toEqual([
      { ...booked, amount: 600, reference: 'A', bank_reference: 'B-1', batch: 2 },
      { ...booked, amount: 400, reference: 'B', bank_reference: 'B-1', batch: 2 },
    ]);
  });

  test('stays one line where the parts do not add up, or are only counted', async () => {
    const details = txDtls('EUR', 600, 'A') + txDtls('EUR', 399, 'B');
    const counted = '<Btch><NbOfTxs>3</NbOfTxs></Btch>';
    expect(
      await readLines([
        { amount: 1000, details },
        { amount: 9, details: counted },
      ]),
    ).toEqual([
      { ...booked, amount: 1000, batch: 2 },
      { ...booked, amount: 9, batch: 3, entry: 2 },
    ]);
  });

  test('has the charges that are in its amount as its fee', async () => {
    const charge = (more: string) => `<Chrgs><Rcrd><Amt Ccy="EUR">0.10</Amt>${more}</Rcrd></Chrgs>`;
    const [included, apart, silent, gross] = await readLines([
      { amount: 990, more: charge('<ChrgInclInd>true</ChrgInclInd>') },
      { amount: 990, more: charge('<ChrgInclInd>false</ChrgInclInd>') },
      { amount: 990, more: charge('') },
      {
        amount: -1010,
        more: `<AmtDtls><TxAmt><Amt Ccy="EUR">10.00</Amt></TxAmt></AmtDtls>${charge('')}`,
      },
    ]);
    expect([included, apart, silent, gross].map((line) => line?.fee)).toEqual([10, 0, 0, 10]);
  });

  test('of a batch less its charges has a line for these', async () => {
    const details = txDtls('EUR', 600, 'A') + txDtls('EUR', 400, 'B');
    const more =
      '<Chrgs><Rcrd><Amt Ccy="EUR">0.10</Amt><ChrgInclInd>true</ChrgInclInd></Rcrd></Chrgs>';
    const lines = await readLines([{ amount: 990, more, details }]);
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

  test('may be a charge of the bank; one of 0 moves nothing', async () => {
    const lines = await readLines([{ amount: 0 }, { amount: -5, code: 'PMNT.MDOP.CHRG' }]);
    expect(lines.map(({ amount, is_fee }) => [amount, is_fee])).toEqual([[-5, true]]);
  });

  test.each([
    ['JPY', 1000],
    ['KWD', 1234],
  ])('has the digits of %s', async (currency, amount) => {
    expect((await readLines([{ amount }], currency))[0]?.amount).toBe(amount);
  });
});

test('no name of a person is read', async () => {
  const party = '<RltdPties><Dbtr><Pty><Nm>Ana Secret</Nm></Pty></Dbtr></RltdPties>';
  const remittance = '<RmtInf><Ustrd>for Ana Secret</Ustrd></RmtInf>';
  const details = `<TxDtls>${party}${remittance}<AddtlTxInf>Ana Secret</AddtlTxInf></TxDtls>`;
  const file = await read(camt([{ entries: [{ amount: 5, details }] }]));
  expect(JSON.stringify(file)).not.toContain('Secret');
  const tooLong = details.replace('Ana Secret', 'Ana Secret '.repeat(20));
  const refusal = read(camt([{ entries: [{ amount: 5, details: tooLong }] }]));
  await expect(refusal).rejects.toMatchObject({ message: expect.not.stringContaining('Secret') });
});

describe('CSV', () => {
  test.each([
    [',', '\n'],
    [';', '\r\n'],
  ])('with %j and line ends %j has statements, lines and empty days', async (separator, end) => {
    const text = [
      `\ufeff${HEADER},value_date,reference,bank_reference,fee,kind`,
      `${START}0.00,14.90,2026-11-19,10.00,2026-11-20,"ORDER ""7""",B-1,,`,
      `${START}0.00,14.90,2026-11-20,4.9,,,,0.10,transfer`,
      `S-2,${TEST_IBAN},EUR,14.90,14.90,2026-11-21,,,,,,`,
      `S-3,${TEST_IBAN},EUR,14.90,-0.10,2026-11-22,-15,,,,,fee`,
      '',
    ].join(end);
    const { format, statements } = await read(text.replaceAll(',', separator));
    expect(format).toBe('csv');
    expect(statements.map(({ lines, ...head }) => head)).toMatchObject([
      { statement_id: 'S-1', balances: { opening: 0, closing: 1490 }, from_day: '2026-11-19' },
      { statement_id: 'S-2', balances: { opening: 1490, closing: 1490 }, to_day: '2026-11-21' },
      { statement_id: 'S-3', balances: { opening: 1490, closing: -10 } },
    ]);
    expect(statements.map(({ lines }) => lines)).toEqual([
      [
        {
          ...{ ...booked, kind: '', day: '2026-11-19', value_date: '2026-11-20' },
          ...{ amount: 1000, reference: 'ORDER "7"', bank_reference: 'B-1' },
        },
        {
          ...{ ...booked, kind: 'transfer', amount: 490, value_date: null, fee: 10, entry: 2 },
        },
      ],
      [],
      [
        {
          ...{ ...booked, kind: 'fee', is_fee: true, amount: -1500 },
          ...{ day: '2026-11-22', value_date: null },
        },
      ],
    ]);
  });
});

const good = camt([{ entries: [{ amount: 1000, reference: ID }] }]).toString();
const BOMB = '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>';
const XXE = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>';

describe('a file is refused', () => {
  test.each<[string, string, string | Buffer]>([
    ['that is cut off', 'file_invalid', good.slice(0, -40)],
    ['that is cut off within an entry', 'file_invalid', good.slice(0, good.indexOf('</Ntry>'))],
    ['that is empty', 'file_invalid', ''],
    ['that goes on after its end', 'file_invalid', `${good}<more/>`],
    ['with entities', 'file_invalid', good.replace('<Document', `${BOMB}<Document`)],
    ['with external entities', 'file_invalid', good.replace('<Document', `${XXE}<Document`)],
    [
      'with a document type in UTF-16',
      'file_invalid',
      Buffer.from(
        `\ufeff${good.replace('UTF-8', 'UTF-16').replace('<Document', `${XXE}<Document`)}`,
        'utf16le',
      ),
    ],
    ['that its schema refuses', 'file_invalid', good.replace('<Id>S-1</Id>', '')],
    ['with an unknown code', 'file_invalid', good.replace('CRDT', 'CREDIT')],
    ['of a version without a schema', 'format_not_supported', good.replace('.001.08', '.001.99')],
    ['of another message', 'format_not_supported', '<Document xmlns="urn:x"/>'],
    ['that is no text', 'format_not_supported', Buffer.from([0x80, 0x81])],
    ['without a closing balance', 'file_invalid', good.replace('CLBD', 'CLAV')],
    [
      'without an IBAN',
      'bank_account_unknown',
      good.replace(/<IBAN>.*<\/IBAN>/, '<Othr><Id>7</Id></Othr>'),
    ],
    [
      'with an entry in another currency',
      'wrong_currency',
      good.replace('<Ntry><Amt Ccy="EUR"', '<Ntry><Amt Ccy="USD"'),
    ],
    ['in no currency of ISO 4217', 'wrong_currency', good.replaceAll('EUR', 'XTS')],
    [
      'with a fraction of a cent',
      'file_invalid',
      good.replace(
        '>10.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>',
        '>10.001</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>',
      ),
    ],
    ['without the columns', 'file_invalid', 'a,b\n1,2\n'],
    ['with an unknown column', 'file_invalid', `${HEADER},name\n`],
    ['with a column twice', 'file_invalid', `${HEADER},day\n`],
    ['without rows', 'file_invalid', `${HEADER}\n`],
    ['with a row cut off', 'file_invalid', `${HEADER}\n${START}0,1,2026-11`],
    ['with a quote left open', 'file_invalid', `${HEADER}\n"${START}0,1,2026-11-20,1\n`],
    ['with a day that is none', 'file_invalid', `${HEADER}\n${START}0,1,2026-02-30,1\n`],
    ['with a comma in an amount', 'file_invalid', `${HEADER}\n${START}0,1,2026-11-20,"1,00"\n`],
    ['with too many digits', 'file_invalid', `${HEADER}\n${START}0,1,2026-11-20,1.005\n`],
    ['with an exponent', 'file_invalid', `${HEADER}\n${START}0,1,2026-11-20,1e3\n`],
    [
      'with a CSV currency that is none',
      'wrong_currency',
      `${HEADER}\nS-1,${TEST_IBAN},XXX,0,1,2026-11-20,1\n`,
    ],
    [
      'whose balances differ from row to row',
      'file_invalid',
      `${HEADER}\n${START}0,2,2026-11-20,1\n${START}0,3,2026-11-20,1\n`,
    ],
  ])('%s', async (_, code, file) => {
    await expect(read(file)).rejects.toMatchObject({ name: 'InvalidStatement', code });
  });

  test('of more than 64 MiB', async () => {
    const large = Buffer.alloc(FILE_BYTES_MAX + 1);
    await expect(readStatementFile(large)).rejects.toMatchObject({ code: 'file_too_large' });
  });
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

test('our id is found without its dashes', () => {
  const uuid = '0d1f2e3c-4b5a-6978-8796-a5b4c3d2e1f0';
  expect([ID, ID.toUpperCase(), uuid].map(parseResourceId)).toEqual([uuid, uuid, uuid]);
  expect([null, '', 'RF18', `${ID}0`].map(parseResourceId)).toEqual([null, null, null, null]);
});

test('the schemas are those whose sums are written down', () => {
  const folder = join(__dirname, '../../../src/statements/xsd');
  const sums = new Map(
    [...readFileSync(join(folder, 'README.md'), 'utf8').matchAll(/`(\w{64})` \| `(\S+)`/g)].map(
      ([, sum, name]) => [name, sum],
    ),
  );
  const files = readdirSync(folder).filter((name) => name.endsWith('.xsd'));
  expect([...sums.keys()]).toEqual(files);
  for (const name of files) {
    const sum = createHash('sha256')
      .update(readFileSync(join(folder, name)))
      .digest('hex');
    expect([name, sums.get(name)]).toEqual([name, sum]);
  }
});
