import type { WorkflowHandle } from '@temporalio/client';
import { signCallback } from '../../../src/callbacks/mac';
import type { CallbackResource } from '../../../src/domain/callback/callback';
import { LIFECYCLES } from '../../../src/lifecycles';
import { decide } from '../../../src/service/approvals/decide';
import { asOperator, commandsIn } from '../../cli/cli';
import { operatorsAudit } from '../../support/audit';
import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { mongodbUri, temporalAddress } from '../../support/servers';
import {
  callback,
  openRefund,
  refundInput,
  type ScriptedBank,
  scriptedBank,
} from '../../support/workflow-setting';
import { ACT, refusalOf, useLifecycles } from '../lifecycles';

const { setting, withPayment, withPayout } = useLifecycles('real');

/** Any amount of a currency that the limits do not name needs a second operator. */
const LIVE = { livemode: true, currency: 'KWD' };
const WHY = ['--reason', 'Ticket 42'];
const CONFIRMED = { bank_confirmed_not_executed: true };

type Commands = Awaited<ReturnType<typeof asOperator>>;
let [mia, bo, leo]: Commands[] = [];
beforeAll(async () => {
  const commands = commandsIn({
    DATA_DIR: 'none',
    MONGODB_URI: mongodbUri(),
    MONGODB_DB: setting.database,
    TEMPORAL_ADDRESS: temporalAddress(),
  });
  mia = await asOperator(commands, 'mia', 'approver');
  bo = await asOperator(commands, 'bo', 'approver');
  leo = await asOperator(commands, 'leo');
});

/** Reads, updates and requests of a resource as its operators make them. */
function trackActs(kind: CallbackResource, id: string, handle: WorkflowHandle) {
  const stored = async () => {
    const document = await LIFECYCLES[kind].get(setting.stores, id);
    if (document === null) throw new Error('not stored');
    return document;
  };
  const update = (what: string, more: object = {}) =>
    handle.executeUpdate<{ status: string; approval_id?: string }, [object]>(what, {
      args: [{ ...ACT, ...more }],
    });
  const readRequest = (answer: unknown): string => {
    const approval_id = expect.stringMatching(/^appr_/);
    expect(answer).toEqual({ status: 'approval_required', approval_id });
    return Object(answer).approval_id;
  };
  return {
    id,
    handle,
    stored,
    update,
    /** Updates without proof. @returns id of the approval that it needs */
    request: async (what: string, more: object = {}) => readRequest(await update(what, more)),
    /** As `request`, by leo on the command line. */
    requestByCommand: async (what: string) =>
      readRequest(await leo?.json(kind, 'act', id, what, ...WHY)),
    readAvailable: async () => {
      const { account_id } = await stored();
      const [row] = await setting.stores.ledger.balances(account_id, true);
      return row?.available ?? 0;
    },
  };
}

type Story = (acts: ReturnType<typeof trackActs>) => Promise<unknown>;

const approve = (by: Commands | undefined, id: string) =>
  by?.json('approval', 'approve', id, ...WHY);
const refuseApproval = (by: Commands | undefined, id: string) =>
  by?.refusal('approval', 'approve', id, ...WHY);

const withLivePayment = (story: Story) =>
  withPayment(
    scriptedBank(),
    async ({ id, handle, becomes }) => {
      await becomes({ status: 'awaiting_customer' });
      await story(trackActs('payment', id, handle));
    },
    LIVE,
  );

const withLivePayout = (story: Story, bank: ScriptedBank = scriptedBank()) =>
  withPayout(bank, ({ id, handle }) => story(trackActs('payout', id, handle)), LIVE);

const withLiveRefund = (story: Story) =>
  withPayment(
    scriptedBank(),
    async ({ id, handle: paid, input }) => {
      const { connector } = input;
      const about = { connector, resource: 'payment', resource_id: id, name: 'settled' } as const;
      const report = callback();
      const key = await setting.connectorKey(connector);
      const signature = signCallback(key, { ...about, callback: report });
      await paid.signal('settled', { ...report, mac: signature });
      await paid.result();
      const { handle, opened } = await openRefund(setting, refundInput(input));
      await story(trackActs('refund', opened.refund_id, handle));
    },
    LIVE,
  );

