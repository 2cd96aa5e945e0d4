import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import type { CallbackResource } from '../../src/domain/banks/callback';
import { taskQueues } from '../../src/domain/task-queues';
import { LIFECYCLES } from '../../src/lifecycles';
import { ACT_MS_MAX, IN_ETHER, WALLET } from '../api/crypto-setting';
import { openShop } from '../api/payout-setting';
import { buildPayment, buildRefund } from '../support/factories';
import { useFixture } from '../support/fixture';
import type { Answer } from '../support/http';
import { mongodbUri, temporalAddress } from '../support/servers';
import { openService, type ServiceOptions } from '../support/service';
import { commandsIn } from './cli';

const PATIENCE_MS = 60_000;

/** Adds a minute to each deadline: unlike a command, a call of a function is not repeated. */
export function patientClient(temporal: Client): Client {
  const withDeadline = <T>(deadline: number | Date, call: () => Promise<T>) =>
    temporal.withDeadline(Number(deadline) + PATIENCE_MS, call);
  return Object.create(temporal, { withDeadline: { value: withDeadline } });
}

export type ResourceSetting = Awaited<ReturnType<typeof openResourceSetting>>;

/** The whole product with a merchant, and a command line that looks into its database. */
export async function openResourceSetting(options?: ServiceOptions) {
  const service = await openService(options);
  const shop = await openShop(service);
  // What a command starts again is no resource of another file's database. Without a prefix of the
  // service, the command has no worker.
  const prefix = options?.live?.prefix ?? `cli-${randomUUID().slice(0, 8)}`;
  const env = {
    DATA_DIR: 'none',
    MONGODB_URI: mongodbUri(),
    MONGODB_DB: service.database,
    TEMPORAL_ADDRESS: options?.temporal ?? temporalAddress(),
    TASK_QUEUE_PREFIX: prefix,
  };
  const getId = ({ status, body, text }: Answer): string => {
    if (status !== 201) throw new Error(text);
    return body.id;
  };
  const handle = (kind: CallbackResource, id: string) =>
    service.temporal.workflow.getHandle(LIFECYCLES[kind].workflowId(id));
  return {
    service,
    shop,
    ...commandsIn(env),
    handle,
    /** Queue of the command line, which nobody works on without a prefix of the service. */
    idleQueue: taskQueues(prefix).lifecycleQueue,
    /** Dependencies of acts and restarts, with the workers of the service. */
    deps: {
      stores: service.stores,
      db: service.mongo.db(service.database),
      temporal: patientClient(service.temporal),
      lifecycleQueue: service.queues.lifecycle,
      webhookQueue: service.queues.webhooks,
      now: () => new Date(),
      timeoutMs: ACT_MS_MAX,
    },
    payout: async (changes: object = {}, word?: string): Promise<string> =>
      (await shop.paid(changes, word)).body.id,
    /** Makes a payment that waits for its customer. */
    payment: async (fields: object = {}): Promise<string> =>
      (await buildPayment(shop, { ...fields })).id,
    /** Refunds a payment that has settled; no callback has reported its result. */
    refund: async (fields: object = {}): Promise<{ id: string; payment_id: string }> =>
      await buildRefund(shop, { amount: 300, ...fields }),
    /** Makes one of 100 EUR in ether, for an account that has crypto from now on. */
    cryptoPayment: async (more: { idempotencyKey?: string } = {}) => {
      await service.stores.accounts.setCrypto(shop.account_id, true);
      return getId(await shop.post('/v1/crypto/payments', IN_ETHER, more));
    },
    /** Makes one of units of ether that the balance holds. */
    cryptoSettlement: async (amount: string) => {
      const body = { asset: 'ETH', network: 'ethereum', amount };
      return getId(await shop.post('/v1/crypto/settlements', body));
    },
    registerWallet: async (address = WALLET) => {
      const now = new Date().toISOString();
      const { account_id } = shop;
      const wallet = { account_id, livemode: false, network: 'ethereum', address } as const;
      await service.stores.wallets.set(wallet, { now, counts_from: now });
    },
    simulate: (kind: CallbackResource, id: string, body: object) => {
      const path = `${kind.replace('crypto_', 'crypto/')}s/${id}/simulate`;
      return shop.post(`/v1/sandbox/${path}`, body);
    },
    terminate: (kind: CallbackResource, id: string) => handle(kind, id).terminate('in a test'),
    close: () => service.stop(),
  };
}

/** The product and a command line for one file's tests. */
export function useResourceSetting(options?: ServiceOptions): ResourceSetting {
  return useFixture(
    () => openResourceSetting(options),
    (setting) => setting.close(),
  );
}
