import { createKeyFile } from '../../src/encryption/key-file';
import { commandsIn, useProvisioning } from './cli';

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

// Each change waits for caches, which the tests do at once. URLs are in test/webhooks/address.test.ts, secrets in
// test/store/endpoints.test.ts, the rules of several endpoints in test/api/webhooks.test.ts.
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
  const onLive = ['--env', 'live', '--url', 'https://1.1.1.1/hook'];
  const live = Object(await service.json('webhook', 'set', account_id, ...onLive));
  const chosen = await set('--events', 'payout.returned, payment.settled');
  expect(await listActs()).toEqual(['webhook.secret_shown', ...Array(3).fill('webhook.set')]);
  const { signing_secret } = chosen;
  expect(first).toContain(signing_secret);
  expect(live.signing_secret).not.toBe(signing_secret);
  const enabled_events = ['payment.settled', 'payout.returned'];
  expect(chosen).toEqual({ url: LOCAL, signing_secret, enabled_events });
  expect(await json('show')).toEqual(chosen);
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
  const refuse = async (env: object, where = place, url = `${LOCAL}/2`) =>
    await commandsIn({ ...service.env, ...env }).refusal('webhook', 'set', ...where, '--url', url);
  const KEYS_FILE = `${service.folder}/other-keys.json`;
  createKeyFile(KEYS_FILE);
  expect((await refuse({ KEYS_FILE })).message).toContain(
    'can not be decrypted with this KEYS_FILE',
  );
  expect((await refuse({ WEBHOOK_ALLOW_PRIVATE: '' })).message).toContain('https://');
  const onLive = [account_id, '--env', 'live'];
  expect((await refuse({}, onLive)).code).toBe('url_not_https');
  expect((await refuse({}, place, 'hook')).code).toBe('url_invalid');
  expect(await json('show')).toEqual(before);
  expect(await service.json('webhook', 'show', ...onLive)).toBeNull();
  expect((await service.refusal('webhook', 'roll', ...onLive)).code).toBe('webhook_not_set');
  // No secret decrypts for another environment.
  const endpoints = service.db.collection('webhook_endpoints');
  await endpoints.updateOne({ account_id, livemode: false }, { $set: { livemode: true } });
  expect((await service.refusal('webhook', 'show', ...onLive)).code).toBe('keys_file_mismatch');
});

test.concurrent('webhook roll replaces the secret at once, or keeps it until --after', async () => {
  const { set, json } = await openSandbox();
  const { url, signing_secret: first } = await set();
  const { signing_secret } = await json('roll', '--after', 'now');
  expect(signing_secret).not.toBe(first);
  const startedAt = Date.now();
  const { signing_secret: next_secret, active_from } = await json('roll', '--after', '1h');
  expect(Date.parse(active_from)).toBeGreaterThanOrEqual(startedAt + HOUR_MS);
  expect(Date.parse(active_from)).toBeLessThanOrEqual(Date.now() + HOUR_MS);
  const next = { next_secret, next_active_from: active_from };
  expect(await json('show')).toEqual({ url, signing_secret, ...next });
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
  const disabled = { id: added.id, status: 'disabled', disabled_reason: 'merchant' };
  const disable = ['--status', 'disabled', '--events', 'all'];
  expect(await json('update', ...other, ...disable)).toMatchObject(disabled);
  const { stdout } = await service.cli('audit', 'verify', '--json');
  expect(JSON.stringify(JSON.parse(stdout).findings)).not.toContain(added.id);
  const refuse = async (name: string) =>
    (await service.refusal('webhook', name, ...place, ...other)).code;
  expect(await refuse('update')).toBe('invalid_usage');
  expect(await json('show')).toMatchObject({ signing_secret });
  expect((await json('show', ...other)).signing_secret).toBe(added.signing_secret);
  expect(await json('remove', ...other)).toMatchObject({ deleted: true });
  expect(await refuse('remove')).toBe('webhook_endpoint_not_found');
  expect(await listActs()).toEqual([
    ...['webhook.deleted', 'webhook.secret_shown', 'webhook.secret_shown', 'webhook.updated'],
    ...['webhook.created', 'webhook.set'],
  ]);
});
