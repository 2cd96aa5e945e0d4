import { writeFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { isPassword } from '../../src/encryption/password';
import { acceptInvitation as joinTeam } from '../../src/service/team/members';
import { useProvisioning } from './cli';

const service = useProvisioning();

const Invited = z.strictObject({ link: z.string(), expires_at: z.string() });
const Reset = z.strictObject({ email: z.string(), password: z.string() });

const lines = (account_id: string) =>
  service.stores.auditLog.list({ account_id, livemode: false, limit: 100 });

test('a person is invited by a link, joins, and is listed', async () => {
  const { account_id, dashboard_email } = await service.account();
  const args = ['--email', 'Ana@Example.com', '--role', 'developer'];
  const made = Invited.parse(await service.json('dashboard', 'invite', account_id, ...args));
  expect(made.link).toMatch(/^http:\/\/localhost:8080\/dashboard\/invitation\/[\w-]{43}$/);
  const token = made.link.split('/').at(-1) ?? '';
  const deps = { mongo: service.mongo, stores: service.stores, now: () => new Date() };
  expect(await joinTeam(deps, token, 'hash')).toMatchObject({ email: 'ana@example.com' });
  expect(await service.json('dashboard', 'people', account_id)).toMatchObject({
    data: [
      { email: dashboard_email, role: 'owner', second_factor: false, signed_in_at: null },
      { email: 'ana@example.com', role: 'developer' },
    ],
  });
});

test('a forgotten password is replaced by a new one, shown once', async () => {
  const { account_id, dashboard_email, dashboard_password } = await service.account();
  const args = ['dashboard', 'reset-password', dashboard_email.toUpperCase()];
  const { email, password } = Reset.parse(await service.json(...args, '--without-second-factor'));
  expect(email).toBe(dashboard_email);
  const user = await service.stores.users.byEmail(email);
  expect(await isPassword(password, user?.password_hash)).toBe(true);
  expect(await isPassword(dashboard_password, user?.password_hash)).toBe(false);
  expect((await lines(account_id))[0]).toMatchObject({ act: 'user.password_reset' });
  expect(await service.refusal('dashboard', 'reset-password', 'nobody@example.com')).toEqual({
    code: 'user_not_found',
    message: 'There is no login nobody@example.com.',
  });
});

test('each change on the command line leaves a line: who, before and after, no secret', async () => {
  const made = await service.account();
  const { account_id } = made;
  await service.json(
    'account',
    'update',
    account_id,
    '--crypto',
    'on',
    '--payout-fee',
    'card_payout=5',
  );
  const balance = ['--env', 'sandbox', '--balance-account', 'main', '--currency', 'EUR'];
  const money = [...balance, '--amount', '500'];
  const why = ['--operator', 'mia', '--reason', 'Ticket 42'];
  await service.json('balance', 'fund', account_id, ...money, '--operation-id', account_id);
  await service.json('balance', 'fund', account_id, ...money, '--operation-id', account_id);
  await service.json('balance', 'adjust', account_id, ...money, ...why);
  await service.json('balance', 'reverse', `funded:${account_id}`, ...why);
  const all = await lines(account_id);
  expect(all.map(({ act }) => act)).toEqual([
    'balance.reversed',
    'balance.adjusted',
    'balance.funded',
    'account.updated',
    'api_key.created',
    'account.created',
  ]);
  const actor = { door: 'command_line', system_user: userInfo().username, host: hostname() };
  for (const line of all) expect(line).toMatchObject({ account_id, actor });
  expect(all[3]).toMatchObject({
    livemode: null,
    before: { crypto: false, payout_fees: [] },
    after: { crypto: true, payout_fees: ['card_payout=5'] },
  });
  expect(all[2]).toMatchObject({
    livemode: false,
    target: `funded:${account_id}`,
    after: { balance_account: 'main', currency: 'EUR', amount: 500 },
  });
  const secrets = [made.sandbox_key, made.live_key, made.dashboard_password];
  for (const secret of secrets) expect(JSON.stringify(all)).not.toContain(secret);
  const live = await service.stores.auditLog.list({ account_id, livemode: true, limit: 100 });
  expect(live.map(({ act }) => act)).toEqual([
    'account.updated',
    'api_key.created',
    'account.created',
  ]);
});

describe('the chains of the audit log', () => {
  const Listed = z.object({
    data: z.array(z.object({ act: z.string(), seq: z.number(), hash: z.string() })),
    has_more: z.boolean(),
  });
  const Verified = z.object({
    lines: z.number(),
    broken: z.array(z.looseObject({ chain: z.string(), seq: z.number(), fault: z.string() })),
    heads: z.array(z.object({ chain: z.string(), seq: z.number(), hash: z.string() })),
  });
  const list = async (...args: string[]) =>
    Listed.parse(await service.json('audit', 'list', ...args));
  const verify = async (...args: string[]) => {
    const { exit, stdout } = await service.cli('audit', 'verify', '--json', ...args);
    return { exit, ...Verified.parse(JSON.parse(stdout)) };
  };

  test('lines that are written at once stand one after the other, each account by itself', async () => {
    const [one, other] = [await service.account(), await service.account()];
    const make = ({ account_id }: typeof one) =>
      service.json('key', 'create', account_id, '--env', 'sandbox');
    await Promise.all([one, other, one, other, one, one].map(make));
    const { data } = await list('--account', one.account_id);
    expect(data.map(({ seq }) => seq).toSorted((a, b) => b - a)).toEqual([7, 6, 5, 4, 3, 2, 1]);
    expect(new Set(data.map(({ hash }) => hash)).size).toBe(7);
    expect(await list('--account', one.account_id, '--env', 'live', '--limit', '1')).toMatchObject({
      data: [{ act: 'api_key.created' }],
      has_more: true,
    });
    const later = new Date(Date.now() + 60_000).toISOString();
    expect(await list('--since', later)).toEqual({ data: [], has_more: false });
    expect(await verify()).toMatchObject({ exit: 0, broken: [] });
  });

  test('a line that is changed or taken out, or a chain made anew, is told', async () => {
    const { account_id } = await service.account();
    const before = await verify();
    const kept = join(service.folder, 'heads.json');
    writeFileSync(kept, JSON.stringify(before));
    await service.json('account', 'update', account_id, '--crypto', 'on');
    expect(await verify('--against', kept)).toMatchObject({ exit: 0, broken: [] });
    const rows = service.db.collection('audit_log');
    const second = { account_id, seq: 2 };
    await rows.updateOne(second, { $set: { 'actor.host': 'elsewhere' } });
    const fault = { chain: account_id, seq: 2 };
    expect(await verify()).toMatchObject({ exit: 1, broken: [{ ...fault, fault: 'changed' }] });
    await rows.deleteOne(second);
    expect(await verify()).toMatchObject({ exit: 1, broken: [{ ...fault, fault: 'missing' }] });
    await rows.deleteMany({ account_id });
    await service.db.collection<{ _id: string }>('audit_heads').deleteOne({ _id: account_id });
    expect(await verify()).toMatchObject({ exit: 0, broken: [] });
    const { stdout, stderr, exit } = await service.cli('audit', 'verify', '--against', kept);
    expect(exit).toBe(1);
    expect(stdout).toContain('the line is missing');
    expect(stderr).toBe('The audit log has 1 broken chain.\n');
  });
});
