import { randomUUID } from 'node:crypto';
import type { Deposit } from '../../src/domain/crypto/deposit';
import { buildPosition } from '../../src/domain/cursor';
import type { CryptoPaymentDocument } from '../../src/store/crypto-payments';
import type { CryptoSettlementDocument } from '../../src/store/crypto-settlements';

/** A payment in ether that is paid by one deposit, and a settlement in progress. */
export function documentsOfCrypto(owner: { account_id: string; livemode: boolean }): {
  payment: CryptoPaymentDocument;
  settlement: CryptoSettlementDocument;
} {
  const at = new Date();
  const now = at.toISOString();
  const shared = {
    ...owner,
    ...{ version: 1, transition: 1, method: 'eth_ethereum', asset: 'ETH', network: 'ethereum' },
    ...{ failure: null, created_at: now, updated_at: now, connector: 'sandbox' },
    ...{ bank_reference: null, attention: null, request_id: randomUUID(), audit: [] },
  };
  const deposit: Deposit = {
    ...{ transaction_id: '0xfeed', amount: '1000000000000000000', confirmations: 3 },
    ...{ required_confirmations: 3, seen_at: now, late: false },
    status: 'confirmed',
    screening: 'passed',
    reorged: false,
  };
  return {
    payment: {
      ...shared,
      ...{ _id: randomUUID(), position: buildPosition(at.getTime(), 0), status: 'received' },
      ...{ amount: 10_000, currency: 'EUR', rate: '100.00', accepted: false, reported: [] },
      ...{
        amount_due: deposit.amount,
        amount_received: deposit.amount,
        address: `0x${randomUUID()}`,
      },
      ...{ payment_uri: 'ethereum:0xcafe', required_confirmations: 3, deposits: [deposit] },
      ...{ reference: 'coins-1', metadata: '{}', expires_at: now, received_at: now },
      ...{ token_hash: randomUUID(), play_url: null },
    },
    settlement: {
      ...shared,
      ...{ _id: randomUUID(), position: buildPosition(at.getTime(), 0), status: 'sent' },
      ...{ amount: '5', fee: '0', currency: 'ETH.ethereum', wallet_address: '0xbeef' },
      ...{ transaction_id: null, completed_at: null, due_at: now },
    },
  };
}
