import { createKeyFile } from '../../src/encryption/key-file';
import { commandsIn, everythingStored, useProvisioning } from './cli';

const LOCAL = 'http://localhost:4000/hook';
const HOUR_MS = 3_600_000;

const service = useProvisioning();

/** Commands for the sandbox of a new merchant. */
async function openSandbox() {
  const account = await service.account();
  const place = [account.account_id, '--env', 'sandbox'];
  const json = async (name: string, ...more: string[]) =>
    Object(await service.json('webhook', name, ...place, ...more));
  return {
    ...account,
    place,
    json,
    set: (...more: string[]) => json('set', '--url', LOCAL, ...more),
    listActs: async () => {
      const filter = { account_id: account.account_id, livemode: false, limit: 9 };
      const acts = (await service.stores.auditLog.list(filter)).map(({ act }) => act);
      return acts.filter((act) => act.startsWith('webhook.'));
    },
  };
}

// Each change waits for caches, which the tests do at once. The rules of URLs are in test/webhooks/address.test.ts, those of secrets in test/store/endpoints.test.ts.
test.concurrent('webhook set keeps the secret and the events of each environment, and prints a secret once', async () => {
  const { account_id, place, set, json, listActs } = await openSandbox();
  const print = async (...args: string[]) => (await service.cli('webhook', ...args)).stdout;
  expect(await service.json('webhook', 'show', ...place)).toBeNull();
  const none = `No sandbox webhook endpoint is registered for ${account_id}`;
  expect(await print('show', ...place)).toContain(none);
  const first = await print('set', ...place, '--url', LOCAL);
  expect(first).toMatch(/^Signing secret: +whsec_[\w-]{43}$/m);
  const again = await print('set', ...place, '--url', LOCAL);
  expect(again).toMatch(/^Signing secret: +unchanged: `webhook show` shows it$/m);
  expect(again).not.toContain('whsec_');
  expect(await listActs()).toEqual(['webhook.set', 'webhook.set']);
  const onLive = ['--env', 'live', '--url', 'https://1.1.1.1/hook'];
  const live = Object(await service.json('webhook', 'set', account_id, ...onLive));
  const chosen = await set('--events', 'payout.returned, payment.settled');
  expect(await listActs()).toEqual(['webhook.secret_shown', ...Array(3).fill('webhook.set')]);
  const { signing_secret } = chosen;
  expect(first).toContain(signing_secret);
  expect(live.signing_secret).not.toBe(signing_secret);
  const enabled_events = ['payment.settled', 'payout.returned'];
  expect(chosen).toEqual({ url: LOCAL, signing_secret, enabled_events });
  const moved = await json('set', '--url', 'http://localhost:4001/');
  expect(moved).toEqual({ ...chosen, url: 'http://localhost:4001/' });
  expect(await json('show')).toEqual(moved);
  const events = 'payment\\.settled, payout\\.returned';
  expect(await print('show', ...place)).toMatch(new RegExp(`^Events: +${events}$`, 'm'));
  expect(await set('--events', 'all')).toEqual({ url: LOCAL, signing_secret });
  expect(await print('show', ...place)).toMatch(/^Events: +all$/m);
});

test.concurrent('webhook set leaves one endpoint with one secret when several register it at once', async () => {
  const { account_id, json } = await openSandbox();
  const urls = Array.from({ length: 8 }, (_, port) => `http://localhost:${5000 + port}/`);
  const answers = await Promise.all(urls.map((url) => json('set', '--url', url)));
  expect(new Set(answers.map(({ signing_secret }) => signing_secret)).size).toBe(1);
  const stored = await service.db.collection('webhook_endpoints').find({ account_id }).toArray();
  expect(stored).toMatchObject([{ secrets: [expect.anything()] }]);
});

