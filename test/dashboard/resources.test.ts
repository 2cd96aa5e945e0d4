import { randomUUID } from 'node:crypto';
import { inTransaction } from '../../src/base/mongo';
import { buildPosition } from '../../src/domain/cursor';
import { createLedgerStore } from '../../src/ledger/book';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import type { PaymentDocument } from '../../src/store/payments';
import { ETHER, useCryptoShop, WALLET } from '../api/crypto-setting';
import { useShop } from '../api/payout-setting';
import {
  openUser,
  openVisitor,
  PASSWORD,
  readText,
  sendUntilMade,
  useVisitor,
  visitor,
} from '../support/dashboard';
import { eventually } from '../support/eventually';
import { idealPayment } from '../support/http';
import { buildPng } from '../support/images';
import { paymentAt } from '../support/list-rows';
import { useService } from '../support/service';

const service = useService();

const shop = useShop(service);

const owner = useVisitor(service, shop);

const page = async (path: string, by = owner) => {
  const seen = await by.get(`/dashboard/sandbox${path}`);
  return { ...seen, text: readText(seen.html) };
};

/** Hidden field of a page's form. */
function hidden(html: string, name: string): string {
  const field = html.match(/<input[^>]*type="hidden"[^>]*>/g)?.find((each) => {
    return each.includes(`name="${name}"`);
  });
  return /value="([^"]*)"/.exec(field ?? '')?.[1] ?? '';
}

const listIds = (html: string, path: string) =>
  [...html.matchAll(new RegExp(`href="/dashboard/sandbox${path}/([0-9a-f-]{36})"`, 'g'))].map(
    ([, id]) => id,
  );

/** A new merchant, with the browser of its owner. */
async function openMerchant(role: 'owner' | 'read_only' | 'developer' = 'owner') {
  const merchant = await service.account();
  const user = await openUser(service.stores, merchant.account_id, role);
  return { ...merchant, by: await openVisitor(service, user) };
}

test('a list is searched by ID and reference, filtered, and paged in both directions', async () => {
  const { by, account_id } = await openMerchant();
  const now = Date.now();
  const ORDER = randomUUID().toUpperCase();
  const rows = Array.from({ length: 30 }, (_, n) => ({
    ...paymentAt(n, new Date(now - n * 1_000).toISOString()),
    ...{ _id: randomUUID(), token_hash: randomUUID(), account_id },
    ...({ status: 'authorized', method: n === 25 ? 'visa' : 'ideal' } as const),
    reference: { 26: 'order <3>', 27: ORDER }[n] ?? `order-${n}`,
  }));
  await service.collection<PaymentDocument>('payments').insertMany(rows);
  const made = rows.map(({ _id }) => _id);
  const follow = async (html: string, name: string) => {
    const link = new RegExp(`href="([^"]+)"[^>]*>\\s*${name}`).exec(html)?.[1];
    return (await by.get(link?.replaceAll('&amp;', '&') ?? '')).html;
  };
  const { html: first } = await page('/payments', by);
  expect(listIds(first, '/payments')).toEqual(made.slice(0, 25));
  expect(first).not.toContain('>Newer<');
  const second = await follow(first, 'Older');
  expect(listIds(second, '/payments')).toEqual(made.slice(25));
  expect(second).not.toContain('>Older<');
  expect(listIds(await follow(second, 'Newer'), '/payments')).toEqual(made.slice(0, 25));
  const day = rows[25]?.created_at.slice(0, 10);
  for (const [query, ids] of [
    [`search=${made[7]}`, [made[7]]],
    [`search=${made[7]?.toUpperCase()}`, [made[7]]],
    [`search=${ORDER}`, [made[27]]],
    ['search=order+%3C3%3E', [made[26]]],
    ['search=order', []],
    ['method=visa', [made[25]]],
    ['status=settled', []],
    ['status=nonsense&method=nonsense&before=x&from=2026-02-30', made.slice(0, 25)],
    [`from=${day}&to=${day}&method=visa`, [made[25]]],
    ['to=2020-01-01', []],
  ] as const) {
    const { html } = await page(`/payments?${query}`, by);
    expect([query, listIds(html, '/payments')]).toEqual([query, ids]);
    expect(html).not.toContain('order <3>');
  }
});

