import { z } from 'zod';
import { inTransaction } from '../../src/base/mongo';
import { omitUndefined } from '../../src/domain/defined';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { buildSentHeld } from '../../src/ledger/sent-entries';
import { approve } from '../../src/service/approvals/carry-out';
import { decide } from '../../src/service/approvals/decide';
import { operatorsAudit } from '../support/audit';
import { useFixture } from '../support/fixture';
import { asOperator, commandsIn, useProvisioning } from './cli';

const service = useProvisioning();
/** Merchant of tests to which its balances do not matter. */
const merchant = useFixture(() => service.account());
let mia: Awaited<ReturnType<typeof asOperator>>;
let bo: typeof mia;
let ada: typeof mia;
beforeAll(async () => {
  mia = await asOperator(service, 'mia');
  bo = await asOperator(service, 'bo', 'approver');
  ada = await asOperator(service, 'ada', 'approver');
});

const WHY = ['--reason', 'Ticket 42'];
const MUCH = 100_001;

const Required = z.strictObject({
  status: z.literal('approval_required'),
  approval_id: z.string().startsWith('appr_'),
});
type Amount = number | string;

function funding(account: string, amount: Amount = MUCH, currency = 'EUR', ...more: string[]) {
  const where = ['--env', 'live', '--balance-account', 'main', '--currency', currency];
  return ['balance', 'fund', account, ...where, '--amount', `${amount}`, ...WHY, ...more];
}
function adjusting(account: string, amount: Amount, ...more: string[]) {
  const where = ['--env', 'live', '--balance-account', 'main', '--currency', 'EUR'];
  return ['balance', 'adjust', account, ...where, '--amount', `${amount}`, ...WHY, ...more];
}
const request = async (...args: string[]) => Required.parse(await mia.json(...args)).approval_id;
const decision = (word: 'approve' | 'reject', id: string) => ['approval', word, id, ...WHY];
const available = async (account_id: string) =>
  (await service.stores.ledger.balances(account_id, true))[0]?.available ?? 0;
const deps = (now = () => new Date()) => ({
  ...{ mongo: service.mongo, stores: service.stores, now },
  audit: operatorsAudit(service.stores),
  openActDeps: () => Promise.reject(new Error('not of a resource')),
});
const boHimself = { operator_id: 'op_bo', name: 'bo', role: 'approver' } as const;
const later = () => new Date(Date.now() + 25 * 3_600_000);

