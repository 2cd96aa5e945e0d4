import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { createEvmMeter } from '../../../../connectors/evm/findings';
import { createKitMeter } from '../../../../connectors/kit/metrics';
import { createApiMeter } from '../../../../src/api/metrics';
import {
  createClockMeter,
  createRegistry,
  METRIC_NAMES,
  serveMetrics,
} from '../../../../src/base/metrics';
import { createConnectors } from '../../../../src/routing';
import { measureRouting, measureStores } from '../../../../src/service/installation/metrics';

import type { ServiceMetrics } from '../../../../src/store/metrics';
import { meterPost } from '../../../../src/webhooks/observed-post';
import type { PostResult } from '../../../../src/webhooks/post-result';
import { freePort } from '../../../../stack/ports';
import { expressions, metricsIn, metricsOn } from '../../../support/monitoring';

const METRICS_HOST = '127.0.0.1';

test.each(expressions())('the expression of "$of" is PromQL', ({ expr }) => {
  expect(metricsIn(expr).length).toBeGreaterThan(0);
});

test.each<[string, string, (registry: Registry) => void, string[]]>([
  [
    'the Ethereum connector',
    'payments_evm_',
    (registry) => {
      const findings = { nodes_disagree: 2, unexplained_balance: 0, rate_refused: 0 };
      createEvmMeter(registry).followed({ at: new Date(5_000), unchecked: 1, dust: 3, findings });
    },
    ['cursor_timestamp_seconds 5', 'findings{finding="nodes_disagree"} 2'],
  ],
  [
    'a connector on the kit',
    'payments_bank_',
    (registry) => {
      const meter = createKitMeter(registry, 'example');
      meter.called('failed');
      meter.setAside();
      meter.polled();
    },
    ['reports_set_aside_total{connector="example"} 1'],
  ],
])('%s has the metrics that alerts and panels use', async (_, prefix, measure, lines) => {
  const registry = createRegistry();
  measure(registry);
  const page = await registry.metrics();
  const names = expressions()
    .flatMap(({ expr }) => metricsIn(expr))
    .filter((name) => name.startsWith(prefix));
  expect(names.length).toBeGreaterThan(2);
  expect(names.filter((name) => !metricsOn(page).has(name))).toEqual([]);
  for (const line of lines) expect(page).toContain(`${prefix}${line}\n`);
});

