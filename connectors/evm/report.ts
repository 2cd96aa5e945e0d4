import type { CryptoResource } from '../../src/domain/callback/callback';
import type { CryptoCallback } from '../../src/domain/crypto/callback';

export interface Report {
  resource: CryptoResource;
  resource_id: string;
  name: 'deposit' | 'deposit_undone' | 'sent' | 'completed' | 'failed';
  callback: CryptoCallback;
}

export type PendingReport = Pick<Report, 'name' | 'callback'>;

/** Delivers a report, which counts as undelivered if this throws. */
export type Deliver = (report: Report) => Promise<unknown>;
