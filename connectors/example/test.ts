import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { createTestTools } from '../kit';
import { example } from './example';
import { startFakeBank } from './fake-bank';

/** Small test of the functions alone: `node --test`. `connector check` is the great one. */
const KEY = 'key-of-the-bank';
let bank: Awaited<ReturnType<typeof startFakeBank>>;

before(async () => {
  bank = await startFakeBank(KEY);
});
after(() => bank.stop());

const openTools = () =>
  createTestTools<(typeof example)['settings']>(
    { EXAMPLE_API_URL: bank.url, EXAMPLE_KEY_FILE: KEY },
    { iban: 'DE89370400440532013000' },
  );

const buildPayout = (amount = 1_000) => ({
  ...{ payout_id: randomUUID(), version: 1, amount, currency: 'EUR', livemode: false },
  method: 'sepa_credit_transfer',
});

test('a payout is sent once, and looked up', async () => {
  const payout = buildPayout();
  const { sendPayout, lookUpPayout } = example;
  assert(sendPayout && lookUpPayout);
  assert.deepEqual(await lookUpPayout(payout, openTools()), { outcome: 'not_found' });
  const answer = await sendPayout(payout, openTools());
  assert.equal(answer.outcome, 'submitted');
  assert.deepEqual(await sendPayout(payout, openTools()), answer);
  assert.deepEqual(await lookUpPayout(payout, openTools()), answer);
  assert.equal(bank.transfers.size, 1);
});

test('a refusal of the bank is an answer, an outage an error', async () => {
  const answer = await example.sendPayout?.(buildPayout(66_600), openTools());
  assert.equal(answer?.outcome, 'refused');
  bank.failNext('fails_after');
  await assert.rejects(async () => await example.sendPayout?.(buildPayout(), openTools()));
});

test('a change of a transfer becomes a callback', async () => {
  const payout = buildPayout();
  await example.sendPayout?.(payout, openTools());
  const { id } = bank.change(payout.payout_id, 'sent');
  const page = await example.poll?.read(null, openTools());
  const report = page?.reports.at(-1);
  assert.equal(report?.name, 'sent');
  assert.equal(report?.resource_id, payout.payout_id);
  assert.equal(report?.callback.callback_id, id);
});
