import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decimalMoney } from '../../../src/domain/money/money';
import { shortenId } from '../../../src/service/banks/sepa/book';
import { readBalances } from '../../support/book';
import { useFixture } from '../../support/fixture';
import { eventually, idealPayment } from '../../support/http';
import { describeWithBank } from '../../support/mock-bank';
import { zip } from '../../support/zip';
import { DAY, IBAN } from './bank-files';
import { useSepa } from './world';

const SOURCE = ['--connector', 'sandbox', '--env', 'sandbox'];

/** Reads what a bank wrote, with names of ours put in. */
const read = (name: string, values: Readonly<Record<string, string>> = {}) =>
  readFileSync(join(__dirname, 'cases', `${name}.xml`), 'utf8').replaceAll(
    /\{(\w+)\}/g,
    (_, key: string) => values[key] ?? '',
  );

interface Written {
  entries: string;
  iban: string;
  id: string;
  opening?: number;
  /** Sum of the entries, minor units. */
  moved?: number;
  day?: string;
  version?: string;
  number?: number;
}

function writeStatement({ entries, iban, id, opening = 0, moved = 0, ...more }: Written): string {
  const { day = DAY, number } = more;
  const writeBalance = (code: string, amount: number) =>
    `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">` +
    `${decimalMoney(Math.abs(amount), 'EUR')}</Amt><CdtDbtInd>${amount < 0 ? 'DBIT' : 'CRDT'}` +
    `</CdtDbtInd><Dt><Dt>${day}</Dt></Dt></Bal>`;
  return (
    `<Stmt><Id>${id}</Id>${number ? `<ElctrncSeqNb>${number}</ElctrncSeqNb>` : ''}` +
    `<CreDtTm>${day}T21:00:00+02:00</CreDtTm><Acct><Id><IBAN>${iban}</IBAN></Id><Ccy>EUR</Ccy>` +
    `</Acct>${writeBalance('OPBD', opening)}${writeBalance('CLBD', opening + moved)}\n` +
    `${entries.replaceAll('2026-10-05', day)}</Stmt>`
  );
}

function writeMessage(...statements: readonly Written[]): string {
  const version = statements[0]?.version ?? '08';
  const texts = statements.map(writeStatement).join('\n');
  // Older ones have a text there, and no party around a name.
  const body = version === '02' ? texts.replace(/<Sts><Cd>(.*?)<\/Cd>/g, '<Sts>$1') : texts;
  return (
    `<?xml version="1.0" encoding="UTF-8"?>\n<Document xmlns="urn:iso:std:iso:20022:tech:xsd:` +
    `camt.053.001.${version}"><BkToCstmrStmt><GrpHdr><MsgId>M-1</MsgId>` +
    `<CreDtTm>${DAY}T21:00:00+02:00</CreDtTm></GrpHdr>${body}</BkToCstmrStmt></Document>`
  );
}

const writeNotification = (statement: Written) =>
  writeMessage(statement)
    .replaceAll('camt.053', 'camt.054')
    .replaceAll('BkToCstmrStmt', 'BkToCstmrDbtCdtNtfctn')
    .replaceAll('Stmt>', 'Ntfctn>')
    .replaceAll(/<Bal>.*<\/Bal>/g, '');

/** Makes the IBAN of an account that no other test has. */
function makeIban(number: number): string {
  const account = `99${String(number).padStart(16, '0')}`;
  const check = 98n - (BigInt(`${account}131400`) % 97n);
  return `DE${String(check).padStart(2, '0')}${account}`;
}

