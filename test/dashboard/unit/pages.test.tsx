import { renderToString } from 'preact-render-to-string';
import { formatMoved } from '../../../src/dashboard/disputes/disputes';
import { DASHBOARD_CSS } from '../../../src/dashboard/frame/assets';
import { nameBrowser } from '../../../src/dashboard/frame/context';
import { buildBars, VolumeChart } from '../../../src/dashboard/overview/overview';
import type { DisputeTransfer } from '../../../src/domain/dispute/report';
import { PAY_CSS } from '../../../src/pages/styles';
import { buildDays, DAYS, listCurrencies, successRate } from '../../../src/service/money/overview';

const NOW = new Date('2026-03-01T12:00:00.000Z');
const settled = [
  { day: '2026-02-28', currency: 'EUR', payments: 2, amount: 3_000 },
  { day: '2026-03-01', currency: 'EUR', payments: 1, amount: 1_000 },
  { day: '2026-03-01', currency: 'JPY', payments: 9, amount: 900 },
];

const taken: DisputeTransfer = {
  ...{ direction: 'out', amount: 400, fee: 1_500, held: 1_900, owed: 0 },
  ...{ at: '2026-03-01T12:00:00.000Z', by: 'cb-1' },
};

test('what a dispute took has the fee that the merchant bears, and none of the service', () => {
  const format = (...transfers: DisputeTransfer[]) =>
    formatMoved({ currency: 'EUR', transfers }, 'out');
  expect(format(taken)).toBe('€4.00, and a fee of €15.00');
  expect(format({ ...taken, fee_bearer: 'service' })).toBe('€4.00');
  expect(format(taken, taken)).toBe('€8.00, and a fee of €30.00');
  expect(format({ ...taken, direction: 'in' })).toBeNull();
});

test('the chart has every day, also over the end of a month, and says its volume in words', () => {
  const days = buildDays(settled, 'EUR', NOW);
  expect(days).toHaveLength(DAYS);
  expect([days[0]?.day, days.at(-2)?.day]).toEqual(['2026-01-31', '2026-02-28']);
  expect(days.at(-1)?.amount).toBe(1_000);
  const html = renderToString(<VolumeChart days={days} currency="EUR" />);
  expect(html).toContain('Settled volume in EUR, 30 days');
  expect(html).toContain('€40.00 in all; most on 2026-02-28, €30.00.');
  expect(html).toContain('<td data-label="Volume">€10.00</td>');
  expect(html).not.toContain('style=');
});

test('the highest bar fills the chart, a small one is visible, and an empty day has none', () => {
  const day = (amount: number) => ({ day: '2026-03-01', amount, payments: 1 });
  const [most, least, none] = buildBars([day(1_000_000), day(1), day(0)]);
  expect([most?.y, least?.height, none?.height]).toEqual([4, 2, 0]);
  expect(buildBars([]).length).toBe(0);
});

test('currencies are ordered by their payments, and the success rate ignores open payments', () => {
  expect(listCurrencies(settled)).toEqual(['JPY', 'EUR']);
  expect(successRate([{ status: 'awaiting_customer', payments: 5 }])).toBeNull();
  const ended = (['settled', 'settled', 'authorized', 'expired'] as const).map((status) => ({
    status,
    payments: 1,
  }));
  expect(successRate(ended)).toBe(0.75);
});

const WEBKIT = 'AppleWebKit/537.36 (KHTML, like Gecko)';

const EDGE = 'Chrome/140.0.0.0 Safari/537.36 Edg/140.0';

test.each([
  ['Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox on Linux'],
  [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${WEBKIT} ${EDGE}`, 'Edge on Windows'],
  ['<script>alert(1)</script>', 'Unknown browser'],
  ['', 'Unknown browser'],
])('the user agent "%s" is %s', (userAgent, name) => {
  expect(nameBrowser(userAgent)).toBe(name);
});

test('colors are the same at each width, but the background of the frame', () => {
  const forWidths = [...`${DASHBOARD_CSS}${PAY_CSS}`.matchAll(/@media \(m\w+-width.*?\n\}/gs)];
  expect(forWidths).toHaveLength(6);
  expect(
    forWidths.flatMap(([css]) => css.match(/(?:color|background|fill): [^;]+/g) ?? []),
  ).toEqual([
    ...['background: var(--hover)', 'color: var(--muted)'],
    ...['background: none', 'background: none'],
  ]);
});
