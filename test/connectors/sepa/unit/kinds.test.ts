import { randomInt } from 'node:crypto';
import { makeReference } from '../../../../connectors/sepa/definition';
import { type Bookings, readBankMessages } from '../../../../connectors/sepa/messages';
import { pickReading } from '../../../../connectors/sepa/movements';
import type { Statement } from '../../../../src/domain/banks/statement';
import { shortenId } from '../../../../src/service/banks/sepa/book';
import { readFacts, relate } from '../../../../src/statements/compare';
import { ENCODINGS, ENVELOPES, NAMESPACES, PREFIXES } from '../../../statements/forms';
import {
  type CamtEntry,
  type CamtStatement,
  camt,
  TEST_DAY,
  TEST_IBAN,
} from '../../../support/camt';
import { createRandom, type Random } from '../../../support/random';
import { zip } from '../../../support/zip';
import { type Part, VERSIONS, type Wording, writeBooking } from '../bookings';

/** Kinds of what people met at their banks, each in `ROUNDS` wordings of one seed. */
const SEED = Number(process.env['KIND_SEED'] ?? randomInt(1_000_000));
const ROUNDS = Number(process.env['KIND_ROUNDS'] ?? 100);

const FILE = '0b7d6d524a3f4a5d9b530f0f6d1a3c11';
const OPENING = 5_000_000;
const PARTY = '<RltdPties><Dbtr><Pty><Nm>Jörg Müßig</Nm></Pty></Dbtr></RltdPties>';

interface Booking {
  /** Payouts and payments of ours, whose sign is that of the booking. */
  parts: Part[];
  sign: 1 | -1;
  entries: CamtEntry[];
  isNamed: boolean;
  /** Charges that the booking proves; null: it may or may not have them. */
  fee: number | null;
}

/** Draws how a bank writes bookings of ours: where it has names and charges, of how many parts. */
function draw({ pick, integer, chance }: Random) {
  const version = pick(VERSIONS);
  const bookings = Array.from({ length: integer(1, 4) }, (_, at): Booking => {
    const sign = pick<1 | -1>([1, -1]);
    const parts = Array.from({ length: integer(1, 3) }, (_part, index): Part => {
      const id = `${at}${index}1e2c90-6a41-4c65-9a0b-2f64d50cf0aa`;
      const reference = sign < 0 ? id : makeReference(id, 0);
      return { id: reference, amount: integer(5_000, 90_000), charge: integer(5, 900) };
    });
    const isOne = parts.length === 1;
    const texts: Wording['name'][] = ['EndToEndId', 'EndToEndId', 'Ustrd', 'AddtlTxInf'];
    const name = pick(isOne ? [...texts, 'AddtlNtryInf' as const] : texts);
    const isNamed = name === 'EndToEndId';
    const wording: Wording = {
      ...{ version, name },
      cut: pick<Wording['cut']>(['as it is', 'dashes', 'spaces', 'words']),
      charges: isNamed ? pick<Wording['charges']>(['none', 'part', 'entry', 'separate']) : 'none',
      form: pick<Wording['form']>(['record', 'total', 'tax', 'included']),
      amount: pick<Wording['amount']>(['gross', 'net', 'net alone']),
      reference: pick<Wording['reference']>(['entry', 'part', 'both', 'none']),
    };
    const isApart = wording.charges === 'none' || wording.charges === 'separate';
    // Charges in another currency explain nothing.
    if (isApart && chance(0.2)) wording.form = 'foreign';
    const isProved =
      wording.amount !== 'net alone' || (wording.form === 'included' && version !== '02');
    const fee = isProved && !isApart ? parts.reduce((sum, { charge }) => sum + charge, 0) : null;
    const entries = writeBooking(parts, wording, { sign, bank_reference: `BK-${at}` });
    return { parts, sign, isNamed, fee, entries };
  });
  const isStatement = pick([true, false]);
  const message = `camt.05${isStatement ? 3 : 4}.001.${version}`;
  return { version, message, isStatement, bookings, id: `S-${integer(1, 9)}` };
}
type Drawn = ReturnType<typeof draw>;

