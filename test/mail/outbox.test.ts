import { randomUUID } from 'node:crypto';
import { createLogger } from '../../src/base/log';
import { inTransaction } from '../../src/base/mongo';
import { SCOPES } from '../../src/domain/merchants/api-key';
import { createEncrypter } from '../../src/encryption/encrypter';
import {
  addEndpoint,
  changeEndpoint,
  deleteEndpoint,
  rollEndpoint,
} from '../../src/service/events/endpoints/manage';
import { setFrozen, updateAccount } from '../../src/service/merchants/accounts';
import { setBrand } from '../../src/service/merchants/brand/brand';
import { createKey, revokeKey } from '../../src/service/merchants/keys';
import {
  createMailer,
  readSmtpServer,
  type SendMail,
  sendNextMail,
} from '../../src/service/merchants/mail/transport';
import {
  acceptInvitation,
  changeMember,
  invite,
  withdrawInvitation,
} from '../../src/service/merchants/team/members';
import { hashRecoveryCode, switchOff } from '../../src/service/merchants/team/second-factor';
import {
  changePassword,
  insertSession,
  startSession,
} from '../../src/service/merchants/team/sessions';
import { checkCode } from '../../src/service/merchants/team/sign-in';
import { createPayers } from '../../src/service/money/payers';
import { setWallet } from '../../src/service/money/wallets';
import { auditAndNotify } from '../../src/service/operators/audit/log';
import type { MailDocument } from '../../src/store/mails';
import type { UserDocument } from '../../src/store/users';
import { startSendingMail } from '../../worker/rounds';
import { addSecondFactor, openUser } from '../support/dashboard';
import { useDatabase } from '../support/database';
import { eventually } from '../support/eventually';
import { newServiceKeys } from '../support/key-rings';
import { openAccount } from '../support/service';
import { startSmtpServer } from '../support/smtp-server';

// Mails of all accounts are one queue: that of the shared product has those of other files.
const database = useDatabase();
const keys = newServiceKeys();

const OPERATOR = { via: 'command_line', system_user: 'jo', host: 'box', operator: 'Jo' } as const;

/** Dependencies of an act by an operator. */
function deps() {
  const { mongo, stores } = database;
  const encrypter = createEncrypter(keys.seal);
  const payers = createPayers({ accounts: stores.accounts, encrypter, log });
  const now = () => new Date();
  const audit = auditAndNotify({ stores, now }, OPERATOR);
  return { mongo, stores, encrypter, payers, now, audit };
}

const log = createLogger('mail', 'silent');
const publicUrl = 'https://pay.example';
const mails = () => database.db.collection<MailDocument>('mails');

beforeEach(async () => {
  await mails().deleteMany();
  await database.stores.mails.publish(true);
});

async function openShop() {
  const { account_id } = await openAccount(database.stores, {});
  const owner = await openUser(database.stores, account_id);
  await openUser(database.stores, account_id, 'read_only');
  await mails().deleteMany();
  const setLimit = (EUR: number) =>
    updateAccount(deps(), account_id, { payout_limit: { EUR } }, { mayLift: true });
  return { account_id, owner, setLimit };
}

const listMails = async () =>
  (await mails().find().sort({ created_at: 1 }).toArray()).map(({ to, subject }) => ({
    to,
    kind: subject.kind,
  }));

/** Sends all mails that are due at a time. */
async function sendAll(send: SendMail, at = new Date()) {
  const { stores } = database;
  while (await sendNextMail({ stores, now: () => at, send, publicUrl, log }));
}

/** Starts a mail server, and a mailer that sends to it. */
async function openServer(refuse: (address: string) => number | undefined = () => undefined) {
  const server = await startSmtpServer({ refuse });
  const config = readSmtpServer(server.url, false);
  if (config === undefined) throw new Error('no server');
  return { ...server, send: createMailer(config, { publicUrl }) };
}

