import { randomBytes, randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import type { MongoClient } from 'mongodb';
import type {
  PayoutInstruction,
  RefundInstruction,
  SessionInstruction,
} from '../../connectors/contract/activities';
import {
  createSandboxBank,
  type SandboxBank,
  type SandboxBankDeps,
} from '../../connectors/sandbox/bank';
import { createLogger } from '../../src/base/log';
import type { CallbackDeps } from '../../src/callbacks/deliver';
import type { RecipientDetails } from '../../src/domain/payout/recipient';
import { createStores } from '../../src/store';
import { retryUntilDone } from '../support/insist';
import { quietTemporal } from '../support/quiet';
import { temporalAddress } from '../support/servers';

type Change = Partial<
  Pick<
    SandboxBankDeps,
    'autoplay' | 'temporal' | 'decryptRecipient' | 'readReference' | 'slowSessionMs'
  >
>;

export interface BankServer {
  bank: SandboxBank;
  temporal: Client;
  taskQueue: string;
  /** Dependencies with which the bank delivers its callbacks. */
  inbox: CallbackDeps;
  /** The bank again, on the same databases and queues, as after a restart. */
  restart: (change?: Change) => Promise<SandboxBank>;
  stop: () => Promise<void>;
}

/** A sandbox bank on real servers, with queues of its own and no lifecycle worker behind it. */
export async function startBankServer(mongo: MongoClient, database: string): Promise<BankServer> {
  quietTemporal();
  const address = temporalAddress();
  const [clientConnection, connection] = await Promise.all([
    Connection.connect({ address }),
    NativeConnection.connect({ address }),
  ]);
  const temporal = new Client({ connection: clientConnection });
  const suffix = randomBytes(6).toString('hex');
  const taskQueue = `connector-sandbox-${suffix}`;
  const stores = createStores(mongo.db(database));
  const inbox: CallbackDeps = {
    stores,
    temporal,
    lifecycleQueue: `lifecycle-${suffix}`,
    now: () => new Date(),
  };
  const open = (change: Change = {}) =>
    createSandboxBank({
      ...inbox,
      stores,
      mongo,
      database: `${database}_sandbox_bank`,
      connection,
      taskQueue,
      host: '127.0.0.1',
      port: 0,
      autoplay: true,
      decryptRecipient: async () => RECIPIENT,
      readReference: async () => null,
      slowSessionMs: 300,
      log: createLogger('test-bank', process.env['TEST_LOG_LEVEL'] ?? 'silent'),
      ...change,
    });
  let bank = await retryUntilDone(() => open());
  return {
    temporal,
    taskQueue,
    inbox,
    get bank() {
      return bank;
    },
    restart: async (change) => {
      await bank.stop();
      bank = await retryUntilDone(() => open(change));
      return bank;
    },
    stop: async () => {
      await bank.stop();
      await retryUntilDone(() => mongo.db(`${database}_sandbox_bank`).dropDatabase());
      await Promise.all([connection.close(), clientConnection.close()]);
    },
  };
}

export function instruction(change: Partial<SessionInstruction> = {}): SessionInstruction {
  return {
    payment_id: randomUUID(),
    amount: 4_950,
    currency: 'EUR',
    method: 'ideal',
    country: 'NL',
    livemode: false,
    return_url: 'http://localhost:9/pay/return/x',
    expires_at: new Date(Date.now() + 1_800_000).toISOString(),
    ...change,
  };
}

export function refundInstruction(change: Partial<RefundInstruction> = {}): RefundInstruction {
  return {
    refund_id: randomUUID(),
    version: 1,
    payment_id: randomUUID(),
    payment_bank_reference: 'SBX0123456789AB',
    amount: 1_250,
    currency: 'EUR',
    method: 'ideal',
    livemode: false,
    ...change,
  };
}

export function payoutInstruction(change: Partial<PayoutInstruction> = {}): PayoutInstruction {
  return {
    payout_id: randomUUID(),
    version: 1,
    amount: 3_400,
    currency: 'EUR',
    method: 'sepa_instant',
    livemode: false,
    ...change,
  };
}

/** Details of every recipient that is opened. */
export const RECIPIENT: RecipientDetails = {
  type: 'bank_account',
  first_name: 'Philippa',
  last_name: 'Featherstonehaugh',
  card_number: null,
  expiry_month: null,
  expiry_year: null,
  date_of_birth: '1961-07-29',
  iban: 'NL91ABNA0417164300',
  bic: 'ABNANL2A',
  sort_code: null,
  account_number: null,
  address_line1: 'Keizersgracht 9000',
  city: 'Amsterdam',
  postal_code: '1015 CJ',
  country: 'NL',
  email: 'philippa@example.com',
  reference: 'their own words',
  parent_payment_reference: null,
};
