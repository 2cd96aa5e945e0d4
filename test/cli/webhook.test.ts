import { z } from 'zod';
import { createKeyFile } from '../../src/encryption/key-file';
import { hashKey } from '../../src/store/keys';
import { useFixture } from '../support/fixture';
import { commandsIn, everythingStored, useProvisioning } from './cli';

const Endpoint = z.strictObject({ url: z.string(), signing_secret: z.string() });
const Rolled = Endpoint.extend({ active_from: z.iso.datetime() });
const LOCAL = 'http://localhost:4000/hook';
const HOUR_MS = 3_600_000;

const service = useProvisioning();
/** Merchant that never has an endpoint. */
const bare = useFixture(() => service.account());

async function setUrl(account: string, env: string, url: string) {
  return Endpoint.parse(await service.json('webhook', 'set', account, '--env', env, '--url', url));
}

describe('webhook set', () => {
  test('creates a secret of 256 bits per environment, which a change of the URL keeps', async () => {
    const { account_id } = await service.account();
    const sandbox = await setUrl(account_id, 'sandbox', LOCAL);
    const live = await setUrl(account_id, 'live', 'https://1.1.1.1/hook');
    expect(sandbox).toEqual({
      url: LOCAL,
      signing_secret: expect.stringMatching(/^whsec_[\w-]{43}$/),
    });
    expect(live.signing_secret).not.toBe(sandbox.signing_secret);
    const moved = await setUrl(account_id, 'sandbox', 'http://localhost:4001/');
    expect(moved).toEqual({
      url: 'http://localhost:4001/',
      signing_secret: sandbox.signing_secret,
    });
    const sandboxLines = { account_id, livemode: false, limit: 3 };
    expect((await service.stores.auditLog.list(sandboxLines)).map(({ act }) => act)).toEqual([
      'webhook.secret_shown',
      'webhook.set',
      'webhook.set',
    ]);
    expect(await service.json('webhook', 'show', account_id, '--env', 'sandbox')).toEqual(moved);
  });

  test('prints a secret once: a repeat says that it is unchanged', async () => {
    const { account_id } = await service.account();
    const set = ['webhook', 'set', account_id, '--env', 'sandbox', '--url', LOCAL];
    const first = await service.cli(...set);
    expect(first.stdout).toMatch(/^Signing secret: +whsec_[\w-]{43}$/m);
    const second = await service.cli(...set);
    expect(second.stdout).toMatch(/^Signing secret: +unchanged: `webhook show` shows it$/m);
    expect(second.stdout).not.toContain('whsec_');
    const lines = await service.stores.auditLog.list({ account_id, livemode: false, limit: 2 });
    expect(lines.map(({ act }) => act)).toEqual(['webhook.set', 'webhook.set']);
  });

  test('leaves one endpoint with one secret when several register it at once', async () => {
    const { account_id } = await service.account();
    const made = await Promise.all(
      Array.from({ length: 8 }, async (_, port) => {
        const url = ['--url', `http://localhost:${5000 + port}/`];
        const set = ['webhook', 'set', account_id, '--env', 'sandbox', ...url];
        return Endpoint.parse(await service.json(...set));
      }),
    );
    expect(new Set(made.map(({ signing_secret }) => signing_secret)).size).toBe(1);
    const stored = await service.db.collection('webhook_endpoints').find({ account_id }).toArray();
    expect(stored).toHaveLength(1);
    expect(stored[0]?.['secrets']).toHaveLength(1);
  });

  test.each([
    ['live', LOCAL, 'url_not_https'],
    ['live', 'https://localhost/hook', 'url_host_not_public'],
    ['live', 'https://10.0.0.1/hook', 'url_host_not_public'],
    ['sandbox', 'http://1.1.1.1/hook', 'url_not_https'],
    ['sandbox', 'https://192.168.1.1/hook', 'url_host_not_public'],
    ['sandbox', 'https://me:pw@1.1.1.1/', 'url_userinfo'],
    ['sandbox', 'hook', 'url_invalid'],
  ])('refuses for %s %s', async (env, url, code) => {
    const { account_id } = bare;
    const set = ['webhook', 'set', account_id, '--env', env, '--url', url];
    expect((await service.refusal(...set)).code).toBe(code);
    expect(await service.json('webhook', 'show', account_id, '--env', env)).toBeNull();
  });

  test('refuses this machine in the sandbox too, unless it is allowed', async () => {
    const { refusal } = commandsIn({ ...service.env, WEBHOOK_ALLOW_PRIVATE: '' });
    const place = [bare.account_id, '--env', 'sandbox'];
    const { message } = await refusal('webhook', 'set', ...place, '--url', LOCAL);
    expect(message).toContain('https://');
  });

  test('changes nothing when the current secret was encrypted with other keys', async () => {
    const { account_id } = await service.account();
    const before = await setUrl(account_id, 'sandbox', LOCAL);
    const env = { ...service.env, KEYS_FILE: `${service.folder}/other-keys.json` };
    createKeyFile(env.KEYS_FILE);
    const place = [account_id, '--env', 'sandbox'];
    const set = ['webhook', 'set', ...place, '--url', `${LOCAL}/2`];
    const { message } = await commandsIn(env).refusal(...set);
    expect(message).toContain('can not be decrypted with this KEYS_FILE');
    expect(await service.json('webhook', 'show', ...place)).toEqual(before);
  });
});

