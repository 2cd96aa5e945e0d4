import { hostname, userInfo } from 'node:os';
import { z } from 'zod';
import { isPassword } from '../../src/keys/password';
import { join } from '../../src/merchants/staff';
import { openProvisioning, type Provisioning } from './cli';

let service: Provisioning;

beforeAll(async () => {
  service = await openProvisioning();
});
afterAll(async () => await service.close());

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
  expect(await join(deps, token, 'hash')).toMatchObject({ email: 'ana@example.com' });
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