const newInvitation = (account_id: string, email = `${randomUUID()}@example.com`) => ({
  ...{ account_id, email, role: 'finance' as const, invited_by: null },
});

const byPassword = { stage: 'whole', proof: { by: 'password' }, oldSecret: null } as const;

const WALLET = {
  network: 'ethereum',
  address: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
} as const;
const LIVE_KEY = { livemode: true, scopes: [...SCOPES] };

type Act = (user: UserDocument) => Promise<unknown>;

async function replacePassword(user: UserDocument): Promise<void> {
  const { sessions } = database.stores;
  const secret = await insertSession(sessions, user, 'whole', new Date());
  const keep = (await sessions.listSignedIn(user._id, new Date()))[0]?._id ?? secret;
  expect(await changePassword(deps(), user, { password_hash: 'other', keep })).toBe(true);
}

async function enterRecoveryCode(user: UserDocument): Promise<void> {
  await addSecondFactor({ keys, collection: (of) => database.db.collection(of) }, user);
  await inTransaction(database.mongo, (session) =>
    database.stores.users.setRecovery(user._id, [hashRecoveryCode('ABCD')], session),
  );
  const checked = await checkCode(deps(), user, { code: 'abcd', device: null });
  expect(checked).toMatchObject({ outcome: 'right' });
}

const ACTS: readonly [kind: string, to: 'user' | 'owner', act: Act][] = [
  [
    'signed_in',
    'user',
    (user) => startSession(deps(), user, { ...byPassword, device: randomUUID() }),
  ],
  ['password_changed', 'user', replacePassword],
  ['second_factor_off', 'user', (user) => switchOff(deps(), user, 'none')],
  ['recovery_code_used', 'user', enterRecoveryCode],
  ['live_key_created', 'owner', ({ account_id }) => createKey(deps(), { account_id, ...LIVE_KEY })],
  [
    ...(['wallet_set', 'owner'] as const),
    ({ account_id }) => setWallet(deps(), { account_id, livemode: true, ...WALLET }),
  ],
  [
    ...(['payout_limit_changed', 'owner'] as const),
    ({ account_id }) =>
      updateAccount(deps(), account_id, { payout_limit: { EUR: 100 } }, { mayLift: false }),
  ],
];

test.each(ACTS)(
  '%s mails the %s in the transaction of the act, and nobody without a mail server',
  async (...row) => {
    const [kind, to, act] = row;
    for (const isSent of [false, true]) {
      await database.stores.mails.publish(isSent);
      const { account_id, owner } = await openShop();
      const user = to === 'user' ? await openUser(database.stores, account_id, 'finance') : owner;
      await act(user);
      expect(await listMails()).toEqual(isSent ? [{ to: user.email, kind }] : []);
    }
  },
);

test('a known browser, a sandbox key or wallet, and other settings mail nobody', async () => {
  const { account_id, owner } = await openShop();
  const session = { ...byPassword, device: 'known' };
  await startSession(deps(), { ...owner, device_hashes: ['known'] }, session);
  await createKey(deps(), { ...LIVE_KEY, account_id, livemode: false });
  await setWallet(deps(), { account_id, livemode: false, ...WALLET });
  await updateAccount(deps(), account_id, { refund_step_up: { EUR: 1 } }, { mayLift: false });
  await setFrozen(deps(), account_id, { freeze: true, reason: 'fraud', operator: 'Jo' });
  expect(await listMails()).toEqual([]);
});

