import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { buildPosition } from '../../src/domain/cursor';
import { createEncrypter, type Encrypter } from '../../src/encryption/encrypter';
import { readPairs } from '../../src/encryption/recipient-key-files';
import { createRecipientEncrypters } from '../../src/encryption/recipient-keys';
import { keyRingPath, listHolders } from '../../src/encryption/recipient-pairs';
import { followKeyFile, readKeys } from '../../src/encryption/service-keys';
import { createConnectors, SANDBOX_CONNECTOR } from '../../src/routing';
import type { KeyDeps } from '../../src/service/key-rotation/rotate';
import { createPayers, readPayers } from '../../src/service/payers';
import { ensureIndexes, type Stores } from '../../src/store';
import type { AccountDocument } from '../../src/store/accounts';
import { connectorKeyOwner } from '../../src/store/connector-keys';
import { endpointOwner } from '../../src/store/endpoints';
import { buildRecipient, recipientOwner } from '../../src/store/recipients';
import { totpOwner } from '../../src/store/users';
import { operatorsAudit } from '../support/audit';
import { openUser } from '../support/dashboard';
import { useFixture } from '../support/fixture';
import { retryUntilDone } from '../support/insist';
import { openProvisioning } from './cli';

/** Text that is encrypted for a recipient here. */
export const DETAILS = '{"first_name":"Ada"}';
export const SECRET = 'whsec_of_an_endpoint';

const PLAIN = { reference: null, metadata: '{}', success_url: '', error_url: '' };

export type KeysSetting = Awaited<ReturnType<typeof openKeysSetting>>;

