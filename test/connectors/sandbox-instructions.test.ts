import { useInstructed } from './instructed';

const { world, instructed } = useInstructed();

describe.each(Object.values(instructed))('a $resource', (row) => {
  const { taken, done, takenAnswer, entry, statusOf, know, live, lookUp } = row;

  it('gives the same answer to a repeat, also at once and after a restart; plans once', async () => {
    const { id, send } = await know();
    const answers = await Promise.all(Array.from({ length: 5 }, send));
    await world.server.restart();
    answers.push(await send());
    expect(answers[0]).toEqual(takenAnswer);
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(await world.rows(id)).toHaveLength(1);
  });

  it(`is ${done} three seconds later, kept and signalled; a repeat is answered as before`, async () => {
    const { id, send } = await know();
    const answer = await send();
    expect(await row.told(id)).toEqual([done]);
    const [callback] = await world.callbacks(id);
    expect(callback).toMatchObject({ resource: row.resource, connector: 'sandbox', name: done });
    expect({ outcome: taken, bank_reference: callback?.body.bank_reference }).toEqual(answer);
    const sentAt = (await entry(id))?.created_at.getTime() ?? 0;
    expect(Date.parse(callback?.body.occurred_at ?? '') - sentAt).toBeGreaterThanOrEqual(3_000);
    expect(await statusOf(id)).toBe(done);
    expect(await send()).toEqual(answer);
    expect(await lookUp(id)).toEqual(answer);
    expect(await world.rows(id)).toHaveLength(1);
  });

  it('writes nothing in its book when the callbacks could not be planned', async () => {
    const { id, send } = await know();
    await world.own.command({ collMod: 'outbox', validator: { resource: 'payment' } });
    await expect(send()).rejects.toThrow('validation');
    expect(await lookUp(id)).toEqual({ outcome: 'not_found' });
    await world.own.command({ collMod: 'outbox', validator: {} });
    expect(await send()).toEqual(takenAnswer);
    expect(await world.rows(id)).toHaveLength(1);
  });

  it(`leaves it ${taken} with autoplay off`, async () => {
    await world.server.restart({ autoplay: false });
    const { id, send } = await know();
    expect(await send()).toEqual(takenAnswer);
    expect([await world.rows(id), await statusOf(id)]).toEqual([[], taken]);
    await world.server.restart();
  });

  it('refuses what is live', async () => {
    const { id, send } = live();
    expect(await send()).toMatchObject({ outcome: 'refused', code: 'live_not_supported' });
    expect(await world.rows(id)).toEqual([]);
    expect(await lookUp(id)).toEqual({ outcome: 'not_found' });
  });

  it('is outdated when the document has moved on or is final, and waits for one that is missing', async () => {
    const { id, send, sendOutdated } = await know();
    expect(await sendOutdated()).toEqual({ outcome: 'outdated' });
    await row.productSays(id, 'failed');
    expect(await send()).toEqual({ outcome: 'outdated' });
    await row.productForgets(id);
    await expect(send()).rejects.toThrow('not instructed');
    expect(await lookUp(id)).toEqual({ outcome: 'not_found' });
    expect(await world.rows(id)).toEqual([]);
  });

  it('is not found when it was never sent, and found as it was answered', async () => {
    const { id, send } = await know();
    expect(await lookUp(id)).toEqual({ outcome: 'not_found' });
    const answer = await send();
    expect(await lookUp(id)).toEqual(answer);
  });
});
