import type { MongoClient } from 'mongodb';
import type { Keys } from '../config';
import type { Sealer } from '../keys/seal';
import type { Logger } from '../log';
import type { Connectors } from '../routing';
import type { Stores } from '../store';
import type { TemporalDoor } from '../temporal/door';

/** Dependencies of the dashboard, in one object. */
export interface DashboardDeps {
  stores: Stores;
  mongo: MongoClient;
  temporal: TemporalDoor;
  connectors: Connectors;
  sealer: Sealer;
  keys: Pick<Keys, 'pay_token' | 'fingerprint'>;
  publicUrl: string;
  /** Whether sandbox endpoints may be on this machine. */
  allowPrivateWebhooks: boolean;
  now: () => Date;
  log: Logger;
}
