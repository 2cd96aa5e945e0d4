import { Gauge, type Registry } from 'prom-client';
import type { Logger } from '../log';
import type { FigureStore, Figures } from '../store/figures';

/** Age up to which figures are told again, whoever asks, so that scrapes cost the database little. */
const FRESH_MS = 10_000;

/** Tells what stands in the database: what waits, what is stuck, when the ledger was checked. */
export function measureStores(
  registry: Registry,
  store: FigureStore,
  now: () => Date,
  log: Pick<Logger, 'warn'>,
): void {
  let read: { at: number; figures: Promise<Figures | undefined> } | undefined;
  const figures = (): Promise<Figures | undefined> => {
    const at = now().getTime();
    if (read === undefined || at - read.at > FRESH_MS) {
      const reading = store.read(new Date(at)).catch((err: unknown) => {
        log.warn({ err }, 'figures not read');
        return undefined;
      });
      read = { at, figures: reading };
    }
    return read.figures;
  };
  for (const { name, help, labels, values } of GAUGES) {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames: [...labels],
      registers: [registry],
      // An old figure would be worse than none: while the database is away there is none.
      collect: async () => {
        const found = await figures();
        gauge.reset();
        // A gauge without labels would tell 0.
        if (labels.length === 0) gauge.remove();
        if (found === undefined) return;
        for (const { value, ...labelled } of values(found)) gauge.set(labelled, value);
      },
    });
  }
}

interface StoreGauge {
  name: string;
  help: string;
  labels: readonly string[];
  values(figures: Figures): { value: number; [label: string]: string | number }[];
}

const GAUGES: readonly StoreGauge[] = [
  {
    name: 'payments_webhook_backlog',
    help: 'Events that have not reached their endpoint yet; 10,000 stands for that many or more.',
    labels: [],
    values: ({ backlog }) => [{ value: backlog }],
  },
  {
    name: 'payments_webhook_backlog_age_seconds',
    help: 'Time by which the latest attempt of a webhook is overdue.',
    labels: [],
    values: ({ backlog_age_seconds }) => [{ value: backlog_age_seconds }],
  },
  {
    name: 'payments_stuck',
    help: 'Payments, refunds and payouts that wait for a person, by why.',
    labels: ['resource', 'livemode', 'reason'],
    values: ({ stuck }) => stuck.map(({ count, ...labels }) => ({ ...labels, value: count })),
  },
  {
    name: 'payments_callbacks_waiting',
    help: 'Callbacks of banks that no workflow has been told of, parked ones included.',
    labels: ['waits'],
    values: ({ callbacks }) =>
      Object.entries(callbacks).map(([waits, value]) => ({ waits, value })),
  },
  {
    name: 'payments_ledger_checked_timestamp_seconds',
    help: 'Unix time at which `ledger verify` last looked at all books.',
    labels: [],
    values: ({ ledger }) =>
      ledger === null ? [] : [{ value: Date.parse(ledger.checked_at) / 1_000 }],
  },
  {
    name: 'payments_ledger_differences',
    help: 'Differences that it found then.',
    labels: [],
    values: ({ ledger }) => (ledger === null ? [] : [{ value: ledger.differences }]),
  },
];
