import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { shortenId } from '../../../src/service/sepa/book';
import { eventually } from '../../support/http';
import { describeWithBank } from '../../support/mock-bank';
import { useService } from '../../support/service';
import { writeNotification } from './bank-files';
import { makePrefix, ROUTES, usePayer, useSepa } from './world';

describeWithBank('money that the bank moves again, or otherwise', () => {
  const prefix = makePrefix();
  const service = useService({ live: { connectors: '', prefix }, tests: ROUTES });
  const payer = usePayer(service);
  const world = useSepa(service, prefix);

  const stored = (id: string) => service.stores.payouts.get(id);
  const attention = (id: string, reason: string) =>
    eventually(`a payout with ${reason}`, async () => {
      const payout = await stored(id);
      return payout?.attention === reason && payout;
    });
  const kinds = async (resource_id: string) => {
    const { postings } = service.stores.ledger.collections;
    const entries = await postings.find({ resource_id }).sort({ at: 1 }).toArray();
    return entries.map(({ kind }) => kind);
  };
  const completed = async (changes: object = {}) => {
    const payout = await payer.submit(changes);
    const file = await world.send();
    await payer.becomes(payout, 'completed');
    await world.drained();
    return { payout, file };
  };
  /** Lets the bank read the file again as another one, as it would execute it twice. */
  const executeAgain = async (file: string) => {
    const name = `pain.001.001.09-${file}.xml`;
    const xml = readFileSync(join(world.bank.drop, 'processed', name), 'utf8');
    writeFileSync(join(world.bank.drop, `again-${file}.xml`), xml.replaceAll(file, `X${file}`));
    await world.bank.scan();
  };
  const callbacks = async (id: string, name: string) =>
    (await service.stores.callbacks.forResource(id)).filter((each) => each.name === name);

  test('a payout that the bank executes twice gets its reason and its entry, once', async () => {
    const { payout, file } = await completed();
    const before = (await world.bank.account('ACME')).balance;
    await executeAgain(file);
    const { sent_again } = await attention(payout, 'second_completion');
    expect(await world.bank.payments(shortenId(payout))).toHaveLength(2);
    expect((await world.bank.account('ACME')).balance).toBe(before - 1_000);
    expect(sent_again).toEqual([expect.objectContaining({ amount: 1_000, currency: 'EUR' })]);
    await world.restart();
    // The statement of the day reports both movements again.
    await world.advance(1);
    await world.drained();
    const statements = await world.importAll();
    expect(statements.map(({ refusal }) => refusal)).toEqual(statements.map(() => null));
    const names = (await callbacks(payout, 'completed')).map(({ body }) => body.callback_id);
    expect(names).toEqual([
      `sepa:booked:${payout}`,
      expect.stringMatching(`^sepa:booked:${payout}:MB-PMT-[0-9]+:1000EUR$`),
    ]);
    const again = (await kinds(payout)).filter((kind) => kind === 'payout_sent_again');
    expect(again).toHaveLength(1);
    expect(await world.line(payout)).toMatchObject({ others: [{ kind: 'booked' }] });
  });

  test('a kill between the facts and the folder reports a second booking once', async () => {
    const { payout } = await completed();
    const second = writeNotification({ id: payout, reference: 'TWICE-1', message: 'T-1' });
    world.deliver('twice.xml', second);
    await attention(payout, 'second_completion');
    await world.drained();
    // As before the record of the file: its facts are stored, and it is in the folder.
    await world.book.inbound.deleteOne({ name: 'twice.xml' });
    await world.book.lines.updateOne({ _id: payout }, { $set: { unreported: true } });
    await world.restart();
    world.deliver('twice.xml', second);
    await world.drained();
    await eventually('the report', async () => (await world.line(payout))?.unreported === false);
    expect(await callbacks(payout, 'completed')).toHaveLength(2);
    expect((await stored(payout))?.sent_again).toHaveLength(1);
  });

  test('a second return under another reference is held', async () => {
    const { payout } = await completed();
    const give = (reference: string) => {
      const returned = { id: payout, reference, message: reference, returned: 'MD07' };
      world.deliver(`${reference}.xml`, writeNotification(returned));
    };
    give('BACK-1');
    await payer.becomes(payout, 'returned');
    const [available] = await payer.balance();
    give('BACK-2');
    const { returns_held } = await attention(payout, 'second_return');
    expect(returns_held).toEqual([
      expect.objectContaining({ id: 'BACK-2', amount: 1_000, is_return: false }),
    ]);
    expect(await payer.balance()).toEqual([available, 0]);
  });

  test.each([
    ['amount', { amount: '9.50' }, { amount: 950, currency: 'EUR' }],
    ['currency', { currency: 'USD' }, { amount: 1_000, currency: 'USD' }],
  ])(
    'holds a booking in another %s until the bank books what it was instructed',
    async (key, wrong, held) => {
      const payout = await payer.submit();
      const [file = ''] = await world.cut();
      const message = `D-${key}`;
      const booking = { id: payout, reference: message, message };
      world.deliver(`${message}.xml`, writeNotification({ ...booking, ...wrong }));
      const { sent_held, status } = await attention(payout, 'amount_differs');
      expect([status, sent_held]).toEqual(['submitted', [expect.objectContaining(held)]]);
      expect(await world.activities().lookUpPayout({ payout_id: payout })).toMatchObject({
        outcome: 'submitted',
      });
      const right = { ...booking, reference: `${message}-2`, message: `${message}-2` };
      world.deliver(`${message}-2.xml`, writeNotification(right));
      await payer.becomes(payout, 'completed');
      expect(await callbacks(payout, 'completed')).toHaveLength(2);
      rmSync(join(world.bank.drop, `pain.001.001.09-${file}.xml`));
    },
  );
});
