import { randomUUID } from 'node:crypto';
import { deliverCallback } from '../../src/callbacks/deliver';
import { findOrphans, type Orphan, restart } from '../../src/service/orphans';
import { storedPayout } from '../api/payout-setting';
import { eventually } from '../support/http';
import { useResourceSetting } from './resource-setting';

const setting = useResourceSetting();

const NONE = { data: [], has_more: false, checked: expect.any(Number) };
const orphanOf = (resource: string, id: string, status: string, workflow: string) => ({
  resource,
  id,
  account_id: setting.shop.account_id,
  env: 'sandbox',
  status,
  workflow,
  updated_at: expect.stringMatching(/Z$/),
  age_seconds: expect.any(Number),
});

/** Orphans among these ids only: other tests of this file leave their own behind. */
async function orphansAmong(ids: string[]): Promise<Orphan[]> {
  const found: Orphan[] = [];
  for await (const { orphans } of findOrphans(setting.deps, ids)) found.push(...orphans);
  return found;
}

test('what was terminated is listed with its age; what runs or has ended is not', async () => {
  const running = [
    await setting.payout({ amount: 66_623 }),
    (await setting.refund()).id,
    await setting.payment(),
  ];
  expect(await setting.json('orphan', 'list')).toEqual(NONE);
  const { stdout } = await setting.cli('orphan', 'list');
  expect(stdout).toMatch(/^All \d+ in flight have a workflow that runs\.\n$/);

  const [payout = '', refund = '', payment = ''] = running;
  await setting.terminate('payout', payout);
  await setting.terminate('refund', refund);
  await setting.terminate('payment', payment);
  const lost = storedPayout(setting.shop, { created_at: '2026-01-01T00:00:00.000Z' });
  await setting.deps.db.collection<{ _id: string }>('payouts').insertOne(lost);
  expect(await setting.json('orphan', 'list')).toEqual({
    ...NONE,
    data: expect.arrayContaining([
      orphanOf('payment', payment, 'awaiting_customer', 'TERMINATED'),
      orphanOf('refund', refund, 'processing', 'TERMINATED'),
      orphanOf('payout', payout, 'sent', 'TERMINATED'),
      orphanOf('payout', lost._id, 'sent', 'NOT_FOUND'),
    ]),
  });
  const inWords = (await setting.cli('orphan', 'list')).stdout;
  expect(inWords).toMatch(/^RESOURCE +ID +ENV +STATUS +SINCE +AGE +WORKFLOW +ACCOUNT\n/);
  expect(inWords).toMatch(
    /\npayout +\S+ +sandbox +sent +2026-01-01 00:00:00 UTC +\d+ d \d+ h +not found/,
  );
  expect(await setting.json('orphan', 'list', '--limit', '1')).toMatchObject({ has_more: true });

  for (const orphan of await orphansAmong([...running, lost._id])) {
    await restart(setting.deps, orphan);
  }
  expect(await setting.json('orphan', 'list')).toEqual(NONE);
});

test('coins are listed, too, and go on where they were', async () => {
  const { stores } = setting.service;
  await setting.registerWallet('0x52908400098527886E0F7030069857D2E4169EE7');
  const paid = await setting.cryptoPayment();
  await setting.simulate('crypto_payment', paid, { event: 'received' });
  await setting.handle('crypto_payment', paid).result();
  const payment = await setting.cryptoPayment();
  await setting.simulate('crypto_payment', payment, { amount: '7', confirmations: 1 });
  const transaction_id = await eventually('the deposit', async () => {
    return (await stores.crypto_payments.get(payment))?.deposits[0]?.transaction_id;
  });
  // Sent, and nothing more is heard of it.
  const settlement = await setting.cryptoSettlement('66643');
  await setting.service.becomes('crypto_settlements', settlement, { status: 'sent' });
  await setting.terminate('crypto_payment', payment);
  await setting.terminate('crypto_settlement', settlement);
  expect(await setting.json('orphan', 'list')).toEqual({
    ...NONE,
    data: expect.arrayContaining([
      orphanOf('crypto_payment', payment, 'awaiting_deposit', 'TERMINATED'),
      orphanOf('crypto_settlement', settlement, 'sent', 'TERMINATED'),
    ]),
  });
  for (const orphan of await orphansAmong([payment, settlement])) {
    await restart(setting.deps, orphan);
  }
  expect(await setting.json('orphan', 'list')).toEqual(NONE);
  await setting.simulate('crypto_payment', payment, { transaction_id });
  await setting.service.becomes('crypto_payments', payment, { status: 'underpaid' });
  await setting.simulate('crypto_payment', payment, { event: 'received' });
  await setting.simulate('crypto_settlement', settlement, { event: 'completed' });
  await setting.handle('crypto_payment', payment).result();
  await setting.handle('crypto_settlement', settlement).result();
  const kinds = async (id: string) =>
    (await stores.ledger.forResource(id)).map(({ kind }) => kind).sort();
  expect(await kinds(payment)).toEqual(['crypto_payment_credited', 'crypto_payment_credited']);
  expect(await kinds(settlement)).toEqual([
    'crypto_settlement_captured',
    'crypto_settlement_reserved',
  ]);
});

