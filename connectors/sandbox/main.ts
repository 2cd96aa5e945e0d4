import { exitAfter } from '../../src/base/process';
import { SANDBOX_CONNECTOR } from '../../src/routing';
import { beginProcess } from '../kit/process';
import { createSandboxBank } from './bank';
import { readSandboxBankConfig } from './config';

async function main(): Promise<void> {
  const config = readSandboxBankConfig();
  const names = { connector: SANDBOX_CONNECTOR, logger: 'sandbox-bank' };
  const { log, onStop, connect } = beginProcess(names, config);
  const own = await connect();
  const bank = await createSandboxBank(own, config);
  const metrics = await own.serveMetrics();
  log.info({ address: bank.url }, 'the sandbox bank is open');

  onStop(bank.stop);
  await bank.finished.finally(bank.stop);
  await metrics.close();
  await own.close();
}

exitAfter(main());
