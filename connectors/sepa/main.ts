import { exitAfter } from '../../src/base/process';
import { checkTemporal } from '../../src/temporal/attributes';
import { readKitConfig } from '../kit/config';
import { beginProcess } from '../kit/process';
import { startSepa } from './connector';
import { defineSepa } from './definition';

async function main(): Promise<void> {
  const config = readKitConfig(
    defineSepa(() => {
      throw new Error('The connector is not connected yet.');
    }, process.env['SEPA_INSTANT'] === 'yes'),
  );
  const { log, onStop, connect } = beginProcess({ connector: config.name }, config);
  const own = await connect();
  await checkTemporal(own, log, config.isLive);
  const connector = await startSepa(config, own);
  const metrics = await own.serveMetrics(connector.isReady);
  log.info({ connector: config.name }, 'the connector writes and reads SEPA files');
  onStop(connector.stop);
  await connector.finished;
  await metrics.close();
  await own.close();
}

exitAfter(main());