describe('webhook set --events', () => {
  test('selects events, which a change of the URL keeps, until `all` removes the selection', async () => {
    const { account_id } = await service.account();
    const place = [account_id, '--env', 'sandbox'];
    const set = async (...more: string[]) =>
      await service.json('webhook', 'set', ...place, '--url', LOCAL, ...more);
    const { url, signing_secret } = Endpoint.parse(await set());
    const chosen = await set('--events', 'payout.returned, payment.settled');
    const enabled_events = ['payment.settled', 'payout.returned'];
    expect(chosen).toEqual({ url, signing_secret, enabled_events });
    expect(await set()).toEqual(chosen);
    expect(await service.json('webhook', 'show', ...place)).toEqual(chosen);
    const shown = await service.cli('webhook', 'show', ...place);
    expect(shown.stdout).toMatch(/^Events: +payment\.settled, payout\.returned$/m);
    expect(await set('--events', 'all')).toEqual({ url, signing_secret });
    expect((await service.cli('webhook', 'show', ...place)).stdout).toMatch(/^Events: +all$/m);
  });

  test.each(['payment.paid', '', 'payment.settled,', 'all,payment.settled'])(
    'refuses "%s", and changes nothing',
    async (events) => {
      const { account_id } = bare;
      const place = [account_id, '--env', 'sandbox'];
      const set = ['webhook', 'set', ...place, '--url', LOCAL, '--events', events];
      expect((await service.refusal(...set)).message).toContain('Allowed, separated by commas');
      expect(await service.json('webhook', 'show', ...place)).toBeNull();
    },
  );
});

describe('webhook roll', () => {
  test.each([
    ['1h', HOUR_MS],
    ['24h', 24 * HOUR_MS],
  ])('--after %s keeps the current secret until then', async (after, ms) => {
    const { account_id } = await service.account();
    const place = [account_id, '--env', 'sandbox'];
    const before = await setUrl(account_id, 'sandbox', LOCAL);
    const startedAt = Date.now();
    const rolled = Rolled.parse(await service.json('webhook', 'roll', ...place, '--after', after));
    expect(rolled.signing_secret).not.toBe(before.signing_secret);
    const active = Date.parse(rolled.active_from);
    expect(active).toBeGreaterThanOrEqual(startedAt + ms);
    expect(active).toBeLessThanOrEqual(Date.now() + ms);
    expect(await service.json('webhook', 'show', ...place)).toEqual({
      ...before,
      next_secret: rolled.signing_secret,
      next_active_from: rolled.active_from,
    });
  });

  test('replaces the secret at once by default, and with --after now', async () => {
    const { account_id } = await service.account();
    const place = [account_id, '--env', 'sandbox'];
    await setUrl(account_id, 'sandbox', LOCAL);
    const rolled = Rolled.parse(await service.json('webhook', 'roll', ...place));
    const { url, signing_secret } = rolled;
    expect(await service.json('webhook', 'show', ...place)).toEqual({ url, signing_secret });
    const again = Rolled.parse(await service.json('webhook', 'roll', ...place, '--after', 'now'));
    expect(again.signing_secret).not.toBe(signing_secret);
  });

  test('is refused without an endpoint, and for another --after', async () => {
    const { account_id } = bare;
    const roll = ['webhook', 'roll', account_id, '--env', 'live'];
    expect((await service.refusal(...roll)).code).toBe('webhook_not_set');
    const other = await service.refusal(...roll, '--after', '2h');
    expect(other.message).toContain('Allowed choices are now, 1h, 24h.');
  });
});

