import { once } from 'node:events';
import { createServer } from 'node:http';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';

/** Metrics of all processes; docs/operations.md says which process has which. */
const METRICS = {
  payments_http_requests_total: {
    help: 'Requests that the API has answered.',
    labels: ['method', 'route', 'status'],
  },
  payments_http_request_duration_seconds: {
    help: 'Time from a request to its answer.',
    labels: ['method', 'route'],
  },
  payments_creates_total: {
    help: 'Creating requests, by outcome.',
    labels: ['operation', 'livemode', 'outcome'],
  },
  payments_api_keys_refused_total: {
    help: 'Requests whose API key was refused, by the code of the error.',
    labels: ['code'],
  },
  payments_requests_dropped_total: {
    help: 'Requests that were not recorded for their merchant.',
    labels: [],
  },
  payments_sign_in_attempts_total: {
    help: 'Passwords and codes that were entered in the dashboard, by outcome.',
    labels: ['proof', 'outcome'],
  },
  payments_callbacks_total: {
    help: 'Callbacks received from banks, by receipt.',
    labels: ['connector', 'resource', 'name', 'receipt'],
  },
  payments_callbacks_refused_total: {
    help: 'Callbacks ignored because their signature is not verified, by reason.',
    labels: ['connector', 'resource', 'reason'],
  },
  payments_instructions_refused_total: {
    help: 'Instructions that differ from the record, which nobody but the service gives.',
    labels: ['connector', 'resource'],
  },
  payments_callbacks_waiting: {
    help: 'Callbacks of banks that no workflow has received, including parked ones.',
    labels: ['waits', 'connector'],
  },
  payments_webhook_attempt_duration_seconds: {
    help: 'Duration of the attempts to deliver a webhook.',
    labels: ['outcome'],
  },
  payments_webhook_attempts_waiting_total: {
    help: 'Attempts that had to wait, since one host gets only so many in a second.',
    labels: ['livemode'],
  },
  payments_webhook_backlog: {
    help: 'Events that have not reached their endpoint yet; 10,000 means that many or more.',
    labels: [],
  },
  payments_webhook_backlog_age_seconds: {
    help: 'Time by which the latest attempt of a webhook is overdue.',
    labels: [],
  },
  payments_stuck: {
    help: 'Resources with an attention reason that is not acknowledged.',
    labels: ['resource', 'livemode', 'reason'],
  },
  payments_statement_lines_open: {
    help: 'Lines of bank statements that match no entry.',
    labels: ['connector', 'livemode'],
  },
  payments_statement_lines_open_since_seconds: {
    help: 'Unix time of the day of the oldest of them.',
    labels: ['connector', 'livemode'],
  },
  payments_movements_in_suspense: {
    help: 'Movements of money that nobody has or bears yet.',
    labels: ['connector', 'livemode'],
  },
  payments_movements_in_suspense_since_seconds: {
    help: 'Unix time of the first report of the oldest of them.',
    labels: ['connector', 'livemode'],
  },
  payments_approvals_waiting: {
    help: 'Requests of operators on live that wait for a second operator.',
    labels: [],
  },
  payments_routing_rules_refusing: {
    help: 'Routing rules whose connector the variables do not name, so that creates are refused.',
    labels: ['connector', 'method', 'livemode'],
  },
  payments_connectors_paused: {
    help: '1 for each connector that an operator has paused.',
    labels: ['connector', 'livemode'],
  },
  payments_instructions_waiting_seconds: {
    help: 'Time for which the oldest instruction waits for its connector to take it.',
    labels: ['connector'],
  },
  payments_connector_stopped: {
    help: '1 while a connector sends nothing, because a store was restored.',
    labels: ['connector'],
  },
  payments_watched_acts: {
    help: 'Acts of the last hour that give power on live, or lift or apply a brake.',
    labels: ['act'],
  },
  payments_mails_unsent: {
    help: 'Mail that waits for an attempt, or was given up in the last days.',
    labels: ['state'],
  },
  payments_mails_waiting_since_seconds: {
    help: 'Unix time since which the oldest waiting mail waits.',
    labels: [],
  },
  payments_ledger_checked_timestamp_seconds: {
    help: 'Unix time at which `ledger verify` last checked all books.',
    labels: [],
  },
  payments_ledger_differences: { help: 'Differences that this check found.', labels: [] },
  payments_ledger_fully_checked_timestamp_seconds: {
    help: 'Unix time at which it last read all entries again, also those behind checkpoints.',
    labels: [],
  },
  payments_schedule_succeeded_timestamp_seconds: {
    help: 'Unix time at which a schedule last succeeded: audit, ledger, settlements, retention.',
    labels: ['schedule'],
  },
  payments_clock_ahead_seconds: {
    help: "Least time by which this worker's clock led Temporal's; below 0: it lagged.",
    labels: [],
  },
  payments_mongodb_behind_seconds: {
    help: 'Time by which MongoDB is older than Temporal, as after a restore; 0 when it is not.',
    labels: [],
  },
  payments_bank_requests_total: {
    help: 'Calls of a connector to its bank, by outcome.',
    labels: ['connector', 'outcome'],
  },
  payments_bank_reports_set_aside_total: {
    help: 'Reports of a bank that were refused, such as contradicting ones.',
    labels: ['connector'],
  },
  payments_sepa_files_refused: {
    help: 'Files of a bank that were refused, and neither taken nor dismissed since.',
    labels: ['connector'],
  },
  payments_bank_polled_timestamp_seconds: {
    help: 'Unix time at which a connector last read all reports of its bank.',
    labels: ['connector'],
  },
  payments_evm_cursor_timestamp_seconds: {
    help: 'Time of the newest block that was read, by the clock of the chain.',
    labels: [],
  },
  payments_evm_deposits_unchecked: {
    help: 'Deposits with all confirmations that the second node has not confirmed.',
    labels: [],
  },
  payments_evm_findings: {
    help: 'Findings that no operator has acknowledged.',
    labels: ['finding'],
  },
  payments_evm_dust_deposits: {
    help: 'Deposits below the least amount, which are not reported.',
    labels: [],
  },
} as const satisfies Record<string, { help: string; labels: readonly string[] }>;

