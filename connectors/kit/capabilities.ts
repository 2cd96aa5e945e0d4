import {
  type Capabilities,
  CONTRACT_VERSION,
  MAKES_STATEMENTS,
  REPORT_MS,
} from '../../src/domain/banks/capabilities';
import type { ConnectorDefinition, Settings } from './definition';
import { startLoop } from './loop';
import type { ConnectorProcess } from './process';
import type { RestoreGuard } from './restore-guard';

type Served = Omit<Capabilities, 'contract'>;

const FUNCTIONS = [
  'acceptDispute',
  'cancelPayout',
  'closeSession',
  'lookUpAcceptance',
  'lookUpEvidence',
  'lookUpPayout',
  'lookUpRefund',
  'openSession',
  'reversePayment',
  'sendPayout',
  'sendRefund',
  'submitEvidence',
  'voidPayment',
] as const;

export function listCapabilities<S extends Settings>(definition: ConnectorDefinition<S>): Served {
  const { serves, statements, referencePerStep: reference_per_step = false } = definition;
  const functions = [
    ...FUNCTIONS.filter((name) => definition[name] !== undefined),
    ...(statements === undefined ? [] : [MAKES_STATEMENTS]),
  ].toSorted();
  const dispute_fee_max = definition.disputeFeeMax;
  return { serves: serves.toSorted(), functions, reference_per_step, dispute_fee_max };
}

interface Watched {
  restoreGuard: Pick<RestoreGuard, 'check' | 'onChange'>;
  /** Counts reports that were refused. */
  countSetAside?: () => Promise<number>;
}

/**
 * Reports regularly what a connector serves and can do, what it has set aside, and whether a restore
 * has stopped it; it works also without that.
 * @see docs/connectors.md#what-a-connector-reports-of-itself
 */
export function reportCapabilities(
  { connector, stores, now, log }: Pick<ConnectorProcess, 'connector' | 'stores' | 'now' | 'log'>,
  served: Served,
  { restoreGuard, countSetAside }: Watched,
): { stop: () => Promise<void> } {
  const loop = startLoop({
    round: async () => {
      const set_aside = (await countSetAside?.()) ?? 0;
      const report = { ...served, contract: CONTRACT_VERSION, set_aside };
      const stopped = await restoreGuard.check();
      await stores.capabilities.report(connector, report, { seen_at: now(), stopped });
      return false;
    },
    pollMs: REPORT_MS,
    failureText: 'what the connector serves could not be reported, tried again later',
    log,
  });
  restoreGuard.onChange(loop.wake);
  return loop;
}
