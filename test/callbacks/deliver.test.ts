import { randomUUID } from 'node:crypto';
import { ZodError } from 'zod';
import { CallbackConflict } from '../../connectors/contract/callbacks';
import { deliverCallback, type ResourceCallback } from '../../src/callbacks/deliver';
import { signCallback } from '../../src/callbacks/mac';
import { createCallbackMemory } from '../../src/callbacks/memory';
import { payoutWorkflowId } from '../../src/domain/payout/payout';
import { refundWorkflowId } from '../../src/domain/refund/refund';
import type { CallbackDocument } from '../../src/store/callbacks';
import { lifecycleLabels } from '../../src/temporal/labels';
import { useBankWorld } from '../connectors/bank-world';
import { readPayloads } from '../support/histories';

const world = useBankWorld();

const deliver = (callback: ResourceCallback) => deliverCallback(world.server.inbox, callback);

/** A report that a refund has settled, unless it changes that. */
function buildReport(
  resource_id: string,
  change: Partial<ResourceCallback> = {},
): ResourceCallback {
  const callback = { callback_id: `cb_${randomUUID()}`, occurred_at: new Date().toISOString() };
  const settled = { resource: 'refund', resource_id, name: 'settled' } as const;
  return { connector: 'sandbox', ...settled, callback, ...change };
}

describe.each([
  ['refund', 'settled', refundWorkflowId, 'completed'],
  ['payout', 'returned', payoutWorkflowId, 'settled'],
] as const)('a callback about a %s', (resource, name, toWorkflowId, foreign) => {
  const build = (id: string) => buildReport(id, { resource, name });
  const know = async (id: string = randomUUID(), connector?: string) =>
    resource === 'refund'
      ? await world.knowRefund({ refund_id: id }, connector)
      : await world.knowPayout({ payout_id: id }, connector);
  const parked = `no such ${resource} at this connector`;

  it('is parked without the resource or with one of another connector, and delivered once it is there', async () => {
    const { id } = await know(undefined, 'another-bank');
    const [callback, foreign] = [build(randomUUID()), build(id)];
    for (const each of [callback, foreign]) {
      expect(await deliver(each)).toBe('parked');
      expect(await world.callbacks(each.resource_id)).toMatchObject([
        { signalled_at: null, parked },
      ]);
      expect(await world.signals(each.resource_id, resource)).toEqual([]);
    }
    await know(callback.resource_id);
    expect(await deliver(callback)).toBe('delivered');
    expect((await world.callbacks(callback.resource_id))[0]?.parked).toBeNull();
  });

  it('is refused with a RangeError if the resource has no such callback', async () => {
    const { id } = await know();
    for (const other of ['authorized', 'expired', foreign] as const) {
      await expect(deliver({ ...build(id), name: other })).rejects.toThrow(RangeError);
    }
    expect([await world.callbacks(id), await world.signals(id, resource)]).toEqual([[], []]);
  });

  it('starts its workflow to resume, also after its end, and signals it once for each ID', async () => {
    const { id } = await know();
    if (resource === 'payout') await world.productSays('payout', id, 'completed');
    const callback = build(id);
    expect(await deliver(callback)).toBe('delivered');
    const repeats = await Promise.all(Array.from({ length: 10 }, () => deliver(callback)));
    expect(repeats).toEqual(Array(10).fill('duplicate'));
    expect(await world.signals(id, resource)).toEqual([name]);
    expect(await world.callbacks(id)).toHaveLength(1);
    const request_id = `sandbox:${callback.callback.callback_id}`;
    const { type, input } = await readPayloads(world.server.temporal, toWorkflowId(id));
    expect({ type, input }).toEqual({
      ...{ type: resource, input: { [`${resource}_id`]: id, resume: true, request_id } },
    });
  });
});

