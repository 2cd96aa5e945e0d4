import type { CryptoResource } from '../../src/domain/callback/callback';
import type { CryptoCallback } from '../../src/domain/crypto/callback';

export interface Report {
  resource: CryptoResource;
  resource_id: string;
  name: 'deposit' | 'deposit_undone' | 'wrong_asset' | 'sent' | 'completed' | 'failed';
  callback: CryptoCallback;
}

export type PendingReport = Pick<Report, 'name' | 'callback'>;

export type Deliver = (report: Report) => Promise<unknown>;

/** Selects by the last delivery, to repeat reports under their IDs. */
export function selectReported(since: Date) {
  return { 'last.at': { $gte: since }, pending_report: null };
}

export const REPEAT = [{ $set: { pending_report: '$last.report', is_open: true } }];