test.each([
  ['payment', withLivePayment, 'mark_settled', {}, 'settled'],
  ['refund', withLiveRefund, 'mark_settled', { amount: 1 }, 'settled'],
  ['refund', withLiveRefund, 'mark_failed', {}, 'failed'],
  ['payout', withLivePayout, 'mark_failed', CONFIRMED, 'failed'],
  ['payout', withLivePayout, 'mark_returned', { amount: 900 }, 'returned'],
] as const)(
  'an update without proof on a live %s waits for two operators, and moves money once: %#',
  (kind, withResource, what, more, end) =>
    withResource(async ({ handle, stored, request, readAvailable }) => {
      const before = await stored();
      const money = await readAvailable();
      const id = await request(what, { ...more, approved_by: 'bo' });
      expect(await request(what, more)).toBe(id);
      expect(await stored()).toEqual(before);
      expect(await approve(mia, id)).toMatchObject({
        ...{ state: 'requested', status: 'approval_required' },
        ...{ requested_by: 'mia', requester_verified: true },
      });
      expect((await refuseApproval(mia, id))?.code).toBe('same_operator');
      expect(await stored()).toEqual(before);
      expect(await approve(bo, id)).toMatchObject({ state: 'done' });
      const after = await stored();
      expect(after.status).toBe(end);
      expect(after.audit.at(-1)).toMatchObject({
        ...{ who: 'mia', what, why: ACT.reason, approved_by: 'bo', approval_id: id },
      });
      const { account_id } = after;
      const [line] = await setting.stores.auditLog.list({ account_id, limit: 1 });
      expect(line).toMatchObject({ after: { what, approved_by: 'bo', approval_id: id } });
      expect(await approve(bo, id)).toMatchObject({ state: 'done' });
      if (end !== 'settled') {
        await eventually('the credit', async () => (await readAvailable()) > money);
      }
      await handle.result();
      await saveHistory(handle, `${kind}-${what.replace('_', '-')}-approved`);
    }),
);

test('an update of the sandbox, of no more than the limit or of no credit needs nobody', async () => {
  for (const changes of [{ livemode: true }, { currency: 'KWD' }]) {
    await withPayout(
      scriptedBank(),
      async ({ act }) => expect(await act('mark_returned')).toMatchObject({ status: 'returned' }),
      changes,
    );
  }
  await withLivePayout(async ({ update }) => {
    expect(await update('mark_completed')).toMatchObject({ status: 'completed' });
  });
});