test('a refused request is shown as it was sent', async () => {
  const { by, key } = await openMerchant();
  const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': randomUUID() };
  const { status, headers: answered } = await fetch(`${service.url}/v1/payments`, {
    ...{ method: 'POST', headers: { ...headers, Authorization: `Bearer ${key}` } },
    body: '{"method":"ideal","amount":10.0,"currency":"EUR"}',
  });
  expect(status).toBe(400);
  const path = `/requests/${answered.get('Request-Id')?.toUpperCase()}`;
  const { text } = await eventually('the request', async () => {
    const shown = await page(path, by);
    return shown.status === 200 && shown;
  });
  expect(text).toContain('{ &quot;method&quot;: &quot;ideal&quot;, &quot;amount&quot;: 10.0,');
});

test('an export has every row of the list and neutralizes formulas', async () => {
  const { by, post } = await openMerchant();
  const reference = '=HYPERLINK("https://evil.example","x")';
  const { body: payment } = await post('/v1/payments', idealPayment({ reference }));
  const path = '/dashboard/sandbox/payments.csv';
  const cookie = { Cookie: `dashboard=${by.secret}` };
  const { html, headers } = await by.get(path);
  const bytes = await (await fetch(`${service.url}${path}`, { headers: cookie })).arrayBuffer();
  expect(Buffer.from(bytes.slice(0, 5)).toString('hex')).toBe('efbbbf6964');
  expect(headers.get('content-type')).toContain('text/csv');
  expect(headers.get('content-disposition')).toMatch(/attachment; filename="payments-sandbox-/);
  const [heading, row, rest] = html.split('\r\n');
  expect(heading).toMatch(/^id,created_at,status,amount,currency,method,/);
  expect(row).toMatch(new RegExp(`^${payment.id},.*,10.50,EUR,ideal,`));
  expect(row).toContain(`"'=HYPERLINK(""https://evil.example"",""x"")"`);
  expect(rest).toBe('');
  expect((await by.get('/dashboard/live/payments.csv')).html.split('\r\n')).toHaveLength(2);
  // More exports than an account may run at once: each ends when only its head was read.
  const headOnly = { method: 'HEAD', headers: cookie };
  for (let n = 0; n < 6; n += 1) {
    expect((await fetch(`${service.url}${path}`, headOnly)).status).toBe(200);
  }
});

test('a payment is refunded once however often its form is sent or its outcome lost, and each refusal says why', async () => {
  const payment = await shop.settledPayment();
  const path = `/payments/${payment.id}`;
  const before = await page(path);
  const form = { key: hidden(before.html, 'key'), amount: '4.20', reason: 'Too <big>' };
  const act = `/dashboard/sandbox${path}/refund`;
  const confirmation = await owner.post(act, form);
  expect(readText(confirmation.html)).toContain('Refund 4.20 to the customer?');
  expect((await page(path)).html).not.toContain('Refunds of this payment');
  const { idempotency } = service.stores;
  const lost = jest.spyOn(idempotency, 'complete').mockRejectedValueOnce(new Error('lost'));
  await service.withApp({}, async (url) => {
    const { location } = await visitor(url, owner.secret).confirm(act, form);
    expect(location).toContain(`refund_key=${form.key}`);
  });
  lost.mockRestore();
  const send = () => sendUntilMade(() => owner.confirm(act, form), /\/refunds\/[0-9a-f-]{36}$/);
  const [first, second] = await Promise.all([send(), send()]);
  const again = await send();
  expect([first, second]).toEqual([again, again]);
  const after = await page(path);
  expect(listIds(after.html, '/refunds')).toEqual([again.split('/').at(-1)]);
  const seen = await owner.get(again);
  expect(readText(seen.html)).toContain('Refund of €4.20');
  expect(seen.html).toContain('Too &lt;big>');
  const key = hidden(after.html, 'key');
  expect(key).not.toBe(form.key);
  await owner.confirm(act, { key, amount: '6.31' });
  expect((await page(path)).text).toContain('€6.30 of the payment can still be refunded.');
  expect(await owner.confirm(act, { key, amount: '4.201' })).toMatchObject({
    location: `/dashboard/sandbox${path}`,
  });
  expect((await service.stores.payments.get(payment.id))?.refunded).toBe(420);
});

/** Refunds and cancels of a new merchant, and the lines about them. */
async function actOnPayments() {
  const { by, account_id, settledPayment, post } = await openMerchant();
  const payment = await settledPayment();
  const path = `/dashboard/sandbox/payments/${payment.id}`;
  const form = { key: `dashboard-${randomUUID()}`, amount: '4.20' };
  const refunded = await by.confirm(`${path}/refund`, form);
  await by.confirm(`${path}/refund`, form);
  await by.confirm(`${path}/refund`, { key: `dashboard-${randomUUID()}`, amount: '6.31' });
  await by.confirm(`${path}/refund`, { ...form, amount: 'all' });
  await by.confirm(`${path}/cancel`);
  expect((await by.get(path)).html).toContain('it can no longer be cancelled');
  const open = await post('/v1/payments', idealPayment());
  await by.confirm(`/dashboard/sandbox/payments/${open.body.id}/cancel`);
  const lines = await service.stores.auditLog.list({ account_id, livemode: false, limit: 100 });
  return { lines, payment, form, id: refunded.location?.split('/').at(-1), open };
}

test('the audit log has the outcome of each refund and cancellation', async () => {
  // An act that a busy machine does not answer in time says only that.
  const { lines, payment, form, id, open } = await eventually('timely answers', async () => {
    const acted = await actOnPayments();
    return !JSON.stringify(acted.lines).includes('temporarily_unavailable') && acted;
  });
  const refund = { amount: 420, currency: 'EUR', idempotency_key: form.key };
  const over = { amount: 631, currency: 'EUR', idempotency_key: expect.any(String) };
  const acts = [
    ['refund.created', payment.id, refund, { outcome: 'done', id }],
    ['refund.created', payment.id, refund, { outcome: 'replayed', id }],
    ['refund.created', payment.id, over, { outcome: 'refund_amount_exceeds_balance' }],
    ['payment.cancelled', payment.id, {}, { outcome: 'cannot_cancel' }],
    ['payment.cancelled', open.body.id, {}, { outcome: 'done' }],
  ] as const;
  expect(lines.toReversed().map(({ act, target, after }) => [act, target, after])).toEqual(
    acts.flatMap(([act, target, facts, outcome]) => [
      [act, target, { ...facts, outcome: 'requested' }],
      [act, target, { ...facts, ...outcome }],
    ]),
  );
});

test('a payout shows the last four digits of its recipient, and its transitions', async () => {
  const { body: payout } = await shop.paid();
  await shop.simulate(payout.id, { event: 'completed' });
  await service.becomes('payouts', payout.id, { status: 'completed' });
  const { text } = await page(`/payouts/${payout.id}`);
  for (const words of ['Bank account', '…3000', 'Moved to sent', 'Ledger: payout captured']) {
    expect(text).toContain(words);
  }
  expect(text).not.toContain('DE89');
  expect(listIds((await page('/payouts?status=completed')).html, '/payouts')).toContain(payout.id);
});

/** Credits a balance at a time, in euros or an asset. */
async function post(account_id: string, at: string, amount: number | bigint, currency = 'EUR') {
  const ledger = createLedgerStore(service.mongo.db(service.database), () => new Date(at));
  const lines = ENTRY_LINES.adjusted('main', amount, 'adjustments');
  const owner = { account_id, livemode: false, currency, at, lines };
  await inTransaction(service.mongo, (session) =>
    ledger.post({ kind: 'adjusted', resource_id: randomUUID(), ...owner }, session),
  );
}

/** Names of the latest months, `YYYY-MM`, newest first. */
const months = [0, 1, 2].map((before) => {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - before))
    .toISOString()
    .slice(0, 7);
});
const [current = '', last = '', earlier = ''] = months;

