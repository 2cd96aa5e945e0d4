import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { deliverCallback } from '../../src/callbacks/deliver';
import type { CallbackResource } from '../../src/domain/callback/callback';
import { actOn } from '../../src/service/operators/act';
import { buildPayment } from '../support/factories';
import { eventually } from '../support/http';
import { run } from './cli';
import { useResourceSetting } from './resource-setting';

const setting = useResourceSetting();

const at = expect.stringMatching(/^\d{4}-.+Z$/);

/** Reports a callback as a connector does. */
async function report(
  id: string,
  callback_id: string,
  name: 'completed' | 'failed',
  from?: string,
) {
  const { service, deps } = setting;
  return await deliverCallback(
    { ...deps, now: () => new Date() },
    {
      connector: from ?? service.connector,
      resource: 'payout',
      resource_id: id,
      name,
      callback: { callback_id, occurred_at: '2026-03-01T12:00:00.000Z', reason: 'Said so' },
    },
  );
}

test('payout show has its transitions, journal entries, callbacks and audit trail', async () => {
  const { shop, service } = setting;
  const id = await setting.payout({ metadata: { secret: 'M0' }, reference: 'salary-7' });
  await report(id, `${id}-1`, 'completed');
  await service.becomes('payouts', id, { status: 'completed' });
  await report(id, `${id}-2`, 'failed');
  await eventually('the reason', async () => {
    const key = `${service.connector}:${id}-2`;
    return (await service.stores.callbacks.get(key))?.unapplied;
  });
  expect(await report(id, `${id}-3`, 'failed', 'other')).toBe('parked');
  // The attention reason is written after that of the callback.
  await eventually(
    'the attention reason',
    async () => (await service.stores.payouts.get(id))?.attention,
  );
  const shown = await setting.json('payout', 'show', id);
  const event = (type: string) => ({
    id: expect.stringMatching(/^evt_/),
    type,
    created: at,
    delivery: { status: 'no_endpoint', attempts: 0, next_attempt_at: null },
  });
  const entry = (kind: string, lines: [string, number][]) => ({
    ...{ id: `${kind}:${id}`, kind, at, book: `${shop.account_id}:sandbox:EUR` },
    legs: lines.map(([account, amount]) => ({ account, amount })),
  });
  const said = { occurred_at: '2026-03-01T12:00:00.000Z', received_at: at, code: null };
  const callback = { ...said, bank_reference: null, reason: 'Said so' };
  expect(shown).toEqual({
    payout: {
      ...{ id, workflow_id: `payout:${id}`, account_id: shop.account_id, livemode: false },
      ...{ status: 'completed', version: 5, amount: 1_000, fee: 0, currency: 'EUR' },
      ...{ balance_account: 'main', recipient_id: shop.recipients.sepa_instant },
      ...{ reference: 'salary-7', method: 'sepa_instant', connector: service.connector },
      ...{ bank_reference: expect.any(String), request_id: expect.any(String) },
      ...{ attention: 'failed_after_completed', failure: null, returned: null },
      remedy: expect.stringContaining('mark_returned --amount AMOUNT'),
      ...{ created_at: at, updated_at: at, due_at: at, sent_at: at, completed_at: at },
    },
    recipient: { type: 'bank_account', scheme: null, last4: '3000' },
    events: ['submitted', 'sent', 'completed'].map((name) => event(`payout.${name}`)),
    postings: [
      entry('payout_reserved', [
        ['balances.main.available', -1_000],
        ['balances.main.reserved', 1_000],
      ]),
      entry('payout_captured', [
        ['balances.main.reserved', -1_000],
        [`clearing.${service.connector}`, 1_000],
      ]),
    ],
    movements: [
      expect.objectContaining({
        ...{ direction: 'out', amount: 1_000, currency: 'EUR', state: 'applied', reason: null },
        ...{ resource: 'payout', resource_id: id, sources: [{ kind: 'answer', id, at }] },
      }),
    ],
    callbacks: expect.arrayContaining([
      expect.objectContaining({ ...callback, callback_id: `${id}-1`, unapplied: null }),
      expect.objectContaining({
        ...callback,
        callback_id: `${id}-2`,
        name: 'failed',
        signalled_at: at,
        parked: null,
        unapplied: 'a completed payout never fails',
      }),
      expect.objectContaining({
        ...callback,
        callback_id: `${id}-3`,
        connector: 'other',
        signalled_at: null,
        parked: 'no such payout at this connector',
      }),
    ]),
    audit: [],
  });
  const { stdout } = await setting.cli('payout', 'show', id);
  expect(stdout).toMatch(/^Amount: +€10\.00$/m);
  expect(stdout).toMatch(/^Recipient: +bank_account …3000$/m);
  expect(stdout).toMatch(/^Attention: +failed_after_completed$/m);
  expect(stdout).toMatch(/\n\nMOVES\nAT +EVENT +ID .+\n.+ payout\.submitted .+\n.+ payout\.sent /);
  expect(stdout).toMatch(/ payout_reserved +balances\.main\.available +-€10\.00\n +balances\.main/);
  expect(stdout).toMatch(/ failed +sandbox-\S+ +\S+-2 +Said so +not applied: a completed payout/);
  expect(stdout).toMatch(/ failed +other +\S+-3 +Said so +parked: no such payout/);
  expect(stdout).toMatch(/\n\nAUDIT TRAIL\nNo operator has acted\.\n$/);
  for (const hidden of ['M0', 'Lovelace', 'DE8937', '12 Long Lane']) {
    expect(stdout + JSON.stringify(shown)).not.toContain(hidden);
  }
});

