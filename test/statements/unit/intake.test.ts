import fc from 'fast-check';
import { readBankMessages } from '../../../connectors/sepa/messages';
import { readStatementFile } from '../../../src/statements/read';
import { writeStatus } from '../../connectors/sepa/bank-files';
import { camt, TEST_DAY, TEST_IBAN } from '../../support/camt';
import { zip } from '../../support/zip';
import { declare, ENCODINGS, ENVELOPES, latin1, NAMESPACES, PREFIXES } from '../forms';

const DAYS = ['2026-11-19', TEST_DAY];
const PARTY = '<RltdPties><Dbtr><Pty><Nm>Jörg Müßig</Nm></Pty></Dbtr></RltdPties>';
const read = (file: Buffer | string) => readStatementFile(Buffer.from(file));

/** Writes a statement of one booking, on the first or second day. */
function write(at: number, { message = 'camt.053.001.08', details = PARTY } = {}): string {
  const refs = `<Refs><EndToEndId>REF-${at}</EndToEndId></Refs>`;
  const entry = {
    amount: 100 + at,
    bank_reference: `B-${at}`,
    details: `<TxDtls>${refs}${details}</TxDtls>`,
  };
  const statement = { id: `S-${at}`, day: DAYS[at] ?? TEST_DAY, entries: [entry] };
  return camt([{ ...statement, opening: at * 100 }], { message }).toString();
}

const expected = DAYS.map((day, at) => ({
  ...{ statement_id: `S-${at}`, iban: TEST_IBAN, from_day: day, to_day: day },
  balances: { opening: at * 100, closing: at * 200 + 100 - at * 99 },
  lines: [{ amount: 100 + at, reference: `REF-${at}`, bank_reference: `B-${at}`, day }],
}));

test('the statements of a file that also has answers of the bank are read, and a file of answers alone is refused', async () => {
  const answer = writeStatus('f'.repeat(32), '<GrpSts>ACCP</GrpSts>');
  const files = [answer, write(0)].map((content) => ({ name: `${content.length}`, content }));
  for (const file of [answer + write(0), write(0) + answer, zip(files), zip(files.toReversed())]) {
    const bytes = Buffer.from(file);
    expect((await readStatementFile(bytes)).statements).toMatchObject([expected[0]]);
    const kinds = (await readBankMessages(bytes)).map(({ kind }) => kind);
    expect(kinds).toEqual(['status', 'statements']);
  }
  const refusal = {
    code: 'format_not_supported',
    message: expect.stringContaining('pain.002.001'),
  };
  await expect(read(answer)).rejects.toMatchObject(refusal);
});

