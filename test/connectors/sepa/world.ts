import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectProcess } from '../../../connectors/kit/process';
import { startSepa } from '../../../connectors/sepa/connector';
import { createLogger } from '../../../src/base/log';
import { openSepaBook, type SepaLine } from '../../../src/service/sepa/book';
import { requestCut, resendFile, showFile } from '../../../src/service/sepa/files';
import { importTaken } from '../../../src/service/sepa/import';
import { credit, insertRecipient } from '../../api/payout-setting';
import { operatorsAudit } from '../../support/audit';
import { useFixture } from '../../support/fixture';
import { call, eventually } from '../../support/http';
import { retryUntilDone } from '../../support/insist';
import { BANK_MORNING, startMockBank } from '../../support/mock-bank';
import { mongodbUri, temporalAddress } from '../../support/servers';
import type { Service } from '../../support/service';

export const IBAN = 'NL41MOCK0000000001';
export const ROUTES = 'sepa=sepa_credit_transfer|multibanco';
const POLL_SECONDS = 0.1;

type Changes = NonNullable<Parameters<typeof startSepa>[2]>;
type Deliver = Awaited<ReturnType<typeof connectProcess>>['deliver'];

/** The product, the connector of SEPA files, and a bank. */
async function startWorld(service: Service, prefix: string) {
  const bank = await startMockBank();
  const temporal = { address: temporalAddress(), namespace: 'default' };
  const logged: string[] = [];
  const log = createLogger('sepa', 'info', { write: (line: string) => logged.push(line) });
  const settings = {
    ...{ SEPA_OUT_DIR: bank.drop, SEPA_IN_DIR: bank.pickup, SEPA_IBAN: IBAN, SEPA_BIC: 'MOCKNL2A' },
    ...{ SEPA_NAME: 'ACME Corporation', SEPA_CUT_OFF: 15 * 60, SEPA_POLL_SECONDS: POLL_SECONDS },
    SEPA_ADDRESS: {
      ...{ street: 'Keizersgracht 1', postal_code: '1015 CJ', town: 'Amsterdam', country: 'NL' },
    },
  };
  const config = {
    ...{ LOG_LEVEL: 'silent', METRICS_HOST: '127.0.0.1', CONNECTOR_KEY_FILE: '', temporal },
    ...{ MONGODB_URI: mongodbUri(), MONGODB_DB: service.database, TASK_QUEUE_PREFIX: prefix },
    ...({ name: 'sepa', environment: 'sandbox', isLive: false } as const),
    ...{ KEYS_DIR: service.keysDir, HOST: '127.0.0.1', CONNECTOR_PORT: undefined, settings },
  };
  const clock = { now: new Date(`${BANK_MORNING}:00Z`) };
  const start = async (changes: Changes = {}, wrap = (deliver: Deliver) => deliver) => {
    const own = await connectProcess({ connector: 'sepa' }, config, log);
    const deliver = wrap(own.deliver);
    const connector = await startSepa(
      config,
      { ...own, deliver },
      {
        now: () => clock.now,
        growsMs: Number.NEGATIVE_INFINITY,
        ...changes,
      },
    );
    connector.finished.catch(() => undefined);
    return {
      connector,
      stop: async () => {
        await connector.stop();
        await own.close();
      },
    };
  };
  let running = await start();
  const { mongo, stores } = service;
  const now = () => new Date();
  const audit = operatorsAudit(stores);
  const deps = { mongo, stores, now, audit, database: service.database, connector: 'sepa' };
  const book = openSepaBook(mongo.db(`${service.database}_sepa`));
  const listIn = (folder: string) => {
    try {
      return readdirSync(join(bank.pickup, folder)).toSorted();
    } catch {
      return [];
    }
  };
  return {
    ...{ bank, book, clock, logged, listIn },
    /** Starts the connector again, with parts that stop between two steps. */
    restart: async (changes?: Changes, wrap?: (deliver: Deliver) => Deliver): Promise<void> => {
      await running.stop();
      running = await start(changes, wrap);
    },
    activities: () => {
      const { sendPayout, lookUpPayout, cancelPayout } = running.connector.activities;
      if (!sendPayout || !lookUpPayout || !cancelPayout) throw new Error('An activity is missing.');
      return { sendPayout, lookUpPayout, cancelPayout };
    },
    cut: () => requestCut(deps),
    /** Cuts a file, and lets the bank read it. */
    send: async (): Promise<string> => {
      const [id, ...more] = await requestCut(deps);
      if (id === undefined || more.length > 0) throw new Error(`${more.length} more files`);
      await bank.scan();
      return id;
    },
    resend: (id: string) => resendFile(deps, id),
    show: (id: string) => showFile(deps, id, 10_000),
    importAll: () =>
      importTaken({
        ...deps,
        ...{ livemode: false, dir: bank.pickup, iban: IBAN, liveConnectors: '' },
        sandboxConnectors: ROUTES,
      }),
    /** Lets bank days pass, for the connector, too. */
    advance: async (days: number): Promise<void> => {
      const { clock: bankClock } = await bank.advance(days);
      clock.now = new Date(bankClock?.now ?? clock.now.getTime() + days * 86_400_000);
    },
    fileState: async (id: string) => (await book.files.findOne({ _id: id }))?.state,
    line: (id: string) => book.lines.findOne({ _id: id }),
    /** A file's state is written before those of its lines. */
    lineBecomes: (id: string, state: SepaLine['state']) =>
      eventually(`the line to be ${state}`, async () => {
        const line = await book.lines.findOne({ _id: id });
        return line?.state === state && line;
      }),
    /** A file of the bank that a test writes. */
    deliver: (name: string, text: string | Buffer): void =>
      writeFileSync(join(bank.pickup, name), text),
    readIn: (folder: string, name: string) => readFileSync(join(bank.pickup, folder, name), 'utf8'),
    /** Waits until the folder of the bank’s answers is empty, and what was in it is filed. */
    drained: () =>
      eventually('the bank’s files to be taken', async () => {
        const files = readdirSync(bank.pickup, { withFileTypes: true });
        const isEmpty = files.every((file) => !file.isFile() || file.name.startsWith('.'));
        return isEmpty && (await book.inbound.countDocuments({ state: 'taken' })) === 0;
      }),
    stop: async () => {
      await running.stop();
      await retryUntilDone(() => mongo.db(`${service.database}_sepa`).dropDatabase());
      await bank.stop();
    },
  };
}

