import { randomInt } from 'node:crypto';
import { verifyLedger } from '../../../src/ledger-check/verify';
import { shortenId } from '../../../src/service/banks/sepa/book';
import { reconcileAccounts } from '../../../src/service/banks/statements/reconciliation';
import { readBalances } from '../../support/book';
import { type CamtEntry, camt } from '../../support/camt';
import { eventually } from '../../support/eventually';
import { idealPayment } from '../../support/http';
import { describeWithBank } from '../../support/mock-bank';
import { createRandom } from '../../support/random';
import { DAY, IBAN, writeResults } from './bank-files';
import { type Part, VERSIONS, type Wording, writeBooking, writeCharges } from './bookings';
import { useSepa } from './world';

const PLAIN: Wording = {
  ...{ version: '08', name: 'EndToEndId', cut: 'as it is', reference: 'entry' },
  ...{ charges: 'none', form: 'record', amount: 'gross' },
};
const NOTIFICATION = 'camt.054.001.08';
const STATEMENT = 'camt.053.001.08';

// The account has one balance, so the order of the stories matters.
describeWithBank('a booking as banks write it', () => {
  const { service, world, payer } = useSepa();
  let balance = 0;
  let number = 0;

  /** Delivers a file of the bank, and imports it. */
  async function deliver(entries: readonly CamtEntry[], message = STATEMENT): Promise<void> {
    number += 1;
    const id = `${message.slice(5, 8)}-${number}`;
    const isStatement = message.startsWith('camt.053');
    const sequence = isStatement ? { sequence: number } : {};
    const about = { id, iban: IBAN, day: DAY, opening: balance, ...sequence };
    const file = camt([{ ...about, entries }], { message });
    if (isStatement) balance += sumUp(entries);
    world.deliver(`${id}.xml`, file.toString());
    await world.drained();
  }
  const sumUp = (rows: readonly { amount: number }[]) =>
    rows.reduce((sum, { amount }) => sum + amount, 0);
  const completed = (ids: readonly string[]) =>
    Promise.all(ids.map((id) => payer.becomes(id, 'completed')));
  const importAll = async () => expect(await world.importRefusals()).toEqual([]);
  /** Submits payouts, and cuts them into a file that only this test reads. */
  async function submit(...amounts: number[]) {
    const ids = await Promise.all(amounts.map((amount) => payer.submit({ amount })));
    const [file = ''] = await world.cut();
    world.drop(file);
    const parts = ids.map((id, at): Part => ({ id, amount: amounts[at] ?? 0, charge: 26 + at }));
    return { ids, file, parts, sum: -amounts.reduce((sum, amount) => sum + amount, 0) };
  }
  const open = async (amount: number) => {
    const { body, text } = await payer.post(
      '/v1/payments',
      idealPayment({
        ...{ method: 'multibanco', country: 'PT', amount },
        customer: { email: 'payer@example.com' },
      }),
    );
    const reference = (await service.stores.payments.get(body.id))?.instructions?.reference;
    if (reference === undefined) throw new Error(text);
    return { id: String(body.id), reference };
  };
  const settled = (id: string) => service.becomes('payments', id, { status: 'settled' });
  const fees = async () => {
    const [account] = await service.stores.bankAccounts.list({ connector: 'sepa', iban: IBAN });
    const read = await readBalances(service.stores, `${account?._id}:sandbox:EUR`);
    return Number(read('expense.bank_fees') ?? 0);
  };
  const reconcile = () => {
    const { stores, mongo } = service;
    const query = { connector: 'sepa', livemode: false, iban: IBAN };
    return reconcileAccounts({ stores, mongo, now: () => new Date() }, query);
  };
  const listLines = (status: string) =>
    service.db.collection('statement_lines').find({ iban: IBAN, status }).toArray();
  /** Checks that each was moved once, and that no line is open but those that a test leaves. */
  async function expectOnce(ids: readonly string[], left = 0): Promise<void> {
    for (const id of ids) {
      expect(await service.stores.movements.forResource(id)).toMatchObject([{ state: 'applied' }]);
    }
    expect(await listLines('open')).toHaveLength(left);
  }
  let left = 0;

  test.each<[string, Partial<Wording>]>([
    ['next to the amount', { charges: 'part' }],
    ['as a total', { charges: 'part', form: 'total', amount: 'net' }],
    ['as a total, and no other amount', { charges: 'part', form: 'total', amount: 'net alone' }],
    ['with tax', { charges: 'part', form: 'tax', amount: 'net' }],
    ['of the entry, in version 02', { charges: 'entry', form: 'record', version: '02' }],
    ['in an entry of its own', { charges: 'separate', form: 'included' }],
  ])('has charges of the bank as a fee: %s', async (_where, wording) => {
    const before = await fees().catch(() => 0);
    const [one, two] = [await submit(1_500), await submit(1_000, 2_000)];
    const style = { ...PLAIN, ...wording };
    const entries = [one, two].flatMap(({ parts }, at) =>
      writeBooking(parts, style, { sign: -1, bank_reference: `F-${number}-${at}` }),
    );
    const ids = [...one.ids, ...two.ids];
    await deliver(entries, `camt.053.001.${style.version}`);
    await completed(ids);
    await importAll();
    await expectOnce(ids);
    expect(before - (await fees())).toBe(26 + 26 + 27);
  });

  const writeBatch = (file: string, count?: number) =>
    `<Btch><PmtInfId>${file}</PmtInfId>${count ? `<NbOfTxs>${count}</NbOfTxs>` : ''}</Btch>`;
  const writeRefs = (refs: string) => `<TxDtls><Refs>${refs}</Refs></TxDtls>`;
  const total = '<Chrgs><TtlChrgsAndTaxAmt Ccy="EUR">0.50</TtlChrgsAndTaxAmt></Chrgs>';

  test.each<[string, (file: string) => Partial<CamtEntry>]>([
    ['PmtInfId', (file) => ({ details: writeBatch(file, 2) })],
    ['MsgId', (file) => ({ details: writeBatch(file).replaceAll('PmtInfId', 'MsgId') })],
    ['its number in upper case', (file) => ({ details: writeBatch(file.toUpperCase(), 2) })],
    ['a part’s PmtInfId', (file) => ({ details: writeRefs(`<PmtInfId>${file}</PmtInfId>`) })],
    ['EndToEndId', (file) => ({ details: writeRefs(`<EndToEndId>${file}</EndToEndId>`) })],
    ['its text', (file) => ({ info: `Collective order ${file.replace(/.{8}/g, '$& ')}` })],
    ['PmtInfId, and no reference', (file) => ({ details: writeBatch(file), bank_reference: '' })],
    ['PmtInfId, with charges', (file) => ({ details: writeBatch(file), more: total })],
  ])('is one sum of a file that it names by %s', async (_how, describe) => {
    const { ids, file, sum } = await submit(1_000, 2_000);
    const { bank_reference = `SUM-${number}`, ...more } = describe(file);
    const named = bank_reference === '' ? {} : { bank_reference };
    const entry = { amount: more.more ? sum - 50 : sum, code: 'PMNT.ICDT.ESCT', ...named, ...more };
    await deliver([entry]);
    const [one] = await completed(ids);
    expect(one).toMatchObject({ status: 'completed' });
    const [callback] = await service.stores.callbacks.forResource(ids[0] ?? '');
    expect(callback?.body).toMatchObject({ value_date: DAY });
    await importAll();
    await expectOnce(ids);
    expect((await world.show(file)).file.state).toBe('booked');
  });

  const details: Wording = { ...PLAIN, reference: 'both' };
  const noNames: Wording = { ...details, name: 'nowhere' };
  test.each<[string, boolean, Wording, string, string]>([
    ['details, then the sum', true, details, NOTIFICATION, STATEMENT],
    ['the sum, then details', false, details, STATEMENT, NOTIFICATION],
    ['a sum that is announced, then details', false, details, NOTIFICATION, STATEMENT],
    ['details, then a sum that is announced', true, details, STATEMENT, NOTIFICATION],
    ['a sum that is announced, then nameless details', false, noNames, NOTIFICATION, STATEMENT],
    ['details by place, then the sum', true, PLAIN, NOTIFICATION, STATEMENT],
  ])(
    'is known by the reference of entry or part: %s',
    async (_what, isFirst, wording, ...messages) => {
      const { ids, file, parts, sum } = await submit(1_000, 2_000, 2_000);
      const bank_reference = `BK-${number}`;
      const split = writeBooking(parts, wording, { sign: -1, bank_reference });
      // The sum names its file only where it comes first.
      const batch = isFirst ? { details: '<Btch><NbOfTxs>3</NbOfTxs></Btch>' } : {};
      const whole = { amount: sum, bank_reference, details: writeBatch(file, 3), ...batch };
      const [first = [], second = []] = isFirst ? [split, [whole]] : [[whole], split];
      await deliver(first, messages[0]);
      await completed(ids);
      await importAll();
      await deliver(second, messages[1]);
      await importAll();
      await expectOnce(ids);
      expect(await listLines('announced')).toEqual([]);
    },
  );

  test('that comes in is known by the reference of its entry, also before its parts', async () => {
    const payments = [await open(1_000), await open(2_000)];
    const parts = payments.map(({ reference }, at) => ({
      id: reference,
      amount: (at + 1) * 1_000,
      charge: 0,
    }));
    await deliver([
      { amount: 3_000, bank_reference: 'IN-1', details: '<Btch><NbOfTxs>2</NbOfTxs></Btch>' },
    ]);
    await importAll();
    expect(await listLines('open')).toHaveLength(1);
    await deliver(writeBooking(parts, details, { sign: 1, bank_reference: 'IN-1' }), NOTIFICATION);
    for (const { id } of payments) await settled(id);
    await importAll();
    await expectOnce(payments.map(({ id }) => id));
    expect(await listLines('announced')).toEqual([]);
  });

  test('leaves out what failed before, and what came back later is returned once', async () => {
    const { ids, file, sum } = await submit(1_000, 2_000, 4_000);
    const [failed = '', returned = '', paid = ''] = ids;
    const part = writeResults(file, { [failed]: ['RJCT', 'AC04'] }, '<GrpSts>PART</GrpSts>');
    world.deliver('part.xml', part);
    await payer.becomes(failed, 'failed');
    const booked = { amount: sum + 1_000, bank_reference: 'LESS-1', details: writeBatch(file, 2) };
    await deliver([booked]);
    await completed([returned, paid]);
    const refs = `<Refs><EndToEndId>${shortenId(returned)}</EndToEndId></Refs>`;
    const back = `<TxDtls>${refs}<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf></TxDtls>`;
    await deliver([{ amount: 2_000, bank_reference: 'BACK-1', details: back }]);
    await payer.becomes(returned, 'returned');
    await importAll();
    await expectOnce([paid]);
    expect(await service.stores.movements.forResource(failed)).toEqual([]);
  });

  test('is booked again after the bank has reversed it, and nothing is said of a return', async () => {
    const { ids, file, sum } = await submit(1_000, 2_000);
    const entry = { amount: sum, bank_reference: 'DAY-1', details: writeBatch(file, 2) };
    await deliver([entry]);
    await completed(ids);
    await deliver([
      { ...entry, amount: -sum, bank_reference: 'DAY-2', reversal: true },
      { ...entry, bank_reference: 'DAY-3' },
    ]);
    for (const id of ids) await payer.needsAttention(id, null);
    const movements = await eventually('three movements', async () => {
      const found = await service.stores.movements.forResource(ids[0] ?? '');
      return found.length === 3 && found.every(({ state }) => state !== 'suspense') && found;
    });
    expect(movements.map(({ direction }) => direction)).toEqual(['out', 'in', 'out']);
    await completed(ids);
    await importAll();
    expect(await listLines('open')).toEqual([]);
  });

  test.each<[string, number[], number | undefined]>([
    ['another sum', [-2_999], 2],
    ['another number', [-3_000], 3],
    ['one of two sums', [-1_000], undefined],
  ])('of a file with %s is left open, with the file', async (_what, amounts, count) => {
    const { ids, file } = await submit(1_000, 2_000);
    const write = (amount: number, at: number) => {
      return { amount, bank_reference: `X-${number}-${at}`, details: writeBatch(file, count) };
    };
    await deliver(amounts.map(write));
    await importAll();
    for (const id of ids) expect(await payer.read(id)).toMatchObject({ status: 'submitted' });
    left += amounts.length;
    const lines = await listLines('open');
    expect(lines).toHaveLength(left);
    expect(lines.filter(({ files }) => files.includes(file))).toHaveLength(amounts.length);
  });

  test.each<[string, number[], number[], number]>([
    ['one way', [1_000, 2_000, 4_000], [-4_000, -3_000], 0],
    ['more than one way, whose lines stay open,', [1_000, 1_000, 2_000], [-2_000, -2_000], 2],
  ])(
    'is of a file in sums that %s makes up, after the last',
    async (_how, amounts, sums, count) => {
      const { ids, file } = await submit(...amounts);
      const [first, second] = sums.map((amount, at) => ({
        ...{ amount, bank_reference: `CUT-${number}-${at}`, details: writeBatch(file) },
      })) as [CamtEntry, CamtEntry];
      // A repeat is no second sum.
      for (const message of [NOTIFICATION, STATEMENT, 'camt.054.001.02']) {
        await deliver([first], message);
      }
      for (const id of ids) expect(await payer.read(id)).toMatchObject({ status: 'submitted' });
      await deliver([second]);
      await completed(ids);
      await importAll();
      left += count;
      await expectOnce(ids, left);
      expect(await listLines('announced')).toEqual([]);
    },
  );

  test.each([
    ['later', 'ALL', false],
    ['in the file that books it', 'ONE', true],
  ])('comes back as one sum %s, and each payout is returned once', async (_when, name, isOne) => {
    const { ids, file, sum } = await submit(1_000, 2_000);
    const entry = { amount: sum, bank_reference: `${name}-1`, details: writeBatch(file, 2) };
    const back = { ...entry, amount: -sum, bank_reference: `${name}-2`, code: 'PMNT.RCDT.RRTN' };
    if (isOne) await deliver([back, entry]);
    else {
      await deliver([entry]);
      await completed(ids);
      for (const message of [NOTIFICATION, STATEMENT]) await deliver([back], message);
    }
    for (const id of ids) await payer.becomes(id, 'returned');
    await importAll();
    expect(await listLines('open')).toHaveLength(left);
    for (const id of ids) expect(await service.stores.movements.forResource(id)).toHaveLength(2);
  });

  test.each<[string, Partial<Wording>]>([
    ['AddtlNtryInf', { name: 'AddtlNtryInf', cut: 'words' }],
    ['AddtlTxInf, with spaces', { name: 'AddtlTxInf', cut: 'spaces' }],
    ['another payment’s text, cut into lines', { name: 'Ustrd', cut: 'words' }],
  ])('names payments and payouts of ours in its text: %s', async (_where, wording) => {
    const style = { ...PLAIN, ...wording };
    const { ids, parts } = await submit(1_100);
    const payment = await open(1_200);
    const credit = [{ id: payment.reference, amount: 1_200, charge: 0 }];
    await deliver([
      ...writeBooking(parts, style, { sign: -1, bank_reference: `OUT-${number}` }),
      ...writeBooking(credit, style, { sign: 1, bank_reference: `IN-${number}` }),
    ]);
    await completed(ids);
    await settled(payment.id);
    await importAll();
    await expectOnce([...ids, payment.id], left);
    const stored = await service.db.collection('statement_lines').find({ iban: IBAN }).toArray();
    expect(JSON.stringify(stored) + world.logged.join('')).not.toMatch(/Lovelace|FR76/);
  });

  test('whose text fits two, or none by its amount, is about none of them', async () => {
    const { ids, file } = await submit(1_300, 1_300, 1_400);
    const [one = '', two = '', three = ''] = ids;
    const write = (bank_reference: string, amount: number, info: string) => {
      return { amount, bank_reference, info, reference: 'NOTPROVIDED' };
    };
    const message = [
      write('T-1', -1_300, `${one} or ${shortenId(two)}`),
      write('T-2', -1_401, three),
      write('T-3', 1_400, three),
    ];
    await deliver(message, NOTIFICATION);
    expect((await world.show(file)).rows.map(({ state }) => state)).toEqual(
      ids.map(() => 'in_file'),
    );
    // What one of them has is not the other's.
    const named = { amount: -1_300, bank_reference: 'T-1', reference: shortenId(one) };
    await deliver([named], NOTIFICATION);
    await completed([one]);
    await deliver(message, NOTIFICATION);
    const states = (await world.show(file)).rows.map((row) => [row.payout_id, row.state]);
    expect(Object.fromEntries(states)).toMatchObject({ [one]: 'booked', [two]: 'in_file' });
    await importAll();
  });

  test('counts once, whatever is repeated, or ends between its steps', async () => {
    const { ids, file, sum } = await submit(1_000, 2_000);
    const entry = { amount: sum, bank_reference: 'ONCE', details: writeBatch(file, 2) };
    await deliver([entry], NOTIFICATION);
    await completed(ids);
    // As before the record of the file, and with the facts of one payout alone.
    await world.book.inbound.deleteMany({ name: `054-${number}.xml` });
    const [first = '', second = ''] = ids;
    const unread = { booked: null, state: 'in_file' as const };
    await world.book.lines.updateOne({ _id: second }, { $set: unread });
    await world.book.lines.updateOne({ _id: first }, { $set: { unreported: true } });
    await world.restart();
    for (const message of [NOTIFICATION, 'camt.054.001.02', STATEMENT]) {
      await deliver([entry], message);
      await world.lineBecomes(second, 'booked');
      await importAll();
    }
    await eventually('the reports', async () => {
      return (await world.book.lines.countDocuments({ unreported: true })) === 0;
    });
    await expectOnce(ids, left);
  });

  test('is right in any wording, for each seed', async () => {
    const seed = Number(process.env['BOOKING_SEED'] ?? randomInt(1_000_000));
    const { pick, integer, chance } = createRandom(seed);
    for (let round = 0; round < Number(process.env['BOOKING_ROUNDS'] ?? 6); round += 1) {
      const version = pick(VERSIONS);
      const wording: Wording = {
        version,
        charges: pick<Wording['charges']>(['none', 'part', 'entry', 'separate']),
        reference: pick<Wording['reference']>(['entry', 'part', 'both', 'none']),
        name: pick<Wording['name']>(['EndToEndId', 'Ustrd', 'AddtlTxInf']),
        cut: pick<Wording['cut']>(['as it is', 'dashes', 'spaces', 'words']),
        form: pick<Wording['form']>(['record', 'total', 'tax', 'included']),
        amount: pick<Wording['amount']>(['gross', 'net', 'net alone']),
      };
      const amounts = Array.from({ length: integer(1, 3) }, () => integer(1_000, 2_000));
      const { ids, parts, file } = await submit(...amounts);
      const payment = await open(integer(5_000, 6_000));
      const paid = (await service.stores.payments.get(payment.id))?.amount ?? 0;
      const credit = [{ id: payment.reference, amount: paid, charge: 31 }];
      const [bank_reference, other] = [`R-${seed}-${round}`, `C-${seed}-${round}`];
      const [out, ...fee] = writeBooking(parts, wording, { sign: -1, bank_reference });
      const within = parts.reduce((total, { amount }) => total - amount, -(out?.amount ?? 0));
      const more = within === 0 ? {} : { more: writeCharges(within, { form: 'total', version }) };
      const whole = {
        ...{ amount: out?.amount ?? 0, bank_reference, code: 'PMNT.ICDT.ESCT', ...more },
        details: writeBatch(file, ids.length),
      };
      const received = writeBooking(credit, wording, { sign: 1, bank_reference: other });
      const split = [...(out === undefined ? [] : [out]), ...received];
      const views = pick([
        [split],
        [split, split],
        [[whole, ...received]],
        [[whole], split],
        [split, [whole, ...received]],
      ]);
      const booked = integer(0, views.length - 1);
      try {
        for (const [at, view] of views.entries()) {
          const isBooked = at === booked;
          const all =
            isBooked && !view.includes(received[0] ?? whole) ? [...view, ...received] : view;
          const message = `camt.05${isBooked ? 3 : 4}.001.${version}`;
          await deliver(isBooked ? [...all, ...fee] : all, message);
          if (chance(0.5)) await world.importAll();
        }
        await completed(ids);
        await settled(payment.id);
        await importAll();
        await reconcile();
        await expectOnce([...ids, payment.id], left);
      } catch (error) {
        const what = JSON.stringify({ views, booked, wording });
        throw new Error(`BOOKING_SEED=${seed}, round ${round}: ${what}`, { cause: error });
      }
    }
  });

  test('leaves books that add up', async () => {
    const { differences } = await verifyLedger(service.mongo, service.db.databaseName, {});
    expect(differences).toEqual([]);
  });
});