async function openReader(role: 'read_only' | 'developer' = 'read_only') {
  const merchant = await openMerchant(role);
  const path = '/dashboard/sandbox/balances/statement';
  const show = async (query = '') => readText((await merchant.by.get(`${path}${query}`)).html);
  const csv = async (query = '') => {
    const { html, headers } = await merchant.by.get(`${path}.csv${query}`);
    return { headers, rows: html.trimEnd().split('\r\n') };
  };
  return { ...merchant, show, csv };
}

test('a statement has the opening and closing of each balance and every line between, and none of others', async () => {
  const { account_id, settledPayment, show, csv, by } = await openReader();
  await post(account_id, `${earlier}-20T10:00:00.000Z`, 5_000);
  await post(account_id, `${last}-01T00:00:00.000Z`, -700);
  await post(account_id, `${last}-28T23:59:59.999Z`, 20n * 10n ** 17n, 'ETH.ethereum');
  const { id } = await settledPayment();

  const text = await show(`?month=${last}`);
  expect(text).toContain('main, EUR Opening balance €50.00 Closing balance €43.00');
  expect(text).toMatch(/adjustment [0-9a-f-]{36} -€7\.00 €0\.00 -€7\.00 €43\.00/);
  expect(text).toContain('ETH on ethereum Opening balance 0 ETH Closing balance 2 ETH');
  expect(text).not.toContain(id);
  const now = await show();
  expect(now).toContain('main, EUR Opening balance €43.00 Closing balance €53.50');
  expect(now).toContain(`payment ${id} €10.50 €0.00 €10.50 €53.50`);
  expect(now).toContain('Nothing came or left in this month.');
  expect(await show('?month=1999-13')).toBe(now);

  const { headers, rows } = await csv(`?month=${last}`);
  expect(headers.get('content-disposition')).toContain(`"statement-sandbox-${last}.csv"`);
  expect(rows.map((row) => row.replace(/[0-9a-f-]{36}/, 'ID'))).toEqual([
    'posted_at,balance_account,currency,type,reference_type,reference,gross,fee,net,balance',
    `${last}-01T00:00:00.000Z,main,EUR,opening,,,,,,50.00`,
    `${last}-01T00:00:00.000Z,main,EUR,adjustment,adjustment,ID,-7.00,0.00,-7.00,43.00`,
    `${last}-28T23:59:59.999Z,main,ETH on ethereum,adjustment,adjustment,ID,2,0,2,2`,
    `${current}-01T00:00:00.000Z,main,EUR,closing,,,,,,43.00`,
    `${current}-01T00:00:00.000Z,main,ETH on ethereum,closing,,,,,,2`,
  ]);
  const opening = `${current}-01T00:00:00.000Z,main,EUR,opening,,,,,,43.00`;
  expect((await csv()).rows).toContain(opening);
  const other = await openReader();
  expect(await other.show(`?month=${last}`)).toContain('Nothing was available, came or left');
  expect((await other.csv(`?month=${last}`)).rows).toHaveLength(1);
  const link = (await by.get('/dashboard/sandbox/balances')).html;
  expect(link).toContain('href="/dashboard/sandbox/balances/statement"');
});