export type SepaWorld = Awaited<ReturnType<typeof startWorld>>;

export function useSepa(service: Service, prefix: string): SepaWorld {
  return useFixture(
    () => startWorld(service, prefix),
    (world) => world.stop(),
  );
}

/** A merchant who pays by SEPA files. */
export async function openPayer(service: Service) {
  const account = await service.account();
  await credit(service, account, { amount: 100_000_000 });
  const recipient_id = await insertRecipient(service, account, 'sepa_credit_transfer');
  const pay = (changes: object = {}) =>
    call(service.url, 'POST', '/v1/payouts', {
      key: account.key,
      body: {
        ...{ recipient_id, method: 'sepa_credit_transfer', amount: 1_000, currency: 'EUR' },
        ...changes,
      },
    });
  const read = async (id: string) => (await account.get(`/v1/payouts/${id}`)).body;
  const becomes = (id: string, status: string) =>
    eventually(`a payout that is ${status}`, async () => {
      const payout = await read(id);
      return payout.status === status && payout;
    });
  return {
    ...{ account, pay, read, becomes },
    remove: (path: string) => call(service.url, 'DELETE', path, { key: account.key }),
    /** Pays, and waits until the payout is in the open batch. */
    submit: async (changes: object = {}): Promise<string> => {
      const { status, body, text } = await pay(changes);
      if (status !== 201) throw new Error(text);
      await becomes(body.id, 'submitted');
      return body.id;
    },
    balance: async () => {
      const rows = await service.stores.ledger.balances(account.account_id, false);
      const row = rows.find(({ balance_account }) => balance_account === 'main');
      return [Number(row?.available), Number(row?.reserved)] as const;
    },
    createRecipient: (details: object) =>
      call(service.url, 'POST', '/v1/payout-recipients', {
        key: account.key,
        body: {
          ...{ type: 'bank_account', first_name: 'Ada', last_name: 'Lovelace' },
          ...{ iban: 'DE89370400440532013000', address_line1: '12 Long Lane', city: 'London' },
          ...{ postal_code: 'EC1A 9PT', ...details },
        },
      }),
  };
}

export function usePayer(service: Service) {
  return useFixture(() => openPayer(service));
}

export function makePrefix(): string {
  return `sepa-${randomUUID().slice(0, 8)}`;
}