describe('a callback', () => {
  it('about a refund reaches no payment of the same ID', async () => {
    const { id } = await world.openFor();
    expect(await deliver(buildReport(id))).toBe('parked');
    expect(await world.signals(id)).toEqual([]);
  });

  it('reaches a workflow of its connector that runs before the refund is stored', async () => {
    const id = randomUUID();
    const { temporal, inbox } = world.server;
    const facts = { account_id: 'a', livemode: false, amount: 1, currency: 'EUR', method: 'ideal' };
    const start = (connector?: string) =>
      temporal.workflow.start('refund', {
        workflowId: refundWorkflowId(id),
        workflowIdConflictPolicy: 'TERMINATE_EXISTING',
        taskQueue: inbox.lifecycleQueue,
        ...(connector &&
          lifecycleLabels('refund', { ...facts, connector }, { status: 'processing' })),
      });
    await start('another-bank');
    expect(await deliver(buildReport(id))).toBe('parked');
    expect(await world.signals(id, 'refund')).toEqual([]);
    for (const connector of ['sandbox', undefined]) {
      await start(connector);
      expect(await deliver(buildReport(id))).toBe('delivered');
      expect(await world.signals(id, 'refund')).toEqual(['settled']);
    }
  });

  it('is refused if it has the ID of another', async () => {
    const { id } = await world.knowRefund();
    const callback = buildReport(id);
    await deliver(callback);
    await expect(deliver({ ...callback, name: 'failed' })).rejects.toThrow(CallbackConflict);
    expect(await world.signals(id, 'refund')).toEqual(['settled']);
  });

  it.each([
    ['no resource id', { resource_id: undefined }],
    ['a resource id that is no UUID', { resource_id: '*' }],
    ['an unknown resource', { resource: 'invoice' }],
    ['an impossible connector', { connector: 'a.b' }],
    ['no id', { callback: { occurred_at: new Date().toISOString() } }],
  ])('with %s is refused, and no callback is stored', async (_, change: object) => {
    const { callbacks } = world.server.inbox.stores;
    const before = await callbacks.countWaiting({ waits: 'any' });
    const report = { ...buildReport(randomUUID()), ...change };
    await expect(deliver(report)).rejects.toThrow(ZodError);
    expect(await callbacks.countWaiting({ waits: 'any' })).toBe(before);
  });

  it('is stored without its undefined fields', async () => {
    const { id } = await world.knowRefund();
    const reported = buildReport(id);
    await deliver({ ...reported, callback: { ...reported.callback, code: undefined } });
    expect((await world.callbacks(id))[0]?.body).toEqual(reported.callback);
  });

  it('is parked only up to 1,000 of a connector, whose others are still delivered', async () => {
    const connector = 'crowded';
    const build = (id: string = randomUUID()) => buildReport(id, { connector });
    const parked = Array.from({ length: 1_000 }, (): CallbackDocument => {
      const { callback: body, ...target } = build();
      const times = { received_at: body.occurred_at, signalled_at: null };
      return { _id: randomUUID(), ...target, body, ...times, unapplied: null, parked: 'unknown' };
    });
    await world.insertCallbacks(parked);
    const last = build();
    expect(await deliver(last)).toBe('parked');

    const next = build();
    await expect(deliver(next)).rejects.toMatchObject({ code: 'rate_limited' });
    expect(await world.callbacks(next.resource_id)).toEqual([]);

    expect(await deliver(last)).toBe('parked');
    const { id } = await world.knowRefund({}, connector);
    expect(await deliver(build(id))).toBe('delivered');
    expect(await deliver(buildReport(randomUUID()))).toBe('parked');
  });
});

describe('a process with a memory of callbacks', () => {
  const openMemory = () =>
    createCallbackMemory(world.server.inbox.stores.callbacks, { warn: () => {} });

  it('signals a callback again that another process has signed, although it signaled the first', async () => {
    const { inbox } = world.server;
    const { id } = await world.knowRefund();
    const report = buildReport(id);
    const memory = openMemory();
    await deliverCallback({ ...inbox, memory }, report);
    // Another process stores its signature, and dies before it signals.
    const key = { key_id: 'cnkey_1', secret: 'cnsec_1' };
    const { key_id, v1: signature } = signCallback(key, report);
    const _id = `${report.connector}:${report.callback.callback_id}`;
    const signed = { body: report.callback, key_id, signature };
    await inbox.stores.callbacks.replaceSignature({ _id }, signed);
    await memory.close();
    expect(await deliverCallback({ ...inbox, key }, report)).toBe('delivered');
    expect(await world.signals(id, 'refund')).toEqual(['settled', 'settled']);
    expect(await deliverCallback({ ...inbox, key }, report)).toBe('duplicate');
  });

  it('signals a known resource without reading it, records this soon, and signals once', async () => {
    const { inbox } = world.server;
    const memory = openMemory();
    const { id } = await world.knowRefund();
    await deliverCallback({ ...inbox, memory }, buildReport(id));
    const get = () => Promise.reject(new Error('It looked.'));
    const stores = { ...inbox.stores, refunds: { ...inbox.stores.refunds, get } };
    const deps = { ...inbox, memory, stores };
    const callback = buildReport(id, { name: 'failed' });
    const receipts = [await deliverCallback(deps, callback), await deliverCallback(deps, callback)];
    expect(receipts).toEqual(['delivered', 'duplicate']);
    expect(await world.signals(id, 'refund')).toEqual(['settled', 'failed']);
    await memory.close();
    const times = (await world.callbacks(id)).map(({ signalled_at }) => signalled_at);
    expect(times).toEqual([expect.any(String), expect.any(String)]);
    expect(await deliver(callback)).toBe('duplicate');
  });
});
