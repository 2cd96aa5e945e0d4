import type { Client } from '@temporalio/client';
import type { MongoClient } from 'mongodb';
import type { PaymentMethodId } from '../domain/payment/catalog';
import type { RailId } from '../domain/payout/rails';
import type { Stores } from '../store';
import type { TemporalAccess } from '../temporal/access';
import type { WriteDeps } from './deps';

/** Result of one promise of the contract. */
export interface PromiseResult {
  id: string;
  promise: string;
  result: 'passed' | 'failed' | 'not_applicable';
  /** Observation of the check, in words. */
  seen: string;
}

export interface CheckReport {
  connector: string;
  passed: number;
  failed: number;
  not_applicable: number;
  promises: PromiseResult[];
}

/** Folders between a connector and a bank that answers by files. */
export interface CheckFolders {
  /** Folder of files to the bank. */
  out: string;
  /** Folder of files from it. */
  in: string;
}

/** Addresses around a connector: its fake bank, and the proxies in front of both. */
export interface CheckAddresses {
  /** Desk of the fake bank. */
  deskUrl?: string | undefined;
  /** Address of the fake bank, and the port under which the connector knows it. */
  bankUrl?: string | undefined;
  bankPort?: number | undefined;
  /** The connector's own port, and the port under which the bank knows it. */
  webhookUrl?: string | undefined;
  webhookPort?: number | undefined;
  /** Folders of a connector whose bank answers by files: the check is that bank. */
  folders?: CheckFolders | undefined;
}

export interface CheckInput extends CheckAddresses {
  connector: string;
  /** Methods and rails that are routed to it. */
  methods: readonly PaymentMethodId[];
  rails: readonly RailId[];
  /** Time for a report to arrive, also if it has to be polled. */
  waitMs: number;
}

export interface CheckDeps extends WriteDeps {
  mongo: MongoClient;
  stores: Stores;
  temporal: Client;
  access: TemporalAccess;
  database: string;
  taskQueuePrefix: string;
  /** Directory of the key pairs with which the connector decrypts recipients. */
  keysDir: string;
  progress: (line: string) => void;
}

/**
 * Checks a connector that runs, against every promise of its contract.
 * @throws ServiceError `connector_not_running`, `check_database_used`, `check_queue_used`,
 *   `check_folder_used`
 * @see docs/connectors.md#check-a-connector
 */
export type CheckConnector = (deps: CheckDeps, input: CheckInput) => Promise<CheckReport>;