test('changes on live and of the team mail the owners, and an owner that is removed; those of the sandbox nobody', async () => {
  const { account_id, owner } = await openShop();
  const second = await openUser(database.stores, account_id);
  const acting = deps();
  const changeEndpoints = async (livemode: boolean) => {
    const place = { account_id, livemode };
    const audit = auditAndNotify(acting, { via: 'api', key_id: 'key_1' });
    const byKey = { ...acting, audit };
    const settings = { url: 'https://shop.example/h?token=t0ken', description: null } as const;
    const { endpoint } = await addEndpoint(byKey, place, { ...settings, events: 'all' });
    const { endpoint_id } = endpoint;
    await changeEndpoint(byKey, place, endpoint_id, { url: 'https://thief.example/h' });
    await rollEndpoint(byKey, { ...place, endpoint_id }, 0);
    await deleteEndpoint(byKey, place, endpoint_id);
    await setBrand(acting, place, { display_name: 'Thief', accent: undefined });
    const { key_id } = await createKey(acting, { ...LIVE_KEY, ...place });
    await mails().deleteMany({ 'subject.kind': 'live_key_created' });
    await revokeKey(acting, key_id);
  };
  await changeEndpoints(false);
  expect(await listMails()).toEqual([]);
  await changeEndpoints(true);
  await changeMember(acting, { id: second._id, account_id }, null);
  const stored = await mails().find().sort({ created_at: 1, _id: 1 }).toArray();
  const acts = ['webhook.created', 'webhook.updated', 'webhook.rolled', 'webhook.deleted'];
  for (const { email } of [owner, second]) {
    const own = stored.filter(({ to }) => to === email).map(({ subject }) => Object(subject));
    const others = ['brand.changed', 'api_key.revoked', 'user.removed'];
    expect(own.map(({ act }) => act)).toEqual([...acts, ...others]);
    expect(own[1]).toMatchObject({
      about: expect.stringMatching(/^we_.*, https:\/\/thief\.example$/),
      by: 'key_1 (API)',
    });
    expect(own[6]).toMatchObject({ about: `${second._id}, ${second.email}, owner` });
  }
  expect(JSON.stringify(stored)).not.toMatch(/t0ken|whsec_|\bJo\b/);
});

test('a change in a loop mails the owners ten times an hour', async () => {
  const { account_id } = await openShop();
  for (let n = 0; n < 24; n += 1) {
    const brand = { display_name: `Shop ${n}`, accent: undefined };
    await setBrand(deps(), { account_id, livemode: n >= 12 }, brand);
  }
  expect(await listMails()).toHaveLength(10);
});

test('an address gets one invitation by mail a day; later links are only shown', async () => {
  const { account_id } = await openShop();
  const invitation = { ...newInvitation(account_id), invited_by: 'user_1' };
  expect(await invite(deps(), invitation)).toMatchObject({ is_mailed: true });
  await withdrawInvitation(deps(), account_id, invitation.email);
  const again = await invite(deps(), invitation);
  expect(again.is_mailed).toBe(false);
  expect(await acceptInvitation(deps(), again.token, 'hash')).toMatchObject({ role: 'finance' });
  const kinds = (await listMails()).filter(({ kind }) => kind === 'invitation');
  expect(kinds).toEqual([{ to: invitation.email, kind: 'invitation' }]);
});

test('an act that fails mails nobody, and an invitation of a demo user only the owners', async () => {
  const { account_id } = await openShop();
  const key = { ...LIVE_KEY, account_id, id: `key_${randomUUID()}` };
  await createKey(deps(), key);
  await expect(createKey(deps(), key)).rejects.toThrow(/duplicate key/);
  expect(await listMails()).toHaveLength(1);
  await invite(deps(), newInvitation(account_id, 'merchant-1@dashboard.localhost'));
  expect((await listMails()).map(({ kind }) => kind)).toEqual(['live_key_created', 'changed']);
});

test('a worker sends each mail by itself, without the name of the operator, and deletes it', async () => {
  const { owner, setLimit } = await openShop();
  await setLimit(100);
  const server = await openServer();
  const { stores } = database;
  const { send } = server;
  const stop = startSendingMail({ stores, now: () => new Date(), log, publicUrl, send });
  await eventually('an empty outbox', async () => (await mails().countDocuments()) === 0);
  await stop();
  await server.close();
  expect(server.mails).toMatchObject([{ to: [owner.email] }]);
  expect(server.mails[0]?.text).toContain('Our operators changed');
  expect(server.mails[0]?.text).not.toMatch(/\bJo\b|box/);
});