test('payment show and refund show name each other, and show nothing of the customer', async () => {
  const { id: payment_id } = await buildPayment(setting.shop, {
    ...{ status: 'settled', success_url: 'https://shop.example/a?token=T0' },
    ...{ customer: { email: 'ada@example.com', first_name: 'Ada' }, metadata: { k: 'M0' } },
  });
  const { id } = await setting.refund({ payment_id, reason: 'R0 for Ada' });
  const refund = await setting.json('refund', 'show', id);
  expect(refund).toMatchObject({
    refund: { id, payment_id, status: 'processing', amount: 300, workflow_id: `refund:${id}` },
    postings: [{ kind: 'refund_accepted' }],
    callbacks: [],
  });
  const payment = await setting.json('payment', 'show', payment_id);
  expect(payment).toMatchObject({
    payment: { id: payment_id, status: 'settled', refunded: 300 },
    refunds: [{ id, status: 'processing', amount: 300 }],
    postings: [{ kind: 'payment_settled' }],
    movements: [
      { direction: 'in', amount: 1_050, currency: 'EUR', state: 'applied', reason: null },
    ],
  });
  const { stdout } = await setting.cli('payment', 'show', payment_id);
  expect(stdout).toMatch(/\n\nBANK MOVEMENTS\nMOVEMENT .+\nmv_\S+ .+ in +€10\.50 .+ applied +-\n/);
  expect(stdout).toMatch(new RegExp(`\\n\\nREFUNDS\\nREFUND .+\\n${id} .+ processing +€3\\.00`));
  const shown = stdout + JSON.stringify([payment, refund]);
  for (const hidden of ['ada@example.com', 'Ada', 'M0', 'R0', 'http', 'token', 'hash']) {
    expect(shown).not.toContain(hidden);
  }
});

const BY = ['--operator', 'mia', '--reason', 'The bank said so'];
const act = (kind: CallbackResource, id: string, what: string, ...more: string[]) => [
  ...[kind, 'act', id, what, ...BY, ...more],
];
/** Acts as the command does, with the workers of the product: for a workflow that has ended. */
const actAgain = (kind: CallbackResource, id: string, what: string, more: object = {}) =>
  actOn(setting.deps, kind, id, { what, operator: 'mia', reason: 'The bank said so', ...more });
const payout = (id: string) => setting.service.stores.payouts.get(id);