describe('above the limit, on live', () => {
  test('a funding waits until another operator approves it, and is posted once', async () => {
    const { account_id } = await service.account();
    const id = await request(...funding(account_id));
    expect(await available(account_id)).toBe(0);
    const row = {
      ...{ approval_id: id, act: 'balance.fund', account_id, amount: MUCH, currency: 'EUR' },
      ...{ requested_by: 'mia', requester_verified: true, reason: 'Ticket 42' },
      state: 'requested',
    };
    const shown = expect.objectContaining(row);
    expect(await service.json('approval', 'list')).toEqual({
      data: expect.arrayContaining([shown]),
    });
    const done = await bo.json(...decision('approve', id));
    expect(done).toMatchObject({ approval_id: id, state: 'done', decided_by: 'bo' });
    expect(await bo.json(...decision('approve', id))).toEqual(done);
    expect(await available(account_id)).toBe(MUCH);
    const entries = await service.db.collection('ledger_postings').find({}).toArray();
    expect(entries.filter(({ book }) => book === `${account_id}:live:EUR`)).toMatchObject([
      { kind: 'funded', note: { operator: 'mia', reason: 'Ticket 42', approved_by: 'bo' } },
    ]);
    const [line] = await service.stores.auditLog.list({ account_id, limit: 1 });
    expect(line).toMatchObject({ after: { approved_by: 'bo', approval_id: id } });
    const open = z.object({ data: z.array(z.object({ approval_id: z.string() })) });
    const { data } = open.parse(await service.json('approval', 'list'));
    expect(data.map(({ approval_id }) => approval_id)).not.toContain(id);
    expect((await service.cli('ledger', 'verify', '--full')).exit).toBe(0);
  });

  test('a repeat with the same operation id is the same request; another amount is not', async () => {
    const { account_id } = await service.account();
    const once = ['--operation-id', `wire-${account_id}`];
    const [first, second, third] = await Promise.all(
      [1, 2, 3].map(() => request(...funding(account_id, MUCH, 'EUR', ...once))),
    );
    expect([second, third]).toEqual([first, first]);
    const other = await mia.refusal(...funding(account_id, MUCH + 1, 'EUR', ...once));
    expect(other.code).toBe('operation_id_used');
    await bo.json(...decision('approve', `${first}`));
    expect(await mia.json(...funding(account_id, MUCH, 'EUR', ...once))).toMatchObject({
      available: MUCH,
    });
    expect(await available(account_id)).toBe(MUCH);
  });

  test.each([
    [undefined, 'EUR', 100_000, false],
    [undefined, 'EUR', 100_001, true],
    [undefined, 'JPY', 150_000, false],
    [undefined, 'JPY', 150_001, true],
    [undefined, 'KWD', 1, true],
    ['0', 'EUR', 1, true],
    ['500', 'KWD', 500, false],
    ['EUR=5', 'EUR', 5, false],
    ['EUR=5', 'USD', 1, true],
  ])(
    'with APPROVAL_LIMIT=%s, %s %i needs a second operator: %p',
    async (APPROVAL_LIMIT, currency, amount, isNeeded) => {
      const limited = commandsIn({ ...mia.env, ...omitUndefined({ APPROVAL_LIMIT }) });
      const said = await limited.json(...funding(merchant.account_id, amount, currency));
      expect(Required.safeParse(said).success).toBe(isNeeded);
    },
  );

  test('no environment of a command raises the limit of the worker', async () => {
    const { account_id } = await service.account();
    const more = { APPROVAL_LIMIT: '99999999999' };
    const rich = await asOperator(service, 'rich', 'operator', more);
    const { approvals } = service.stores;
    for (const [text, isNeeded] of [
      ['5', true],
      ['', false],
    ] as const) {
      await approvals.publishLimit(text);
      const said = await rich.json(...funding(account_id, 6));
      expect(Required.safeParse(said).success).toBe(isNeeded);
    }
    expect(Required.safeParse(await rich.json(...funding(account_id))).success).toBe(true);
    await service.db.collection('approval_limits').deleteMany({});
  });

  test('corrections wait in both directions, and of an asset always', async () => {
    const { account_id } = await service.account();
    await mia.json(...adjusting(account_id, 100_000));
    const down = ['--operation-id', 'down'];
    const id = await request(...adjusting(account_id, -100_001, ...down));
    expect(await bo.refusal(...decision('approve', id))).toMatchObject({
      code: 'insufficient_balance',
    });
    const ether = adjusting(account_id, 1, '--asset', 'ETH', '--network', 'ethereum').filter(
      (word) => word !== '--currency' && word !== 'EUR',
    );
    await bo.json(...decision('approve', await request(...ether)));
    const rows = await service.stores.ledger.balances(account_id, true);
    expect(rows).toContainEqual(
      expect.objectContaining({ currency: 'ETH.ethereum', available: 1 }),
    );
  });

  test('a reversal counts by its largest entry line, also where no balance holds any of it', async () => {
    const { account_id } = await service.account();
    const resource_id = `payout-of-${account_id}`;
    const owner = { account_id, livemode: true, currency: 'EUR', at: new Date().toISOString() };
    const legs = ENTRY_LINES.payout_sent_again('bank', MUCH);
    const entry = { kind: 'payout_sent_again', resource_id, ...owner, legs } as const;
    await inTransaction(service.mongo, (session) => service.stores.ledger.post(entry, session));
    const id = await request('balance', 'reverse', `payout_sent_again:${resource_id}`, ...WHY);
    const reversal = `reversed:payout_sent_again:${resource_id}`;
    expect(await service.stores.ledger.findEntry(reversal)).toBeNull();
    await bo.json(...decision('approve', id));
    expect(await service.stores.ledger.findEntry(reversal)).toMatchObject({
      note: { operator: 'mia', approved_by: 'bo' },
    });
  });

  test('a loss by a different amount that a bank sent is posted once, by two operators', async () => {
    const { account_id } = await service.account();
    const _id = `payout-of-${account_id}`;
    const at = new Date().toISOString();
    const owner = { account_id, livemode: true, currency: 'EUR', connector: 'bank' };
    const held = { id: 'R-1', bank_reference: 'R-1', amount: MUCH, currency: 'EUR', at };
    const payout = { _id, ...owner, status: 'failed', balance_account: 'main', sent_held: [held] };
    await service.db.collection<typeof payout>('payouts').insertOne(payout);
    const entry = buildSentHeld('payout', payout, held, { at });
    await inTransaction(service.mongo, (session) => service.stores.ledger.post(entry, session));
    const resolving = ['balance', 'resolve', `payout_sent_held:${_id}:R-1`, '--as', 'loss', ...WHY];
    const typed = await service.refusal(...resolving, '--operator', 'mia');
    expect(typed).toMatchObject({ code: 'operator_key_required' });
    const id = await request(...resolving);
    const resolved = `payout_sent_resolved:${_id}:R-1`;
    expect(await service.stores.ledger.findEntry(resolved)).toBeNull();
    await bo.json(...decision('approve', id));
    expect(await service.stores.ledger.findEntry(resolved)).toMatchObject({
      note: { operator: 'mia', approved_by: 'bo' },
    });
    expect(await mia.json(...resolving)).toMatchObject({ operation_id: resolved });
    const other = resolving.map((word) => (word === 'loss' ? 'never_sent' : word));
    expect(await mia.refusal(...other)).toMatchObject({ code: 'not_in_suspense' });
    const line = await service.db.collection('audit_log').findOne({ target: resolved });
    expect(line).toMatchObject({ act: 'balance.resolved', after: { as: 'loss' } });
  });

  test('no approval is needed in the sandbox', async () => {
    const { account_id } = await service.account();
    const much = funding(account_id).map((word) => (word === 'live' ? 'sandbox' : word));
    expect(await service.json(...much)).toMatchObject({ available: 10_000_000 + MUCH });
  });
});

