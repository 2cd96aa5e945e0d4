import { randomUUID } from 'node:crypto';
import { example } from '../../../connectors/example/example';
import { startFakeBank } from '../../../connectors/example/fake-bank';
import { startConnector } from '../../../connectors/kit/connector';
import { useFixture } from '../../support/fixture';
import { retryUntilDone } from '../../support/insist';
import type { Service } from '../../support/service';
import { connectConnector } from '../process';

export const SECRET = 'secret-of-the-example-bank';

export type ExampleWorld = Awaited<ReturnType<typeof startExample>>;

/** The example connector between the product and a small bank. */
async function startExample(
  { database, keysDir }: Service,
  prefix: string,
  environment: 'sandbox' | 'live',
) {
  const bank = await startFakeBank(SECRET);
  const settings = { EXAMPLE_API_URL: bank.url, EXAMPLE_KEY_FILE: SECRET };
  // Each has a name, and so a database, of its own.
  const name = environment === 'live' ? 'example-live' : 'example';
  const place = { database, prefix, keysDir, environment, settings };
  const { config, own } = await connectConnector(name, place);
  const { poll } = example;
  const definition = { ...example, ...(poll && { poll: { ...poll, seconds: 0.1 } }) };
  const connector = await startConnector(definition, config, own);
  connector.finished.catch(() => undefined);
  const db = own.mongo.db(`${database}_${name}`);
  return {
    ...{ bank, connector, own, db, startedAt: Date.now() },
    url: String(connector.url),
    /** Ends the time in which the last attempt of a payout may reach the bank. */
    endAttempt: async (payout_id: string): Promise<void> => {
      const records = db.collection<{ _id: string }>('instructions');
      await records.updateOne({ _id: `payout:${payout_id}` }, { $set: { deadline: new Date(0) } });
    },
    stop: async () => {
      await connector.stop();
      await retryUntilDone(() => db.dropDatabase());
      await own.close();
      await bank.stop();
    },
  };
}

export function useExample(
  service: Service,
  prefix: string,
  environment: 'sandbox' | 'live' = 'sandbox',
): ExampleWorld {
  return useFixture(
    () => startExample(service, prefix, environment),
    (world) => world.stop(),
  );
}

export function makePrefix(): string {
  return `example-${randomUUID().slice(0, 8)}`;
}