test('the mailed link of an invitation joins the team once, like the shown one, and is stored nowhere', async () => {
  const { account_id } = await openShop();
  const server = await openServer();
  const listTokens = () =>
    server.mails.flatMap(({ text }) => /invitation\/([\w-]{43})/.exec(text)?.[1] ?? []);
  const invitation = newInvitation(account_id);
  const shown = await invite(deps(), invitation);
  expect(shown.is_mailed).toBe(true);
  await sendAll(server.send);
  const [token = ''] = listTokens();
  expect(token).not.toBe(shown.token);
  const invitations = await database.db.collection('dashboard_invitations').find().toArray();
  expect(JSON.stringify(invitations)).not.toContain(token);
  const accept = (each: string) => acceptInvitation(deps(), each, 'hash');
  expect(await accept(token)).toMatchObject({ email: invitation.email, role: 'finance' });
  expect([await accept(token), await accept(shown.token)]).toEqual([null, null]);
  const withdrawn = newInvitation(account_id);
  await invite(deps(), withdrawn);
  await withdrawInvitation(deps(), account_id, withdrawn.email);
  await sendAll(server.send);
  await server.close();
  expect(listTokens()).toEqual([token]);
  expect(await listMails()).toEqual([]);
});

test('one of many workers sends a mail; one that is killed repeats it under the same id, and loses none', async () => {
  const { setLimit } = await openShop();
  const server = await openServer();
  const { mails: received, send } = server;
  await setLimit(3);
  await Promise.all([1, 2, 3, 4, 5].map(() => sendAll(send)));
  expect(received.splice(0)).toHaveLength(1);
  for (const EUR of [1, 2]) await setLimit(EUR);
  const killed: SendMail = async (mail) => {
    await send(mail);
    throw new Error('killed');
  };
  await expect(sendAll(killed)).rejects.toThrow('killed');
  await sendAll(send);
  expect(received).toHaveLength(2);
  expect(await mails().countDocuments()).toBe(1);
  await sendAll(send, new Date(Date.now() + 61_000));
  await server.close();
  expect(await mails().countDocuments()).toBe(0);
  const ids = received.map(({ text }) => /^Message-ID: (.*)$/m.exec(text)?.[1]);
  expect([ids.length, new Set(ids).size]).toEqual([3, 2]);
});

test('attempts repeat at growing intervals while the server is away, and end after a day', async () => {
  const { setLimit } = await openShop();
  await setLimit(1);
  const server = await openServer();
  await server.close();
  const { send } = server;
  const [start] = await mails().find().toArray();
  const times: number[] = [];
  for (let mail = start; mail?.due_at != null; mail = (await mails().find().toArray())[0]) {
    times.push(Math.round((mail.due_at.getTime() - mail.created_at.getTime()) / 60_000));
    await sendAll(send, mail.due_at);
  }
  expect(times.slice(0, 8)).toEqual([0, 1, 3, 7, 15, 31, 63, 123]);
  expect(times.at(-1)).toBeGreaterThanOrEqual(24 * 60);
  expect(times.length).toBeLessThan(35);
  expect(await database.stores.mails.count()).toEqual({ waiting: 0, given_up: 1, since: null });
});

test('a refused address is given up at once, and delays no other mail', async () => {
  const { account_id, owner, setLimit } = await openShop();
  const other = await openUser(database.stores, account_id);
  await setLimit(1);
  const server = await openServer((address) => (address === owner.email ? 550 : undefined));
  await sendAll(server.send);
  await server.close();
  expect(server.mails).toMatchObject([{ to: [other.email] }]);
  expect(await database.stores.mails.count()).toMatchObject({ waiting: 0, given_up: 1 });
});
