import { randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { connectProcess } from '../../../connectors/kit/process';
import { startSepa } from '../../../connectors/sepa/connector';
import { createLogger } from '../../../src/base/log';
import { openSepaBook, type SepaLine, shortenId } from '../../../src/service/banks/sepa/book';
import {
  type ResendAct,
  requestCut,
  resendFile,
  showFile,
} from '../../../src/service/banks/sepa/files';
import { importTaken } from '../../../src/service/banks/sepa/import';
import { openShop } from '../../api/payout-setting';
import { commandsIn, useCommands } from '../../cli/cli';
import { operatorsAudit } from '../../support/audit';
import { eventually, retryUntilDone } from '../../support/eventually';
import { useFixture } from '../../support/fixture';
import { idealPayment } from '../../support/http';
import { BANK_MORNING, startMockBank } from '../../support/mock-bank';
import { type Service, useService } from '../../support/service';
import { beginPayout } from '../begin-payout';
import { connectConnector } from '../process';
import { IBAN } from './bank-files';

const ROUTES = 'sepa=sepa_credit_transfer|sepa_instant|multibanco';

type Changes = NonNullable<Parameters<typeof startSepa>[2]>;
type Settings = Parameters<typeof startSepa>[0]['settings'];
/** Carries the files of the bank to the connector, instead of a folder that both have. */
export type Relay = (from: string, to: string) => Promise<void>;

type Deliver = Awaited<ReturnType<typeof connectProcess>>['deliver'];

/** The connector of SEPA files between the product and a bank. */
async function startWorld(service: Service, prefix: string, relay?: Relay) {
  const { mongo, stores, database, keysDir } = service;
  const bank = await startMockBank();
  const inDir = relay === undefined ? bank.pickup : join(bank.pickup, '..', 'in');
  mkdirSync(inDir, { recursive: true });
  const logged: string[] = [];
  const log = createLogger('sepa', 'info', { write: (line: string) => logged.push(line) });
  const settings = {
    ...{ SEPA_OUT_DIR: bank.drop, SEPA_IN_DIR: inDir, SEPA_IBAN: IBAN, SEPA_BIC: 'MOCKNL2A' },
    ...{ SEPA_NAME: 'ACME Corporation', SEPA_CUT_OFF: 15 * 60, SEPA_POLL_SECONDS: 0.1 },
    ...{ SEPA_FILE_MIN: 1, SEPA_VERIFIED_DIR: join(bank.drop, 'verified') },
    ...({ SEPA_INSTANT: 'yes', SEPA_INSTANT_SECONDS: 0.2, SEPA_INSTANT_FINAL: 'status' } as const),
    SEPA_INSTANT_OVERDUE_SECONDS: 60,
    SEPA_ADDRESS: {
      ...{ street: 'Keizersgracht 1', postal_code: '1015 CJ', town: 'Amsterdam', country: 'NL' },
    },
  };
  const clock = { now: new Date(`${BANK_MORNING}:00Z`) };
  const stateDir = mkdtempSync(join(tmpdir(), 'sepa-state-'));
  const statePath = join(stateDir, 'sepa.sandbox.jsonl');
  const connect = async (
    { settings: other = {}, ...changes }: Changes & { settings?: Partial<Settings> } = {},
    wrap = (deliver: Deliver) => deliver,
  ) => {
    const changed = { ...settings, ...other };
    const place = { database, prefix, keysDir, settings: changed, log, stateDir };
    const { config, own } = await connectConnector('sepa', place);
    const parts = { now: () => clock.now, growsMs: Number.NEGATIVE_INFINITY, ...changes };
    const connector = await startSepa(config, { ...own, deliver: wrap(own.deliver) }, parts);
    connector.finished.catch(() => undefined);
    const metrics = () => own.registry.metrics();
    return { connector, metrics, stop: () => connector.stop().then(own.close) };
  };
  let running = await connect();
  /** Starts the connector, with parts that stop between two steps. */
  const start = async (...changes: Parameters<typeof connect>): Promise<void> => {
    running = await connect(...changes);
  };
  const stop = () => running.stop();
  const audit = operatorsAudit(stores);
  const deps = { mongo, stores, now: () => new Date(), audit, database, connector: 'sepa' };
  const ownDb = mongo.db(`${database}_sepa`);
  const book = openSepaBook(ownDb);
  const listNames = (folder: string) => (existsSync(folder) ? readdirSync(folder).toSorted() : []);
  const listIn = (folder: string) => listNames(join(inDir, folder));
  /** Waits until the folder of the bank’s answers is empty, and what was in it is filed. */
  const drained = async () => {
    await relay?.(bank.pickup, inDir);
    return await eventually('the files of the bank to be taken', async () => {
      const files = readdirSync(inDir, { withFileTypes: true });
      const isEmpty = files.every((file) => !file.isFile() || file.name.startsWith('.'));
      return isEmpty && (await book.inbound.countDocuments({ state: 'taken' })) === 0;
    });
  };
  const fileState = async (id: string) => (await book.files.findOne({ _id: id }))?.state;
  const getPath = (id: string) => join(bank.drop, `pain.001.001.09-${id}.xml`);
  const importAll = () =>
    importTaken({
      ...deps,
      ...{ livemode: false, dir: inDir, iban: IBAN, liveConnectors: '' },
      sandboxConnectors: ROUTES,
    });
  return {
    ...{ bank, inDir, book, clock, logged, listIn, importAll, drained, ownDb, start, stop },
    /** File with what the connector notes outside of MongoDB. */
    statePath,
    restart: async (...changes: Parameters<typeof connect>): Promise<void> => {
      await stop();
      await start(...changes);
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
    resend: (id: string, act?: ResendAct) => resendFile(deps, id, act),
    show: (id: string) => showFile(deps, id, 10_000),
    /** Imports what the bank has written. @returns codes with which files were refused */
    importRefusals: async () =>
      (await importAll()).flatMap(({ refusal }) => (refusal === null ? [] : [refusal.code])),
    /** Lets bank days pass, for the connector, too, and waits for the files of the bank. */
    advance: async (days: number): Promise<void> => {
      const { clock: bankClock } = await bank.advance(days);
      clock.now = new Date(bankClock?.now ?? clock.now.getTime() + days * 86_400_000);
      await drained();
    },
    fileState,
    fileBecomes: (id: string, state: string) =>
      eventually(`the file to be ${state}`, async () => (await fileState(id)) === state),
    line: (id: string) => book.lines.findOne({ _id: id }),
    /** A file's state is written before those of its lines. */
    lineBecomes: (id: string, state: SepaLine['state']) =>
      eventually(`the line to be ${state}`, async () => {
        const line = await book.lines.findOne({ _id: id });
        return line?.state === state && line;
      }),
    /** Names of our files that the bank has not read. */
    listDropped: () => readdirSync(bank.drop).filter((name) => name.startsWith('pain.001')),
    /** Names of our files that carry a payout, wherever they are. */
    listFiles: (payout_id: string) =>
      [bank.drop, join(bank.drop, 'processed')].flatMap((folder) =>
        listNames(folder).filter(
          (name) =>
            name.startsWith('pain.001') &&
            readFileSync(join(folder, name), 'utf8').includes(shortenId(payout_id)),
        ),
      ),
    readMetrics: () => running.metrics(),
    readState: () =>
      readFileSync(statePath, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    readSent: (id: string) =>
      readFileSync(join(bank.drop, 'processed', `pain.001.001.09-${id}.xml`), 'utf8'),
    /** Removes a file on its path to the bank, which never reads it. */
    drop: (id: string) => rmSync(getPath(id)),
    /** A file of the bank that a test writes. */
    deliver: (name: string, text: string): void => writeFileSync(join(inDir, name), text),
    readIn: (folder: string, name: string) => readFileSync(join(inDir, folder, name), 'utf8'),
    end: async () => {
      await stop();
      await retryUntilDone(() => ownDb.dropDatabase());
      await bank.stop();
      rmSync(stateDir, { recursive: true });
    },
  };
}

/** A merchant who pays by SEPA files. */
async function openPayer(
  service: Service,
  world: Pick<Awaited<ReturnType<typeof startWorld>>, 'send' | 'advance' | 'drained'>,
) {
  const shop = await openShop(service);
  const method = 'sepa_credit_transfer';
  const recipient_id = shop.recipients[method];
  const begin = (changes: object = {}) =>
    beginPayout(service, shop, { method, recipient_id, ...changes });
  const read = async (id: string) => (await shop.get(`/v1/payouts/${id}`)).body;
  const becomes = (id: string, status: string) =>
    eventually(`a payout that is ${status}`, async () => {
      const payout = await read(id);
      return payout.status === status && payout;
    });
  /** Pays, and waits until the payout is in the open batch. */
  const submit = async (changes: object = {}): Promise<string> => {
    const id = await begin(changes);
    await becomes(id, 'submitted');
    return id;
  };
  const complete = async (changes: object = {}): Promise<string> => {
    const payout = await submit(changes);
    await world.send();
    await becomes(payout, 'completed');
    await world.drained();
    return payout;
  };
  return {
    ...{ ...shop, begin, read, becomes, submit, complete },
    /** Opens a payment by transfer, which has to name a reference. */
    openTransfer: async (amount: number) => {
      const customer = { email: 'payer@example.com' };
      const body = idealPayment({ method: 'multibanco', country: 'PT', amount, customer });
      const id: string = (await shop.post('/v1/payments', body)).body.id;
      const { instructions } = (await service.stores.payments.get(id)) ?? {};
      if (!instructions) throw new Error(`${id} has no instructions.`);
      return { id, instructions, reference: instructions.reference };
    },
    settled: (id: string) => service.becomes('payments', id, { status: 'settled' }),
    /** Completes a payout on a day of the bank, which ends. */
    completeOnDay: async (): Promise<string> => {
      const payout = await complete();
      await world.advance(1);
      return payout;
    },
    /** Waits for an attention reason; null: for none. */
    needsAttention: (id: string, reason: string | null) =>
      eventually(`a payout with ${reason}`, async () => {
        const payout = await service.stores.payouts.get(id);
        return payout?.attention === reason && payout;
      }),
    balance: async () => {
      const [available, reserved] = await shop.balance();
      return [Number(available), Number(reserved)] as const;
    },
    createRecipient: async (details: object = {}): Promise<string> => {
      const { body } = await shop.post('/v1/payout-recipients', {
        ...{ type: 'bank_account', first_name: 'Ada', last_name: 'Lovelace' },
        ...{ iban: 'DE89370400440532013000', address_line1: '12 Long Lane', city: 'London' },
        ...{ postal_code: 'EC1A 9PT', ...details },
      });
      return body.id;
    },
  };
}

/** A product with the connector of SEPA files, its bank and a merchant, for one file's tests. */
export function useSepa(relay?: Relay) {
  const prefix = `sepa-${randomUUID().slice(0, 8)}`;
  // A product of its own: it routes to the connector of the file, whose bank has one account.
  const service = useService({ live: { connectors: '', prefix }, tests: ROUTES });
  const world = useFixture(
    () => startWorld(service, prefix, relay),
    (opened) => opened.end(),
  );
  const product = useCommands(service);
  const routes = { SANDBOX_CONNECTORS: ROUTES, TASK_QUEUE_PREFIX: prefix };
  const commands = useFixture(async () => commandsIn({ ...product.env, ...routes }));
  return { service, world, commands, payer: useFixture(() => openPayer(service, world)) };
}
