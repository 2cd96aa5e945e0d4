import { Client, Connection } from '@temporalio/client';
import { retryUntilDone } from '../support/insist';
import { instruction } from './bank-server';
import { until, useBankWorld } from './bank-world';

const world = useBankWorld();

const activities = () => world.server.bank.activities;
/** Longer than any test, and than a busy machine needs. */
const AGES_MS = 200_000;

describe('void against settlement', () => {
  it('a void before the settlement wins: nothing settles any more', async () => {
    const { id, instruction, answer } = await world.openVoided();
    expect(answer).toEqual({ outcome: 'voided' });
    expect(await activities().voidPayment(instruction)).toEqual({ outcome: 'voided' });
    const states = (await world.rows(id)).map(({ name, state }) => ({ name, state }));
    expect(states).toContainEqual({ name: 'settled', state: 'dropped' });
  });

  it('a void after the settlement is told so', async () => {
    const { id, url } = await world.openFor();
    await world.approve(url);
    await until(
      () => world.sessionOf(id),
      (session) => session?.status === 'settled',
    );
    expect(
      await activities().voidPayment({ payment_id: id, instruction_id: `void:${id}` }),
    ).toMatchObject({ outcome: 'already_settled', amount: expect.any(Number), currency: 'EUR' });
  });

  it('at the same moment exactly one of them takes place, twenty times over', async () => {
    const opened = await Promise.all(Array.from({ length: 20 }, () => world.openFor()));
    await Promise.all(opened.map(({ url }) => world.approve(url)));
    const outcomes = await Promise.all(
      opened.map(async ({ id }, index) => {
        const settles = (await world.rows(id)).find(({ name }) => name === 'settled');
        const wait = (settles?.due_at.getTime() ?? 0) - Date.now() + index * 20;
        await new Promise((resolve) => setTimeout(resolve, wait));
        const void_ = { payment_id: id, instruction_id: `void:${id}` };
        return await retryUntilDone(() => activities().voidPayment(void_));
      }),
    );
    for (const [index, { id }] of opened.entries()) {
      const voided = outcomes[index]?.outcome === 'voided';
      const done = await until(
        () => world.rows(id),
        (all) => all.every((row) => row.done_at !== null),
      );
      const settled = done.find(({ name }) => name === 'settled');
      expect(settled?.state).toBe(voided ? 'dropped' : 'sent');
      expect((await world.sessionOf(id))?.status).toBe(voided ? 'voided' : 'settled');
      expect((await world.callbacks(id)).some(({ name }) => name === 'settled')).toBe(!voided);
    }
  });
});

describe('the outbox', () => {
  it('keeps what could not be sent and sends it after a restart, with the same id', async () => {
    const connection = Connection.lazy({ address: '127.0.0.1:1' });
    await world.server.restart({ autoplay: false, temporal: new Client({ connection }) });
    const { id, url } = await world.openFor();
    await world.approve(url);
    const [failed] = await until(
      () => world.rows(id),
      ([row]) => row?.last_error != null,
    );
    expect(failed?.state).toBe('pending');
    await world.server.restart({ autoplay: false });
    await until(
      () => world.signals(id),
      (names) => names.length === 1,
    );
    const kept = await world.callbacks(id);
    expect(kept.map(({ body }) => body.callback_id)).toEqual([failed?.body.callback_id]);
    await connection.close();
  });

  it('sends again what a killed sender had taken, and it counts once', async () => {
    const { id, url } = await world.openFor();
    await world.approve(url);
    await until(
      () => world.signals(id),
      (names) => names.length === 1,
    );
    await until(
      () => world.rows(id),
      ([row]) => row?.state === 'sent',
    );
    // As a kill between the delivery and the mark leaves it.
    await world.outbox.updateOne(
      { resource_id: id, name: 'authorized' },
      { $set: { state: 'pending', done_at: null, due_at: new Date() } },
    );
    await until(
      () => world.rows(id),
      ([row]) => row?.state === 'sent',
    );
    expect(await world.callbacks(id)).toHaveLength(1);
    expect(await world.signals(id)).toEqual(['authorized']);
  });
});

describe('magic amounts', () => {
  it('66601 opens slowly the first time, and at once when asked again', async () => {
    const slowSessionMs = 2_000;
    await world.server.restart({ slowSessionMs });
    const input = instruction({ amount: 66_601 });
    const before = performance.now();
    await activities().openSession(input);
    const opened = performance.now();
    expect(opened - before).toBeGreaterThanOrEqual(slowSessionMs - 1);
    await world.server.restart({ slowSessionMs: AGES_MS });
    await activities().openSession(input);
    expect(performance.now() - opened).toBeLessThan(AGES_MS);
    await world.server.restart();
  });

  it('66602 is declined at open, each time', async () => {
    const input = instruction({ amount: 66_602 });
    const first = await activities().openSession(input);
    expect(first).toMatchObject({ outcome: 'declined', code: 'declined' });
    expect(await activities().openSession(input)).toEqual(first);
  });

  it.each([
    [66_603, ['authorized']],
    [66_604, ['settled', 'authorized']],
    [66_605, ['authorized', 'failed']],
  ])('%i is signalled as %j', async (amount, names) => {
    await world.server.restart({ autoplay: true });
    const { id, url } = await world.openFor({ amount });
    await world.approve(url);
    const done = await until(
      () => world.rows(id),
      (all) => all.every(({ state }) => state === 'sent'),
    );
    expect(done).toHaveLength(amount === 66_604 ? 4 : names.length);
    expect(await world.signals(id)).toEqual(names);
  });
});
