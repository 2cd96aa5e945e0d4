import type { Client } from '@temporalio/client';
import type { MongoClient } from 'mongodb';
import type { PaymentMethodId } from '../../domain/payment/catalog';
import type { RailId } from '../../domain/payout/rails';
import type { Stores } from '../../store';
import type { TemporalAccess } from '../../temporal/access';
import type { WriteDeps } from '../access';

export interface PromiseResult {
  id: string;
  promise: string;
  result: 'passed' | 'failed' | 'not_applicable';
  /** Text for people. */
  seen: string;
}

export interface CheckReport {
  connector: string;
  passed: number;
  failed: number;
  not_applicable: number;
  promises: PromiseResult[];
}

export interface CheckFolders {
  /** Files to the bank. */
  out: string;
  /** Files from the bank. */
  in: string;
}

export interface CheckAddresses {
  /** Desk of the fake bank. */
  deskUrl?: string | undefined;
  /** Fake bank, and its port as the connector knows it. */
  bankUrl?: string | undefined;
  bankPort?: number | undefined;
  /** The connector's own port, and its port as the bank knows it. */
  webhookUrl?: string | undefined;
  webhookPort?: number | undefined;
  /** Folders of a bank that responds by files: the check is that bank. */
  folders?: CheckFolders | undefined;
}

export interface CheckInput extends CheckAddresses {
  connector: string;
  /** Routed to it. */
  methods: readonly PaymentMethodId[];
  rails: readonly RailId[];
  /** ms for a report to arrive, also if it is polled. */
  waitMs: number;
  /** Names of promises; absent: all. */
  only?: readonly string[] | undefined;
}

export interface CheckDeps extends WriteDeps {
  mongo: MongoClient;
  stores: Stores;
  temporal: Client;
  access: TemporalAccess;
  database: string;
  taskQueuePrefix: string;
  keysDir: string;
  progress: (line: string) => void;
  /** Called before it connects: an installed runtime ends with its last connection, never before. */
  installRuntime?: () => void;
}

/**
 * Checks a running connector.
 * @throws ServiceError `connector_not_running`, `check_database_used`, `check_queue_used`,
 * `check_folder_used`, `invalid_usage`
 * @see docs/connectors.md#check-a-connector
 */
export type CheckConnector = (deps: CheckDeps, input: CheckInput) => Promise<CheckReport>;