test('lines beyond those of a page are in the CSV and in the closing balance', async () => {
  const { account_id, show, csv } = await openReader('developer');
  const at = `${last}-02T00:00:00.000Z`;
  await post(account_id, at, 10_000);
  const entries = service.collection<{ _id: string }>('journal_entries');
  const { _id, ...row } = (await entries.findOne({ account_id })) ?? {};
  const copies = Array.from({ length: 501 }, (_, n) => {
    const position = buildPosition(Date.parse(at) + 1, n);
    return { ...row, _id: `copy ${n} of ${_id}`, position };
  });
  await entries.insertMany(copies);
  const text = await show(`?month=${last}`);
  expect(text).toContain('The CSV has all lines of this month.');
  expect(text).toContain('Opening balance €0.00 Closing balance €50,200.00');
  expect(text.split('adjustment ')).toHaveLength(501);
  expect((await csv(`?month=${last}`)).rows).toHaveLength(504);
  // The ledger check of the shared product would report them.
  await entries.deleteMany({ _id: { $in: copies.map((copy) => copy._id) } });
});

describe('crypto', () => {
  const shop = useCryptoShop(service);

  const owner = useVisitor(service, shop);

  const show = (path: string) => page(path, owner);

  test('a crypto payment is found, shown and exported, and its balance settled once however often its form is sent', async () => {
    await shop.registerWallet();
    const { id } = await shop.pay({ reference: 'ether <1>' });
    await shop.deposit(id, '0xa1', ETHER);
    await shop.untilStatus(id, 'received');
    const { address } = await shop.read(id);
    const row = `href="/dashboard/sandbox/crypto/payments/${id}"`;
    for (const query of ['', `?search=${id}`, '?search=ether+%3C1%3E', '?method=eth_ethereum']) {
      expect((await show(`/crypto/payments${query}`)).html).toContain(row);
    }
    for (const query of ['?status=held', '?method=btc_bitcoin', '?search=ether']) {
      expect((await show(`/crypto/payments${query}`)).html).not.toContain(row);
    }
    const { text } = await show(`/crypto/payments/${id}`);
    const expected = [
      ...['Crypto payment of €100.00', 'ether &lt;1>', '0xa1', '1 ETH', '3 of 3'],
      ...['Chain reported deposit', 'Moved to received', 'main, available: +1 ETH'],
      'Event crypto.payment.received',
    ];
    for (const words of expected) expect(text).toContain(words);
    const csv = (await owner.get('/dashboard/sandbox/crypto/payments.csv?search=ether+%3C1%3E'))
      .html;
    expect(csv.split('\r\n')[1]).toMatch(
      new RegExp(`^${id},.*,received,100.00,EUR,ETH,ethereum,0.04,1,2500,${address},ether <1>,`),
    );
    expect((await show('/overview')).text).toContain('ETH on ethereum');

    const wallets = await show('/crypto/wallets');
    const key = /name="key" value="(dashboard-[0-9a-f-]{36})"/.exec(wallets.html)?.[1] ?? '';
    const form = { key, asset: 'ETH', network: 'ethereum' };
    const settle = '/dashboard/sandbox/crypto/settle';
    const confirmation = await owner.post(settle, form);
    expect(confirmation.html).toContain(
      'Pay the whole balance of ETH out to the wallet on ethereum?',
    );
    const made = /\/crypto\/settlements\/[0-9a-f-]{36}$/;
    const send = () => sendUntilMade(() => owner.confirm(settle, form), made);
    const [first, second] = await Promise.all([send(), send()]);
    const again = await send();
    expect([first, second]).toEqual([again, again]);
    const settlement = again.split('/').at(-1) ?? '';
    const { transaction_id } = await eventually('the instruction', async () => {
      const stored = await service.stores.crypto_settlements.get(settlement);
      return stored?.transaction_id != null && stored;
    });
    await shop.report('crypto_settlement', settlement, 'completed', { transaction_id });
    await shop.handle('crypto_settlement', settlement).result();
    const paid = await show(`/crypto/settlements/${settlement}`);
    for (const words of ['Settlement of', 'ETH', WALLET]) expect(paid.text).toContain(words);
    expect(await shop.count('crypto_settlements')).toBe(1);
    expect((await show(`/crypto/settlements?search=${transaction_id}`)).html).toContain(settlement);
    const late = await owner.confirm(settle, {
      ...form,
      key: key.replace(/.$/, (end) => (end === '0' ? '1' : '0')),
    });
    expect(late.location).toBe('/dashboard/sandbox/crypto/wallets');
    expect((await show('/crypto/wallets')).text).toContain('The balance has 0 ETH;');
  });
});

