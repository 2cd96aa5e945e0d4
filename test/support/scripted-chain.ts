import type { CryptoConnectorActivities } from '../../connectors/contract/crypto';

/** A chain that gives every address, passes every source, and records what it is sent. */
export function scriptedChain(changes: Partial<CryptoConnectorActivities> = {}) {
  const instructions: string[] = [];
  const sent = new Map<string, string>();
  const activities: CryptoConnectorActivities = {
    quoteRate: async ({ amount }) => ({
      outcome: 'quoted',
      // One unit of fiat is 10^16 wei: 100 EUR are one ether.
      amount_due: `${amount}${'0'.repeat(14)}`,
      rate: '100.00',
    }),
    giveAddress: async ({ crypto_payment_id, network }) => ({
      outcome: 'given',
      address: `${network}-${crypto_payment_id}`,
      required_confirmations: 3,
      ...(network === 'ethereum' ? { chain_id: 1 } : {}),
    }),
    screenSource: async ({ transaction_id }) =>
      transaction_id.startsWith('bad')
        ? { outcome: 'failed', code: 'listed', reason: 'The source is on a list.' }
        : { outcome: 'passed' },
    // Further than any time that a test skips to.
    readChainTime: async () => ({ reported_until: '9999-01-01T00:00:00.000Z' }),
    sendSettlement: async ({ crypto_settlement_id, amount, wallet_address }) => {
      instructions.push(`${amount} to ${wallet_address}`);
      const transaction_id = sent.get(crypto_settlement_id) ?? `out-${crypto_settlement_id}`;
      sent.set(crypto_settlement_id, transaction_id);
      return { outcome: 'sent', transaction_id };
    },
    lookUpSettlement: async ({ crypto_settlement_id }) => {
      const transaction_id = sent.get(crypto_settlement_id);
      return transaction_id === undefined
        ? { outcome: 'not_found' }
        : { outcome: 'sent', transaction_id };
    },
    ...changes,
  };
  // A worker registers the activities that an object holds itself.
  return { told: instructions, activities: { ...activities } };
}

export type ScriptedChain = ReturnType<typeof scriptedChain>;
