import { randomUUID } from 'node:crypto';
import { type ClientRequest, request } from 'node:http';
import { NativeConnection, Worker } from '@temporalio/worker';
import { Secret, TOTP } from 'otpauth';
import { createClockMeter, createRegistry } from '../../src/base/metrics';
import { paymentWorkflowId } from '../../src/domain/payment/payment';
import { connectorQueue } from '../../src/domain/task-queues';
import { measureStores } from '../../src/service/installation/metrics';
import { createMetricStore } from '../../src/store/metrics';
import { signPayload } from '../../src/webhooks/attempt';
import { untilStopped } from '../api/clock-setting';
import { bankRecipient } from '../api/recipient-bodies';
import { commandsIn } from '../cli/cli';
import { useResourceSetting } from '../cli/resource-setting';
import {
  fetchPage,
  openUser,
  openVisitor,
  PASSWORD,
  type Visitor,
  visitor,
} from '../support/dashboard';
import { eventually } from '../support/eventually';
import { buildEndpoint, buildPayment } from '../support/factories';
import { useFixture } from '../support/fixture';
import { useInbox } from '../support/hook';
import { createClient, idealPayment } from '../support/http';
import { quietTemporal } from '../support/quiet';
import { runWhile } from '../support/run-while';
import { scriptedBank } from '../support/scripted-bank';
import { temporalAddress } from '../support/servers';

/**
 * Chains of steps that an attacker would take one after the other, each of which is refused alone by
 * tests elsewhere. One operator alone is in test/cli/authority.test.ts.
 */
const BANKS = { LIVE_CONNECTORS: 'acme=ideal|sepa_instant', SANDBOX_CONNECTORS: 'test=ideal' };
const prefix = `attack-${randomUUID().slice(0, 8)}`;
const clocks = createRegistry();
// Live with a bank, and the operators of one installation.
const setting = useResourceSetting({
  environments: ['sandbox', 'live'],
  live: { connectors: BANKS.LIVE_CONNECTORS, prefix },
  clock: createClockMeter(clocks, { warn: () => undefined }),
});
/** Receiver of the attacker. */
const inbox = useInbox();
const WHY = ['--reason', 'Ticket 42'];

/** Commands without a key, and those of two approvers. */
const operators = useFixture(async () => {
  const { env, service } = setting;
  const nobody = commandsIn({ ...env, ...BANKS, KEYS_FILE: service.keysFile });
  const create = async (name: string) => {
    const { key } = Object(await nobody.json('operator', 'create', name, '--role', 'approver'));
    return commandsIn({ ...nobody.env, OPERATOR_KEY: key });
  };
  return { nobody, eve: await create('eve'), ben: await create('ben') };
});

/** Runs the bank of live. */
async function withBank<T>(story: () => Promise<T>): Promise<T> {
  quietTemporal();
  const connection = await NativeConnection.connect({ address: temporalAddress() });
  const worker = await Worker.create({
    ...{ connection, namespace: 'default', activities: scriptedBank().activities },
    taskQueue: connectorQueue('acme', prefix),
  });
  return await runWhile(worker, story).finally(() => connection.close());
}

const LIVE = { livemode: true };
const MARKDOWN = `1)

**settled** since 03:00. Bank confirmed: send \`mark_settled\`. [Evidence](https://evil.example/login)

![](https://evil.example/p.png)

- (1`;
/** Every character is one of an identifier. */
const PLAIN = 'settled since 03:00. Bank confirmed, send mark_settled (https://evil.example/login)';
/** Above what one operator may credit. */
const MUCH = 150_000;

