import { deliverCallback } from '../../src/callbacks/deliver';
import { eventually } from '../support/http';
import { useResourceSetting } from './resource-setting';

const setting = useResourceSetting();

const at = expect.stringMatching(/^\d{4}-.+Z$/);

/** From a bank, as its connector hands it in. */
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

test('payout show has its moves, its postings, what the bank said, and who did what', async () => {
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
  // Its mark is written after the reason.
  await eventually('the mark', async () => (await service.stores.payouts.get(id))?.attention);
  const shown = await setting.json('payout', 'show', id);
  const event = (type: string) => ({
    id: expect.stringMatching(/^evt_/),
    type,
    created: at,
    delivery: { status: 'no_endpoint', attempts: 0, next_attempt_at: null },
  });
  const posting = (kind: string, legs: [string, number][]) => ({
    id: `${kind}:${id}`,
    kind,
    at,
    book: `${shop.account_id}:sandbox:EUR`,
    legs: legs.map(([account, amount]) => ({ account, amount })),
  });
  const said = { occurred_at: '2026-03-01T12:00:00.000Z', received_at: at, code: null };
  const callback = { ...said, bank_reference: null, reason: 'Said so' };
  expect(shown).toEqual({
    payout: {
      id,
      workflow_id: `payout:${id}`,
      account_id: shop.account_id,
      livemode: false,
      status: 'completed',
      version: 4,
      amount: 1_000,
      fee: 0,
      currency: 'EUR',
      balance_account: 'main',
      recipient_id: shop.recipients.sepa_instant,
      reference: 'salary-7',
      method: 'sepa_instant',
      connector: service.connector,
      bank_reference: expect.any(String),
      attention: 'failed_after_completed',
      failure: null,
      returned: null,
      request_id: expect.any(String),
      created_at: at,
      updated_at: at,
      due_at: at,
      sent_at: at,
      completed_at: at,
    },
    recipient: { type: 'bank_account', scheme: null, last4: '3000' },
    events: ['submitted', 'sent', 'completed'].map((name) => event(`payout.${name}`)),
    postings: [
      posting('payout_reserved', [
        ['balances.main.available', -1_000],
        ['balances.main.reserved', 1_000],
      ]),
      posting('payout_captured', [
        ['balances.main.reserved', -1_000],
        [`clearing.${service.connector}`, 1_000],
      ]),
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

test('the audit trail is a table', async () => {
  const id = await setting.payout({ amount: 66_623 });
  const act = ['payout', 'act', id, 'mark_completed', '--operator', 'mia', '--reason', 'Rang them'];
  expect((await setting.cli(...act)).exit).toBe(0);
  const entry = { who: 'mia', when: at, what: 'mark_completed', why: 'Rang them' };
  expect(await setting.json('payout', 'show', id)).toMatchObject({
    audit: [{ ...entry, before: 'sent', after: 'completed' }],
  });
  const { stdout } = await setting.cli('payout', 'show', id);
  expect(stdout).toMatch(
    /\nWHO +WHEN +WHAT +WHY +BEFORE +AFTER\nmia +\S+ \S+ UTC +mark_completed +Rang them +sent +completed\n$/,
  );
});

test('payment show and refund show name each other, and nothing of the customer', async () => {
  const { id, payment_id } = await setting.refund();
  const refund = await setting.json('refund', 'show', id);
  expect(refund).toMatchObject({
    refund: { id, payment_id, status: 'processing', amount: 300, workflow_id: `refund:${id}` },
    postings: [{ kind: 'refund_accepted' }],
    callbacks: [],
  });
  expect(JSON.stringify(refund)).not.toContain('R0');
  const payment = await setting.json('payment', 'show', payment_id);
  expect(payment).toMatchObject({
    payment: { id: payment_id, status: 'settled', refunded: 300 },
    refunds: [{ id, status: 'processing', amount: 300 }],
    postings: [{ kind: 'payment_settled' }],
  });
  const { stdout } = await setting.cli('payment', 'show', payment_id);
  expect(stdout).toMatch(new RegExp(`\\n\\nREFUNDS\\nREFUND .+\\n${id} .+ processing +€3\\.00`));
});

test('payment show keeps customers, metadata and addresses to itself', async () => {
  const id = await setting.payment();
  const { stdout } = await setting.cli('payment', 'show', id);
  const shown = stdout + JSON.stringify(await setting.json('payment', 'show', id));
  expect(shown).toContain('awaiting_customer');
  for (const hidden of ['ada@example.com', 'Ada', 'M0', 'http', 'token', 'hash']) {
    expect(shown).not.toContain(hidden);
  }
});

test.each(['payment', 'refund', 'payout'])('%s show says that there is none', async (kind) => {
  const id = setting.unknownId();
  expect(await setting.refusal(kind, 'show', id)).toEqual({
    code: `${kind}_not_found`,
    message: `There is no ${kind} ${id}.`,
  });
  const act = ['act', id, 'mark_failed', '--operator', 'mia', '--reason', 'Why'];
  expect(await setting.refusal(kind, ...act)).toMatchObject({ code: `${kind}_not_found` });
});
