import { randomBytes, randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import type { MongoClient } from 'mongodb';
import type {
  PayoutInstruction,
  RefundInstruction,
  SessionInstruction,
} from '../../connectors/contract/activities';
import type { ConnectorParts } from '../../connectors/kit/connector';
import type { CallbackDeps } from '../../src/callbacks/deliver';
import type { RecipientDetails } from '../../src/domain/payout/recipient';
import { createStores } from '../../src/store';
import { connectTemporal } from '../../src/temporal/access';
import { retryUntilDone } from '../support/insist';
import { createTestLogger, quietTemporal } from '../support/quiet';
import { openSandboxBank } from '../support/sandbox-bank';
import { temporalAddress } from '../support/servers';

type Recipients = NonNullable<ConnectorParts['recipients']>;

/** Deliveries of a callback by its ID. */
interface Delivery {
  count: number;
  /** Whether one of them got no answer. */
  hasFailed: boolean;
}

interface BankChange {
  autoplay?: boolean;
  slowSessionMs?: number;
  temporal?: Client;
}

/** A sandbox bank on real servers, with queues of its own and no lifecycle worker behind it. */
export async function startBankServer(mongo: MongoClient, database: string) {
  quietTemporal();
  const address = temporalAddress();
  const connection = await NativeConnection.connect({ address });
  const temporal = connectTemporal({ address, namespace: 'default' });
  const suffix = randomBytes(6).toString('hex');
  const stores = createStores(mongo.db(database));
  /** Dependencies with which the bank delivers its callbacks. */
  const lifecycleQueue = `lifecycle-${suffix}`;
  const inbox: CallbackDeps = { stores, temporal, lifecycleQueue, now: () => new Date() };
  const usual: Recipients = {
    decryptRecipient: async () => RECIPIENT,
    readReference: async () => null,
    decryptEvidence: () => Promise.reject(new Error('No dispute is answered here.')),
  };
  const reads = { ...usual };
  const recipients: Recipients = {
    decryptRecipient: (id) => reads.decryptRecipient(id),
    readReference: (id) => reads.readReference(id),
    decryptEvidence: (...evidence) => reads.decryptEvidence(...evidence),
  };
  const deliveries = new Map<string, Delivery>();
  const open = ({ autoplay = true, slowSessionMs = 300, ...change }: BankChange = {}) =>
    openSandboxBank(
      {
        ...{ mongo, stores, connection, temporal, lifecycleQueue, log: createTestLogger('bank') },
        ...{ connector: 'sandbox', taskQueuePrefix: suffix, ...change },
      },
      {
        ...{ database, keysDir: '', autoplay },
        changeDelivery: (deliver) => async (report) => {
          const { callback_id } = report.callback;
          const { count = 0, hasFailed = false } = deliveries.get(callback_id) ?? {};
          const set = (failed: boolean) =>
            deliveries.set(callback_id, { count: count + 1, hasFailed: failed });
          try {
            const receipt = await deliver(report);
            set(hasFailed);
            return receipt;
          } catch (error) {
            set(true);
            throw error;
          }
        },
      },
      { recipients, slowSessionMs },
    );
  let bank = await retryUntilDone(() => open());
  return {
    ...{ temporal, inbox, deliveries },
    get bank() {
      return bank;
    },
    /** Replaces what the bank reads of the product, by default by the usual. */
    setReads: (change: Partial<Recipients> = {}): void => {
      Object.assign(reads, usual, change);
    },
    /** Opens the bank again, on the same databases and queues, as after a restart. */
    restart: async (change?: BankChange) => {
      await bank.stop();
      bank = await retryUntilDone(() => open(change));
    },
    stop: async () => {
      await bank.stop();
      await retryUntilDone(() => mongo.db(`${database}_sandbox_bank`).dropDatabase());
      await Promise.all([connection.close(), temporal.connection.close()]);
    },
  };
}

export function instruction(change: Partial<SessionInstruction> = {}): SessionInstruction {
  return {
    ...{ payment_id: randomUUID(), amount: 4_950, currency: 'EUR', method: 'ideal' },
    ...{ country: 'NL', livemode: false, return_url: 'http://localhost:9/pay/return/x' },
    expires_at: new Date(Date.now() + 1_800_000).toISOString(),
    ...change,
  };
}

export function refundInstruction(change: Partial<RefundInstruction> = {}): RefundInstruction {
  return {
    ...{ refund_id: randomUUID(), version: 1, payment_id: randomUUID(), method: 'ideal' },
    ...{ payment_bank_reference: 'SBX0123456789AB', amount: 1_250, currency: 'EUR' },
    livemode: false,
    ...change,
  };
}

export function payoutInstruction(change: Partial<PayoutInstruction> = {}): PayoutInstruction {
  return {
    ...{ payout_id: randomUUID(), version: 1, amount: 3_400, currency: 'EUR' },
    ...{ method: 'sepa_instant', livemode: false },
    ...change,
  };
}

/** Details of every recipient that is decrypted. */
export const RECIPIENT: RecipientDetails = {
  ...{ type: 'bank_account', first_name: 'Philippa', last_name: 'Featherstonehaugh' },
  ...{ card_number: null, expiry_month: null, expiry_year: null, date_of_birth: '1961-07-29' },
  ...{ iban: 'NL91ABNA0417164300', bic: 'ABNANL2A', sort_code: null, account_number: null },
  ...{ address_line1: 'Keizersgracht 9000', city: 'Amsterdam', postal_code: '1015 CJ' },
  ...{ country: 'NL', email: 'philippa@example.com', reference: 'their own words' },
  parent_payment_reference: null,
};
