import {
  createRecipientDecrypter,
  RecipientDeleted,
} from '../../../connectors/contract/recipients';
import { readSandboxBankConfig } from '../../../connectors/sandbox/config';

const OWNER = { account_id: 'acct_1', livemode: true };
const PAYOUT = { ...OWNER, connector: 'acme', status: 'created', recipient_id: 'r' };
const RECIPIENT = { ...OWNER, sealed: 'sealed' };

/** Opener of the connector `acme` over one payout and one recipient, and what it asked for and said. */
function openerOver(payout: object | null, recipient: object | null) {
  const [opened, told]: [string[], object[]] = [[], []];
  const deps = {
    payouts: { get: async () => payout },
    recipients: { get: async () => recipient },
    encrypter: {
      decrypt: async (_sealed: string, owner: string) => {
        opened.push(owner);
        return '{}';
      },
    },
    connector: 'acme',
    log: { info: (facts: object) => told.push(facts) },
  };
  return { open: createRecipientDecrypter(Object(deps)), opened, told };
}

test.each([
  ['of another connector', { ...PAYOUT, connector: 'other' }, RECIPIENT],
  ['that was sent', { ...PAYOUT, status: 'sent' }, RECIPIENT],
  ['that has failed', { ...PAYOUT, status: 'failed' }, RECIPIENT],
  ['that is not there', null, RECIPIENT],
  ['without its recipient', PAYOUT, null],
  ['whose recipient is of another account', PAYOUT, { ...RECIPIENT, account_id: 'acct_2' }],
  ['whose recipient is of the sandbox', PAYOUT, { ...RECIPIENT, livemode: false }],
])('for a payout %s nothing is opened', async (_, payout, recipient) => {
  const { open, opened, told } = openerOver(payout, recipient);
  await expect(open('p')).rejects.toThrow(/no such|has to send/);
  expect([opened, told]).toEqual([[], []]);
});

test('one that was deleted is told apart, so that the payout is refused for good', async () => {
  const { open, opened } = openerOver(PAYOUT, { ...RECIPIENT, sealed: null });
  await expect(open('p')).rejects.toThrow(RecipientDeleted);
  expect(opened).toEqual([]);
});

test('each opening is for its record alone, and leaves a line with both ids', async () => {
  const { open, opened, told } = openerOver(PAYOUT, RECIPIENT);
  await expect(open('p')).rejects.toThrow('not what this version writes');
  expect(opened).toEqual(['recipient/r']);
  expect(told).toEqual([{ payout_id: 'p', recipient_id: 'r' }]);
});

test('the sandbox bank starts with the key pairs of recipients, and without the key file', () => {
  const servers = { MONGODB_URI: 'mongodb://localhost' };
  expect(readSandboxBankConfig({ ...servers, KEYS_DIR: 'keys' })).not.toHaveProperty('KEYS_FILE');
  expect(() => readSandboxBankConfig(servers)).toThrow('KEYS_DIR');
});
