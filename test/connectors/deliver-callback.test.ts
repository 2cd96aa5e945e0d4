import { randomUUID } from 'node:crypto';
import { deliverCallback, type ResourceCallback } from '../../connectors/contract/callbacks';
import { refundWorkflowId } from '../../src/domain/refund';
import { type BankWorld, startBankWorld } from './bank-world';

let world: BankWorld;
beforeAll(async () => {
  world = await startBankWorld();
});
afterAll(async () => {
  await world.end();
});

const deliver = (callback: ResourceCallback) => deliverCallback(world.server.inbox, callback);

function about(resource_id: string, change: Partial<ResourceCallback> = {}): ResourceCallback {
  const callback = { callback_id: `cb_${randomUUID()}`, occurred_at: new Date().toISOString() };
  const settled = { resource: 'refund', resource_id, name: 'settled' } as const;
  return { connector: 'sandbox', ...settled, callback, ...change };
}

/** What the refund's workflow was started as and with. */
async function startOf(id: string) {
  const handle = world.server.temporal.workflow.getHandle(refundWorkflowId(id));
  const [first] = (await handle.fetchHistory()).events ?? [];
  const started = first?.workflowExecutionStartedEventAttributes;
  const input = started?.input?.payloads?.[0]?.data;
  return { type: started?.workflowType?.name, input: JSON.parse(String(input ?? 'null')) };
}

describe('a callback about a refund', () => {
  it('starts its workflow to resume, with the signal', async () => {
    const { id } = await world.knowRefund();
    const callback = about(id);
    expect(await deliver(callback)).toBe('delivered');
    expect(await world.signals(id, 'refund')).toEqual(['settled']);
    const request_id = `sandbox:${callback.callback.callback_id}`;
    expect(await startOf(id)).toEqual({
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

  it.each(['authorized', 'expired'] as const)('is no `%s`: a RangeError', async (name) => {
    const { id } = await world.knowRefund();
    await expect(deliver(about(id, { name }))).rejects.toThrow(RangeError);
    expect([await world.callbacks(id), await world.signals(id, 'refund')]).toEqual([[], []]);
  });

  it('may not use the id of another', async () => {
    const { id } = await world.knowRefund();
    const callback = about(id);
    await deliver(callback);
    await expect(deliver({ ...callback, name: 'failed' })).rejects.toThrow('another callback');
    expect(await world.signals(id, 'refund')).toEqual(['settled']);
  });
});