test('one that is started again goes on where it was', async () => {
  const id = await setting.payout({ amount: 66_623 });
  await setting.terminate('payout', id);
  const [orphan] = await orphansAmong([id]);
  if (orphan === undefined) throw new Error('not found');
  await restart(setting.deps, orphan);
  await restart(setting.deps, orphan); // joins the one that runs
  const { stores } = setting.service;
  await setting.service.becomes('payouts', id, { attention: 'restarted_in_flight' });
  await setting.simulate('payout', id, { event: 'completed' });
  await setting.service.becomes('payouts', id, { status: 'completed' });
  expect((await stores.ledger.forResource(id)).map(({ kind }) => kind).sort()).toEqual([
    'payout_captured',
    'payout_reserved',
  ]);
});

test('restart takes all, or those named, and leaves alone what is behind its workflow', async () => {
  const [first, second, third] = [
    await setting.payout({ amount: 66_623 }),
    await setting.payout({ amount: 66_623 }),
    await setting.payout({ amount: 66_623 }),
  ];
  await setting.terminate('payout', first);
  await setting.terminate('payout', second);
  const act = ['payout', 'act', third, 'mark_completed', '--operator', 'm', '--reason', 'r'];
  await setting.json(...act);
  await setting.handle('payout', third).result();
  // As a restored database has it.
  const payouts = setting.deps.db.collection<{ _id: string }>('payouts');
  await payouts.updateOne({ _id: third }, { $set: { status: 'sent', version: 3 } });

  expect(await setting.json('orphan', 'restart', first)).toMatchObject({
    data: [orphanOf('payout', first, 'sent', 'TERMINATED')],
    left_alone: [],
  });
  expect((await setting.handle('payout', first).describe()).status.name).toBe('RUNNING');
  expect(await setting.json('orphan', 'restart')).toMatchObject({
    data: [orphanOf('payout', second, 'sent', 'TERMINATED')],
    left_alone: [orphanOf('payout', third, 'sent', 'COMPLETED')],
  });
  const { stdout } = await setting.cli('orphan', 'restart');
  expect(stdout).toMatch(
    /^Started again: 0\.\n\nLeft alone, since their workflow has completed:\n/,
  );
  const behind = { code: 'record_behind', message: expect.stringContaining('at version 4') };
  expect(await setting.refusal('orphan', 'restart', third)).toEqual(behind);
  const reason = ['--operator', 'm', '--reason', 'the bank says so'];
  expect(await setting.refusal('payout', 'act', third, 'mark_failed', ...reason)).toEqual(behind);
  const occurred_at = new Date().toISOString();
  const report = {
    connector: setting.service.connector,
    ...({ resource: 'payout', name: 'failed' } as const),
    resource_id: third,
    callback: { callback_id: `cb_${third}`, occurred_at },
  };
  await expect(deliverCallback(setting.deps, report)).rejects.toMatchObject(behind);
  const { attention, status } = (await setting.service.stores.payouts.get(third)) ?? {};
  expect({ attention, status }).toEqual({ attention: 'record_behind', status: 'sent' });
  // Nobody works on the product's own queue here.
  for (const id of [first, second]) await setting.terminate('payout', id);
  await payouts.deleteMany({ _id: { $in: [first, second, third] } });
});

test('restart refuses what is no orphan by name', async () => {
  const running = await setting.payout({ amount: 66_623 });
  const unknown = randomUUID();
  expect(await setting.refusal('orphan', 'restart', running, unknown)).toEqual({
    code: 'not_an_orphan',
    message: `Not in progress, or with a running workflow: ${running}, ${unknown}.`,
  });
});

test('a long walk tells a person how far it is, and a script nothing', async () => {
  const payouts = setting.deps.db.collection<{ _id: string }>('payouts');
  const many = Array.from({ length: 1_010 }, (_, n) =>
    storedPayout(setting.shop, { created_at: new Date(Date.UTC(2026, 0, 1) + n).toISOString() }),
  );
  await payouts.insertMany(many);
  const { exit, stdout, stderr } = await setting.cli('orphan', 'list', '--limit', '10000');
  expect(exit).toBe(0);
  expect(stdout.split('\n').length).toBeGreaterThan(1_010);
  expect(stderr).toMatch(/^10\d\d checked, \d+ without a workflow so far\n$/);
  expect((await setting.cli('orphan', 'list', '--json')).stderr).toBe('');
  await payouts.deleteMany({ _id: { $in: many.map(({ _id }) => _id) } });
});
