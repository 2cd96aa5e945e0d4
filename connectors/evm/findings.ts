import type { Collection, Db } from 'mongodb';
import { Gauge, type Registry } from 'prom-client';
import type { Logger } from '../../src/base/log';
import { describeMetric } from '../../src/base/metrics';

/** @see docs/evm.md#findings */
export type FindingName = 'nodes_disagree' | 'unexplained_balance' | 'rate_refused';

export interface Finding {
  /** Name and subject: each is found once. */
  _id: string;
  name: FindingName;
  crypto_payment_id: string | null;
  text: string;
  found_at: Date;
  acknowledged_at: Date | null;
}

export type Findings = ReturnType<typeof createFindings>;

interface FindingsDeps {
  db: Db;
  now: () => Date;
  log: Pick<Logger, 'error'>;
}

type NewFinding = Pick<Finding, 'name' | 'crypto_payment_id' | 'text'> & { subject: string };

export function createFindings({ db, now, log }: FindingsDeps) {
  const rows: Collection<Finding> = db.collection<Finding>('findings');
  return {
    record: async ({ subject, ...finding }: NewFinding): Promise<void> => {
      const _id = `${finding.name}:${subject}`;
      const fresh = { ...finding, found_at: now(), acknowledged_at: null };
      const { upsertedCount } = await rows.updateOne(
        { _id },
        { $setOnInsert: fresh },
        { upsert: true },
      );
      if (upsertedCount === 0) return;
      const { name: code, crypto_payment_id } = finding;
      log.error({ code, ...(crypto_payment_id && { crypto_payment_id }) }, finding.text);
    },
    open: () => rows.find({ acknowledged_at: null }).sort({ found_at: 1 }).toArray(),
    acknowledge: async (_id: string): Promise<boolean> => {
      const change = { $set: { acknowledged_at: now() } };
      const { modifiedCount } = await rows.updateOne({ _id, acknowledged_at: null }, change);
      return modifiedCount === 1;
    },
    count: async (): Promise<Record<FindingName, number>> => {
      const counts = { nodes_disagree: 0, unexplained_balance: 0, rate_refused: 0 };
      for (const { name } of await rows.find({ acknowledged_at: null }).toArray())
        counts[name] += 1;
      return counts;
    },
  };
}

interface Followed {
  at: Date | undefined;
  unchecked: number;
  findings: Record<FindingName, number>;
  dust: number;
}

export interface EvmMeter {
  followed(state: Followed): void;
}

export function createEvmMeter(registry: Registry): EvmMeter {
  const registers = [registry];
  const createGauge = (name: Parameters<typeof describeMetric>[0]) =>
    new Gauge({ ...describeMetric(name), registers });
  const cursor = createGauge('payments_evm_cursor_timestamp_seconds');
  const unchecked = createGauge('payments_evm_deposits_unchecked');
  const findings = createGauge('payments_evm_findings');
  const dust = createGauge('payments_evm_dust_deposits');
  return {
    followed: (state) => {
      if (state.at !== undefined) cursor.set(state.at.getTime() / 1_000);
      unchecked.set(state.unchecked);
      dust.set(state.dust);
      for (const [finding, count] of Object.entries(state.findings))
        findings.set({ finding }, count);
    },
  };
}