// The account has one balance, so the order of the stories matters.
describeWithBank('what people met at their banks', () => {
  const { service, world, payer, commands } = useSepa();
  const own = useFixture(
    async () => ({ folder: mkdtempSync(join(tmpdir(), 'cases-')) }),
    (made) => rmSync(made.folder, { recursive: true }),
  );
  let accounts = 0;
  let balance = 500_000;
  let number = 0;

  const openAccount = async (): Promise<string> => {
    accounts += 1;
    const iban = makeIban(accounts);
    await commands.json('bank-account', 'add', ...SOURCE, '--iban', iban, '--currency', 'EUR');
    return iban;
  };
  const importFile = async (file: string | Buffer) => {
    const path = join(own.folder, 'file.xml');
    writeFileSync(path, file);
    return Object(await commands.json('statement', 'import', path, ...SOURCE));
  };

  const latin1 = (text: string) => Buffer.from(text, 'latin1');
  const declare = (name: string) => (text: string) => text.replace('UTF-8', name);
  const as = (name: string) => (text: string) => latin1(declare(name)(text));
  const undeclare = (text: string) => text.replace(' encoding="UTF-8"', '');
  test.each<[string, string, string, ((text: string) => Buffer)?, boolean?]>([
    ['01 an empty purpose', '01-empty-purpose', '08', undefined, true],
    ['01 an empty line of an address', '01-empty-address-line', '02', undefined, true],
    ['01 a name of 159 letters', '01-long-name', '13', undefined, true],
    ['14 Latin 1 that says so', '14-umlauts', '08', as('ISO-8859-1')],
    ['14 Windows 1252 that says so', '14-umlauts', '08', as('windows-1252')],
    ['14 Latin 1 that says nothing', '14-umlauts', '02', (text) => latin1(undeclare(text)), true],
    ['14 Latin 1 that says UTF-8', '14-umlauts', '13', latin1, true],
    ['14 UTF-8 that says nothing', '14-umlauts', '08', (text) => Buffer.from(undeclare(text))],
    [
      '14 UTF-16 with a BOM',
      '14-umlauts',
      '08',
      (text) => Buffer.from(`\ufeff${declare('UTF-16')(text)}`, 'utf16le'),
    ],
    ['14 UTF-8 with a BOM', '14-umlauts', '13', (text) => Buffer.from(`\ufeff${text}`)],
  ])(
    '%s: the statement is imported',
    async (_case, name, version, encode = Buffer.from, noticed = false) => {
      const iban = await openAccount();
      const written = writeMessage({ entries: read(name), iban, id: 'B-7', moved: 3_140, version });
      const imported = await importFile(encode(written));
      const notice = noticed ? expect.any(String) : undefined;
      expect(imported).toMatchObject({ account: iban, lines: 1, already_imported: false });
      expect(imported.notice).toEqual(notice);
      const { data } = Object(await commands.json('statement', 'show', imported.id));
      const reference = expect.stringMatching(/^ORDER-3\d$/);
      expect(data).toMatchObject([{ amount: 3_140, day: DAY, reference }]);
      expect(JSON.stringify(data) + imported.notice).not.toMatch(/Korenaar|Oper|Größ/);
    },
  );

  const days = (iban: string) =>
    ['2026-10-05', '2026-10-06'].map((day, at) => {
      const entries = read('01-empty-purpose').replaceAll('PURP-1', `PURP-${at}`);
      return writeMessage({ entries, iban, id: `Z-${at}`, day, opening: at * 3_140, moved: 3_140 });
    });

  test('03 a ZIP of two days: both are imported, the oldest first', async () => {
    const iban = await openAccount();
    const files = days(iban).map((content, at) => ({ name: `camt053_${at}.xml`, content }));
    const { data } = await importFile(zip(files.toReversed()));
    const rows = ['2026-10-05', '2026-10-06'].map((day) => ({ day, already_imported: false }));
    expect(data).toMatchObject(rows);
  });

  test('05 a file of two accounts: the registered one is imported, the other set aside', async () => {
    const [iban, payroll] = [await openAccount(), makeIban(900)];
    const entries = read('01-empty-purpose');
    const other = { entries: '', iban: payroll, id: 'B-7', opening: 77_000 };
    const file = writeMessage({ entries, iban, id: 'B-7', moved: 3_140 }, other);
    const set_aside = [{ account: payroll, statement_id: 'B-7' }];
    const row = { account: iban, already_imported: false };
    expect(await importFile(file)).toMatchObject({ data: [row], set_aside });
    const again = { ...row, already_imported: true };
    expect(await importFile(file)).toMatchObject({ data: [again], set_aside });
  });

  test('06 a number that begins again each year: both statements are imported', async () => {
    const iban = await openAccount();
    const write = (day: string, opening: number) =>
      writeMessage({
        ...{ entries: read('01-empty-purpose').replaceAll('PURP-1', `P-${day}`), iban, id: '1' },
        ...{ number: 1, day, opening, moved: 3_140 },
      });
    for (const [day, opening] of [
      ['2025-01-02', 0],
      ['2026-01-02', 3_140],
    ] as const) {
      expect(await importFile(write(day, opening))).toMatchObject({ day, already_imported: false });
    }
  });

  test('11 a reversal with the sign of what it reverses: it is imported, with a notice', async () => {
    const iban = await openAccount();
    const entries = read('11-sign-of-original');
    const moved = 10_000;
    const imported = await importFile(
      writeMessage({ entries, iban, id: 'R-9', opening: 1, moved }),
    );
    const notice = expect.stringContaining('opposite sign');
    expect(imported).toMatchObject({ lines: 1, notice, already_imported: false });
  });

  const submit = async (...amounts: readonly number[]) => {
    const ids = await Promise.all(amounts.map((amount) => payer.submit({ amount })));
    const [file = ''] = ids.length === 0 ? [] : await world.cut();
    if (file !== '') world.drop(file);
    const [P1 = '', P2 = ''] = ids.map(shortenId);
    return { ids, file, values: { P1, P2, FILE: file } };
  };
  /** Delivers what the bank wrote of the account, whose balance follows on. */
  const deliver = async (entries: string, moved: number | null): Promise<void> => {
    number += 1;
    const about = { entries, iban: IBAN, id: `C-${number}`, number };
    const statement = { ...about, opening: balance, moved: moved ?? 0 };
    const text = moved === null ? writeNotification(statement) : writeMessage(statement);
    balance += moved ?? 0;
    world.deliver(`case-${number}.xml`, text);
    await world.drained();
  };
  const readFees = async () => {
    const [account] = await service.stores.bankAccounts.list({ connector: 'sepa', iban: IBAN });
    const read = await readBalances(service.stores, `${account?._id}:sandbox:EUR`);
    return Number(read('expense.bank_fees') ?? 0);
  };
  const listLines = (status: string) =>
    service.db.collection('statement_lines').find({ iban: IBAN, status }).toArray();

  test('03 and 05 a ZIP in the folder with another account: what is ours is imported', async () => {
    const files = [IBAN, makeIban(901)].map((iban, at) => {
      const statement = { entries: '', iban, id: 'F-1', number: 1, opening: balance };
      return { name: `${at}.xml`, content: writeMessage(statement) };
    });
    number = 1;
    writeFileSync(join(world.inDir, 'c53.zip'), zip(files));
    await world.drained();
    const [taken] = await world.importAll();
    const set_aside = [{ account: makeIban(901), statement_id: 'F-1' }];
    expect(taken).toMatchObject({ statements: [{ account: IBAN }], set_aside, refusal: null });
  });

  /** Name of a file, and what it moves; null: a notification. */
  type Step = [name: string, moved: number | null];
  test.each<[string, number[], Step[], number]>([
    ['08 a charge next to the amount', [150_000], [['08-charge-next-to-amount', -152_600]], 2_600],
    ['08 a charge within the amount', [150_000], [['08-charge-included', -152_600]], 2_600],
    ['08 charges of each part', [10_000, 20_000], [['08-charges-of-parts', -30_400]], 400],
    ['09 only a total of charges', [10_000], [['09-total-charges', -10_150]], 150],
    ['09 a charge with its tax', [10_000], [['09-charge-with-tax', -10_179]], 179],
    ['10 a sum that names its file', [10_000, 20_000], [['10-sum', -30_000]], 0],
    [
      '10 details, then their sum',
      [10_000, 20_000],
      [
        ['10-details', null],
        ['10-sum-of-details', -30_000],
      ],
      0,
    ],
    [
      '11 a debit that is reversed and booked again',
      [10_000],
      [
        ['11-booked', -10_000],
        ['11-reversed', 0],
      ],
      0,
    ],
  ])(
    '%s: the payouts are completed, once, and nothing is open',
    async (_case, amounts, steps, fee) => {
      const before = await readFees();
      const { ids, values } = await submit(...amounts);
      for (const [name, moved] of steps) {
        await deliver(read(name, values), moved);
        for (const [at, id] of ids.entries()) {
          expect(await payer.becomes(id, 'completed')).toMatchObject({ amount: amounts[at] });
        }
      }
      expect(await world.importRefusals()).toEqual([]);
      for (const id of ids) {
        await payer.needsAttention(id, null);
        expect(await payer.events(id)).toEqual(
          ['submitted', 'sent', 'completed'].map((name) => `payout.${name}`),
        );
      }
      // Corrections of a completed payout are posted later.
      await eventually('no open line', async () => {
        await commands.json('reconciliation', 'show', '--connector', 'sepa', '--env', 'sandbox');
        return (await listLines('open')).length === 0;
      });
      expect(before - (await readFees())).toBe(fee);
      expect(await listLines('announced')).toEqual([]);
    },
  );

  test('12 a reference only in the additional information: the payment is settled', async () => {
    const { body } = await payer.post(
      '/v1/payments',
      idealPayment({
        ...{ method: 'multibanco', country: 'PT', amount: 4_200 },
        customer: { email: 'payer@example.com' },
      }),
    );
    const RF = (await service.stores.payments.get(body.id))?.instructions?.reference ?? '';
    expect(RF).toMatch(/^RF\d{18}$/);
    await deliver(read('12-additional-information', { RF }), 4_200);
    await service.becomes('payments', body.id, { status: 'settled' });
    expect(await world.importRefusals()).toEqual([]);
    expect(await listLines('open')).toEqual([]);
    const stored = await service.db.collection('statement_lines').find({ iban: IBAN }).toArray();
    expect(JSON.stringify(stored) + world.logged.join('')).not.toContain('Haddad');
  });

  test.each([
    ['of each payout', '18-name-check', ['no_match', 'close_match']],
    ['of one, and the group', '18-name-check-of-group', ['no_match', null]],
  ])(
    '18 results of a name check %s: somebody is called, and nothing is paid',
    async (_case, name, results) => {
      const { ids, file, values } = await submit(1_000, 2_000);
      world.deliver(`${name}.xml`, read(name, values));
      await world.drained();
      for (const [at, id] of ids.entries()) {
        const payout = await eventually('the result', async () => {
          const found = await payer.read(id);
          return (found.verification?.result ?? null) === results[at] && found;
        });
        expect(payout.status).toBe('submitted');
      }
      const { data } = Object(
        await eventually('the attention reason', async () => {
          const rows = Object(await commands.json('attention', 'list'));
          return JSON.stringify(rows).includes(file) && rows;
        }),
      );
      const rows = data.filter((row: { resource_id: string }) => row.resource_id === file);
      expect(rows).toMatchObject([{ reason: 'awaiting_release', amount: 3_000 }]);
      const shown = Object(await commands.json('sepa', 'file', 'show', file)).data;
      expect(shown).toHaveLength(2);
      expect(JSON.stringify(shown) + world.logged.join('')).not.toContain('Haddad');
    },
  );

  test('19 a file with one payout: it is shown as such, and leaves for the check', async () => {
    await world.restart({ settings: { SEPA_FILE_MIN: 2 } });
    const id = await payer.submit({ amount: 1_200 });
    const [file = ''] = await world.cut();
    const path = join(world.bank.drop, 'verified', `pain.001.001.09-${file}.xml`);
    const text = await eventually('the file', async () => {
      const isSent = (await world.fileState(file)) === 'sent';
      return isSent && readFileSync(path, 'utf8');
    });
    expect(text).toContain('<NbOfTxs>1</NbOfTxs>');
    expect(text).toContain(shortenId(id));
    const { data } = Object(await commands.json('sepa', 'file', 'list'));
    const row = data.find((each: { id: string }) => each.id === file);
    expect(row).toMatchObject({ payouts: 1, verified: true });
  });

  test.each([
    ...['o&m', 'sales!nl', 'k=v', 'x/y', "d'arc", 'mia+shop', 'a{b}|c~d', '_'].map(
      (name) => `${name}@shop.example`,
    ),
    'info@bäcker.example',
    'info@xn--bcker-gra.example',
  ])('20 an e-mail that the standard allows, %s: the payment is created', async (email) => {
    const { status } = await payer.post('/v1/payments', idealPayment({ customer: { email } }));
    expect(status).toBe(201);
  });
});
