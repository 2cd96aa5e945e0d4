import { createRegistry } from '../../src/base/metrics';
import { createHostLimits, type Destination, HostBusy } from '../../src/webhooks/endpoint-limits';
import { post, useReceivers } from './posting';

const receivers = useReceivers();

/** Thirty attempts a second in live, three in the sandbox. */
function limitHosts() {
  const registry = createRegistry();
  const warn = jest.fn();
  const admitAttempt = createHostLimits({
    perSecond: { live: 30, sandbox: 3 },
    registry,
    log: { warn },
  });
  /** @returns ms to wait for each of so many attempts */
  const take = async (count: number, changes: Partial<Destination> = {}): Promise<number[]> => {
    const target = { host: 'victim.example', addresses: ['203.0.113.7'], livemode: false };
    const waits: number[] = [];
    while (waits.length < count) {
      const admitted = admitAttempt({ ...target, ...changes });
      const wait = await admitted.catch((error: unknown) => error);
      waits.push(wait instanceof HostBusy ? wait.waitMs : 0);
    }
    return waits;
  };
  return { registry, warn, take };
}

test('attempts of all accounts at one host wait one after the other, beyond so many in a second', async () => {
  const { take, registry, warn } = limitHosts();
  const [first, second, third, ...waits] = await take(8);
  expect([first, second, third]).toEqual([0, 0, 0]);
  expect(waits.every((wait) => wait > 0)).toBe(true);
  // A third of a second for each that waits before it.
  expect((waits.at(-1) ?? 0) - (waits[1] ?? 0)).toBeGreaterThan(900);
  const metrics = await registry.metrics();
  expect(metrics).toContain('payments_webhook_attempts_waiting_total{livemode="false"} 5');
  expect(warn).toHaveBeenCalledTimes(1);
});

test('another name of the address, or another address of the name, gives no more attempts', async () => {
  const { take } = limitHosts();
  await take(3);
  expect(await take(1, { host: 'other.example' })).not.toEqual([0]);
  expect(await take(1, { host: 'VICTIM.example', addresses: ['198.51.100.1'] })).not.toEqual([0]);
  const changes = { host: 'far.example', addresses: ['198.51.100.2', '203.0.113.7'] };
  expect(await take(1, changes)).not.toEqual([0]);
  expect(await take(1, { host: 'far.example', addresses: ['198.51.100.2'] })).toEqual([0]);
});

test('hosts behind the same gateway of NAT64 slow none of each other', async () => {
  const { take } = limitHosts();
  const own = { host: 'victim.example', addresses: ['64:ff9b::cb00:7107'] };
  await take(3, own);
  const other = { host: 'other.example', addresses: ['64:ff9b::c633:6401'] };
  expect(await take(1, other)).toEqual([0]);
  expect(await take(1, { host: 'third.example' })).not.toEqual([0]);
});

test('attempts of the sandbox slow none of live at the same host', async () => {
  const { take } = limitHosts();
  await take(50);
  expect(await take(30, { livemode: true })).toEqual(Array(30).fill(0));
  expect(await take(1, { livemode: true })).not.toEqual([0]);
});

test('receivers on this machine have no limit', async () => {
  const { take } = limitHosts();
  const changes = { host: 'localhost', addresses: ['127.0.0.1', '::1'] };
  expect(await take(50, changes)).toEqual(Array(50).fill(0));
});

test('an attempt that waits for its host is not posted', async () => {
  const receiver = await receivers.http();
  const admitAttempt = async () => {
    throw new HostBusy(1_000);
  };
  await expect(post(receiver.url, { admitAttempt })).rejects.toThrow(HostBusy);
  expect(receiver.connections()).toBe(0);
});