test.each(['payment', 'refund', 'payout'] as const)(
  '%s show and act refuse an unknown id',
  async (kind) => {
    const id = randomUUID();
    expect(await setting.refusal(kind, 'show', id)).toEqual({
      ...{ code: `${kind}_not_found`, message: `There is no ${kind} ${id}.` },
    });
    const { code } = await setting.refusal(...act(kind, id, 'mark_failed'));
    expect(code).toBe(`${kind}_not_found`);
  },
);

describe('payout act', () => {
  /** Payouts that the bank has queued without a further callback: creating one takes five seconds. */
  let queued: string[];
  beforeAll(async () => {
    const open = () => setting.payout({ amount: 66_624 }, 'submitted');
    queued = await Promise.all([1, 2, 3].map(open));
  });
  /** Payout that the sandbox bank sends, and says no more of. */
  const openSent = () => setting.payout({ amount: 66_623 });
  async function takeQueued(): Promise<string> {
    const id = queued.pop();
    if (id === undefined) throw new Error('All are used.');
    return id;
  }

  const COMPLETED = { before: 'sent', after: 'completed' };
  const UNCHANGED = { before: 'no attention', after: 'no attention' };
  const APPROVED = { ...UNCHANGED, approved_by: 'noah' };
  const SNOOZE = ['--hours', '1.5', '--approved-by', 'noah'];

  test.each<[string, string[], () => Promise<string>, object, typeof UNCHANGED]>([
    ['mark_completed', [], openSent, { status: 'completed', version: 4 }, COMPLETED],
    ['resubmit', [], takeQueued, { status: 'submitted', version: 3, bank: 'submitted' }, UNCHANGED],
    ['snooze', SNOOZE, openSent, { status: 'sent', version: 4 }, APPROVED],
  ])(
    '%s prints the new state, and is in the audit trail and log',
    async (what, more, open, state, { before, after, ...note }) => {
      const id = await open();
      expect(await setting.json(...act('payout', id, what, ...more))).toEqual({
        ...{ payout_id: id, attention: null, ...state },
      });
      const entry = { who: 'mia', when: at, what, why: 'The bank said so', before, after, ...note };
      expect(await setting.json('payout', 'show', id)).toMatchObject({ audit: [entry] });
      const who = 'approved_by' in note ? 'mia, approved by noah' : 'mia';
      expect((await setting.cli('payout', 'show', id)).stdout).toMatch(
        new RegExp(
          `\nWHO +WHEN +WHAT +WHY +BEFORE +AFTER\n${who} +\\S+ \\S+ UTC +${what} +The bank said so +${before} +${after}\n$`,
        ),
      );
      const { account_id } = setting.shop;
      const lines = await setting.service.stores.auditLog.list({ account_id, limit: 100 });
      expect(lines.filter(({ target }) => target === id)).toMatchObject([
        {
          ...{ act: 'payout.act', before: { state: before } },
          actor: { via: 'command_line', operator: 'mia', host: hostname() },
          after: { what, state: after, why: 'The bank said so', ...note },
        },
      ]);
    },
  );

  test('prints the new state in words', async () => {
    const { exit, stdout } = await setting.cli(...act('payout', await openSent(), 'mark_returned'));
    expect(exit).toBe(0);
    expect(stdout).toMatch(
      /^Done: +mark_returned\nStatus: +returned\nVersion: +4\nAttention: +-\n$/,
    );
  });

  test('marks a payout that the bank holds as failed only with a confirmation', async () => {
    const id = await takeQueued();
    expect(await setting.refusal(...act('payout', id, 'mark_failed'))).toEqual({
      code: 'held_by_bank',
      message: expect.stringMatching(/^The bank holds the payout and may still execute it/),
    });
    expect((await payout(id))?.audit).toEqual([]);
    const confirmed = act('payout', id, 'mark_failed', '--bank-confirmed-not-executed');
    expect(await setting.json(...confirmed)).toMatchObject({ status: 'failed' });
    expect(await setting.json('payout', 'show', id)).toMatchObject({
      audit: [{ what: 'mark_failed', bank_confirmed_not_executed: true }],
    });
    const { stdout } = await setting.cli('payout', 'show', id);
    expect(stdout).toContain('mark_failed (bank_confirmed_not_executed)');
  });

  test('is refused with the message of the workflow, and changes nothing', async () => {
    const id = await openSent();
    const before = await payout(id);
    expect(await setting.refusal(...act('payout', id, 'resubmit'))).toEqual({
      code: 'wrong_state',
      message: 'The payout is sent; only one that the bank has not sent can be given to it again.',
    });
    expect(await payout(id)).toEqual(before);
  });

  test('works after the workflow has ended, and after it was terminated', async () => {
    const ended = await openSent();
    await setting.json(...act('payout', ended, 'mark_completed'));
    await setting.handle('payout', ended).result();
    expect(await actAgain('payout', ended, 'mark_returned')).toMatchObject({ status: 'returned' });
    await setting.handle('payout', ended).result();
    await expect(actAgain('payout', ended, 'mark_failed')).rejects.toMatchObject({
      ...{ code: 'wrong_state', message: expect.stringMatching(/^The payout is returned; /) },
    });
    const id = await takeQueued();
    await setting.terminate('payout', id);
    const confirmed = { bank_confirmed_not_executed: true };
    const failed = await actAgain('payout', id, 'mark_failed', confirmed);
    expect(failed).toMatchObject({ status: 'failed' });
    expect((await payout(id))?.audit).toMatchObject([
      { who: 'mia', what: 'mark_failed', before: 'submitted', after: 'failed' },
    ]);
  });

  test('without an answer in time reports that its outcome is unknown', async () => {
    const id = await openSent();
    await setting.terminate('payout', id);
    // The client without patience: its deadline is what is checked.
    const { temporal } = setting.service;
    const nobody = { ...setting.deps, temporal, lifecycleQueue: `nobody-${id}`, timeoutMs: 10_000 };
    const failed = { what: 'mark_failed', operator: 'mia', reason: 'Why' };
    await expect(actOn(nobody, 'payout', id, failed)).rejects.toMatchObject({
      code: 'outcome_unknown',
      message: expect.stringMatching(
        /no answer within 10 seconds, so the outcome is unknown: `payout show \S+` shows it/,
      ),
    });
    // A busy Temporal may not have started the run, on which nobody works.
    await setting.terminate('payout', id).catch(() => undefined);
  });

  test('reports that Temporal does not answer, and changes nothing', async () => {
    const id = await openSent();
    const env = { ...setting.env, TEMPORAL_ADDRESS: '127.0.0.1:1' };
    const { exit, stderr } = await run(env, ...act('payout', id, 'mark_failed'));
    expect(exit).toBe(1);
    expect(stderr).toContain('Temporal does not answer at 127.0.0.1:1');
    expect((await payout(id))?.status).toBe('sent');
  });
});

test.each([
  ['refund', async () => (await setting.refund()).id],
  ['payment', () => setting.payment()],
] as const)(
  '%s act marks it as settled or failed, also after its workflow was terminated',
  async (kind, open) => {
    const [id, other] = [await open(), await open()];
    const done = { [`${kind}_id`]: id, status: 'settled', attention: null };
    expect(await setting.json(...act(kind, id, 'mark_settled'))).toMatchObject(done);
    expect(await setting.refusal(...act(kind, id, 'mark_failed'))).toEqual({
      code: 'wrong_state',
      message: `The ${kind} is settled; a final state is never left.`,
    });
    await setting.terminate(kind, other);
    // A workflow that has just started again knows the stored state.
    const snoozed = actAgain(kind, other, 'snooze', { hours: 2 });
    if (kind === 'refund') expect(await snoozed).toMatchObject({ status: 'processing' });
    else {
      await expect(snoozed).rejects.toMatchObject({
        message: 'Only an authorised payment can be snoozed; it is awaiting_customer.',
      });
    }
    await setting.terminate(kind, other);
    expect(await actAgain(kind, other, 'mark_failed')).toMatchObject({ status: 'failed' });
    await setting.handle(kind, other).result();
  },
);