test('creates are counted by their outcome, other requests by their route', async () => {
  const registry = createRegistry();
  const meter = createApiMeter(registry);
  const create = { method: 'POST', route: '/v1/payments', seconds: 0.02, livemode: true };
  for (const status of [201, 400, 429, 500, 503]) {
    meter.answered({ ...create, status, replayed: false });
  }
  meter.answered({ ...create, status: 201, replayed: true });
  meter.answered({ ...create, livemode: undefined, status: 401, replayed: false });
  meter.answered({ ...create, method: 'GET', status: 200, replayed: false });
  const text = await registry.metrics();
  for (const outcome of ['created', 'refused', 'limited', 'failed', 'unavailable', 'replayed']) {
    const labels = `operation="createPayment",livemode="true",outcome="${outcome}"`;
    expect(text).toContain(`payments_creates_total{${labels}} 1\n`);
  }
  expect(text.match(/^payments_creates_total\{/gm)).toHaveLength(6);
  const get = 'method="GET",route="/v1/payments"';
  expect(text).toContain(`payments_http_requests_total{${get},status="200"} 1\n`);
  expect(text).toContain(`payments_http_request_duration_seconds_count{${get}} 1\n`);
});

test('refused keys and attempts to sign in are counted', async () => {
  const registry = createRegistry();
  const { answered } = createApiMeter(registry);
  const call = { method: 'POST', route: '/', seconds: 0, livemode: undefined, replayed: false };
  answered({ ...call, status: 401, code: 'api_key_revoked' });
  answered({ ...call, status: 404, code: 'not_found' });
  answered({ ...call, status: 401, attempt: { proof: 'code', outcome: 'wrong' } });
  answered({ ...call, status: 200, attempt: {} });
  const text = await registry.metrics();
  expect(text.match(/^payments_(?:api_keys|sign_in)_.*/gm)).toEqual([
    'payments_api_keys_refused_total{code="api_key_revoked"} 1',
    'payments_sign_in_attempts_total{proof="code",outcome="wrong"} 1',
  ]);
});

test('attempts of webhooks are counted by their outcome', async () => {
  const registry = createRegistry();
  const results: PostResult[] = [
    { outcome: 'response', status: 204, excerpt: '', durationMs: 20 },
    { outcome: 'response', status: 302, excerpt: '', durationMs: 20 },
    { outcome: 'error', kind: 'dns', message: 'No such host.', durationMs: 20 },
  ];
  const webhook = { url: 'https://hook.example', livemode: true, timeoutMs: 1_000, body: '' };
  const answers = results.values();
  const post = meterPost(registry, async () => answers.next().value ?? Object());
  for (const _ of results) await post({ ...webhook, allowPrivate: false, headers: {} });
  const text = await registry.metrics();
  for (const outcome of ['delivered', 'refused', 'dns']) {
    const labels = `outcome="${outcome}"`;
    expect(text).toContain(`payments_webhook_attempt_duration_seconds_count{${labels}} 1\n`);
  }
});

const METRICS: ServiceMetrics = {
  backlog: 3,
  backlog_age_seconds: 12.5,
  stuck: [{ resource: 'payout', livemode: 'true', reason: 'not_submitted', count: 2 }],
  callbacks: [{ waits: 'parked', connector: 'sepa', count: 1 }],
  ledger: { _id: 'last', checked_at: '2026-11-22T00:00:00.000Z', differences: 0 },
  statement_lines: [{ connector: 'sepa', livemode: 'true', count: 2, day: '2026-11-20' }],
  suspense: [{ connector: 'sepa', livemode: 'true', count: 3, since: '2026-11-20T00:00:00.000Z' }],
  schedules: [{ schedule: 'settlements', succeeded_at: '2026-11-22T00:00:00.000Z' }],
  approvals: 2,
  acts: [{ act: 'wallet.set', count: 1 }],
  mails: { waiting: 4, given_up: 1, since: new Date('2026-11-22T00:00:00.000Z') },
};

test('metrics of the database are read once in ten seconds, and are absent while it is away', async () => {
  const registry = createRegistry();
  const warn = jest.fn();
  const answers = [METRICS, METRICS, new Error('away')];
  let reads = 0;
  let now = 0;
  const read = async () => {
    const answer = answers[reads];
    reads += 1;
    if (answer === undefined || answer instanceof Error) throw answer;
    return answer;
  };
  measureStores(registry, { read }, () => new Date(now), { warn });
  const text = await registry.metrics();
  const lines = 'connector="sepa",livemode="true"';
  for (const line of [
    'payments_webhook_backlog 3',
    'payments_webhook_backlog_age_seconds 12.5',
    'payments_stuck{resource="payout",livemode="true",reason="not_submitted"} 2',
    'payments_callbacks_waiting{waits="parked",connector="sepa"} 1',
    'payments_approvals_waiting 2',
    'payments_watched_acts{act="wallet.set"} 1',
    'payments_mails_unsent{state="waiting"} 4',
    'payments_mails_unsent{state="given_up"} 1',
    'payments_mails_waiting_since_seconds 1795305600',
    'payments_ledger_checked_timestamp_seconds 1795305600',
    `payments_statement_lines_open{${lines}} 2`,
    `payments_statement_lines_open_since_seconds{${lines}} 1795132800`,
    `payments_movements_in_suspense{${lines}} 3`,
    `payments_movements_in_suspense_since_seconds{${lines}} 1795132800`,
    'payments_schedule_succeeded_timestamp_seconds{schedule="settlements"} 1795305600',
  ]) {
    expect(text).toContain(`${line}\n`);
  }
  await registry.metrics();
  expect(reads).toBe(1);
  now += 10_001;
  await registry.metrics();
  expect(reads).toBe(2);
  now += 10_001;
  expect(await registry.metrics()).not.toMatch(/^payments_(webhook_backlog|stuck|ledger\w*)[ {]/m);
  expect(warn).toHaveBeenCalledTimes(1);
});

test('routing rules without a configured connector and instructions that wait show, and rules are absent while the database is away', async () => {
  const registry = createRegistry();
  const warn = jest.fn();
  const scope = { livemode: true, method: 'visa', currency: null };
  const rules = ['acme', 'gone', 'gone'].map((connector, at) => {
    return [`${at}`, { ...scope, connector, account_id: `acct_${at}` }] as const;
  });
  const readCached = jest.fn(async () => new Map(rules));
  const paused = new Map([['live:acme', { connector: 'acme', livemode: true }]]);
  const stores = {
    routingRules: Object({ readCached }),
    connectorPauses: Object({ readCached: async () => paused }),
  };
  const connectors = createConnectors('sandbox', 'acme=visa');
  const readQueue = async (name: string) => ({ oldest_seconds: name === 'acme' ? 90 : 0 });
  measureRouting(registry, { connectors, stores, readQueue }, { warn });
  const REFUSING = /^payments_routing_rules_refusing\{.*$/gm;
  const page = await registry.metrics();
  expect(page.match(REFUSING)).toEqual([
    'payments_routing_rules_refusing{connector="gone",method="visa",livemode="true"} 2',
  ]);
  expect(page).toContain('payments_connectors_paused{connector="acme",livemode="true"} 1');
  expect(page).toContain('payments_instructions_waiting_seconds{connector="acme"} 90');
  readCached.mockRejectedValueOnce(new Error('away'));
  expect(await registry.metrics()).not.toMatch(REFUSING);
  expect(warn).toHaveBeenCalledTimes(1);
});

test('a process shows its metrics on a separate port, and nothing else', async () => {
  const METRICS_PORT = await freePort();
  const sdk = async () => '# TYPE temporal_x counter\n';
  const page = await serveMetrics({ METRICS_HOST, METRICS_PORT }, createRegistry(), [sdk]);
  const at = `http://${METRICS_HOST}:${METRICS_PORT}`;
  const answer = await fetch(`${at}/metrics`);
  expect(answer.headers.get('Content-Type')).toContain('text/plain; version=0.0.4');
  const text = await answer.text();
  expect(text).toMatch(/^process_resident_memory_bytes \d/m);
  expect(text).toContain('# TYPE temporal_x counter');
  expect((await fetch(`${at}/`)).status).toBe(404);
  await page.close();
});

const ROOT = join(__dirname, '../../../..');
const readText = (path: string) => readFileSync(join(ROOT, path), 'utf8');

test('the docs have a row for each metric, and for no other', () => {
  const rows = readText('docs/operations.md').match(/^\| `payments_.*$/gm) ?? [];
  const names = rows.flatMap((row) => row.split('|')[1]?.match(/payments_\w+/g) ?? []);
  expect(names.sort()).toEqual([...METRIC_NAMES].sort());
});

test('alerts and panels use only metrics of the table', () => {
  const names = expressions()
    .flatMap(({ expr }) => metricsIn(expr))
    .filter((name) => name.startsWith('payments_'))
    .map((name) => name.replace(/_(bucket|sum|count)$/, ''));
  expect(names.length).toBeGreaterThan(METRIC_NAMES.length / 2);
  expect(names.filter((name) => !METRIC_NAMES.includes(name))).toEqual([]);
});

test.each([
  ['SignInsFail', 'payments_sign_in_attempts_total'],
  ['KeysRefused', 'payments_api_keys_refused_total'],
  ['WatchedAct', 'payments_watched_acts'],
  // A test team that has the key of the sandbox must not page the operators.
  ['CallbacksWait', 'payments_callbacks_waiting{connector!="sandbox"}'],
])('the alert %s reads %s', (alert, series) => {
  expect(expressions().find(({ of }) => of === alert)?.expr).toContain(series);
});

test('each meter takes its name from the table', () => {
  const folders = ['src', 'activities', 'workflows', 'worker', 'connectors', 'stack'];
  const texts = folders
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
        .filter((path) => path.endsWith('.ts'))
        .map((path) => readText(join(folder, path))),
    )
    .filter((text) => /new (Counter|Gauge|Histogram)\(/.test(text));
  expect(texts.length).toBeGreaterThan(5);
  expect(texts.filter((text) => !text.includes('describeMetric('))).toEqual([]);
  expect(texts.filter((text) => /name: 'payments_/.test(text))).toEqual([]);
});

describe('the clock of this machine', () => {
  const GAUGE = 'payments_clock_ahead_seconds';
  const START = 1_000_000;

  function openMeter() {
    const registry = new Registry();
    const warn = jest.fn();
    const clock = { now: START };
    const meter = createClockMeter(registry, { warn }, () => clock.now);
    const read = async () => {
      const line = (await registry.metrics())
        .split('\n')
        .find((each) => each.startsWith(`${GAUGE} `));
      return line === undefined ? undefined : Number(line.slice(GAUGE.length));
    };
    return { clock, warn, read, observe: (late: number) => meter.observe(clock.now - late) };
  }

  test.each([
    ['fast: the least difference counts, since queues add to it', [9_000, 5_200, 30_000], 5.2],
    ['slow', [-2_500, 40, 60], -2.5],
    ['correct', [3, 700, 4_000], 0.003],
  ])('the meter shows a clock that is %s', async (_, lates, seconds) => {
    const { observe, read, clock, warn } = openMeter();
    for (const late of lates) observe(late);
    expect(await read()).toBe(seconds);
    for (let n = 0; n < 7; n += 1) observe(60_000);
    clock.now += 60_000;
    observe(10);
    expect(warn.mock.calls.map(([fields]) => fields)).toEqual(
      Math.abs(seconds) < 1 ? [] : [{ seconds, code: 'clock_differs' }],
    );
  });

  test('a clock difference needs three tasks of the last three minutes', async () => {
    const { observe, read, clock, warn } = openMeter();
    observe(8_000);
    observe(8_000);
    expect(await read()).toBeUndefined();
    observe(8_000);
    expect(await read()).toBe(8);
    clock.now += 60_000;
    observe(8_000);
    // The log needs ten: a busy process starts a few tasks late.
    expect(warn).not.toHaveBeenCalled();
    clock.now += 180_000;
    expect(await read()).toBeUndefined();
  });
});
