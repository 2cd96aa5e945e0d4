import { randomUUID } from 'node:crypto';
import { ZodError } from 'zod';
import { CallbackConflict } from '../../connectors/contract/callbacks';
import { deliverCallback, type ResourceCallback } from '../../src/callbacks/deliver';
import { signCallback } from '../../src/callbacks/mac';
import { createCallbackMemory } from '../../src/callbacks/memory';
import { payoutWorkflowId } from '../../src/domain/payout/payout';
import { refundWorkflowId } from '../../src/domain/refund/refund';
import { lifecycleLabels } from '../../src/temporal/labels';
import { useBankWorld } from '../connectors/bank-world';
import { readPayloads } from '../support/histories';

const world = useBankWorld();

const deliver = (callback: ResourceCallback) => deliverCallback(world.server.inbox, callback);

const facts = { account_id: 'a', livemode: false, amount: 1, currency: 'EUR', method: 'ideal' };

function about(resource_id: string, change: Partial<ResourceCallback> = {}): ResourceCallback {
  const callback = { callback_id: `cb_${randomUUID()}`, occurred_at: new Date().toISOString() };
  const settled = { resource: 'refund', resource_id, name: 'settled' } as const;
  return { connector: 'sandbox', ...settled, callback, ...change };
}

/** Type and input that the workflow was started with. */
async function startOf(workflowId: string) {
  const { type, input } = await readPayloads(world.server.temporal, workflowId);
  return { type, input };
}

describe('a callback about a refund', () => {
  it('starts its workflow to resume, with the signal', async () => {
    const { id } = await world.knowRefund();
    const callback = about(id);
    expect(await deliver(callback)).toBe('delivered');
    expect(await world.signals(id, 'refund')).toEqual(['settled']);
    const request_id = `sandbox:${callback.callback.callback_id}`;
    expect(await startOf(refundWorkflowId(id))).toEqual({
      type: 'refund',
      input: { refund_id: id, resume: true, request_id },
    });
  });

  it('counts once by its id, also when ten repeats come at once', async () => {
    const { id } = await world.knowRefund();
    const callback = about(id);
    await deliver(callback);
    const receipts = await Promise.all(Array.from({ length: 10 }, () => deliver(callback)));
    expect(receipts).toEqual(Array(10).fill('duplicate'));
    expect(await world.signals(id, 'refund')).toEqual(['settled']);
    expect(await world.callbacks(id)).toHaveLength(1);
  });

  it('is parked when there is no such refund; delivered once there is', async () => {
    const id = randomUUID();
    const callback = about(id);
    expect(await deliver(callback)).toBe('parked');
    expect((await world.callbacks(id))[0]).toMatchObject({
      signalled_at: null,
      parked: 'no such refund at this connector',
    });
    expect(await world.signals(id, 'refund')).toEqual([]);
    await world.knowRefund({ refund_id: id });
    expect(await deliver(callback)).toBe('delivered');
    expect((await world.callbacks(id))[0]?.parked).toBeNull();
  });

  it('is parked when the refund is of another connector', async () => {
    const { id } = await world.knowRefund({}, 'another-bank');
    expect(await deliver(about(id))).toBe('parked');
    expect((await world.callbacks(id))[0]?.parked).toBe('no such refund at this connector');
    expect(await world.signals(id, 'refund')).toEqual([]);
  });

  it('is not looked for among payments', async () => {
    const { id } = await world.openFor();
    expect(await deliver(about(id))).toBe('parked');
    expect(await world.signals(id)).toEqual([]);
  });

  it('faster than the first write reaches the workflow that runs', async () => {
    const id = randomUUID();
    const { temporal, inbox } = world.server;
    await temporal.workflow.start('refund', {
      workflowId: refundWorkflowId(id),
      taskQueue: inbox.lifecycleQueue,
    });
    expect(await deliver(about(id))).toBe('delivered');
    expect(await world.signals(id, 'refund')).toEqual(['settled']);
  });

  it('faster than the first write is parked where the workflow is of another connector', async () => {
    const id = randomUUID();
    const { temporal, inbox } = world.server;
    const start = (connector: string) =>
      temporal.workflow.start('refund', {
        workflowId: refundWorkflowId(id),
        workflowIdConflictPolicy: 'TERMINATE_EXISTING',
        taskQueue: inbox.lifecycleQueue,
        ...lifecycleLabels('refund', { ...facts, connector }, { status: 'processing' }),
      });
    await start('another-bank');
    expect(await deliver(about(id))).toBe('parked');
    expect(await world.signals(id, 'refund')).toEqual([]);
    await start('sandbox');
    expect(await deliver(about(id))).toBe('delivered');
    expect(await world.signals(id, 'refund')).toEqual(['settled']);
  });

  it.each(['authorized', 'expired'] as const)('is no `%s`: a RangeError', async (name) => {
    const { id } = await world.knowRefund();
    await expect(deliver(about(id, { name }))).rejects.toThrow(RangeError);
    expect([await world.callbacks(id), await world.signals(id, 'refund')]).toEqual([[], []]);
  });

  it('may not use the id of another', async () => {
    const { id } = await world.knowRefund();
    const callback = about(id);
    await deliver(callback);
    const other = { ...callback, name: 'failed' } as const;
    await expect(deliver(other)).rejects.toThrow(CallbackConflict);
    expect(await world.signals(id, 'refund')).toEqual(['settled']);
  });
});