/** A database with encrypted values and a key file of its own; no wait takes time. */
async function openKeysSetting() {
  const { stores, db, env, cli, refusal, close } = await openProvisioning();
  await retryUntilDone(() => ensureIndexes(stores));
  const [keysFile = '', keysDir = ''] = [env['KEYS_FILE'], env['KEYS_DIR']];
  const lines: string[] = [];
  const waits: number[] = [];
  const deps: KeyDeps = {
    stores,
    audit: operatorsAudit(stores),
    keysFile,
    keysDir,
    connectors: createConnectors(SANDBOX_CONNECTOR),
    // Stands at the last change of the keys, from which on a rotation waits.
    now: () => {
      const files = [
        keysFile,
        ...listHolders(keysDir).map((each) => keyRingPath(keysDir, each, 'public')),
      ];
      return new Date(Math.max(...files.map((file) => statSync(file).mtimeMs)));
    },
    wait: async (ms) => {
      waits.push(ms);
    },
    progress: (line) => lines.push(line),
  };
  /** Encrypts and decrypts as a process that has just started. */
  const createSecrets = () => createEncrypter(followKeyFile(keysFile).seal);
  const account_id = 'acct_keys';
  const encryptRecipient = async (id: string) => {
    const { sandbox } = createRecipientEncrypters(keysDir);
    const sealed = await sandbox.encrypt(DETAILS, recipientOwner(id));
    const facts = { scheme: null, has: [], card_expires: null, iban_in_sepa: null };
    const clear = { ...facts, type: 'bank_account', last4: '0000' } as const;
    return { recipient: { ...clear, sealed, kid: sandbox.getKid(sealed) } };
  };
  const addPayers = async (ids: readonly string[]): Promise<void> => {
    const log = { error: () => undefined };
    const payers = createPayers({ accounts: stores.accounts, encrypter: createSecrets(), log });
    const owner = { account_id, livemode: false };
    const names = { email: 'jan@example.com', first_name: null, last_name: null, reference: null };
    for (const [index, _id] of ids.entries()) {
      const customer = await payers.encrypt(owner, _id, names);
      if (index < ids.length - 1) {
        const place = { token_hash: _id, position: buildPosition(0, index) + _id };
        await db
          .collection<{ _id: string; customer: object }>('payments')
          .insertOne({ _id, ...owner, ...place, customer });
        continue;
      }
      const record = { ...owner, operation: 'createPayment', key: _id, fingerprint: 'f' };
      const request = { stored: { ...PLAIN, customer }, routing: Object() };
      const about = { resource_id: _id, request_id: 'req', request };
      await stores.idempotency.reserveKey({ ...record, ...about }, new Date());
    }
  };
  return {
    stores,
    db,
    cli,
    refusal,
    close,
    keysFile,
    keysDir,
    env,
    deps,
    lines,
    waits,
    createSecrets,
    current: () => readKeys(keysFile).seal.current,
    /** Current key of recipients of the sandbox. */
    currentPair: () => readPairs(keysDir, 'sandbox').current,
    recipient: async (id: string = randomUUID()): Promise<string> => {
      const owner = { id, account_id, livemode: false, request_id: 'req' };
      await stores.recipients.insert(buildRecipient(owner, await encryptRecipient(id), new Date()));
      return id;
    },
    /** Reserves a key for a recipient whose writer was killed before it stored it. */
    openRecord: async (): Promise<string> => {
      const resource_id = randomUUID();
      const use = { account_id, livemode: false, operation: 'createRecipient', key: resource_id };
      const request = await encryptRecipient(resource_id);
      const rest = { fingerprint: 'f', resource_id, request, request_id: 'req' };
      await stores.idempotency.reserveKey({ ...use, ...rest }, new Date());
      return resource_id;
    },
    endpoint: async (account: string): Promise<void> => {
      const sealed = await createSecrets().encrypt(SECRET, endpointOwner(account, false));
      const place = { account_id: account, livemode: false, url: 'https://shop.example/hook' };
      await stores.endpoints.set({ ...place, sealed, now: new Date() });
    },
    /** Person with a second factor. */
    user: async (): Promise<void> => {
      const user = await openUser(stores, account_id);
      const sealed = await createSecrets().encrypt(SECRET, totpOwner(user._id));
      const totp_offer = { session: '', until: new Date() };
      await stores.users.offerTotp(user._id, { totp_offered: sealed, totp_offer });
    },
    /** Key that a connector signs with. */
    connectorKey: async (): Promise<void> => {
      const _id = `cnkey_${randomUUID()}`;
      const sealed = await createSecrets().encrypt(SECRET, connectorKeyOwner(_id));
      const created_at = new Date().toISOString();
      const key = { _id, connector: 'sandbox', sealed, created_at, revoked_at: null };
      await stores.connectorKeys.insert(key);
    },
    /** Merchant whose sandbox has these payers, the last of them in a request. */
    payer: async (...ids: string[]): Promise<void> => {
      const dashboard = { email: 'keys@example.com' };
      const rest = { name: 'Keys', crypto: false, enabled_methods: [], dashboard };
      await stores.accounts.insert({ _id: account_id, ...rest, created_at: '2026-03-01' });
      await addPayers(ids.length === 0 ? ['some-payment'] : ids);
    },
    addPayers,
    /** Reads all stored payers, as a process with these keys and this account. */
    readPayers: async (encrypter: Encrypter, account?: AccountDocument) => {
      const getCached = () =>
        account === undefined ? stores.accounts.get(account_id) : Promise.resolve(account);
      const accounts = { ...stores.accounts, getCached, refresh: getCached };
      const log = { error: () => undefined };
      const { decrypt } = createPayers({ accounts, encrypter, log });
      const emails: (string | null)[] = [];
      for await (const batch of readPayers(stores, { account_id, livemode: false })) {
        for (const payer of batch) emails.push((await decrypt(payer)).email);
      }
      return emails;
    },
    /** Empties the database, keys stay. */
    clear: async () => {
      const collections = [
        'accounts',
        'recipients',
        'idempotency',
        'webhook_endpoints',
        'users',
        'connector_keys',
        'payments',
      ];
      for (const name of collections) {
        await db.collection(name).deleteMany();
      }
      lines.length = 0;
      waits.length = 0;
    },
  };
}

/** Stores whose `calls`-th re-encryption of a recipient, and every later one, fails: killed there. */
export function killedAfter(stores: Stores, calls: number): Stores {
  let made = 0;
  const { reencrypt } = stores.recipients;
  const recipients = {
    ...stores.recipients,
    reencrypt: (...args: Parameters<typeof reencrypt>) => {
      made += 1;
      if (made > calls) throw new Error('killed');
      return reencrypt(...args);
    },
  };
  return { ...stores, recipients };
}

/** A database for one file's tests, each of which begins without encrypted values. */
export function useKeysSetting(): KeysSetting {
  const setting = useFixture(openKeysSetting, (opened) => opened.close());
  beforeEach(() => setting.clear());
  return setting;
}
