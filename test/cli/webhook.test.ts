import { createKeyFile } from '../../src/encryption/key-file';
import { hashKey } from '../../src/store/keys';
import { useFixture } from '../support/fixture';
import { commandsIn, everythingStored, useProvisioning } from './cli';

const LOCAL = 'http://localhost:4000/hook';
const HOUR_MS = 3_600_000;
const SECRET = /^whsec_[\w-]{43}$/;

const service = useProvisioning();
/** Merchant that never has an endpoint. */
const bare = useFixture(() => service.account());

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

// The rules of URLs are in test/webhooks/address.test.ts, those of secrets in test/store/endpoints.test.ts.
test('webhook set keeps the secret and the events of each environment, and prints a secret once', async () => {
  const { account_id, place, set, json, listActs } = await openSandbox();
  const print = async (...args: string[]) => (await service.cli('webhook', ...args)).stdout;
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
  const shown = await print('show', ...place);
  expect(shown).toMatch(/^Events: +payment\.settled, payout\.returned$/m);
  expect(await set('--events', 'all')).toEqual({ url: LOCAL, signing_secret });
  expect(await print('show', ...place)).toMatch(/^Events: +all$/m);
});

test('webhook set leaves one endpoint with one secret when several register it at once', async () => {
  const { account_id, json } = await openSandbox();
  const urls = Array.from({ length: 8 }, (_, port) => `http://localhost:${5000 + port}/`);
  const answers = await Promise.all(urls.map((url) => json('set', '--url', url)));
  expect(new Set(answers.map(({ signing_secret }) => signing_secret)).size).toBe(1);
  const stored = await service.db.collection('webhook_endpoints').find({ account_id }).toArray();
  expect(stored).toMatchObject([{ secrets: [expect.anything()] }]);
});

test.each([
  ['live', LOCAL, [], 'url_not_https'],
  ['live', 'https://localhost/hook', [], 'url_host_not_public'],
  ['sandbox', 'https://192.168.1.1/hook', [], 'url_host_not_public'],
  ['sandbox', 'hook', [], 'url_invalid'],
  ...['payment.paid', '', 'payment.settled,', 'all,payment.settled'].map(
    (events) => ['sandbox', LOCAL, ['--events', events], 'invalid_usage'] as const,
  ),
] as const)(
  'webhook set refuses for %s %s %j as %s, and stores nothing',
  async (env, url, more, code) => {
    const place = [bare.account_id, '--env', env];
    const refused = await service.refusal('webhook', 'set', ...place, '--url', url, ...more);
    expect(refused.code).toBe(code);
    if (more.length > 0) expect(refused.message).toContain('Allowed, separated by commas');
    expect(await service.json('webhook', 'show', ...place)).toBeNull();
    const { stdout } = await service.cli('webhook', 'show', ...place);
    expect(stdout).toContain(`No ${env} webhook endpoint is registered for ${bare.account_id}`);
  },
);

test('webhook set needs the right keys, and an allowance for this machine', async () => {
  const { place, set, json } = await openSandbox();
  const before = await set();
  const KEYS_FILE = `${service.folder}/other-keys.json`;
  createKeyFile(KEYS_FILE);
  const refuse = async (env: object) => {
    const { refusal } = commandsIn({ ...service.env, ...env });
    return (await refusal('webhook', 'set', ...place, '--url', `${LOCAL}/2`)).message;
  };
  expect(await refuse({ KEYS_FILE })).toContain('can not be decrypted with this KEYS_FILE');
  expect(await refuse({ WEBHOOK_ALLOW_PRIVATE: '' })).toContain('https://');
  expect(await json('show')).toEqual(before);
});

test('webhook roll replaces the secret at once, or keeps it until --after', async () => {
  const { set, json } = await openSandbox();
  await set();
  const { url, signing_secret } = await json('roll');
  expect(await json('show')).toEqual({ url, signing_secret });
  for (const [after, ms] of [
    ['now', 0],
    ['1h', HOUR_MS],
    ['24h', 24 * HOUR_MS],
  ] as const) {
    const before = await json('show');
    const startedAt = Date.now();
    const rolled = await json('roll', '--after', after);
    expect(rolled.signing_secret).not.toBe(before.signing_secret);
    const shown = await json('show');
    if (after === 'now') {
      expect(shown).toEqual({ url, signing_secret: rolled.signing_secret });
      continue;
    }
    expect(Date.parse(rolled.active_from)).toBeGreaterThanOrEqual(startedAt + ms);
    expect(Date.parse(rolled.active_from)).toBeLessThanOrEqual(Date.now() + ms);
    expect(shown).toEqual({
      ...{ url, signing_secret: before.signing_secret },
      ...{ next_secret: rolled.signing_secret, next_active_from: rolled.active_from },
    });
  }
  const roll = ['webhook', 'roll', bare.account_id, '--env', 'live'];
  expect((await service.refusal(...roll)).code).toBe('webhook_not_set');
  const { message } = await service.refusal(...roll, '--after', '2h');
  expect(message).toContain('Allowed choices are now, 1h, 24h.');
});

test('endpoints are added, listed, updated and removed; `show` takes the oldest by default', async () => {
  const { place, set, json, listActs } = await openSandbox();
  const { signing_secret } = await set();
  const events = ['--events', 'payout.sent', '--description', 'Books'];
  const added = await json('add', '--url', 'http://localhost:4002/', ...events);
  expect(added).toMatchObject({
    ...{ object: 'webhook_endpoint', description: 'Books', enabled_events: ['payout.sent'] },
    signing_secret: expect.stringMatching(SECRET),
  });
  expect((await json('list')).data).toMatchObject([{ url: LOCAL }, { id: added.id }]);
  const other = ['--endpoint', added.id];
  const isExplained = async () => {
    const { stdout } = await service.cli('audit', 'verify', '--json');
    return !JSON.stringify(JSON.parse(stdout).findings).includes(added.id);
  };
  const disable = ['--status', 'disabled', '--events', 'all'];
  expect(await json('update', ...other, ...disable)).toMatchObject({
    ...{ id: added.id, status: 'disabled', disabled_reason: 'merchant' },
  });
  expect(await isExplained()).toBe(true);
  const enabled = { status: 'enabled', disabled_reason: null };
  expect(await json('update', ...other, '--status', 'enabled')).toMatchObject(enabled);
  expect(await isExplained()).toBe(true);
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

test('no signing secret is stored as plain text, and none decrypts for another environment', async () => {
  const { account_id, sandbox_key, set, json } = await openSandbox();
  const secrets = [await set(), await json('roll', '--after', '1h')];
  const stored = await everythingStored(service.db);
  expect(stored).toContain(hashKey(sandbox_key));
  for (const { signing_secret } of secrets) {
    expect(stored).not.toContain(signing_secret.slice('whsec_'.length));
  }
  const endpoints = service.db.collection('webhook_endpoints');
  await endpoints.updateOne({ account_id, livemode: false }, { $set: { livemode: true } });
  const moved = await service.refusal('webhook', 'show', account_id, '--env', 'live');
  expect(moved.code).toBe('keys_file_mismatch');
});