export type MetricName = keyof typeof METRICS;

export const METRIC_NAMES: readonly string[] = Object.keys(METRICS);

export function describeMetric<Name extends MetricName>(name: Name) {
  const { help, labels } = METRICS[name];
  const labelNames: (typeof METRICS)[Name]['labels'][number][] = [...labels];
  return { name, help, labelNames };
}

export type MetricsSource = () => Promise<string>;

/** Gauges with names of counters; other gauges report the same values. */
const MISNAMED = ['handles', 'requests', 'resources'];

export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const kind of MISNAMED) registry.removeSingleMetric(`nodejs_active_${kind}_total`);
  return registry;
}

/**
 * Serves `/metrics` on a separate port, since it is for operators only. Without a port, nothing is
 * served.
 * @param isReady enables `/healthz` and `/readyz`, for a process without another port
 * @throws Error when the port is in use
 */
export async function serveMetrics(
  { METRICS_HOST, METRICS_PORT }: { METRICS_HOST: string; METRICS_PORT?: number | undefined },
  registry: Registry,
  sources: readonly MetricsSource[] = [],
  isReady?: () => boolean,
): Promise<{ close(): Promise<void> }> {
  if (METRICS_PORT === undefined) return { close: async () => {} };
  const text = async () =>
    (await Promise.all([registry.metrics(), ...sources.map((source) => source())])).join('\n');
  const probes: Record<string, () => boolean> =
    isReady === undefined ? {} : { '/healthz': () => true, '/readyz': isReady };
  const server = createServer((request, response) => {
    const isUp = probes[request.url ?? ''];
    if (isUp !== undefined) return void response.writeHead(isUp() ? 200 : 503).end();
    if (request.url !== '/metrics') return void response.writeHead(404).end();
    text().then(
      (body) => response.setHeader('Content-Type', registry.contentType).end(body),
      () => response.writeHead(500).end(),
    );
  });
  server.listen(METRICS_PORT, METRICS_HOST);
  await once(server, 'listening');
  return {
    close: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

export interface ClockMeter {
  /** @param taskTime real time, ms since the epoch, when Temporal started the task */
  observe(taskTime: number): void;
}

const WINDOW_MS = 60_000;
/** With fewer, the delay of a busy process would look like a wrong clock. */
const SAMPLES_MIN = 3;
/** More than an alert needs, which waits for ten minutes. */
const WARN_SAMPLES_MIN = 10;
const WARN_MS = 1_000;

interface Window {
  from: number;
  samples: number;
  leastMs: number;
}

/**
 * Uses the least difference of the last minutes, since work and queues only add to it. A payout is
 * refused where it exceeds five seconds.
 */
export function createClockMeter(
  registry: Registry,
  log: { warn: (fields: object, line: string) => void },
  now: () => number = Date.now,
): ClockMeter {
  let windows: Window[] = [];
  const read = (samplesMin = SAMPLES_MIN): number | undefined => {
    const recent = windows.filter(({ from }) => from > now() - 3 * WINDOW_MS);
    const samples = recent.reduce((sum, window) => sum + window.samples, 0);
    return samples < samplesMin ? undefined : Math.min(...recent.map(({ leastMs }) => leastMs));
  };
  const warn = () => {
    const ahead = read(WARN_SAMPLES_MIN);
    if (ahead === undefined || Math.abs(ahead) < WARN_MS) return;
    const fields = { seconds: ahead / 1_000, code: 'clock_differs' };
    log.warn(fields, 'the clock of this worker differs from that of Temporal');
  };
  const gauge: Gauge = new Gauge({
    ...describeMetric('payments_clock_ahead_seconds'),
    registers: [registry],
    collect: () => {
      const ahead = read();
      gauge.remove();
      if (ahead !== undefined) gauge.set(ahead / 1_000);
    },
  });
  return {
    observe: (taskTime) => {
      const at = now();
      let window = windows.at(-1);
      if (window === undefined || at - window.from >= WINDOW_MS) {
        warn();
        window = { from: at, samples: 0, leastMs: Number.POSITIVE_INFINITY };
        windows = [...windows.slice(-2), window];
      }
      window.samples += 1;
      window.leastMs = Math.min(window.leastMs, at - taskTime);
    },
  };
}
