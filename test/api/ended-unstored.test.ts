import type { IdempotencyRecord } from '../../src/store/idempotency';
import { idealPayment } from '../support/http';
import { useAccount, useService } from '../support/service';
import { expectRefusal } from './refusal';

/** A workflow that has ended, and whose payment the database does not hold. */
const service = useService({ worker: false });
const shop = useAccount(service);

const create = (idempotencyKey: string, once = true) =>
  shop.post('/v1/payments', idealPayment(), { idempotencyKey, once });
const claims = () => service.collection<IdempotencyRecord>('idempotency');
const claimOf = (idempotencyKey: string) =>
  claims().findOne({ account_id: shop.account_id, key: idempotencyKey });

test('ended from outside before it was stored: the key is free again, and makes a new payment', async () => {
  expectRefusal(await create('ended'), 'temporarily_unavailable');
  const first = await claimOf('ended');
  await service.temporal.workflow.getHandle(`payment:${first?.resource_id}`).terminate('by hand');
  expectRefusal(await create('ended'), 'temporarily_unavailable');
  expect(await claimOf('ended')).toBeNull();
  const workers = await service.startWorkers();
  try {
    const next = await create('ended', false);
    expect(next.status).toBe(201);
    expect(next.body.id).not.toBe(first?.resource_id);
  } finally {
    await workers.stop();
  }
});

test('stored once and lost by the database: its key stays, so that no money moves twice', async () => {
  const workers = await service.startWorkers();
  try {
    const made = await create('lost', false);
    const { id } = made.body;
    await shop.post(`/v1/payments/${id}/cancel`);
    await service.temporal.workflow.getHandle(`payment:${id}`).result();
    // As a backup from before the answer would have it.
    const request = (await claimOf('lost'))?.request ?? null;
    await service.collection<{ _id: string }>('payments').deleteOne({
      _id: id,
    });
    await claims().updateOne(
      { resource_id: id },
      {
        $set: { status: null, body: null, request, created_at: new Date(Date.now() - 60_000) },
        $unset: { expires_at: '' },
      },
    );
    expectRefusal(await create('lost'), 'temporarily_unavailable');
    expect(await claimOf('lost')).toMatchObject({ resource_id: id });
  } finally {
    await workers.stop();
  }
});
