import { exitAfter } from '../../src/base/process';
import { createDetailsDecrypter } from '../../src/encryption/recipient-keys';
import { METHODS, SANDBOX_CONNECTOR } from '../../src/routing';
import { sandboxBankDatabase } from '../../src/service/banks/sandbox-bank/movements';
import { createRecipientDecrypter, createReferenceReader } from '../contract/recipients';
import { reportCapabilities } from '../kit/capabilities';
import { beginProcess } from '../kit/process';
import { openRestoreGuard } from '../kit/restore-guard';
import { createSandboxBank } from './bank';
import { createSentBook } from './book';
import { readSandboxBankConfig } from './config';

async function main(): Promise<void> {
  const config = readSandboxBankConfig();
  const connector = SANDBOX_CONNECTOR;
  const { log, onStop, connect } = beginProcess({ connector, logger: 'sandbox-bank' }, config);
  const own = await connect();
  const { stores } = own;
  const encrypter = createDetailsDecrypter(config.KEYS_DIR, 'sandbox');
  const database = sandboxBankDatabase(config.MONGODB_DB);
  const db = own.mongo.db(database);
  const restoreGuard = await openRestoreGuard(own, {
    ...{ environment: 'sandbox', dir: config.CONNECTOR_STATE_DIR, db, book: createSentBook(db) },
  });
  const bank = await createSandboxBank({
    ...{ ...own, database, restoreGuard },
    decryptRecipient: createRecipientDecrypter({ ...stores, encrypter, connector, log }),
    readReference: createReferenceReader({ payouts: stores.payouts }),
    host: config.HOST,
    port: config.SANDBOX_BANK_PORT,
    publicUrl: config.SANDBOX_BANK_URL,
    autoplay: config.SANDBOX_AUTOPLAY === 'on',
  });
  const functions = Object.keys(bank.activities).toSorted();
  const report = reportCapabilities(own, { serves: METHODS.toSorted(), functions }, restoreGuard);
  const metricsServer = await own.serveMetrics();
  log.info({ address: bank.url }, 'the sandbox bank is open');

  onStop(bank.stop);
  await bank.finished.finally(report.stop);
  await bank.stop();
  await metricsServer.close();
  await own.close();
}

exitAfter(main());
