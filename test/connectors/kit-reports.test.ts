import { randomUUID } from 'node:crypto';
import type { Report } from '../../connectors/kit';
import { createReportDelivery } from '../../connectors/kit/reports';
import { useDatabase } from '../support/database';

const database = useDatabase({ indexed: false });

function buildReport(resource_id: string, name: 'sent' | 'completed'): Report {
  const callback_id = `${name}:${resource_id}`;
  const callback = { callback_id, occurred_at: '2026-11-26T10:00:00Z' };
  return { resource: 'payout', resource_id, name, callback };
}

const connect = (deliver: (report: Report) => Promise<void>) =>
  createReportDelivery({
    ...{ db: database.db, deliver, now: () => new Date() },
    ...{ meter: { setAside: () => undefined }, log: { error: () => undefined } },
  });

test('a slow report holds back those of its own payout, and no others', async () => {
  const [slow, quick] = [randomUUID(), randomUUID()];
  const done: string[] = [];
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  let arrive = () => {};
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  const deliver = connect(async ({ resource_id, name }) => {
    if (resource_id === slow && name === 'sent') await released;
    done.push(`${name}:${resource_id}`);
    if (resource_id === quick && name === 'completed') arrive();
  });
  const all = [slow, quick].flatMap((id) => [
    buildReport(id, 'sent'),
    buildReport(id, 'completed'),
  ]);
  const delivered = deliver(all);
  await arrived;
  expect(done).toEqual([`sent:${quick}`, `completed:${quick}`]);
  release();
  await delivered;
  expect(done.slice(2)).toEqual([`sent:${slow}`, `completed:${slow}`]);
});

test('after a failure the delivery is repeated, and begins nothing more of it', async () => {
  const ids = Array.from({ length: 30 }, () => randomUUID());
  let calls = 0;
  const deliver = connect(async () => {
    calls += 1;
    throw new Error('Temporal is away');
  });
  await expect(deliver(ids.map((id) => buildReport(id, 'sent')))).rejects.toThrow('away');
  expect(calls).toBeLessThanOrEqual(10);
});