test('webhook show says that there is no endpoint: null in JSON, words otherwise', async () => {
  const { account_id } = bare;
  const show = ['webhook', 'show', account_id, '--env', 'live'];
  expect(await service.json(...show)).toBeNull();
  const { exit, stdout } = await service.cli(...show);
  expect({ exit, stdout }).toEqual({
    exit: 0,
    stdout: expect.stringContaining(`No live webhook endpoint is registered for ${account_id}`),
  });
});

/** Findings of `audit verify` about a row. */
async function findAudited(id: string) {
  const Findings = z.object({ findings: z.array(z.looseObject({ id: z.string() })) });
  const { stdout } = await service.cli('audit', 'verify', '--json');
  return Findings.parse(JSON.parse(stdout)).findings.filter((finding) => finding.id === id);
}

test('endpoints are added, listed, updated and removed; `show` takes the oldest by default', async () => {
  const { account_id } = await service.account();
  const place = [account_id, '--env', 'sandbox'];
  const { signing_secret } = await setUrl(account_id, 'sandbox', LOCAL);
  const Added = z.looseObject({ id: z.string(), signing_secret: z.string() });
  const events = ['--events', 'payout.sent', '--description', 'Books'];
  const url = ['--url', 'http://localhost:4002/'];
  const added = Added.parse(await service.json('webhook', 'add', ...place, ...url, ...events));
  expect(added).toMatchObject({
    ...{ object: 'webhook_endpoint', description: 'Books', enabled_events: ['payout.sent'] },
    signing_secret: expect.stringMatching(/^whsec_/),
  });
  const List = z.object({ data: z.array(z.looseObject({ id: z.string(), url: z.string() })) });
  const list = async () => List.parse(await service.json('webhook', 'list', ...place)).data;
  expect((await list()).map((each) => each.url)).toEqual([LOCAL, 'http://localhost:4002/']);
  const other = [...place, '--endpoint', added.id];
  expect(
    await service.json('webhook', 'update', ...other, '--status', 'disabled', '--events', 'all'),
  ).toMatchObject({ id: added.id, status: 'disabled', disabled_reason: 'merchant' });
  expect(await findAudited(added.id)).toEqual([]);
  const enabled = await service.json('webhook', 'update', ...other, '--status', 'enabled');
  expect(enabled).toMatchObject({ status: 'enabled', disabled_reason: null });
  expect(await findAudited(added.id)).toEqual([]);
  expect((await service.refusal('webhook', 'update', ...other)).code).toBe('invalid_usage');
  expect(await service.json('webhook', 'show', ...place)).toMatchObject({ signing_secret });
  expect(await service.json('webhook', 'show', ...other)).toMatchObject({
    signing_secret: added.signing_secret,
  });
  expect(await service.json('webhook', 'remove', ...other)).toMatchObject({ deleted: true });
  expect((await service.refusal('webhook', 'remove', ...other)).code).toBe(
    'webhook_endpoint_not_found',
  );
  expect(await list()).toHaveLength(1);
  const lines = await service.stores.auditLog.list({ account_id, livemode: false, limit: 7 });
  expect(lines.map(({ act }) => act)).toEqual([
    ...['webhook.deleted', 'webhook.secret_shown', 'webhook.secret_shown', 'webhook.updated'],
    ...['webhook.updated', 'webhook.created', 'webhook.set'],
  ]);
});

test('no signing secret is stored as plain text, and none decrypts for another environment', async () => {
  const { account_id, sandbox_key } = await service.account();
  const place = [account_id, '--env', 'sandbox'];
  const { signing_secret } = await setUrl(account_id, 'sandbox', LOCAL);
  const rolled = Rolled.parse(await service.json('webhook', 'roll', ...place, '--after', '1h'));
  const stored = await everythingStored(service.db);
  expect(stored).toContain(hashKey(sandbox_key));
  for (const secret of [signing_secret, rolled.signing_secret]) {
    expect(stored).not.toContain(secret.slice('whsec_'.length));
  }
  const endpoints = service.db.collection('webhook_endpoints');
  await endpoints.updateOne({ account_id, livemode: false }, { $set: { livemode: true } });
  const moved = await service.refusal('webhook', 'show', account_id, '--env', 'live');
  expect(moved.code).toBe('keys_file_mismatch');
});
