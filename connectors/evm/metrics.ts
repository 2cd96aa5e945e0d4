import { Gauge, type Registry } from 'prom-client';
import { describeMetric } from '../../src/base/metrics';
import type { FindingName } from './findings';

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
  const cursor = new Gauge({
    ...describeMetric('payments_evm_cursor_timestamp_seconds'),
    registers,
  });
  const unchecked = new Gauge({
    ...describeMetric('payments_evm_deposits_unchecked'),
    registers,
  });
  const findings = new Gauge({
    ...describeMetric('payments_evm_findings'),
    registers,
  });
  const dust = new Gauge({
    ...describeMetric('payments_evm_dust_deposits'),
    registers,
  });
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
