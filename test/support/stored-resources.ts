import { randomInt, randomUUID } from 'node:crypto';
import type { Deposit } from '../../src/domain/crypto/deposit';
import { buildPosition } from '../../src/domain/cursor';
import type { CryptoPaymentDocument } from '../../src/store/crypto-payments';
import type { CryptoSettlementDocument } from '../../src/store/crypto-settlements';
import type { DisputeDocument } from '../../src/store/disputes';
import type { PaymentDocument } from '../../src/store/payments';
import type { PayoutDocument } from '../../src/store/payouts';
import type { RefundDocument } from '../../src/store/refunds';
import { recordEvents } from '../cli/event-log';
import { buildDisputeRow, buildPayoutRow, buildRefundRow, paymentAt } from './list-rows';
import type { Service } from './service';

interface Owner {
  account_id: string;
  livemode: boolean;
}

/** Stores a resource of each kind and an event, without workflows; returns their ids. */
export async function storeResources({ db }: Pick<Service, 'db'>, owner: Owner) {
  const { payment: cryptoPayment, settlement } = documentsOfCrypto(owner);
  const payment: PaymentDocument = {
    ...paymentAt(randomInt(900_000), new Date().toISOString()),
    ...{ ...owner, _id: randomUUID(), token_hash: randomUUID() },
  };
  const refund = buildRefundRow(payment, 0);
  const dispute = buildDisputeRow(payment);
  const payout = buildPayoutRow(payment, 1);
  await db.collection<PaymentDocument>('payments').insertOne(payment);
  await db.collection<PayoutDocument>('payouts').insertOne(payout);
  await db.collection<RefundDocument>('refunds').insertOne(refund);
  await db.collection<DisputeDocument>('disputes').insertOne(dispute);
  await db.collection<CryptoPaymentDocument>('crypto_payments').insertOne(cryptoPayment);
  await db.collection<CryptoSettlementDocument>('crypto_settlements').insertOne(settlement);
  const [event] = await recordEvents({ db }, owner.account_id, ['payment.settled']);
  await db
    .collection('events')
    .updateOne({ account_id: owner.account_id }, { $set: { livemode: owner.livemode } });
  return {
    ids: {
      payments: payment._id,
      refunds: refund._id,
      disputes: dispute._id,
      payouts: payout._id,
      events: event?._id ?? '',
      'crypto/payments': cryptoPayment._id,
      'crypto/settlements': settlement._id,
    },
    currency: payment.currency,
  };
}

/** A payment in ether that is paid by one deposit, and a settlement in progress. */
function documentsOfCrypto(owner: Owner): {
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
    ...{ key: '0xfeed', transaction_id: '0xfeed', amount: '1000000000000000000', confirmations: 3 },
    ...{ required_confirmations: 3, seen_at: now, late: false },
    status: 'confirmed',
    screening: 'passed',
  };
  return {
    payment: {
      ...shared,
      ...{ _id: randomUUID(), position: buildPosition(at.getTime(), 0), status: 'received' },
      ...{ amount: 10_000, currency: 'EUR', rate: '100.00', accepted: false, reported: [] },
      ...{ amount_due: deposit.amount, amount_received: deposit.amount },
      address: `0x${randomUUID()}`,
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