test('a file has the same statements, oldest first, in each version and form of it', async () => {
  const form = fc.record({
    version: fc.constantFrom('02', '04', '08', '13', '14'),
    encoding: fc.constantFrom(...Object.values(ENCODINGS)),
    prefix: fc.constantFrom(...Object.values(PREFIXES)),
    envelope: fc.constantFrom(...Object.values(ENVELOPES)),
    namespace: fc.constantFrom(...NAMESPACES),
    order: fc.constantFrom([0, 1], [1, 0]),
    join: fc.constantFrom('zip', 'stored', 'text'),
  });
  const check = fc.asyncProperty(form, async (seen) => {
    const texts = seen.order.map((at) => {
      const text = write(at, { message: `camt.053.001.${seen.version}` });
      return seen.envelope(seen.prefix(text.replace(/urn:iso[^"]*xsd:(?=camt)/, seen.namespace)));
    });
    const method = seen.join === 'zip' ? 8 : 0;
    const entries = texts.map((text, at) => ({
      name: `${at}.xml`,
      content: seen.encoding(text),
      method,
    }));
    const file = seen.join === 'text' ? seen.encoding(texts.join('\n')) : zip(entries);
    expect((await readStatementFile(file)).statements).toMatchObject(expected);
    const [message, ...more] = await readBankMessages(file);
    expect([message, more]).toMatchObject([{ kind: 'statements', statements: expected }, []]);
  });
  await fc.assert(check, { numRuns: 150 });
});

test.each([
  ['Latin 1 that says UTF-8', 'byte 0xF6', 'it says UTF-8'],
  ['Latin 1 that says nothing', 'byte 0xF6', 'it names none'],
])('%s has a notice of the first byte and how to convert it', async (name, byte, says) => {
  const [first] = (await readStatementFile(ENCODINGS[name]?.(write(0)) ?? '')).statements;
  for (const words of [byte, says, 'Line 3', 'iconv -f WINDOWS-1252 -t UTF-8']) {
    expect(first?.notice).toContain(words);
  }
});

test.each([
  ['a reference', latin1(write(0).replace('REF-0', 'RÉF-0')), 'EndToEndId in line 3'],
  ['half of an amount', latin1(write(0).replace('>1.00<', '>1.0é<')), 'Amt in line 3'],
  [
    'a tag',
    latin1(write(0).replaceAll('EndToEndId', 'EndToEndÉ').replace('</EndToEndÉ', '</End')),
    'line 3',
  ],
])('bytes of another encoding in what is read refuse the file: %s', async (_, file, place) => {
  const refusal = { code: 'file_invalid', message: expect.stringContaining(place) };
  await expect(read(file)).rejects.toMatchObject(refusal);
});

const good = write(0);
test.each<[string, string]>([
  ['a sign that is none', good.replace('DBIT', 'CRDT').replaceAll('CRDT', 'C')],
  ['a sign too few', good.replace('<CdtDbtInd>CRDT</CdtDbtInd><Sts>', '<Sts>')],
  ['an amount twice', good.replace(/(<Ntry>)(<Amt.*?<\/Amt>)/, '$1$2$2')],
  ['an amount without currency', good.replace('<Ntry><Amt Ccy="EUR"', '<Ntry><Amt')],
  ['a status that is none', good.replace('BOOK', 'BOOKED')],
  ['no status', good.replace('<Sts><Cd>BOOK</Cd></Sts>', '')],
  ['a day that does not exist', good.replace('<BookgDt><Dt>2026-11', '<BookgDt><Dt>2026-13')],
  ['a reference of 36 letters', good.replace('B-0', 'B'.repeat(36))],
  ['a balance after its entries', good.replace(/(<Bal>.*<\/Bal>)(.*?<\/Ntry>)/s, '$2$1')],
  ['a balance without a day', good.replace(/(<\/CdtDbtInd>)<Dt>.*?<\/Dt><\/Dt>/, '$1')],
  ['no statement', good.replace(/<Stmt>.*<\/Stmt>/s, '')],
  ['another container', good.replaceAll('BkToCstmrStmt', 'BkToCstmrDbtCdtNtfctn')],
  ['elements of another namespace', good.replace('<BkToCstmrStmt', '<BkToCstmrStmt xmlns="urn:x"')],
  ['text after its end', `${good}more`],
])('what is read is checked: %s', async (_, file) => {
  await expect(read(file)).rejects.toMatchObject({
    name: 'InvalidStatement',
    code: 'file_invalid',
  });
});

const files = [0, 1].map((at) => ({ name: `${at}.xml`, content: write(at) }));
const [one = { name: '', content: '' }] = files;
const [INVALID, OTHER, LARGE] = ['file_invalid', 'format_not_supported', 'file_too_large'] as const;
const bad = { name: 'c', content: good.slice(0, -9) };
const many = Array.from({ length: 1_001 }, () => ({ ...one, name: '.a' }));
const wide = { name: 'a', content: `${good}${' '.repeat(5 * 1024 * 1024)}`, method: 0 };
test.each<[string, Buffer, string, RegExp]>([
  ['that is cut off', zip(files).subarray(0, 600), INVALID, /cut off or damaged/],
  ['with other bytes', zip([{ ...one, checksum: 1 }]), INVALID, /File 1 .* checksum/],
  ['that is encrypted', zip([{ ...one, isEncrypted: true }]), OTHER, /encrypted/],
  ['that is packed otherwise', zip([{ ...one, method: 12 }]), OTHER, /compression that is not/],
  ['with an archive', zip([{ name: 'b', content: zip(files) }]), OTHER, /archive, too/],
  ['with a path out of it', zip([{ ...one, name: '../../a.xml' }]), INVALID, /leads out/],
  ['with a long name', zip([{ ...one, name: 'a'.repeat(300) }]), INVALID, /over 255/],
  ['of many files', zip(many), LARGE, /1000 files/],
  ['that grows', zip([{ name: 'a', content: Buffer.alloc(1_000_000) }]), LARGE, /500 times/],
  ['of 65 MiB', zip(Array.from({ length: 13 }, () => wide)), LARGE, /64 MiB/],
  ['with a bad file', zip([...files, bad]), INVALID, /File 3 of the ZIP: .* complete/],
  ['of nothing', zip([{ name: '.DS_Store', content: '' }]), INVALID, /no file/],
])('a ZIP %s is refused', async (_, file, code, message) => {
  const refusal = { name: 'InvalidStatement', code, message: expect.stringMatching(message) };
  await expect(readStatementFile(file)).rejects.toMatchObject(refusal);
  await expect(readBankMessages(file)).rejects.toMatchObject(refusal);
});

test.each([
  ...['02', '06', '08', '13'].map((version) => [
    good.replace('053.001.08', `052.001.${version}`),
    /intraday .* C53/,
  ]),
  [good.replace('camt.053.001.08', 'pain.001.001.09'), /pain[.]001[.]001[.]09, an order/],
  [good.replace('camt.053.001.08', 'camt.053.001.15'), /is camt[.]053[.]001[.]15:/],
  ['%PDF-1.7', /a PDF/],
  ['\u001f\u008b', /gzip/],
  [':20:START\r\n:25:1', /MT940/],
  ['{1:F01BANKDEFFXXXX}', /MT940/],
  ['<!DOCTYPE html><p>Log in', /HTML/],
  ['{"error": 1}', /JSON/],
  [Buffer.from('4c6fa794', 'hex'), /EBCDIC/],
  [declare(good, 'x-own'), /X-OWN, which is not read/],
] as [Buffer | string, RegExp][])(
  'a file that is no statement is refused by its format, with what to do',
  async (file, message) => {
    const refusal = { code: 'format_not_supported', message: expect.stringMatching(message) };
    const content = typeof file === 'string' ? latin1(file) : file;
    await expect(readStatementFile(content)).rejects.toMatchObject(refusal);
  },
);
