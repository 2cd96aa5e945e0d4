import type { MongoClient } from 'mongodb';
import type { Logger } from '../base/log';
import type { CallbackInbox } from '../callbacks/inbox';
import type { Config } from '../config';
import type { Encrypter } from '../encryption/encrypter';
import type { RecipientEncrypters } from '../encryption/recipient-keys';
import type { ServiceKeys } from '../encryption/service-keys';
import type { Connectors } from '../routing';
import type { Stores } from '../store';
import type { Audit } from '../store/audit';
import type { TemporalClient } from '../temporal/client';
import type { Payers } from './money/payers';
import type { RunInShare } from './shares';

export interface ServiceDeps {
  mongo: MongoClient;
  stores: Stores;
  encrypter: Encrypter;
  payers: Pick<Payers, 'decrypt'>;
  now: () => Date;
}

export interface MerchantDeps extends ServiceDeps {
  config: Pick<Config, 'PUBLIC_URL'> & Partial<Pick<Config, 'CRYPTO_WINDOWS'>>;
  temporal: TemporalClient;
  callbacks: CallbackInbox;
  connectors: Connectors;
  /** Page tokens; fingerprints of requests. */
  keys: Pick<ServiceKeys, 'pay_token' | 'fingerprint'>;
  /** Public keys, which cannot decrypt. */
  recipientEncrypters: RecipientEncrypters;
  payers: Payers;
  /** Shared by the API and the dashboard. */
  runInShare: RunInShare;
  log: Logger;
}

/** `audit` names the acting team member or operator. */
export interface ActDeps extends ServiceDeps {
  audit: Audit;
}

export type WriteDeps = Pick<ActDeps, 'mongo' | 'stores' | 'audit' | 'now'>;

export interface Owner {
  account_id: string;
  livemode: boolean;
}