const reader = useVisitor(service, shop, 'finance');

const brandPath = (rest = '', env = 'sandbox') => `/dashboard/${env}/brand${rest}`;
const draw = (gray: number) => buildPng(600, 150, { gray });

/** Uploads a logo as a browser without a script does. */
async function upload(
  file: Uint8Array,
  { csrf = owner.csrf, env = 'sandbox', password = PASSWORD } = {},
) {
  const body = new FormData();
  for (const [name, value] of Object.entries({ csrf, password, confirmed: 'yes' })) {
    body.set(name, value);
  }
  body.set('logo', new Blob([new Uint8Array(file)]), 'logo.png');
  const headers = { Cookie: `dashboard=${owner.secret}` };
  const to = `${service.url}${brandPath('/logo', env)}`;
  const response = await fetch(to, { method: 'POST', headers, body, redirect: 'manual' });
  return { status: response.status, html: await response.text() };
}

const stored = async (env: 'sandbox' | 'live' = 'sandbox') =>
  (await service.stores.accounts.get(shop.account_id))?.brand?.[env];
const lines = async () => {
  const act = { account_id: shop.account_id, livemode: undefined, act: 'brand.changed' } as const;
  return (await service.stores.auditLog.list({ ...act, limit: 50 })).toReversed();
};
const showLogo = async (hash: string) => {
  const response = await fetch(`${service.url}/pay/logos/${hash}`);
  const bytes = Buffer.from(await response.arrayBuffer());
  return { status: response.status, type: response.headers.get('content-type'), bytes };
};
/** The payer's page of a new payment of the sandbox. */
async function payPage(): Promise<string> {
  const { body } = await shop.post('/v1/payments', idealPayment());
  return await (await fetch(body.redirect_url)).text();
}

