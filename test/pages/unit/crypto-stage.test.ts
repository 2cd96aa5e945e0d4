import { decodeQR } from 'qr/decode.js';
import { paymentUri } from '../../../src/domain/crypto/assets';
import { cryptoPage } from '../../../src/pages/crypto';
import { buildUri, type CryptoPagePayment, getStage } from '../../../src/pages/crypto-stage';
import { openLanguage } from '../../../src/pages/language';
import { LANGUAGE_CODES, type LanguageCode } from '../../../src/pages/texts';
import { cryptoPayment, deposit, HALF } from '../crypto-payment';

const now = new Date();
const over = new Date(now.getTime() - 1_000).toISOString();
const half = deposit({ amount: HALF });
const coming = deposit({ status: 'pending', confirmations: 1 });
const underpaid = { status: 'underpaid', amount_received: HALF, deposits: [half] } as const;
const completing = { ...underpaid, deposits: [half, { ...coming, amount: HALF }] };
const tolerated = { tolerance_percent: 0.3 } as const;
const short = { ...coming, amount: '21278093640000000' };
const late = { deposits: [{ ...coming, late: true }], expires_at: over };

const page = (payment: CryptoPagePayment, code: LanguageCode = 'en') =>
  cryptoPage({
    payment,
    brand: { name: 'Tulip & Sons <Flowers>' },
    assets: { css: '/css', js: '/js' },
    language: openLanguage(code),
    now,
    poll: '/status',
    state: 'abc',
  });

const TITLES: Record<string, string> = {
  held: 'Your payment is being checked',
  short: 'Too little came in time',
  expired: 'The time to pay is over',
};

describe('the stage of a payment', () => {
  it.each([
    ['no deposit', 'pay', {}],
    ['a rejected deposit', 'pay', { deposits: [deposit({ status: 'rejected' })] }],
    ['the whole amount, unconfirmed', 'confirming', { deposits: [coming] }],
    ['half of the amount, unconfirmed', 'top_up', { deposits: [{ ...coming, amount: HALF }] }],
    ['half of the amount, and the rest unconfirmed', 'confirming', completing],
    ['half of the amount when the time is over', 'short', { ...underpaid, expires_at: over }],
    ['the whole amount at the last moment', 'confirming', { deposits: [coming], expires_at: over }],
    ['the whole amount too late', 'expired', late],
    ['no deposit in time', 'expired', { expires_at: over }],
    ['no deposit, which is recorded', 'expired', { status: 'expired' }],
    ['a held deposit', 'held', { status: 'held', deposits: [deposit({ status: 'held' })] }],
    ['all but the tolerance, unconfirmed', 'confirming', { ...tolerated, deposits: [short] }],
    ['less than the tolerance allows', 'top_up', { tolerance_percent: 0.2, deposits: [short] }],
    ['half of the amount, which was accepted', 'received', { ...underpaid, status: 'received' }],
  ] as const)('with %s is: %s', (_, name, change) => {
    const payment = cryptoPayment(change);
    expect(getStage(payment, now).name).toBe(name);
    expect(page(payment)).toContain(TITLES[name] ?? '');
  });

  it('counts the missing amount and the surplus to the unit', () => {
    const short = cryptoPayment({ amount_due: '10000000000000000001', amount_received: '1' });
    expect(getStage(short, now)).toMatchObject({ missing: 10n ** 19n, surplus: 0n });
    const over = cryptoPayment({ amount_due: '1', amount_received: '10000000000000000002' });
    expect(getStage(over, now)).toMatchObject({ missing: 0n, surplus: 10n ** 19n + 1n });
  });
});

describe('the page', () => {
  it('has a QR code with the URI of the missing amount', () => {
    const payment = cryptoPayment({ ...underpaid });
    const uri = paymentUri({ ...payment, amount_due: HALF, chain_id: 31_337 });
    expect(scan(page(payment))).toBe(uri);
    expect(page(payment)).toContain(`href="${uri}"`);
  });

  it.each([
    ['USDC', 'ethereum', 'USDC on Ethereum'],
    ['USDT', 'tron', 'USDT on Tron'],
  ])('has a QR code of the address alone for %s, and one with the amount', (...row) => {
    const [asset, network, named] = row;
    const payment_uri = 'ethereum:0xT@1/transfer?uint256=1';
    const payment = cryptoPayment({ asset, network, payment_uri });
    const [plain = '', rest = ''] = page(payment).split('<details>');
    expect(scan(plain)).toBe(payment.address);
    expect(plain).toContain(named);
    expect(plain).not.toContain('href="ethereum:');
    const uri = `ethereum:0xT@1/transfer?uint256=${payment.amount_due}`;
    expect(scan(rest)).toBe(uri);
    expect(rest).toContain(`href="${uri}"`);
  });

  const token_contract = '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48';
  it.each([
    ['BTC', 'bitcoin', { address: 'tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx' }],
    ['ETH', 'ethereum', { chain_id: 1 }],
    ['USDC', 'ethereum', { chain_id: 1, token_contract }],
    ['USDT', 'tron', {}],
  ])('requests the missing amount in %s on %s from a wallet', (asset, network, more) => {
    const payment = cryptoPayment({ asset, network });
    const buildFor = (amount_due: string) => paymentUri({ ...payment, ...more, amount_due });
    const payment_uri = buildFor('123456789');
    expect(buildUri({ ...payment, payment_uri }, 98765n)).toBe(buildFor('98765'));
  });

  it('escapes the shop and the reference, and has no script of its own', () => {
    const text = page(cryptoPayment({ reference: '<script>alert(1)</script>' }));
    expect(text).toContain('Tulip &amp; Sons &lt;Flowers');
    expect(text).not.toContain('<script>');
    expect(text).not.toMatch(/ style=| onclick=/);
    expect(text).toContain('<noscript><meta http-equiv="refresh" content="10"/></noscript>');
  });

  it('requests no crypto payment once enough came, it is held, or the time is over', () => {
    for (const change of [
      { deposits: [coming] },
      { status: 'held', deposits: [deposit({ status: 'held' })] },
      { status: 'expired' },
      { status: 'received', amount_received: HALF },
    ] as const) {
      const payment = cryptoPayment({ ...change, play_url: 'http://localhost:9/chain/x' });
      const text = page(payment);
      expect(text).not.toContain(payment.address);
      expect(text).not.toContain('Play the payer');
    }
  });

  it('warns of the sandbox in the sandbox only', () => {
    expect(page(cryptoPayment())).toContain('send no real funds');
    expect(page(cryptoPayment({ livemode: true }))).not.toContain('send no real funds');
  });
});

// The texts: test/pages/unit/pages.test.ts
test.each(LANGUAGE_CODES)('the page in %s has an amount that a wallet accepts', (code) => {
  expect(page(cryptoPayment(), code)).toContain('>0.02134212<');
});

/** Reads the QR code from its SVG, as a camera sees it: four pixels for each module. */
function scan(html: string): string {
  const side = Number(/viewBox="0 0 (\d+) \1" role="img"/.exec(html)?.[1]);
  const scale = 4;
  const width = side * scale;
  const data = new Uint8Array(width * width * 3).fill(255);
  const [, dark = ''] = /fill="#000000" d="([^"]+)"/.exec(html) ?? [];
  for (const [, x, y, run] of dark.matchAll(/M(\d+) (\d+)h(\d+)v1/g)) {
    for (let row = Number(y) * scale; row < (Number(y) + 1) * scale; row += 1) {
      const from = (row * width + Number(x) * scale) * 3;
      data.fill(0, from, from + Number(run) * scale * 3);
    }
  }
  return decodeQR({ width, height: width, data });
}
