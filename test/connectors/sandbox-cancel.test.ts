import { randomUUID } from 'node:crypto';
import { retryUntilDone } from '../support/insist';
import { useBankWorld } from './bank-world';

const world = useBankWorld();

const activities = () => world.server.bank.activities;
const cancelPayout = (payout_id: string) => activities().cancelPayout?.({ payout_id });
const cancelSettlement = (crypto_settlement_id: string) =>
  activities().cancelSettlement?.({ crypto_settlement_id });

const CANCELLED = { outcome: 'cancelled' };
const TOO_LATE = { outcome: 'too_late' };
const REFUSED = { outcome: 'refused', code: 'cancelled', message: expect.any(String) };

test('a payout that has not arrived is cancelled, also for an instruction that comes later', async () => {
  const { input, id } = await world.knowPayout();
  expect([await cancelPayout(id), await cancelPayout(id)]).toEqual([CANCELLED, CANCELLED]);
  expect(await activities().lookUpPayout({ payout_id: id })).toEqual(REFUSED);
  expect(await activities().sendPayout(input)).toEqual(REFUSED);
  expect(await world.rows(id)).toEqual([]);
});

test('a payout whose instruction got lost is cancelled', async () => {
  const { input, id } = await world.knowPayout({ amount: 66_626 });
  await expect(activities().sendPayout(input)).rejects.toThrow('lost');
  expect(await cancelPayout(id)).toEqual(CANCELLED);
  expect(await activities().sendPayout(input)).toEqual(REFUSED);
});

test.each([
  ['sent', 3_400, TOO_LATE],
  ['queued', 66_624, TOO_LATE],
  ['rejected', 66_621, CANCELLED],
])('a payout that the bank has %s stays as it is', async (_case, amount, answer) => {
  const { input, id } = await world.knowPayout({ amount });
  const sent = await activities().sendPayout(input);
  expect(await cancelPayout(id)).toEqual(answer);
  expect(await activities().lookUpPayout({ payout_id: id })).toEqual(sent);
});

test('a payout is either sent or cancelled, whichever comes first', async () => {
  const { input, id } = await world.knowPayout();
  const [answer, cancelled] = await Promise.all([
    retryUntilDone(() => activities().sendPayout(input)),
    retryUntilDone(() => Promise.resolve(cancelPayout(id))),
  ]);
  const wasSent = answer.outcome === 'sent';
  expect(cancelled).toEqual(wasSent ? TOO_LATE : CANCELLED);
  expect(await world.payouts.findOne({ _id: id })).toMatchObject({
    status: wasSent ? 'sent' : 'refused',
  });
});

test('a settlement that has not arrived is cancelled, also for one that comes later', async () => {
  const crypto_settlement_id = randomUUID();
  const cancel = () => cancelSettlement(crypto_settlement_id);
  expect([await cancel(), await cancel()]).toEqual([CANCELLED, CANCELLED]);
  expect(await activities().lookUpSettlement({ crypto_settlement_id })).toEqual(REFUSED);
  const instruction = {
    ...{ crypto_settlement_id, version: 1, asset: 'ETH', network: 'ethereum', amount: '1000' },
    ...{ wallet_address: '0x52908400098527886E0F7030069857D2E4169EE7', livemode: false },
  };
  expect(await activities().sendSettlement(instruction)).toEqual(REFUSED);
});
