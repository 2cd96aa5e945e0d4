import { Gauge, type Registry } from 'prom-client';
import type { FindingName } from './findings';

/** State of the connector after a round. */
interface Followed {
  /** Time of the newest block that was read. */
  at: Date | undefined;
  /** Deposits with their confirmations that the second node has not confirmed. */
  unchecked: number;
  /** Open findings. */
  findings: Record<FindingName, number>;
  dust: number;
}

export interface EvmMeter {
  followed(state: Followed): void;
}

export function createEvmMeter(registry: Registry): EvmMeter {
  const registers = [registry];
  const cursor = new Gauge({
    name: 'payments_evm_cursor_timestamp_seconds',
    help: 'Time of the newest block that was read, by the clock of the chain.',
    registers,
  });
  const unchecked = new Gauge({
    name: 'payments_evm_deposits_unchecked',
    help: 'Deposits with all confirmations that the second node has not confirmed.',
    registers,
  });
  const findings = new Gauge({
    name: 'payments_evm_findings',
    help: 'Findings that no operator has acknowledged.',
    labelNames: ['finding'] as const,
    registers,
  });
  const dust = new Gauge({
    name: 'payments_evm_dust_deposits',
    help: 'Deposits below the least amount, which are not reported.',
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
