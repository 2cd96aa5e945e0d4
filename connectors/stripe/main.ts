import { exitAfter } from '../../src/base/process';
import { checkTemporal } from '../../src/temporal/attributes';
import { readKitConfig } from '../kit/config';
import { beginProcess } from '../kit/process';
import { startStripe } from './connector';
import { defineStripe } from './definition';

async function main(): Promise<void> {
  const config = readKitConfig(
    defineStripe(() => {
      throw new Error('The connector is not connected yet.');
    }),
  );
  const { log, onStop, connect } = beginProcess({ connector: config.name }, config);
  const own = await connect();
  await checkTemporal(own, log, config.isLive);
  const connector = await startStripe(config, own);
  const metrics = await own.serveMetrics(connector.isReady);
  log.info({ connector: config.name, address: connector.url }, 'the connector serves Stripe');
  onStop(connector.stop);
  await connector.finished;
  await metrics.close();
  await own.close();
}

exitAfter(main());