test('a merchant sets name and color, which payers see in this environment only', async () => {
  const form = { display_name: ' Tulip <Flowers> ', accent: '0A7C5A' };
  expect((await owner.post(brandPath(), form)).status).toBe(303);
  expect(await stored()).toEqual({ display_name: 'Tulip <Flowers>', accent: '#0a7c5a' });
  expect(await stored('live')).toBeUndefined();
  const { html } = await owner.get(brandPath());
  expect(html).toContain('The brand is saved.');
  expect(html).toContain('value="Tulip &lt;Flowers>"');
  const page = await payPage();
  expect(page).toMatch(/<title>Pay €.* to Tulip &lt;Flowers><\/title>/);
  expect(page).toContain('/pay/accents/0a7c5a.css');
});

test('a logo is served as it is, replaced and removed, and each change has an audit line', async () => {
  expect((await upload(draw(255))).status).toBe(303);
  const first = await stored();
  expect(first?.logo).toEqual({ hash: expect.any(String), width: 600, height: 150 });
  const hash = first?.logo?.hash ?? '';
  expect(await payPage()).toContain(`src="/pay/logos/${hash}"`);
  expect(await showLogo(hash)).toEqual({ status: 200, type: 'image/png', bytes: draw(255) });

  expect((await upload(draw(51))).status).toBe(303);
  const second = (await stored())?.logo?.hash ?? '';
  expect(second).not.toBe(hash);
  // Pages that are open still name the first, which expires.
  expect((await showLogo(hash)).status).toBe(200);
  const logos = service.collection<{ _id: string; hash: string; replaced_at?: Date }>(
    'brand_logos',
  );
  expect((await logos.findOne({ hash }))?.replaced_at).toBeInstanceOf(Date);
  expect((await upload(draw(255))).status).toBe(303);
  expect((await logos.findOne({ hash }))?.replaced_at).toBeUndefined();

  expect((await owner.post(brandPath('/logo/remove'))).status).toBe(303);
  expect(await stored()).toEqual({ display_name: 'Tulip <Flowers>', accent: '#0a7c5a' });
  expect((await logos.findOne({ hash }))?.replaced_at).toBeInstanceOf(Date);
  expect(await payPage()).not.toContain('<img');

  const facts = (await lines()).map(({ livemode, before, after }) => [livemode, before, after]);
  const base = { display_name: 'Tulip <Flowers>', accent: '#0a7c5a' };
  const logo = expect.stringMatching(/^[0-9a-f]{32}$/);
  expect(facts).toEqual([
    [false, { display_name: null, accent: null, logo: null }, { ...base, logo: null }],
    [false, { ...base, logo: null }, { ...base, logo }],
    [false, { ...base, logo }, { ...base, logo }],
    [false, { ...base, logo }, { ...base, logo }],
    [false, { ...base, logo }, { ...base, logo: null }],
  ]);
});

test('a wrong name, color or file is refused with the reason, and the form stays as it was filled in', async () => {
  const before = [await stored(), await lines()];
  for (const [form, fault] of [
    [{ display_name: 'x'.repeat(61), accent: '' }, 'Use at most 60 characters.'],
    [{ display_name: '', accent: 'tomato' }, 'such as #0a7c5a'],
  ] as const) {
    const { status, html } = await owner.post(brandPath(), form);
    expect([status, html.includes(fault)]).toEqual([400, true]);
    expect(html).toContain(`value="${form.display_name || form.accent}"`);
  }
  for (const [file, fault] of [
    [Buffer.from('%PDF-1.7'), 'no PNG, JPEG or WebP image'],
    [Buffer.alloc(0), 'Choose a file first.'],
  ] as const) {
    const { status, html } = await upload(file);
    expect([status, html.includes(fault)]).toEqual([400, true]);
  }
  expect([await stored(), await lines()]).toEqual(before);
});

