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

const facts = { account_id: 'a', livemode: false, amount: 1, currency: 'EUR', method: 'ideal' };

function buildReport(
  resource_id: string,
  change: Partial<ResourceCallback> = {},
): ResourceCallback {
  const callback = { callback_id: `cb_${randomUUID()}`, occurred_at: new Date().toISOString() };
  const settled = { resource: 'refund', resource_id, name: 'settled' } as const;
  return { connector: 'sandbox', ...settled, callback, ...change };
}

/** Reads the type and input that the workflow was started with. */
async function readStart(workflowId: string) {
  const { type, input } = await readPayloads(world.server.temporal, workflowId);
  return { type, input };
}

describe.each(['refund', 'payout'] as const)('a callback about a %s', (resource) => {
  const name = resource === 'refund' ? 'settled' : 'returned';
  const build = (id: string) => buildReport(id, { resource, name });
  const know = async (id: string = randomUUID(), connector?: string) =>
    resource === 'refund'
      ? await world.knowRefund({ refund_id: id }, connector)
      : await world.knowPayout({ payout_id: id }, connector);
  const parked = `no such ${resource} at this connector`;

  it('is parked without the resource, and delivered once it is there', async () => {
    const id = randomUUID();
    const callback = build(id);
    expect(await deliver(callback)).toBe('parked');
    expect(await world.callbacks(id)).toMatchObject([{ signalled_at: null, parked }]);
    expect(await world.signals(id, resource)).toEqual([]);
    await know(id);
    expect(await deliver(callback)).toBe('delivered');
    expect((await world.callbacks(id))[0]?.parked).toBeNull();
  });

  it('is parked if the resource is of another connector', async () => {
    const { id } = await know(undefined, 'another-bank');
    expect(await deliver(build(id))).toBe('parked');
    expect((await world.callbacks(id))[0]?.parked).toBe(parked);
    expect(await world.signals(id, resource)).toEqual([]);
  });

  it('is refused with a RangeError if the resource has no such callback', async () => {
    const { id } = await know();
    const names = [
      'authorized',
      'expired',
      resource === 'refund' ? 'completed' : 'settled',
    ] as const;
    for (const other of names) {
      await expect(deliver({ ...build(id), name: other })).rejects.toThrow(RangeError);
    }
    expect([await world.callbacks(id), await world.signals(id, resource)]).toEqual([[], []]);
  });
});