describe('who decides', () => {
  test('refuses the requester under any spelling, an operator without the role, and no key', async () => {
    const { account_id } = await service.account();
    const id = Required.parse(await bo.json(...funding(account_id))).approval_id;
    const again = await asOperator(service, ' BO', 'approver');
    for (const word of ['approve', 'reject'] as const) {
      expect((await bo.refusal(...decision(word, id))).code).toBe('same_operator');
      expect((await again.refusal(...decision(word, id))).code).toBe('same_operator');
      expect((await mia.refusal(...decision(word, id))).code).toBe('role_not_allowed');
      expect((await service.refusal(...decision(word, id))).code).toBe('operator_key_required');
      expect((await ada.refusal(...decision(word, 'appr_1'))).code).toBe('approval_not_found');
    }
    const own = Required.parse(await mia.json(...funding(account_id))).approval_id;
    expect((await mia.refusal(...decision('approve', own))).code).toBe('same_operator');
    expect(await available(account_id)).toBe(0);
    await ada.json(...decision('approve', id));
    expect(await available(account_id)).toBe(MUCH);
  });

  test('a rejected request is never posted, and may be made again', async () => {
    const { account_id } = await service.account();
    const wire = funding(account_id, MUCH, 'EUR', '--operation-id', `wire-${account_id}`);
    const id = await request(...wire);
    const rejected = await bo.json(...decision('reject', id));
    expect(rejected).toMatchObject({ state: 'rejected', decided_by: 'bo' });
    expect(await ada.json(...decision('reject', id))).toEqual(rejected);
    const late = await ada.refusal(...decision('approve', id));
    expect(late).toMatchObject({
      code: 'approval_decided',
      message: expect.stringContaining('bo'),
    });
    expect(await request(...wire)).not.toBe(id);
    expect(await available(account_id)).toBe(0);
  });

  test('nobody decides after a day', async () => {
    const { account_id } = await service.account();
    const wire = funding(account_id, MUCH, 'EUR', '--operation-id', `wire-${account_id}`);
    const id = await request(...wire);
    const late = approve(deps(later), id, { operator: boHimself, reason: 'Why' });
    await expect(late).rejects.toMatchObject({ code: 'approval_expired' });
    expect((await bo.refusal(...decision('approve', id))).code).toBe('approval_expired');
    expect(await available(account_id)).toBe(0);
    expect(await request(...wire)).not.toBe(id);
  });
});

describe('an approved act', () => {
  const approved = async (account_id: string) => {
    const id = await request(...funding(account_id));
    const by = { to: 'approved', operator: boHimself, reason: 'Why' } as const;
    expect((await decide(deps(), id, by)).state).toBe('approved');
    return id;
  };

  test('is carried out once by a repeat after its command was killed, and not after it expires', async () => {
    const { account_id } = await service.account();
    const id = await approved(account_id);
    expect((await ada.refusal(...decision('reject', id))).code).toBe('approval_decided');
    await Promise.all([1, 2, 3].map(() => ada.json(...decision('approve', id))));
    expect(await available(account_id)).toBe(MUCH);
    const other = await approved(account_id);
    const late = approve(deps(later), other, { operator: boHimself, reason: 'Why' });
    await expect(late).rejects.toMatchObject({ code: 'approval_expired' });
    expect(await available(account_id)).toBe(MUCH);
  });

  test('that is no longer possible is refused, and the approval stores the refusal', async () => {
    const { account_id } = await service.account();
    await mia.json(...adjusting(account_id, 100_000));
    await bo.json(...decision('approve', await request(...funding(account_id, MUCH))));
    const id = await request(...adjusting(account_id, -200_001));
    await mia.json(...adjusting(account_id, -1));
    const refusal = await bo.refusal(...decision('approve', id));
    expect(refusal.code).toBe('insufficient_balance');
    expect(await service.stores.approvals.get(id)).toMatchObject({ state: 'refused', refusal });
    await mia.json(...adjusting(account_id, 10));
    expect(await ada.refusal(...decision('approve', id))).toEqual(refusal);
    expect((await ada.refusal(...decision('reject', id))).code).toBe('approval_decided');
    expect(await available(account_id)).toBe(200_010);
  });

  test('ends in one state when approvals and rejections run at once', async () => {
    for (let round = 0; round < 3; round += 1) {
      const { account_id } = await service.account();
      const id = await request(...funding(account_id));
      const commands = [
        bo.cli(...decision('approve', id)),
        ada.cli(...decision('reject', id)),
        ada.cli(...decision('approve', id)),
        bo.cli(...decision('reject', id)),
      ];
      await Promise.all(commands);
      const { state } = (await service.stores.approvals.get(id)) ?? {};
      const posted = await available(account_id);
      expect([
        ['done', MUCH],
        ['rejected', 0],
      ]).toContainEqual([state, posted]);
    }
  });
});
