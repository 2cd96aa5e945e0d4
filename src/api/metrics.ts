import { Counter, Histogram, type Registry } from 'prom-client';
import { describeMetric, type MetricName } from '../base/metrics';
import type { Visitor } from '../dashboard/frame/context';
import { ENDPOINTS } from '../domain/wire';

interface AnsweredRequest {
  method: string;
  /** Route with placeholders, to limit the number of label values. */
  route: string;
  status: number;
  seconds: number;
  livemode: boolean | undefined;
  replayed: boolean;
  code?: string | undefined;
  attempt?: Pick<Visitor, 'proof' | 'outcome'>;
}

export interface ApiMeter {
  answered(answer: AnsweredRequest): void;
}

const CREATES: ReadonlyMap<string, string> = new Map(
  ENDPOINTS.filter(({ creates }) => creates === true).map(({ path, operation }) => [
    path,
    operation,
  ]),
);

/** Seconds; a create takes at most 8. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function createApiMeter(registry: Registry): ApiMeter {
  const registers = [registry];
  const count = <Name extends MetricName>(name: Name) =>
    new Counter({ ...describeMetric(name), registers });
  const requests = count('payments_http_requests_total');
  const durations = new Histogram({
    ...describeMetric('payments_http_request_duration_seconds'),
    buckets: BUCKETS,
    registers,
  });
  const creates = count('payments_creates_total');
  const refusedKeys = count('payments_api_keys_refused_total');
  const attempts = count('payments_sign_in_attempts_total');
  return {
    answered: ({ method, route, status, seconds, livemode, replayed, code, attempt = {} }) => {
      requests.inc({ method, route, status });
      durations.observe({ method, route }, seconds);
      if (code?.startsWith('api_key_') === true) refusedKeys.inc({ code });
      const { proof, outcome: result } = attempt;
      if (proof !== undefined && result !== undefined) attempts.inc({ proof, outcome: result });
      const operation = method === 'POST' ? CREATES.get(route) : undefined;
      if (operation === undefined || livemode === undefined) return;
      creates.inc({ operation, livemode: String(livemode), outcome: outcome(status, replayed) });
    },
  };
}

function outcome(status: number, replayed: boolean): string {
  if (status < 300) return replayed ? 'replayed' : 'created';
  if (status === 429) return 'limited';
  if (status === 503) return 'unavailable';
  return status < 500 ? 'refused' : 'failed';
}
