import {
  createRecipientDecrypter,
  RecipientDeleted,
} from '../../../connectors/contract/recipients';
import { readSandboxBankConfig } from '../../../connectors/sandbox/config';

const OWNER = { account_id: 'acct_1', livemode: true };
const PAYOUT = { ...OWNER, connector: 'acme', status: 'created', recipient_id: 'r' };
const RECIPIENT = { ...OWNER, sealed: 'ciphertext' };

/** Creates the decrypter of the connector `acme` over one payout and one recipient. */
function createDecrypter(payout: object | null, recipient: object | null) {
  const [decrypted, logged]: [string[], object[]] = [[], []];
  const decrypt = async (_ciphertext: string, owner: string) => {
    decrypted.push(owner);
    return '{}';
  };
  const deps = {
    payouts: { get: async () => payout },
    recipients: { get: async () => recipient },
    encrypter: { decrypt },
    connector: 'acme',
    log: { info: (facts: object) => logged.push(facts) },
  };
  return { read: createRecipientDecrypter(Object(deps)), decrypted, logged };
}

test.each([
  ['of another connector', { ...PAYOUT, connector: 'other' }, RECIPIENT],
  ['that was sent', { ...PAYOUT, status: 'sent' }, RECIPIENT],
  ['that has failed', { ...PAYOUT, status: 'failed' }, RECIPIENT],
  ['that does not exist', null, RECIPIENT],
  ['without its recipient', PAYOUT, null],
  ['whose recipient is of another account', PAYOUT, { ...RECIPIENT, account_id: 'acct_2' }],
  ['whose recipient is of the sandbox', PAYOUT, { ...RECIPIENT, livemode: false }],
])('nothing is decrypted for a payout %s', async (_, payout, recipient) => {
  const { read, decrypted, logged } = createDecrypter(payout, recipient);
  await expect(read('p')).rejects.toThrow(/no such|has to send/);
  expect([decrypted, logged]).toEqual([[], []]);
});

test('an erased recipient has an error of its own, so that the payout is refused for good', async () => {
  const { read, decrypted } = createDecrypter(PAYOUT, { ...RECIPIENT, sealed: null });
  await expect(read('p')).rejects.toThrow(RecipientDeleted);
  expect(decrypted).toEqual([]);
});

test('a recipient is decrypted for its own record alone, and both IDs are logged', async () => {
  const { read, decrypted, logged } = createDecrypter(PAYOUT, RECIPIENT);
  await expect(read('p')).rejects.toThrow('not what this version writes');
  expect(decrypted).toEqual(['recipient/r']);
  expect(logged).toEqual([{ payout_id: 'p', recipient_id: 'r' }]);
});

test('the sandbox bank starts with the key pairs of recipients, and without the key file', () => {
  const servers = { MONGODB_URI: 'mongodb://localhost' };
  expect(readSandboxBankConfig({ ...servers, KEYS_DIR: 'keys' })).not.toHaveProperty('KEYS_FILE');
  expect(() => readSandboxBankConfig(servers)).toThrow('KEYS_DIR');
});
