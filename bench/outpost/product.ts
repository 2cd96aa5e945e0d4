import { MongoServerError } from 'mongodb';
import { OperationalError } from '../../src/base/errors';
import { WEBHOOK_QUEUE } from '../../src/domain/task-queues';
import { followKeyFile } from '../../src/encryption/service-keys';
import { startDeliveries } from '../../src/service/events/deliveries';
import { createStores } from '../../src/store';
import { waitUntilIdle } from '../measure/cost';
import { addDeliveries, buildSettledEvents } from '../product/documents';
import { createMerchants } from '../product/merchants';
import type { Setting } from '../servers/config';
import { withStack } from '../servers/stack';
import { interleave, MERCHANTS, type System } from './system';

const DUPLICATE_KEY = 11_000;
const PUBLISH_MS_MAX = 5_000;
/** Maximum wait for workflows to close, also after a kill. */
const IDLE_MS_MAX = 180_000;

/** Runs `work` with a worker of the product, Temporal and MongoDB. */
export async function withProduct<T>(
  setting: Setting,
  receiverUrl: string,
  work: (system: System) => Promise<T>,
): Promise<T> {
  refuseOtherServers(setting.env);
  return await withStack(setting, { parts: 'worker', restarts: true }, async (stack) => {
    const { env, db, temporal, pids } = stack;
    const stores = createStores(db);
    const open = createMerchants(stores, followKeyFile(env['KEYS_FILE'] ?? ''));
    const merchants: string[] = [];
    while (merchants.length < MERCHANTS) merchants.push(await open(receiverUrl));
    const starter = { temporal, webhookQueue: WEBHOOK_QUEUE };
    return await work({
      name: 'product',
      pids,
      parts: ['worker', 'Temporal', 'MongoDB'],
      share: 1,
      buildEvents: (count) =>
        interleave(count, (n, each) => buildSettledEvents(merchants[n] ?? '', each)),
      // As the step that records a payment: the event first, then the start of its delivery.
      publish: async (event) => {
        const recorded = addDeliveries([event]);
        await stores.events.insert(recorded.events).catch(unlessStored);
        await stores.deliveries.insert(recorded.deliveries).catch(unlessStored);
        await temporal.withDeadline(Date.now() + PUBLISH_MS_MAX, () =>
          startDeliveries(starter, recorded),
        );
      },
      settle: () => waitUntilIdle(temporal, [WEBHOOK_QUEUE], setting.signal, IDLE_MS_MAX),
    });
  });
}

/** @throws OperationalError, since servers that others started are not killed here */
function refuseOtherServers(env: NodeJS.ProcessEnv): void {
  const names = ['TEMPORAL_ADDRESS', 'MONGODB_URI'].filter((name) => env[name]);
  if (names.length === 0) return;
  throw new OperationalError(`This scenario kills its servers: unset ${names.join(' and ')}.`);
}

function unlessStored(error: unknown): void {
  if (!(error instanceof MongoServerError && error.code === DUPLICATE_KEY)) throw error;
}