test.concurrent('webhook set needs an address that the environment allows, and the right keys, and else stores nothing', async () => {
  const { account_id, place, set, json } = await openSandbox();
  const before = await set();
  const refuse = async (env: object, url: string, where = place) =>
    await commandsIn({ ...service.env, ...env }).refusal('webhook', 'set', ...where, '--url', url);
  const KEYS_FILE = `${service.folder}/other-keys.json`;
  createKeyFile(KEYS_FILE);
  const foreign = await refuse({ KEYS_FILE }, `${LOCAL}/2`);
  expect(foreign.message).toContain('can not be decrypted with this KEYS_FILE');
  const denied = await refuse({ WEBHOOK_ALLOW_PRIVATE: '' }, `${LOCAL}/2`);
  expect(denied.message).toContain('https://');
  for (const [env, url, code] of [
    ['live', LOCAL, 'url_not_https'],
    ['live', 'https://localhost/hook', 'url_host_not_public'],
    ['sandbox', 'https://192.168.1.1/hook', 'url_host_not_public'],
    ['sandbox', 'hook', 'url_invalid'],
  ] as const) {
    expect((await refuse({}, url, [account_id, '--env', env])).code).toBe(code);
  }
  expect(await json('show')).toEqual(before);
  expect(await service.json('webhook', 'show', account_id, '--env', 'live')).toBeNull();
  const roll = ['webhook', 'roll', account_id, '--env', 'live'];
  expect((await service.refusal(...roll)).code).toBe('webhook_not_set');
});

test.concurrent('webhook roll replaces the secret at once, or keeps it until --after', async () => {
  const { set, json } = await openSandbox();
  const { url, signing_secret: first } = await set();
  for (const now of [[], ['--after', 'now']]) {
    const { signing_secret } = await json('roll', ...now);
    expect(signing_secret).not.toBe(first);
    expect(await json('show')).toEqual({ url, signing_secret });
  }
  const { signing_secret } = await json('show');
  for (const [after, ms] of [
    ['1h', HOUR_MS],
    ['24h', 24 * HOUR_MS],
  ] as const) {
    const startedAt = Date.now();
    const { signing_secret: next_secret, active_from } = await json('roll', '--after', after);
    expect(Date.parse(active_from)).toBeGreaterThanOrEqual(startedAt + ms);
    expect(Date.parse(active_from)).toBeLessThanOrEqual(Date.now() + ms);
    const next = { next_secret, next_active_from: active_from };
    expect(await json('show')).toEqual({ url, signing_secret, ...next });
  }
});

test.concurrent('endpoints are added, listed, updated and removed; `show` takes the oldest by default', async () => {
  const { place, set, json, listActs } = await openSandbox();
  const { signing_secret } = await set();
  const events = ['--events', 'payout.sent', '--description', 'Books'];
  const added = await json('add', '--url', 'http://localhost:4002/', ...events);
  expect(added).toMatchObject({
    ...{ object: 'webhook_endpoint', description: 'Books', enabled_events: ['payout.sent'] },
    signing_secret: expect.stringMatching(/^whsec_[\w-]{43}$/),
  });
  expect((await json('list')).data).toMatchObject([{ url: LOCAL }, { id: added.id }]);
  const other = ['--endpoint', added.id];
  const disable = ['--status', 'disabled', '--events', 'all'];
  for (const [change, state] of [
    [disable, { status: 'disabled', disabled_reason: 'merchant' }],
    [['--status', 'enabled'], { status: 'enabled', disabled_reason: null }],
  ] as const) {
    expect(await json('update', ...other, ...change)).toMatchObject({ id: added.id, ...state });
    const { stdout } = await service.cli('audit', 'verify', '--json');
    expect(JSON.stringify(JSON.parse(stdout).findings)).not.toContain(added.id);
  }
  const refuse = async (name: string) =>
    (await service.refusal('webhook', name, ...place, ...other)).code;
  expect(await refuse('update')).toBe('invalid_usage');
  expect(await json('show')).toMatchObject({ signing_secret });
  expect((await json('show', ...other)).signing_secret).toBe(added.signing_secret);
  expect(await json('remove', ...other)).toMatchObject({ deleted: true });
  expect(await refuse('remove')).toBe('webhook_endpoint_not_found');
  expect((await json('list')).data).toHaveLength(1);
  expect(await listActs()).toEqual([
    ...['webhook.deleted', 'webhook.secret_shown', 'webhook.secret_shown', 'webhook.updated'],
    ...['webhook.updated', 'webhook.created', 'webhook.set'],
  ]);
});

test.concurrent('no signing secret is stored as plain text, and none decrypts for another environment', async () => {
  const { account_id, set, json } = await openSandbox();
  const secrets = [await set(), await json('roll', '--after', '1h')];
  const stored = await everythingStored(service.db);
  for (const { signing_secret } of secrets) {
    expect(stored).not.toContain(signing_secret.slice('whsec_'.length));
  }
  const endpoints = service.db.collection('webhook_endpoints');
  await endpoints.updateOne({ account_id, livemode: false }, { $set: { livemode: true } });
  const moved = await service.refusal('webhook', 'show', account_id, '--env', 'live');
  expect(moved.code).toBe('keys_file_mismatch');
});