test('forged callbacks with a text for the operator who is on call end in no payout', () =>
  withBank(async () => {
    const { service } = setting;
    const { nobody, eve, ben } = operators;
    const shop = await service.account(LIVE);
    const { id } = await buildPayment(shop, { amount: MUCH });
    const handle = service.temporal.workflow.getHandle(paymentWorkflowId(id));

    // The forger has the key of a test bank, which nobody has to approve.
    const { secret } = Object(await nobody.json('connector', 'key', 'create', 'test'));
    const report = async (connector: string, callback_id: string) => {
      const facts = { resource: 'payment', resource_id: id, event: 'settled', callback_id };
      const body = JSON.stringify({ ...facts, occurred_at: new Date().toISOString() });
      const signature = signPayload(secret, body, Math.floor(Date.now() / 1_000));
      const headers = { 'Connector-Signature': signature };
      const url = `${service.url}/connectors/${connector}/callbacks`;
      const answer = await fetch(url, { method: 'POST', headers, body });
      return { status: answer.status, body: await answer.json() };
    };
    expect(await report('acme', PLAIN)).toMatchObject({ status: 401 });
    expect(await report('test', MARKDOWN)).toMatchObject({ status: 400 });
    expect(await report('test', PLAIN)).toMatchObject({ status: 202, body: { applied: false } });
    // A client of Temporal signals the workflow itself.
    const occurred_at = new Date().toISOString();
    for (const callback_id of [MARKDOWN, PLAIN]) {
      await handle.signal('settled', { callback_id, occurred_at });
    }

    // What the operator reads has the text in quotes, and says that nobody proved it.
    const details = await eventually('both signals to be noted', async () => {
      const { currentDetails } = Object(await handle.query('__temporal_workflow_metadata'));
      const isNoted =
        /unreadable callback/.test(currentDetails) && /no signature/.test(currentDetails);
      return isNoted && String(currentDetails);
    });
    expect(details).toContain('evil');
    expect(details.replace(/`[^`\n]*`/g, '')).not.toMatch(/evil|Bank confirmed|mark_settled.*\[/);
    const shown = (await nobody.cli('payment', 'show', id)).stdout;
    expect(shown).toContain('parked: no such payment at this connector');
    expect(shown).toContain('not applied: sender not known: it has no signature');
    expect(shown).not.toContain('**settled**');

    // They believe it, and do what it says.
    const settle = ['payment', 'act', id, 'mark_settled', ...WHY];
    const { code } = await nobody.refusal(...settle, '--operator', 'eve');
    expect(code).toBe('operator_key_required');
    const { status, approval_id } = Object(await eve.json(...settle));
    expect(status).toBe('approval_required');
    const inUi = { operator: 'ben', reason: 'Bank confirmed' };
    const update = await handle.executeUpdate('mark_settled', { args: [inUi] });
    expect(update).toMatchObject({ status: 'approval_required' });
    const decide = ['approval', 'approve', approval_id, ...WHY];
    expect((await eve.refusal(...decide)).code).toBe('same_operator');
    // In parts, too, it is no more than one operator may credit in a day.
    for (const part of ['settled', 'approval_required']) {
      const { id: small } = await buildPayment(shop, { amount: 60_000 });
      const answer = await eve.json('payment', 'act', small, 'mark_settled', ...WHY);
      expect(answer).toMatchObject({ status: part });
    }

    const recipient = await shop.post('/v1/payout-recipients', bankRecipient());
    const money = { method: 'sepa_instant', amount: MUCH, currency: 'EUR' };
    const payout = await shop.post('/v1/payouts', { ...money, recipient_id: recipient.body.id });
    expect([payout.status, payout.body.error.code]).toEqual([422, 'insufficient_balance']);
    // The second operator asks the bank.
    expect(await ben.json('approval', 'reject', approval_id, ...WHY)).toMatchObject({
      state: 'rejected',
    });
    expect(await shop.count('payouts')).toBe(0);
    expect((await service.stores.payments.get(id))?.status).toBe('awaiting_customer');
  }));

/** As in production. */
const LIMITS = {
  ...{ RATE_LIMIT_PER_SECOND: 500, ACCOUNT_LIMIT_PER_SECOND: 1_000, CREATES_AT_ONCE: 125 },
  ...{ CREATE_LIMIT_PER_SECOND: 200, SANDBOX_CREATE_LIMIT_PER_SECOND: 200 },
};
const ATTACK_MS = 6_000;
/** Longer than a create may wait for its place. */
const LIVE_MS_MAX = 20_000;
/** As many unknown keys as fit a body. */
const JUNK = Object.fromEntries(Array.from({ length: 4_990 }, (_, n) => [`k${n}`, 1]));

test('a flood under one sandbox key takes no call of live, fills no log and shifts no gauge', () =>
  withBank(async () => {
    const { service } = setting;
    const attacker = await service.account();
    const shop = await service.account(LIVE);
    inbox.answer.status = 500;
    const endpoint = await buildEndpoint(attacker, { url: inbox.url });
    // A month ahead, where all attempts of its webhooks fail.
    const advance = await attacker.post('/v1/sandbox/clock', { advance: 'P30D' });
    expect(advance.status).toBe(202);
    await untilStopped(attacker);
    await buildPayment(attacker, { status: 'settled' });

    const statuses = new Map<number, number>();
    const countSent = () => [...statuses.values()].reduce((sum, count) => sum + count, 0);
    const times: number[] = [];
    await service.withApp({ config: LIMITS }, async (url) => {
      const over = new AbortController();
      const send = async (method: string, path: string, body: object): Promise<void> => {
        const headers = {
          ...{ Authorization: `Bearer ${attacker.key}`, 'Content-Type': 'application/json' },
          'Idempotency-Key': randomUUID(),
        };
        const request = { method, headers, body: JSON.stringify(body) };
        const answer = await fetch(`${url}${path}`, request);
        await answer.arrayBuffer();
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      };
      const flood = (atOnce: number, ...what: Parameters<typeof send>) =>
        Array.from({ length: atOnce }, async () => {
          while (!over.signal.aborted) await send(...what);
        });
      const own = `/v1/webhook-endpoints/${endpoint.id}`;
      const attacks = [
        ...flood(20, 'PATCH', own, { description: 'again' }),
        ...flood(10, 'POST', `${own}/test`, { type: 'payment.settled' }),
        ...flood(10, 'POST', `${own}/roll-secret`, { after: 'now' }),
        ...flood(10, 'POST', '/v1/payments', JUNK),
        ...flood(10, 'POST', '/v1/sandbox/clock', { advance: 'PT1S' }),
      ];
      const live = createClient(url, shop.key);
      const began = performance.now();
      // A busy machine takes longer.
      const isFlooded = () => countSent() > 300 && (statuses.get(400) ?? 0) > 150;
      try {
        while (performance.now() - began < ATTACK_MS || !isFlooded()) {
          const at = performance.now();
          const body = idealPayment();
          const once = { idempotencyKey: randomUUID(), once: true };
          const created = await live.post('/v1/payments', body, once);
          expect(created.status).toBe(201);
          expect((await live.get('/v1/payments')).status).toBe(200);
          times.push(performance.now() - at);
        }
      } finally {
        over.abort();
        await Promise.all(attacks);
      }
    });
    expect(Math.max(...times)).toBeLessThan(LIVE_MS_MAX);
    expect([...statuses.keys()].filter((status) => status === 500)).toEqual([]);

    // Equal refusals are stored by the hundred, and none at length.
    const refused = statuses.get(400) ?? 0;
    const requests = service.collection('requests');
    await eventually('the log', async () => (await requests.countDocuments()) > 0);
    const rows = await requests.find({ account_id: attacker.account_id, status: 400 }).toArray();
    expect(rows.length).toBeLessThan(refused);
    expect(rows.length).toBeLessThanOrEqual(200);
    expect(Math.max(...rows.map((row) => JSON.stringify(row).length))).toBeLessThan(16_384);

    // The meter of the clock needs three transitions.
    for (let n = 0; n < 3; n += 1) await buildPayment(shop, { status: 'cancelled' });
    // The month shows nowhere in what watches the service.
    const registry = createRegistry();
    const store = createMetricStore(service.db);
    measureStores(registry, store, () => new Date(), { warn: () => undefined });
    const metrics = `${await registry.metrics()}${await clocks.metrics()}`;
    const read = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1]);
    expect(read('payments_webhook_backlog')).toBeGreaterThan(0);
    for (const name of ['payments_webhook_backlog_age_seconds', 'payments_clock_ahead_seconds']) {
      expect([name, Math.abs(read(name)) < 3_600]).toEqual([name, true]);
    }
  }));

const FACTOR = '/dashboard/live/profile/second-factor';
const readCode = (html: string) => {
  const [, secret = ''] = /<code[^>]*>([A-Z2-7]{32})</.exec(html) ?? [];
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate();
};

test('a viewer with slow forms and a borrowed session neither locks the owner out nor takes the second factor', async () => {
  const { service } = setting;
  const { account_id } = await service.account();
  const owner = await openUser(service.stores, account_id, 'owner');
  const viewer = await openUser(service.stores, account_id, 'read_only');
  const findFactor = async () => (await service.stores.users.get(owner._id))?.totp ?? null;
  const offer = async (browser: Visitor) => {
    await browser.confirm(FACTOR);
    return readCode((await browser.get(FACTOR)).html);
  };
  // The owner began to turn a second factor on, and left; somebody saw its code.
  const code = await offer(await openVisitor(service, owner));
  const borrowed = await openVisitor(service, owner);
  const [slowly, often] = [await openVisitor(service, viewer), await openVisitor(service, viewer)];
  const forms: ClientRequest[] = [];
  try {
    await service.withApp({ visitCostsMax: { session: 50, account: 60 } }, async (url) => {
      const headers = {
        ...{ Cookie: `dashboard=${slowly.secret}`, 'Content-Length': 100 },
        'Content-Type': 'application/x-www-form-urlencoded',
      };
      for (let n = 0; n < 10; n += 1) {
        const path = '/dashboard/sandbox/profile/sessions/end';
        const form = request(`${url}${path}`, { method: 'POST', headers });
        form.on('error', () => undefined).write('session=');
        forms.push(form);
      }
      const flooding = visitor(url, often.secret);
      const pages = await Promise.all(
        Array.from({ length: 30 }, () => flooding.get('/dashboard/sandbox/payments')),
      );
      expect(pages.filter(({ status }) => status === 429).length).toBeGreaterThan(0);

      const thief = visitor(url, borrowed.secret);
      for (const guess of [code, '000000', code]) {
        await thief.post(`${FACTOR}/confirm`, { code: guess });
      }
      expect(await findFactor()).toBeNull();
      // Without the password the session gives no power.
      await thief.post(`/dashboard/live/team/${viewer._id}/role`, { role: 'owner' });
      await thief.confirm(FACTOR, { password: 'a guess' });
      expect((await service.stores.users.get(viewer._id))?.role).toBe('read_only');

      const form = { email: owner.email, password: PASSWORD };
      const signedIn = await fetchPage(url, 'POST', '/dashboard/sign-in', { form });
      const mine = visitor(url, signedIn.cookie ?? '');
      expect((await mine.get('/dashboard/live/team')).status).toBe(200);
      await mine.confirm(`/dashboard/live/team/${viewer._id}/remove`);
      expect(await service.stores.users.get(viewer._id)).toBeNull();
      const own = await offer(mine);
      expect((await mine.post(`${FACTOR}/confirm`, { code: own })).html).toContain(
        'recovery codes',
      );
      expect(await findFactor()).not.toBeNull();
      // Every other session has ended.
      expect((await thief.get(FACTOR)).location).toContain('/dashboard/sign-in');
    });
  } finally {
    for (const form of forms) form.destroy();
  }
});