const sumUp = (entries: readonly CamtEntry[]) =>
  entries.reduce((sum, { amount }) => sum + amount, 0);

/** Writes statements in any encoding, namespace and container. */
function write(
  { pick }: Random,
  { message, bookings, id }: Drawn,
  {
    statements = [{ entries: bookings.flatMap(({ entries }) => entries) }],
    change = (text) => text.replaceAll('<RltdPties/>', PARTY),
  }: { statements?: readonly CamtStatement[]; change?: (text: string) => string } = {},
): Buffer {
  const all = statements.map((each) => ({ id, opening: OPENING, ...each }));
  const text = change(camt(all, { message }).toString());
  const named = text.replace(/urn:iso[^"]*xsd:(?=camt)/, pick(NAMESPACES));
  const wrapped = pick(Object.values(ENVELOPES))(pick(Object.values(PREFIXES))(named));
  const file = pick(Object.values(ENCODINGS))(wrapped);
  return pick([true, false]) ? file : zip([{ name: 'c53.xml', content: file }]);
}

type Read = Bookings & { statements: Statement[] };

async function read(file: Buffer, iban?: string): Promise<Read> {
  const [found, ...more] = await readBankMessages(file, iban);
  if (found?.kind !== 'statements' || more.length > 0) throw new Error('not statements');
  expect(JSON.stringify(found)).not.toMatch(/Jörg|Müßig|Lovelace|FR76/);
  return found;
}

/** Expects amounts and fees of what names ours, and the ids that texts have. */
function expectBooked({ movements, credits, mentioning, statements }: Read, { bookings }: Drawn) {
  const moved = sumUp(bookings.flatMap(({ entries }) => entries));
  const lines = statements.flatMap((each) => each.lines);
  expect(lines.reduce((sum, { amount }) => sum + amount, 0)).toBe(moved);
  let place = 1;
  for (const { parts, isNamed, entries, fee } of bookings) {
    for (const { id, amount } of parts) {
      const own = isNamed
        ? [
            ...movements.filter(({ payout_id }) => payout_id === id),
            ...credits.filter(({ reference }) => reference === id),
          ].map((each) => pickReading(each, { amount, currency: 'EUR' }))
        : mentioning.filter(({ mentions }) => mentions.includes(id));
      expect(own).toMatchObject([{ amount }]);
    }
    const charged = lines.filter(({ entry }) => entry === place);
    const fees = charged.reduce((sum, line) => sum + (line.is_fee ? -line.amount : line.fee), 0);
    if (fee !== null) expect(fees).toBe(fee);
    place += entries.length;
  }
}

/** Elements with faults that banks write and nobody reads. */
const UNREAD = [
  '<Purp/>',
  '<RltdPties><Dbtr><Pty><PstlAdr><AdrLine></AdrLine></PstlAdr></Pty></Dbtr></RltdPties>',
  PARTY.replace('Jörg', 'x'.repeat(150)),
  '<Own><Nm/></Own>',
];

const KINDS: Readonly<Record<string, (random: Random) => Promise<void>>> = {
  'bookings, in whatever form': async (random) => {
    const drawn = draw(random);
    expectBooked(await read(write(random, drawn)), drawn);
  },

  'faults in what is not read': async (random) => {
    const drawn = draw(random);
    const change = (text: string) => text.replaceAll('<RltdPties/>', () => random.pick(UNREAD));
    const found = await read(write(random, drawn, { change }));
    expectBooked(found, drawn);
    expect(found.statements[0]?.notice).toMatch(
      /^Not as in the schema, and not read: \w+ in line \d+/,
    );
  },

  'several accounts': async (random) => {
    const drawn = draw(random);
    const own = { entries: drawn.bookings.flatMap(({ entries }) => entries) };
    const statements: CamtStatement[] = [own];
    for (let count = random.integer(1, 3); count > 0; count -= 1) {
      const entries = draw(random).bookings.flatMap((each) => each.entries);
      const other = { iban: `OTHER-${count}`, entries: entries.map(({ amount }) => ({ amount })) };
      statements.splice(random.integer(0, statements.length), 0, other);
    }
    const change = (text: string) =>
      text
        .replaceAll(/<IBAN>(OTHER-\d)<\/IBAN>/g, '<Othr><Id>$1</Id></Othr>')
        .replaceAll('<RltdPties/>', PARTY);
    const found = await read(write(random, drawn, { statements, change }), TEST_IBAN);
    expect(found.statements.map(({ iban }) => iban).toSorted()).toEqual(
      statements.map(({ iban = TEST_IBAN }) => iban).toSorted(),
    );
    const ofOwn = found.statements.filter(({ iban }) => iban === TEST_IBAN);
    expectBooked({ ...found, statements: ofOwn }, drawn);
  },

  'the same statement again, or of another year': async (random) => {
    const drawn = draw(random);
    const entries = drawn.bookings.flatMap((each) => each.entries);
    const readOne = async (statement: CamtStatement) => {
      const [one] = (await read(write(random, drawn, { statements: [statement] }))).statements;
      if (one === undefined) throw new Error('no statement');
      const isNamed = one.lines.every(({ bank_reference }) => bank_reference !== null);
      return { facts: readFacts(one), isNamed };
    };
    const { facts: first, isNamed } = await readOne({ entries });
    const relation = async (other: CamtStatement) => relate(first, (await readOne(other)).facts);
    expect(await relation({ entries })).toBe('same');
    // A notification with another id is known by the names of all its lines.
    const isKnown = drawn.isStatement || isNamed;
    expect(await relation({ id: 'X', entries })).toBe(isKnown ? 'same' : 'other');
    const later = { entries, day: `2027${TEST_DAY.slice(4)}`, opening: OPENING + sumUp(entries) };
    expect(await relation(later)).toBe('other');
    const [one, ...more] = entries;
    if (one === undefined) throw new Error('no entry');
    const changed = [{ amount: one.amount + 1, bank_reference: 'BK-0' }, ...more];
    expect(await relation({ entries: changed })).toBe('conflict');
  },

  'a sum that names its file': async (random) => {
    const { pick, integer } = random;
    const drawn = draw(random);
    const count = integer(1, 9);
    const amount = -integer(5_000, 900_000);
    const name = pick([FILE, FILE.toUpperCase()]);
    const total = count > 1 && pick([true, false]) ? `<NbOfTxs>${count}</NbOfTxs>` : '';
    const batch = (tag: string) => `<Btch><${tag}>${name}</${tag}>${total}</Btch>`;
    const refs = (tag: string) => `<TxDtls><Refs><${tag}>${name}</${tag}></Refs></TxDtls>`;
    const how = pick<Partial<CamtEntry>>([
      { details: batch('PmtInfId') },
      { details: batch('MsgId') },
      { details: refs('PmtInfId') },
      { details: refs('EndToEndId') },
      { info: `Order ${name.replaceAll(/.{8}/g, '$& ')}of us` },
    ]);
    const bank_reference = pick(['SUM-1', '']);
    const entry = {
      amount,
      code: 'PMNT.ICDT.ESCT',
      ...how,
      ...(bank_reference && { bank_reference }),
    };
    const { sums, movements } = await read(
      write(random, drawn, { statements: [{ entries: [entry] }] }),
    );
    expect(sums).toMatchObject([{ kind: 'booked', amount: -amount, names: [FILE] }]);
    expect(movements.filter(({ payout_id }) => shortenId(payout_id) !== FILE)).toEqual([]);
    const isCounted = total !== '' && how.details?.startsWith('<Btch>');
    if (isCounted) expect(sums).toMatchObject([{ count }]);
  },
};

test.each(Object.keys(KINDS))(
  `a report of a bank is read right in each wording: %s (KIND_SEED=${SEED})`,
  async (kind) => {
    const random = createRandom(SEED);
    for (let round = 0; round < ROUNDS; round += 1) {
      try {
        await KINDS[kind]?.(random);
      } catch (error) {
        throw new Error(`KIND_SEED=${SEED}, round ${round}: ${kind}`, { cause: error });
      }
    }
  },
);
