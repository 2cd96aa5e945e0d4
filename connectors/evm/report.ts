import type { CryptoCallback } from '../../src/domain/crypto/callback';

/** Report to the product, as its door takes it. */
export interface Report {
  resource: 'crypto_payment' | 'crypto_settlement';
  resource_id: string;
  name: 'deposit' | 'deposit_undone' | 'sent' | 'completed' | 'failed';
  callback: CryptoCallback;
}

/** Report under way, as a row keeps it. */
export type PendingReport = Pick<Report, 'name' | 'callback'>;

/** Brings a report to the product; until it does not throw, the report counts as not told. */
export type Deliver = (report: Report) => Promise<unknown>;
