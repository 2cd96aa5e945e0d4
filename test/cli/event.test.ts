import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { openAccount } from '../support/service';
import { useProvisioning } from './cli';
import { recordEvents } from './event-log';

const Page = z.strictObject({
  data: z.array(z.looseObject({ id: z.string() })),
  has_more: z.boolean(),
  next_cursor: z.iso.datetime().nullable(),
});

const service = useProvisioning();

async function page(account: string, ...options: string[]) {
  return Page.parse(await service.json('event', 'list', account, '--env', 'sandbox', ...options));
}

describe('event list', () => {
  test('shows each event as it is sent, with the state of its delivery', async () => {
    const { account_id } = await openAccount(service.stores, {});
    const [event] = await recordEvents(service, account_id, ['payment.settled']);
    const { _id: id, type, created, data } = event ?? fail();
    expect(await page(account_id)).toEqual({
      data: [
        {
          id,
          type,
          created,
          livemode: false,
          data,
          delivery: { status: 'pending', attempts: 0, next_attempt_at: created },
        },
      ],
      has_more: false,
      next_cursor: null,
    });
  });

  test('pages through events of one millisecond, newest first, each once', async () => {
    const { account_id } = await openAccount(service.stores, {});
    const types = ['payment.awaiting_customer', 'payment.authorized', 'payment.settled'] as const;
    const events = [
      ...(await recordEvents(service, account_id, [...types])),
      ...(await recordEvents(service, account_id, [...types])),
    ];
    const newestFirst = events.sort((a, b) => (a.position < b.position ? 1 : -1));
    const seen: string[] = [];
    let next: string[] = [];
    for (let at = 0; at < 3; at += 1) {
      const { data, has_more, next_cursor } = await page(account_id, '--limit', '2', ...next);
      seen.push(...data.map(({ id }) => id));
      expect({ has_more, isLast: next_cursor === null }).toEqual({
        has_more: at < 2,
        isLast: at === 2,
      });
      next = next_cursor === null ? [] : ['--before', next_cursor];
    }
    expect(seen).toEqual(newestFirst.map(({ _id }) => _id));
  });

  test('filters by account, environment, resource and time', async () => {
    const { account_id } = await openAccount(service.stores, {});
    const events = await recordEvents(service, account_id, ['payment.failed']);
    await recordEvents(service, account_id, ['payment.expired']);
    const other = await openAccount(service.stores, {});
    const resource = events[0]?.resource_id ?? '';
    expect((await page(account_id, '--resource', resource)).data).toEqual([
      expect.objectContaining({ id: events[0]?._id }),
    ]);
    expect((await page(account_id)).data).toHaveLength(2);
    expect((await page(account_id, '--before', '2026-03-01T12:00:00Z')).data).toEqual([]);
    expect((await page(account_id, '--before', '2026-03-01T13:00:01+01:00')).data).toHaveLength(2);
    expect((await page(other.account_id)).data).toEqual([]);
    const live = await service.json('event', 'list', account_id, '--env', 'live');
    expect(live).toEqual({ data: [], has_more: false, next_cursor: null });
  });

  test('prints a table, and the option for the next page', async () => {
    const { account_id } = await openAccount(service.stores, {});
    await recordEvents(service, account_id, ['payment.authorized', 'payment.settled']);
    const list = ['event', 'list', account_id, '--env', 'sandbox'];
    const { stdout } = await service.cli(...list, '--limit', '1');
    expect(stdout).toMatch(/^EVENT +CREATED +TYPE +RESOURCE +DELIVERY +ATTEMPTS +NEXT ATTEMPT\n/);
    expect(stdout).toContain('2026-03-01 12:00:00 UTC');
    const next_cursor = (await page(account_id, '--limit', '1')).next_cursor;
    expect(stdout).toContain(`There are more: --before ${next_cursor}`);
  });

  test.each([
    ['--limit', '0', 'It must be an integer from 1 to 100.'],
    ['--limit', '101', 'It must be an integer from 1 to 100.'],
    ['--limit', '1.5', 'It must be an integer from 1 to 100.'],
    ['--before', 'yesterday', 'It must be an ISO 8601 timestamp with an offset'],
    ['--env', 'test', 'Allowed choices are sandbox, live.'],
  ])('refuses %s %s', async (option, value, words) => {
    const list = ['event', 'list', 'acct_1', '--env', 'sandbox', option, value];
    expect((await service.refusal(...list)).message).toContain(words);
  });
});

test('event show lists every attempt, the first one first', async () => {
  const { account_id } = await openAccount(service.stores, {});
  const [event] = await recordEvents(service, account_id, ['payment.settled']);
  const event_id = event?._id ?? '';
  const attempt = {
    event_id,
    run: 0,
    attempt: 1,
    at: '2026-03-01T12:00:00.100Z',
    duration_ms: 12,
    url: 'https://shop.example/hook',
    status_code: 500,
    error: null,
    response_excerpt: '\u001b[31mno',
    outcome: 'failed' as const,
    next_attempt_at: null,
  };
  await service.stores.deliveries.addAttempt({
    ...attempt,
    attempt: 2,
    status_code: null,
    error: 'x\u0007',
  });
  await service.stores.deliveries.addAttempt(attempt);
  const shown = z
    .looseObject({ attempts: z.array(z.looseObject({})) })
    .parse(await service.json('event', 'show', event_id));
  const { event_id: _, ...row } = attempt;
  expect(shown).toMatchObject({ id: event_id, account_id, delivery: { status: 'pending' } });
  expect(shown.attempts).toEqual([
    row,
    { ...row, attempt: 2, status_code: null, error: 'x\u0007' },
  ]);
  const { stdout } = await service.cli('event', 'show', event_id);
  expect(stdout).toMatch(/2026-03-01 12:00:00 UTC +first +1 +failed +HTTP 500 +12 ms +https:/);
  expect(stdout).not.toContain('\u0007');
});

test('an unknown event is refused', async () => {
  const id = `evt_${randomUUID()}`;
  const refusal = { code: 'event_not_found', message: `There is no event ${id}.` };
  expect(await service.refusal('event', 'show', id)).toEqual(refusal);
  expect(await service.refusal('event', 'redeliver', id)).toEqual(refusal);
});

function fail(): never {
  throw new Error('No event was recorded.');
}