describe('a callback to a process that remembers', () => {
  it('signed anew is still to be signalled, though the first is noted after it', async () => {
    const { inbox } = world.server;
    const { callbacks } = inbox.stores;
    const { id } = await world.knowRefund();
    const told = about(id);
    const memory = createCallbackMemory(callbacks, { warn: () => {} });
    await deliverCallback({ ...inbox, memory }, told);
    // Another process keeps its mac, and dies before it signals.
    const key = { key_id: 'cnkey_1', secret: 'cnsec_1' };
    const { key_id: signed_by, v1: mac } = signCallback(key, told);
    const _id = `${told.connector}:${told.callback.callback_id}`;
    await callbacks.replaceSignature({ _id }, { body: told.callback, signed_by, mac });
    await memory.close();
    expect(await deliverCallback({ ...inbox, key }, told)).toBe('delivered');
    expect(await world.signals(id, 'refund')).toEqual(['settled', 'settled']);
    expect(await deliverCallback({ ...inbox, key }, told)).toBe('duplicate');
  });

  it('is signalled without a look where its resource is known; noted soon; counts once', async () => {
    const { inbox } = world.server;
    const memory = createCallbackMemory(inbox.stores.callbacks, { warn: () => {} });
    const { id } = await world.knowRefund();
    await deliverCallback({ ...inbox, memory }, about(id));
    const blind = { get: () => Promise.reject(new Error('It looked.')) };
    const refunds = { ...inbox.stores.refunds, ...blind };
    const deps = { ...inbox, memory, stores: { ...inbox.stores, refunds } };
    const callback = about(id, { name: 'failed' });
    const receipts = [await deliverCallback(deps, callback), await deliverCallback(deps, callback)];
    expect(receipts).toEqual(['delivered', 'duplicate']);
    expect(await world.signals(id, 'refund')).toEqual(['settled', 'failed']);
    await memory.close();
    const rows = await world.callbacks(id);
    expect(rows.map(({ signalled_at }) => signalled_at)).toEqual([
      expect.any(String),
      expect.any(String),
    ]);
    expect(await deliver(callback)).toBe('duplicate');
  });
});

describe('a callback about a payout', () => {
  const returned = (id: string, change: Partial<ResourceCallback> = {}) =>
    about(id, { resource: 'payout', name: 'returned', ...change });

  it('days after it completed starts its workflow to resume, with the signal; counts once', async () => {
    const { id } = await world.knowPayout();
    await world.productSays('payout', id, 'completed');
    const callback = returned(id);
    const receipts = [await deliver(callback), await deliver(callback)];
    expect(receipts).toEqual(['delivered', 'duplicate']);
    expect(await world.signals(id, 'payout')).toEqual(['returned']);
    const request_id = `sandbox:${callback.callback.callback_id}`;
    expect(await startOf(payoutWorkflowId(id))).toEqual({
      type: 'payout',
      input: { payout_id: id, resume: true, request_id },
    });
  });

  it('opens one again whose workflow has ended, with a run of its own', async () => {
    const { id } = await world.knowPayout();
    await deliver(about(id, { resource: 'payout', name: 'completed' }));
    const ended = world.server.temporal.workflow.getHandle(payoutWorkflowId(id));
    const first = (await ended.describe()).runId;
    await ended.terminate('its life has ended');
    expect(await deliver(returned(id))).toBe('delivered');
    expect((await ended.describe()).runId).not.toBe(first);
    expect(await world.signals(id, 'payout')).toEqual(['returned']);
  });

  it('is parked when there is no such payout at this connector; delivered once there is', async () => {
    const id = randomUUID();
    const callback = returned(id);
    expect(await deliver(callback)).toBe('parked');
    expect((await world.callbacks(id))[0]).toMatchObject({
      signalled_at: null,
      parked: 'no such payout at this connector',
    });
    expect(await world.signals(id, 'payout')).toEqual([]);
    await world.knowPayout({ payout_id: id });
    expect(await deliver(callback)).toBe('delivered');
    const other = await world.knowPayout({}, 'another-bank');
    expect(await deliver(returned(other.id))).toBe('parked');
  });

  it.each(['authorized', 'settled', 'expired'] as const)(
    'is no `%s`: a RangeError',
    async (name) => {
      const { id } = await world.knowPayout();
      await expect(deliver(returned(id, { name }))).rejects.toThrow(RangeError);
      expect([await world.callbacks(id), await world.signals(id, 'payout')]).toEqual([[], []]);
    },
  );
});

describe('a report that is malformed', () => {
  const unparsed = (change: object): ResourceCallback => ({ ...about(randomUUID()), ...change });

  it.each([
    ['no resource id', { resource_id: undefined }],
    ['a resource id that is no UUID', { resource_id: '*' }],
    ['a resource that is none', { resource: 'invoice' }],
    ['a connector that could be none', { connector: 'a.b' }],
    ['a callback without an id', { callback: { occurred_at: new Date().toISOString() } }],
  ])('with %s is refused before anything is kept or read', async (_, change) => {
    const { id } = await world.knowRefund();
    await expect(deliver(unparsed(change))).rejects.toThrow(ZodError);
    expect(await world.signals(id, 'refund')).toEqual([]);
  });

  it('has its undefined fields left out: nothing is kept as null', async () => {
    const { id } = await world.knowRefund();
    const reported = about(id);
    await deliver({ ...reported, callback: { ...reported.callback, code: undefined } });
    expect((await world.callbacks(id))[0]?.body).toEqual(reported.callback);
  });
});
