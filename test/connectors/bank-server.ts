import { randomBytes, randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import type { MongoClient } from 'mongodb';
import type { RefundInstruction, SessionInstruction } from '../../connectors/contract/activities';
import type { CallbackDeps } from '../../connectors/contract/callbacks';
import { createSandboxBank, type SandboxBank } from '../../connectors/sandbox-bank/bank';
import { createLogger } from '../../src/log';
import { createStores } from '../../src/store';
import { temporalAddress } from '../support/servers';

export interface BankServer {
  bank: SandboxBank;
  temporal: Client;
  taskQueue: string;
  /** What the bank delivers its callbacks with. */
  inbox: CallbackDeps;
  /** The bank again, on the same databases and queues, as after a restart. */
  restart: (change?: { autoplay?: boolean; temporal?: Client }) => Promise<SandboxBank>;
  stop: () => Promise<void>;
}

/** A sandbox bank on real servers, with queues of its own and no lifecycle worker behind it. */
export async function startBankServer(mongo: MongoClient, database: string): Promise<BankServer> {
  const address = temporalAddress();
  const [clientConnection, connection] = await Promise.all([
    Connection.connect({ address }),
    NativeConnection.connect({ address }),
  ]);
  const temporal = new Client({ connection: clientConnection });
  const suffix = randomBytes(6).toString('hex');
  const taskQueue = `connector-sandbox-${suffix}`;
  const inbox: CallbackDeps = {
    stores: createStores(mongo.db(database)),
    temporal,
    lifecycleQueue: `lifecycle-${suffix}`,
    now: () => new Date(),
  };
  const open = (change: { autoplay?: boolean; temporal?: Client } = {}) =>
    createSandboxBank({
      ...inbox,
      mongo,
      database: `${database}_sandbox_bank`,
      connection,
      taskQueue,
      host: '127.0.0.1',
      port: 0,
      autoplay: true,
      slowSessionMs: 300,
      log: createLogger('test-bank', process.env['TEST_LOG_LEVEL'] ?? 'silent'),
      ...change,
    });
  let bank = await open();
  return {
    temporal,
    taskQueue,
    inbox,
    get bank() {
      return bank;
    },
    restart: async (change) => {
      await bank.stop();
      bank = await open(change);
      return bank;
    },
    stop: async () => {
      await bank.stop();
      await mongo.db(`${database}_sandbox_bank`).dropDatabase();
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
    payment_id: randomUUID(),
    payment_bank_reference: 'SBX0123456789AB',
    amount: 1_250,
    currency: 'EUR',
    method: 'ideal',
    livemode: false,
    ...change,
  };
}