test('a form of more than 8 MiB, or 32 KiB without a file, with an incomplete part or too many, is refused', async () => {
  const large = await upload(Buffer.alloc(9 * 1_024 * 1_024));
  expect([large.status, large.html.includes('could not be read')]).toEqual([400, true]);
  const to = `${service.url}${brandPath('/logo')}`;
  const send = async (type: string, body: string) => {
    const headers = { Cookie: `dashboard=${owner.secret}`, 'Content-Type': type };
    const response = await fetch(to, { method: 'POST', headers, body, redirect: 'manual' });
    return [response.status, (await response.text()).includes('could not be read')];
  };
  const boundary = 'x'.repeat(27);
  const part = `--${boundary}\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n${owner.csrf}\r\n`;
  const multipart = `multipart/form-data; boundary=${boundary}`;
  expect(await send(multipart, `${part}--${boundary}--\r\n`)).toEqual([400, false]);
  // Its parts would be counted by another boundary.
  const two = multipart.replace('boundary', 'xboundary=z; boundary');
  expect(await send(two, `${part}--${boundary}--\r\n`)).toEqual([400, true]);
  for (const body of [part.slice(0, -60), `${part.repeat(101)}--${boundary}--\r\n`]) {
    expect(await send(multipart, body)).toEqual([400, true]);
  }
  // Files are no fields of the form, and the parser knows boundaries of other letters.
  const file = part.replace('"csrf"', '"file"; filename="a"');
  for (const letter of ['x', 'é']) {
    const encode = (text: string) => text.replaceAll(boundary, letter.repeat(27));
    const sendFiles = (count: number) =>
      send(encode(multipart), encode(`${part}${file.repeat(count)}--${boundary}--\r\n`));
    expect([await sendFiles(1), await sendFiles(100)]).toEqual([
      [400, false],
      [400, true],
    ]);
  }
  const fields = `csrf=${owner.csrf}&a=`;
  for (const [length, isUnread] of [
    [31 * 1_024, false],
    [33 * 1_024, true],
  ] as const) {
    const body = fields + 'a'.repeat(length);
    expect(await send('application/x-www-form-urlencoded', body)).toEqual([400, isUnread]);
  }
});

test('an upload without the form’s token is refused, and a member who may not change the brand is shown none', async () => {
  expect((await upload(draw(17), { csrf: 'x'.repeat(43) })).status).toBe(403);
  expect((await stored())?.logo).toBeUndefined();
  const { html } = await reader.get(brandPath());
  expect(html).toContain('Display name');
  expect(html).not.toContain('Upload logo');
});

test('on live, name, color and logo change with the password only', async () => {
  const form = { display_name: 'Tulip', accent: '#0a7c5a' };
  const confirmation = await owner.post(brandPath('', 'live'), form);
  expect(confirmation.html).toMatch(/value="#0a7c5a".*name="password".*>Save brand</s);
  expect((await owner.post(brandPath('', 'live'), { accent: 'tomato' })).status).toBe(400);
  const wrong = await upload(draw(16), { env: 'live', password: 'wrong' });
  expect(wrong.status).toBe(403);
  expect(wrong.html).toMatch(/multipart.*type="file".*name="password".*>Upload logo</s);
  expect(await stored('live')).toBeUndefined();
  expect((await owner.confirm(brandPath('', 'live'), form)).status).toBe(303);
  expect(await stored('live')).toEqual(form);
});

test('uploads at once leave one logo, whose image is stored', async () => {
  const answers = await Promise.all(
    [16, 32, 48].map((gray) => upload(draw(gray), { env: 'live' })),
  );
  expect(answers.map(({ status }) => status)).toEqual([303, 303, 303]);
  const logo = (await stored('live'))?.logo;
  const documents = await service
    .collection<{ _id: string; hash: string; env: string; replaced_at?: Date }>('brand_logos')
    .find({ account_id: shop.account_id, env: 'live' })
    .toArray();
  const present = documents.filter(({ replaced_at }) => replaced_at === undefined);
  expect([documents.length, present.map(({ hash }) => hash)]).toEqual([3, [logo?.hash]]);
});