describe('a live act on the command line', () => {
  test('needs a key of an operator, and the approval of another one', () =>
    withLivePayout(async ({ id, stored, requestByCommand }) => {
      const bare = commandsIn({ ...mia?.env, OPERATOR_KEY: '' });
      const act = (what: string, ...more: string[]) => [
        ...['payout', 'act', id, what, ...WHY, '--operator', 'mia', ...more],
      ];
      expect((await bare.refusal(...act('mark_completed'))).code).toBe('operator_key_required');
      expect((await bare.cli(...act('snooze', '--hours', '1'))).exit).toBe(0);
      const approval_id = await requestByCommand('mark_returned');
      expect(await setting.stores.approvals.get(approval_id)).toMatchObject({
        ...{ act: 'payout.mark_returned', target: id, amount: '1000', currency: 'KWD' },
        ...{ requested_by: 'leo', requester_id: expect.stringMatching(/^op_/) },
      });
      expect((await refuseApproval(leo, approval_id))?.code).toBe('same_operator');
      expect(await approve(bo, approval_id)).toMatchObject({ state: 'done', decided_by: 'bo' });
      expect(await stored()).toMatchObject({
        status: 'returned',
        audit: [{ what: 'snooze' }, { who: 'leo', approved_by: 'bo', approval_id }],
      });
    }));

  test('is done once after its command was killed and two others approve it at once', () =>
    withLivePayout(async ({ stored, requestByCommand }) => {
      const approval_id = await requestByCommand('mark_returned');
      const { mongo, stores } = setting;
      const deps = { mongo, stores, now: () => new Date(), audit: operatorsAudit(stores) };
      const operator = { operator_id: 'op_1', name: 'mia', role: 'approver' } as const;
      await decide(deps, approval_id, { to: 'approved', operator, reason: 'Why' });
      expect((await stored()).status).toBe('sent');
      const twice = await Promise.all([approve(bo, approval_id), approve(mia, approval_id)]);
      expect(twice).toMatchObject([{ state: 'done' }, { state: 'done' }]);
      expect((await stored()).audit).toMatchObject([{ who: 'leo', approved_by: 'mia' }]);
    }));

  test('is refused for good when the state no longer allows it', () =>
    withLivePayment(async ({ stored, update, requestByCommand }) => {
      const approval_id = await requestByCommand('mark_settled');
      await update('mark_failed');
      const refusal = await refuseApproval(bo, approval_id);
      expect(refusal).toMatchObject({ code: 'wrong_state' });
      expect(await setting.stores.approvals.get(approval_id)).toMatchObject({
        ...{ state: 'refused', refusal },
      });
      expect((await stored()).status).toBe('failed');
    }));
});

test('an approval is valid for its own act, amount and time only', () =>
  withLivePayout(async ({ stored, update, request }) => {
    const id = await request('mark_returned', { amount: 900 });
    const readRefusal = async (what: string, more: object) =>
      (await refusalOf(update(what, more)))?.code;
    const same = ['mark_returned', { amount: 900, approval_id: id }] as const;
    const unknown = { approval_id: 'appr_1' };
    expect(await readRefusal('mark_returned', unknown)).toBe('approval_not_found');
    expect(await readRefusal(...same)).toBe('approval_decided');
    await approve(mia, id);
    expect(await readRefusal(...same)).toBe('approval_decided');
    const approvals = setting.mongo.db(setting.database).collection<{ _id: string }>('approvals');
    const change = (values: Record<string, string>) =>
      approvals.updateOne({ _id: id }, { $set: values });
    await change({ state: 'approved' });
    for (const [what, more] of [
      ['mark_returned', {}],
      ['mark_returned', { amount: 901 }],
      ['mark_failed', {}],
    ] as const) {
      expect(await readRefusal(what, { ...more, approval_id: id })).toBe('approval_differs');
    }
    await change({ amount: '899' });
    expect(await readRefusal(...same)).toBe('approval_differs');
    await change({ amount: '900', expires_at: '2020-01-01' });
    expect(await readRefusal(...same)).toBe('approval_expired');
    expect((await stored()).audit).toEqual([]);
  }));

test('an approval that ends while the bank is queried moves no money', async () => {
  const [query, answer] = [gate(), gate()];
  const bank = scriptedBank({
    lookUpPayout: async () => {
      query.release();
      await answer.opened;
      return { outcome: 'not_found' };
    },
  });
  const story: Story = async ({ handle, stored, update, request }) => {
    const id = await request('mark_failed');
    await approve(mia, id);
    const approved = bo?.cli('approval', 'approve', id, ...WHY, '--json');
    await query.opened;
    const refusal = { code: 'wrong_state', message: 'Another command was refused.' };
    expect(await setting.stores.approvals.refuse(id, refusal)).toBe(true);
    answer.release();
    expect(await approved).toMatchObject({ exit: 1 });
    expect(await stored()).toMatchObject({ status: 'sent', audit: [] });
    expect(await update('mark_completed')).toMatchObject({ status: 'completed' });
    await saveHistory(handle, 'payout-approval-ended');
  };
  await withLivePayout(story, bank);
});
