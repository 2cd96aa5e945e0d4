import { formatMoney } from '../../domain/money';
import type { Day } from '../../service/overview';
import { Table } from '../frame/parts';

const WIDTH = 720;
const HEIGHT = 160;
const TOP = 4;
const GAP = 4;

/** Gives a day with any volume at least two pixels. */
export function buildBars(days: readonly Day[]) {
  const maxAmount = Math.max(1, ...days.map(({ amount }) => amount));
  const step = WIDTH / Math.max(1, days.length);
  const plotHeight = HEIGHT - TOP;
  return days.map(({ amount }, at) => {
    const height = amount <= 0 ? 0 : Math.max(2, Math.round((amount / maxAmount) * plotHeight));
    const [x, width] = [Math.round(at * step), Math.floor(step) - GAP];
    return { x, y: HEIGHT - height, width, height };
  });
}

export function VolumeChart({ days, currency }: { days: readonly Day[]; currency: string }) {
  const bars = buildBars(days);
  const total = days.reduce((sum, { amount }) => sum + amount, 0);
  const busiestDay = days.reduce<Day | undefined>(
    (a, b) => (a && a.amount >= b.amount ? a : b),
    undefined,
  );
  const money = (amount: number) => formatMoney(amount, currency);
  const [first, last] = [days[0]?.day ?? '', days.at(-1)?.day ?? ''];
  return (
    <>
      <div class="plot">
        <p class="scale" aria-hidden="true">
          <span>{money(busiestDay?.amount ?? 0)}</span>
          <span>{`${money(total)} in all`}</span>
        </p>
        <svg
          class="chart"
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-labelledby="chart-title chart-about"
        >
          <title id="chart-title">{`Settled volume in ${currency}, ${days.length} days`}</title>
          <desc id="chart-about">
            {`From ${first} to ${last}: ${money(total)} in all; most on ${busiestDay?.day ?? ''}, ${money(busiestDay?.amount ?? 0)}.`}
          </desc>
          {[TOP, HEIGHT / 2, HEIGHT].map((y) => (
            <line key={y} x1="0" y1={y} x2={WIDTH} y2={y} />
          ))}
          {days.map(({ day, amount }, at) => (
            <rect key={day} {...bars[at]}>
              <title>{`${day}: ${money(amount)}`}</title>
            </rect>
          ))}
        </svg>
        <p class="scale" aria-hidden="true">
          <span>{first}</span>
          <span>{last}</span>
        </p>
      </div>
      <details>
        <summary>As a table</summary>
        <Table
          label={`Settled volume in ${currency} by day`}
          head={['Day (UTC)', 'Payments', 'Volume']}
          rows={days.toReversed().map(({ day, payments, amount }) => ({
            key: day,
            cells: [day, payments, money(amount)],
          }))}
          none="None."
        />
      </details>
    </>
  );
}
