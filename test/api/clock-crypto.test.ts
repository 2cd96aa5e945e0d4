import { eventually } from '../support/http';
import { useService } from '../support/service';
import { advance, between, repeatIfBehind, SECOND_MS } from './clock-setting';

const service = useService({ autoplay: true });

const WINDOW_SECONDS = 30 * 60;
const COIN = { currency: 'EUR', asset: 'ETH', network: 'ethereum' };
/** The payer sends all of it after two seconds. */
const PAYS = 66_631;

/** Whole seconds of real time since then, or one more. */
const secondsSince = (began: number) => Math.ceil((Date.now() - began) / SECOND_MS);

/** A merchant whose clock is ten days ahead. */
async function openAhead() {
  const shop = await service.account();
  await service.stores.accounts.setCrypto(shop.account_id, true);
  await advance(shop, { advance: 'P10D' });
  const pay = async (amount: number) => {
    const { status, body } = await shop.post('/v1/crypto/payments', { ...COIN, amount });
    expect(status).toBe(201);
    return body;
  };
  const stored = (id: string) => service.stores.crypto_payments.get(id);
  return { shop, pay, stored };
}

test(
  'the sandbox chain sees a deposit at the time of the account',
  repeatIfBehind(async () => {
    const { shop, pay, stored } = await openAhead();
    const { id, created_at, expires_at } = await pay(PAYS);
    await advance(shop, { advance: 'PT5M' });
    const payment = await eventually('the deposit to count', async () => {
      const current = await stored(id);
      return current?.status === 'received' && current;
    });
    const [deposit] = payment.deposits;
    expect(deposit).toMatchObject({ status: 'confirmed', late: false });
    expect(between(created_at, deposit?.seen_at ?? '')).toBeGreaterThanOrEqual(0);
    expect(between(deposit?.seen_at ?? '', expires_at)).toBeGreaterThan(0);
  }),
);

test(
  'a deposit after the window of the account is late',
  repeatIfBehind(async () => {
    const { shop, pay, stored } = await openAhead();
    const { id } = await pay(4_950);
    const { play_url, amount_due } = (await stored(id)) ?? {};
    await advance(shop, { advance: 'PT40M' });
    await service.becomes('crypto_payments', id, { status: 'expired' });
    const page = await (await fetch(play_url ?? '')).text();
    const [, nonce = ''] = /name="nonce" value="([^"]+)"/.exec(page) ?? [];
    const [, amount = ''] = /name="amount"[^>]*value="([^"]+)"/.exec(page) ?? [];
    const form = new URLSearchParams({ nonce, amount, course: 'confirms' });
    const sent = await fetch(`${play_url}/send`, {
      method: 'POST',
      body: form,
      redirect: 'manual',
    });
    expect(sent.status).toBe(303);
    const payment = await eventually('the deposit to be held', async () => {
      const current = await stored(id);
      return current?.deposits[0]?.status === 'held' && current;
    });
    expect(payment.deposits).toMatchObject([{ amount: amount_due, late: true }]);
  }),
);

test(
  'the hosted page counts down by the time of the account',
  repeatIfBehind(async () => {
    const { shop, pay } = await openAhead();
    const { redirect_url } = await pay(4_950);
    const secondsLeft = async () => {
      const asked = Date.now();
      const page = await (await fetch(redirect_url)).text();
      const shown = Number(/data-left="(\d+)"/.exec(page)?.[1]);
      const { seconds_left } = Object(await (await fetch(`${redirect_url}/status`)).json());
      // Two answers, each of them rounded, between which a busy machine may take its time.
      expect(Math.abs(shown - seconds_left)).toBeLessThanOrEqual(secondsSince(asked) + 1);
      return shown;
    };
    const began = Date.now();
    const before = await secondsLeft();
    expect(before).toBeLessThanOrEqual(WINDOW_SECONDS);
    expect(before).toBeGreaterThan(WINDOW_SECONDS / 2);
    await advance(shop, { advance: 'PT10M' });
    const after = await secondsLeft();
    expect(before - after).toBeGreaterThanOrEqual(600);
    expect(before - after).toBeLessThanOrEqual(600 + secondsSince(began) + 1);
    await advance(shop, { advance: 'PT30M' });
    expect(await (await fetch(redirect_url)).text()).toContain('The time to pay is over');
  }),
);
