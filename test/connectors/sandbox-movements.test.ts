import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import type { BankResource } from '../../src/domain/callback/callback';
import type { MovementDocument } from '../../src/service/sandbox-bank/movements';
import { until, useBankWorld } from './bank-world';

const world = useBankWorld();

const activities = () => world.server.bank.activities;
const book = () => world.own.collection<MovementDocument>('movements');

async function moved(resource_id: string): Promise<string[]> {
  const rows = await book().find({ resource_id }).sort({ _id: 1 }).toArray();
  return rows.map(({ name, amount, currency }) => `${name} ${amount} ${currency}`);
}

/** References that the bank gave the movements, each its own. */
async function references(resource_id: string): Promise<string[]> {
  return (await book().find({ resource_id }).sort({ _id: 1 }).toArray()).map(
    ({ bank_reference }) => bank_reference,
  );
}

/** Movements of each amount, at once, since each waits for what the bank does later. */
async function movedByAmount(
  amounts: readonly (string | number)[],
  play: (amount: number) => Promise<{ id: string; resource: BankResource }>,
): Promise<Record<string, string[]>> {
  const entries = amounts.map(async (amount) => {
    const { id, resource } = await play(Number(amount));
    if ((await world.rows(id)).length > 0) await world.told(id, resource);
    const movements = await moved(id);
    expect(new Set(await references(id)).size).toBe(movements.length);
    return [amount, movements] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

test('an approved payment moves its amount when it settles, once', async () => {
  const expected = {
    4950: ['settled 4950 EUR'],
    66601: ['settled 66601 EUR'],
    66603: [],
    66604: ['settled 66604 EUR'],
    66605: [],
  };
  const play = async (amount: number) => {
    const { id, url } = await world.openFor({ amount });
    await world.approve(url);
    return { id, resource: 'payment' } as const;
  };
  expect(await movedByAmount(Object.keys(expected), play)).toEqual(expected);
});

test('a refund moves its amount when it settles, once', async () => {
  const expected = {
    1250: ['settled -1250 EUR'],
    66611: [],
    66612: [],
    66613: [],
    66614: ['settled -66614 EUR'],
    66615: ['settled -66615 EUR'],
    66616: ['settled -66616 EUR'],
  };
  const play = async (amount: number) => {
    const { input, id } = await world.knowRefund({ amount });
    await activities().sendRefund(input).catch(String);
    await activities().sendRefund(input);
    return { id, resource: 'refund' } as const;
  };
  expect(await movedByAmount(Object.keys(expected), play)).toEqual(expected);
});

test('a payout moves its amount when it is sent, once, and when it comes back', async () => {
  const expected = {
    3400: ['sent -3400 EUR'],
    66621: [],
    66622: ['sent -66622 EUR', 'failed 66622 EUR'],
    66624: [],
    66625: ['sent -66625 EUR'],
    66626: ['sent -66626 EUR'],
    66627: ['sent -66627 EUR', 'returned 66627 EUR'],
    66628: ['sent -66628 EUR', 'returned 66628 EUR'],
    66629: ['sent -66629 EUR', 'returned 66629 EUR'],
  };
  const play = async (amount: number) => {
    const { input, id } = await world.knowPayout({ amount });
    await activities().sendPayout(input).catch(String);
    await activities().sendPayout(input);
    return { id, resource: 'payout' } as const;
  };
  expect(await movedByAmount(Object.keys(expected), play)).toEqual(expected);
});

test('money that is sent back leaves once for each instruction, and never more than came', async () => {
  const { id, url } = await world.openFor();
  await world.approve(url);
  await world.told(id, 'payment');
  await world.holdLate(id, 'first', 'again');
  const reversal = {
    ...{ payment_id: id, instruction_id: `reversal:${id}` },
    ...{ amount: 4_950, currency: 'EUR' },
  };
  await activities().reversePayment(reversal);
  await activities().reversePayment(reversal);
  await activities().reversePayment({ ...reversal, instruction_id: `reversal:${id}:again` });
  await world.told(id, 'payment');
  expect(await moved(id)).toEqual(['settled 4950 EUR', 'reversed -4950 EUR']);
});

test('a released authorization moves nothing', async () => {
  const { id } = await world.openVoided();
  await until(
    () => world.rows(id),
    (rows) => rows.every(({ done_at }) => done_at !== null),
  );
  expect(await moved(id)).toEqual([]);
});

test('what the bank repeats because nobody received it has moved once', async () => {
  const connection = Connection.lazy({ address: '127.0.0.1:1' });
  const { id, url } = await world.openFor();
  await world.server.restart({ temporal: new Client({ connection }) });
  await world.approve(url);
  const settled = async () => (await world.rows(id)).find(({ name }) => name === 'settled');
  await until(settled, (row) => Number(row?.attempts) >= 2);
  expect(await moved(id)).toEqual(['settled 4950 EUR']);
  await world.server.restart();
  await world.told(id, 'payment');
  expect(await moved(id)).toEqual(['settled 4950 EUR']);
  await connection.close();
});

test('a settlement that was simulated is the one that the bank settles later', async () => {
  const { id, url } = await world.openFor();
  const bank_reference = (await world.sessionOf(id))?.bank_reference ?? '';
  const callback_id = `simulated_${randomUUID()}`;
  const occurred_at = new Date().toISOString();
  await world.reports.add({
    ...{ _id: callback_id, connector: 'sandbox', at: new Date() },
    ...({ resource: 'payment', resource_id: id, name: 'settled', bank_reference } as const),
    ...{ amount: 4_950, currency: 'EUR', body: { callback_id, occurred_at, bank_reference } },
  });
  await world.approve(url);
  await until(
    () => world.rows(id),
    (rows) => rows.length === 3 && rows.every(({ state }) => state === 'sent'),
  );
  expect((await world.signals(id)).filter((name) => name === 'settled')).toHaveLength(2);
  expect(await moved(id)).toEqual(['settled 4950 EUR']);
});
