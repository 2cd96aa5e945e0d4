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
  const delivery = { status: 'no_endpoint', attempts: 0, next_attempt_at: null };
  const events = ['submitted', 'sent', 'completed'].map((name) => ({
    ...{ id: expect.stringMatching(/^evt_/), type: `payout.${name}`, created: at, delivery },
  }));
  const book = `${shop.account_id}:sandbox:EUR`;
  const legs = [
    { account: 'balances.main.available', amount: -1_000 },
    { account: 'balances.main.reserved', amount: 1_000 },
  ];
  const said = { occurred_at: '2026-03-01T12:00:00.000Z', received_at: at, code: null };
  const buildCallback = (number: number, facts: object) =>
    expect.objectContaining({
      ...{ ...said, callback_id: `${id}-${number}`, bank_reference: null, reason: 'Said so' },
      ...facts,
    });
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
    events,
    postings: [
      { id: `payout_reserved:${id}`, kind: 'payout_reserved', at, book, legs },
      expect.objectContaining({ kind: 'payout_captured' }),
    ],
    movements: [
      expect.objectContaining({
        ...{ direction: 'out', amount: 1_000, currency: 'EUR', state: 'applied', reason: null },
        ...{ resource: 'payout', resource_id: id, sources: [{ kind: 'answer', id, at }] },
      }),
    ],
    callbacks: expect.arrayContaining([
      buildCallback(1, { unapplied: null }),
      buildCallback(2, {
        ...{ name: 'failed', signalled_at: at, parked: null },
        unapplied: 'a completed payout never fails',
      }),
      buildCallback(3, {
        ...{ connector: 'other', signalled_at: null },
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
const actAgain = (kind: CallbackResource, id: string, what: string) =>
  actOn(setting.deps, kind, id, { what, operator: 'mia', reason: 'The bank said so' });
const payout = (id: string) => setting.service.stores.payouts.get(id);

/** Payout that the sandbox bank sends, and says no more of. */
const openSent = () => setting.payout({ amount: 66_623 });

// Which acts change what is in test/workflows/shared/resources.test.ts.
describe('payout act', () => {
  test('prints the new state, and is in the audit trail and log', async () => {
    const id = await openSent();
    const snooze = act('payout', id, 'snooze', '--hours', '1.5', '--approved-by', 'noah');
    expect(await setting.json(...snooze)).toEqual({
      ...{ payout_id: id, attention: null, status: 'sent', version: 4 },
    });
    const note = { what: 'snooze', why: 'The bank said so', approved_by: 'noah' };
    const state = 'no attention';
    expect(await setting.json('payout', 'show', id)).toMatchObject({
      audit: [{ ...note, who: 'mia', when: at, before: state, after: state }],
    });
    const returned = await setting.cli(...act('payout', id, 'mark_returned'));
    expect(returned).toMatchObject({ exit: 0, stderr: '' });
    expect(returned.stdout).toMatch(
      /^Done: +mark_returned\nStatus: +returned\nVersion: +5\nAttention: +-\n$/,
    );
    expect((await setting.cli('payout', 'show', id)).stdout).toMatch(
      /\nWHO +WHEN +WHAT +WHY +BEFORE +AFTER\nmia, approved by noah +\S+ \S+ UTC +snooze +The bank said so +no attention +no attention\nmia +.* sent +returned\n$/,
    );
    const { account_id } = setting.shop;
    const lines = await setting.service.stores.auditLog.list({ account_id, limit: 100 });
    const actor = { via: 'command_line', operator: 'mia', host: hostname() };
    expect(lines.filter(({ target }) => target === id)).toMatchObject([
      { act: 'payout.act', before: { state: 'sent' }, after: { state: 'returned' } },
      { act: 'payout.act', actor, before: { state }, after: { ...note, state } },
    ]);
  });

  test('marks a payout that the bank holds as failed only with a confirmation', async () => {
    const id = await setting.payout({ amount: 66_624 }, 'submitted');
    expect(await setting.refusal(...act('payout', id, 'mark_failed'))).toEqual({
      code: 'held_by_bank',
      message: expect.stringMatching(/^The bank holds the payout and may still execute it/),
    });
    expect((await payout(id))?.audit).toEqual([]);
    const confirmed = act('payout', id, 'mark_failed', '--bank-confirmed-not-executed');
    expect(await setting.json(...confirmed)).toMatchObject({ status: 'failed' });
    const { stdout } = await setting.cli('payout', 'show', id);
    expect(stdout).toContain('mark_failed (bank_confirmed_not_executed)');
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

test.each<[CallbackResource, string, () => Promise<string>]>([
  ['refund', 'mark_settled', async () => (await setting.refund()).id],
  ['payment', 'mark_settled', () => setting.payment()],
  ['payout', 'mark_completed', openSent],
])('%s act works after its workflow has ended or was terminated', async (kind, what, open) => {
  const [ended, terminated] = [await open(), await open()];
  const status = what.replace('mark_', '');
  expect(await setting.json(...act(kind, ended, what))).toMatchObject({ status });
  await setting.handle(kind, ended).result();
  await expect(actAgain(kind, ended, 'mark_failed')).rejects.toMatchObject({
    ...{ code: 'wrong_state', message: expect.stringContaining(`The ${kind} is ${status}; `) },
  });
  await setting.terminate(kind, terminated);
  expect(await actAgain(kind, terminated, what)).toMatchObject({ status });
  await setting.handle(kind, terminated).result();
});