describe('a refund', () => {
  it('has its workflow started to resume, with the signal of the callback', async () => {
    const { id } = await world.knowRefund();
    const callback = buildReport(id);
    expect(await deliver(callback)).toBe('delivered');
    expect(await world.signals(id, 'refund')).toEqual(['settled']);
    const request_id = `sandbox:${callback.callback.callback_id}`;
    expect(await readStart(refundWorkflowId(id))).toEqual({
      type: 'refund',
      input: { refund_id: id, resume: true, request_id },
    });
  });

  it('is signaled once for each callback ID, also if ten repeats come at once', async () => {
    const { id } = await world.knowRefund();
    const callback = buildReport(id);
    await deliver(callback);
    const receipts = await Promise.all(Array.from({ length: 10 }, () => deliver(callback)));
    expect(receipts).toEqual(Array(10).fill('duplicate'));
    expect(await world.signals(id, 'refund')).toEqual(['settled']);
    expect(await world.callbacks(id)).toHaveLength(1);
  });

  it('is not a payment of the same ID', async () => {
    const { id } = await world.openFor();
    expect(await deliver(buildReport(id))).toBe('parked');
    expect(await world.signals(id)).toEqual([]);
  });

  it('reaches a workflow of its connector that runs before the refund is stored', async () => {
    const id = randomUUID();
    const { temporal, inbox } = world.server;
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

  it('is refused if it has the ID of another callback', async () => {
    const { id } = await world.knowRefund();
    const callback = buildReport(id);
    await deliver(callback);
    const other = { ...callback, name: 'failed' } as const;
    await expect(deliver(other)).rejects.toThrow(CallbackConflict);
    expect(await world.signals(id, 'refund')).toEqual(['settled']);
  });
});

describe('a process with a memory of callbacks', () => {
  it('signals a callback again that another process has signed, although it signaled the first', async () => {
    const { inbox } = world.server;
    const { callbacks } = inbox.stores;
    const { id } = await world.knowRefund();
    const report = buildReport(id);
    const memory = createCallbackMemory(callbacks, { warn: () => {} });
    await deliverCallback({ ...inbox, memory }, report);
    // Another process stores its signature, and dies before it signals.
    const key = { key_id: 'cnkey_1', secret: 'cnsec_1' };
    const { key_id: signed_by, v1 } = signCallback(key, report);
    const _id = `${report.connector}:${report.callback.callback_id}`;
    await callbacks.replaceSignature({ _id }, { body: report.callback, signed_by, mac: v1 });
    await memory.close();
    expect(await deliverCallback({ ...inbox, key }, report)).toBe('delivered');
    expect(await world.signals(id, 'refund')).toEqual(['settled', 'settled']);
    expect(await deliverCallback({ ...inbox, key }, report)).toBe('duplicate');
  });

  it('signals a known resource without reading it, records this soon, and signals once', async () => {
    const { inbox } = world.server;
    const memory = createCallbackMemory(inbox.stores.callbacks, { warn: () => {} });
    const { id } = await world.knowRefund();
    await deliverCallback({ ...inbox, memory }, buildReport(id));
    const blind = { get: () => Promise.reject(new Error('It looked.')) };
    const refunds = { ...inbox.stores.refunds, ...blind };
    const deps = { ...inbox, memory, stores: { ...inbox.stores, refunds } };
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

describe('a payout', () => {
  const buildReturn = (id: string) => buildReport(id, { resource: 'payout', name: 'returned' });

  it('that has completed resumes for a later return, which is signaled once', async () => {
    const { id } = await world.knowPayout();
    await world.productSays('payout', id, 'completed');
    const callback = buildReturn(id);
    const receipts = [await deliver(callback), await deliver(callback)];
    expect(receipts).toEqual(['delivered', 'duplicate']);
    expect(await world.signals(id, 'payout')).toEqual(['returned']);
    const request_id = `sandbox:${callback.callback.callback_id}`;
    expect(await readStart(payoutWorkflowId(id))).toEqual({
      type: 'payout',
      input: { payout_id: id, resume: true, request_id },
    });
  });

  it('whose workflow has ended gets a new run for a return', async () => {
    const { id } = await world.knowPayout();
    await deliver(buildReport(id, { resource: 'payout', name: 'completed' }));
    const ended = world.server.temporal.workflow.getHandle(payoutWorkflowId(id));
    const first = (await ended.describe()).runId;
    await ended.terminate('The payout has ended.');
    expect(await deliver(buildReturn(id))).toBe('delivered');
    expect((await ended.describe()).runId).not.toBe(first);
    expect(await world.signals(id, 'payout')).toEqual(['returned']);
  });
});

describe('a malformed report', () => {
  const unparsed = (change: object): ResourceCallback => ({
    ...buildReport(randomUUID()),
    ...change,
  });

  it.each([
    ['no resource id', { resource_id: undefined }],
    ['a resource id that is no UUID', { resource_id: '*' }],
    ['an unknown resource', { resource: 'invoice' }],
    ['an impossible connector', { connector: 'a.b' }],
    ['a callback without an id', { callback: { occurred_at: new Date().toISOString() } }],
  ])('with %s is refused before anything is stored or read', async (_, change) => {
    const { id } = await world.knowRefund();
    await expect(deliver(unparsed(change))).rejects.toThrow(ZodError);
    expect(await world.signals(id, 'refund')).toEqual([]);
  });

  it('is stored without its undefined fields', async () => {
    const { id } = await world.knowRefund();
    const reported = buildReport(id);
    await deliver({ ...reported, callback: { ...reported.callback, code: undefined } });
    expect((await world.callbacks(id))[0]?.body).toEqual(reported.callback);
  });
});

test('a connector has at most 1,000 parked callbacks, and its others are still delivered', async () => {
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
