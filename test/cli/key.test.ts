import { z } from 'zod';
import { SCOPES } from '../../src/domain/account/api-key';
import { hashKey } from '../../src/store/keys';
import { everythingStored, useProvisioning } from './cli';

const MadeKey = z.strictObject({ key_id: z.string(), key: z.string() });
const RevokedKey = z.strictObject({ key_id: z.string(), revoked_at: z.string() });

const service = useProvisioning();

test('key create makes another key of all scopes, or of those asked for, and stores its hash', async () => {
  const { account_id } = await service.account();
  const create = ['key', 'create', account_id, '--env'];
  const live = MadeKey.parse(await service.json(...create, 'live'));
  const scoped = MadeKey.parse(
    await service.json(...create, 'sandbox', '--scopes', 'refunds:read, payments:read'),
  );
  expect(live.key).toMatch(/^sk_live_/);
  expect(scoped.key).toMatch(/^sk_sandbox_/);
  const { keys } = service.stores;
  expect(await keys.byHash(hashKey(live.key))).toMatchObject({ _id: live.key_id, scopes: SCOPES });
  expect(await keys.byHash(hashKey(scoped.key))).toMatchObject({
    account_id,
    livemode: false,
    scopes: ['payments:read', 'refunds:read'],
  });
  expect(await everythingStored(service.db)).not.toContain(live.key.slice('sk_live_'.length));
});

test('key list tells keys apart without showing them', async () => {
  const { account_id, sandbox_key, live_key } = await service.account();
  const seen = { scopes: SCOPES, last_used_at: null, revoked_at: null };
  const rest = { key_id: expect.stringMatching(/^key_/), created_at: expect.stringMatching(/Z$/) };
  expect(await service.json('key', 'list', account_id)).toEqual({
    data: [
      { ...rest, ...seen, env: 'sandbox', last4: sandbox_key.slice(-4) },
      { ...rest, ...seen, env: 'live', last4: live_key.slice(-4) },
    ],
  });
  const { stdout } = await service.cli('key', 'list', account_id);
  expect(stdout).toMatch(/^KEY +ENV +ENDS +CREATED +LAST USED +REVOKED +SCOPES\n/);
  expect(stdout).toContain(`…${sandbox_key.slice(-4)}`);
  expect(stdout).not.toContain(sandbox_key);
});

test('a revoked key stays revoked at the time of the first revocation', async () => {
  const { account_id } = await service.account();
  const { key_id, key } = MadeKey.parse(
    await service.json('key', 'create', account_id, '--env', 'live'),
  );
  const first = RevokedKey.parse(await service.json('key', 'revoke', key_id));
  expect(first.key_id).toBe(key_id);
  expect(await service.json('key', 'revoke', key_id)).toEqual(first);
  expect(await service.stores.keys.byHash(hashKey(key))).toMatchObject({
    revoked_at: first.revoked_at,
  });
});

test('what is wrong is refused, naming what is allowed', async () => {
  const { account_id } = await service.account();
  const create = ['key', 'create', account_id];
  const before = await service.json('key', 'list', account_id);
  const messages = [
    [await service.refusal(...create), "required option '--env <env>' not specified"],
    [await service.refusal(...create, '--env', 'test'), 'Allowed choices are sandbox, live.'],
    [
      await service.refusal(...create, '--env', 'live', '--scopes', 'payments:read,payments'),
      `Allowed, separated by commas: ${SCOPES.join(', ')}.`,
    ],
    [await service.refusal(...create, '--env', 'live', '--scopes', ''), 'Allowed, separated by'],
    [await service.refusal('key', 'revoke', 'key_1'), 'There is no key key_1.'],
  ] as const;
  for (const [{ message }, words] of messages) expect(message).toContain(words);
  expect(await service.json('key', 'list', account_id)).toEqual(before);
});

test('a key may end by itself, and be for some networks only', async () => {
  const { account_id } = await service.account();
  const create = ['key', 'create', account_id, '--env', 'live'];
  const until = ['--expires-at', '2999-01-01T01:00:00+01:00'];
  const from = ['--allow-cidr', '203.0.113.0/24', '--allow-cidr', '2001:db8::/32'];
  const { key_id } = MadeKey.parse(await service.json(...create, ...until, ...from));
  const bounds = {
    expires_at: '2999-01-01T00:00:00.000Z',
    allowed_cidrs: ['203.0.113.0/24', '2001:db8::/32'],
  };
  const { data } = z
    .object({ data: z.array(z.looseObject({ key_id: z.string() })) })
    .parse(await service.json('key', 'list', account_id));
  expect(data.find((key) => key.key_id === key_id)).toMatchObject(bounds);
  const [line] = await service.stores.auditLog.list({ account_id, limit: 1 });
  expect(line).toMatchObject({ act: 'api_key.created', target: key_id, after: bounds });
  const past = await service.refusal(...create, '--expires-at', '2020-01-01T00:00:00Z');
  expect(past.message).toBe('--expires-at has to be in the future.');
  const { message } = await service.refusal(...create, '--allow-cidr', '203.0.113.0/33');
  expect(message).toContain('It must be a network');
});
