import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startConnector } from '../../../connectors/kit/connector';
import { defineStripe } from '../../../connectors/stripe/definition';
import { freePort } from '../../../stack/ports';
import { eventually, retryUntilDone } from '../../support/eventually';
import type { Service } from '../../support/service';
import { connectConnector } from '../process';
import { startFakeStripe } from './fake';
import { KEY, WEBHOOK_SECRET } from './world';

interface Place {
  service: Service;
  prefix: string;
}

/** Starts the connector between a product and a fake Stripe that posts webhooks, and whose clock it has. */
export async function startStripeWorld({ service, prefix }: Place) {
  const { database, keysDir } = service;
  const stateDir = mkdtempSync(join(tmpdir(), 'stripe-state-'));
  const port = await freePort();
  const webhook = { url: `http://127.0.0.1:${port}/webhooks`, secret: WEBHOOK_SECRET };
  const bank = await startFakeStripe({ key: KEY, webhook });
  const settings = {
    ...{ STRIPE_API_URL: bank.url, STRIPE_SECRET_KEY_FILE: KEY },
    ...{ STRIPE_WEBHOOK_SECRET_FILE: WEBHOOK_SECRET, STRIPE_CURRENCIES: ['EUR'] },
  };
  const connect = async (change: Partial<typeof settings> = {}, pollSeconds = 0.2) => {
    const place = { database, prefix, keysDir, stateDir };
    const changed = { ...settings, ...change };
    const opened = await connectConnector('stripe', { ...place, settings: changed });
    const config = { ...opened.config, CONNECTOR_PORT: port };
    const own = { ...opened.own, now: () => new Date(bank.now() * 1_000) };
    const { poll, ...definition } = defineStripe();
    const often = { ...definition, ...(poll && { poll: { ...poll, seconds: pollSeconds } }) };
    const start = startConnector(often, config, own);
    const connector = await start.catch(async (error: unknown) => {
      await opened.own.close();
      throw error;
    });
    connector.finished.catch(() => undefined);
    const { makeStatements = () => Promise.reject(new Error('It makes none.')) } = connector;
    return { makeStatements, stop: () => connector.stop().then(opened.own.close) };
  };
  let running = await connect();
  return {
    ...{ bank, webhook, connect },
    makeStatements: () => running.makeStatements(),
    stopConnector: () => running.stop(),
    startConnector: async (...how: Parameters<typeof connect>) => {
      running = await connect(...how);
    },
    stop: async (): Promise<void> => {
      await running.stop();
      await retryUntilDone(() => service.mongo.db(`${database}_stripe`).dropDatabase());
      await bank.stop();
      rmSync(stateDir, { recursive: true });
    },
  };
}

/** Waits until a resource is stored with values, also where what was lost is repeated a minute later. */
export function becomesLate(service: Service, ...wanted: Parameters<Service['becomes']>) {
  const isStored = () =>
    service.becomes(...wanted).then(
      () => true,
      () => false,
    );
  return eventually(JSON.stringify(wanted), isStored, 240_000);
}
