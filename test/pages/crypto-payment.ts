import { paymentUri } from '../../src/domain/crypto/assets';
import type { CryptoPagePayment, ShownDeposit } from '../../src/pages/crypto-stage';

const DUE = '21342120000000000';
export const HALF = '10671060000000000';

/** A payment of 0.02134212 ETH that nobody has paid yet. */
export function cryptoPayment(change: Partial<CryptoPagePayment> = {}): CryptoPagePayment {
  const paid = {
    asset: 'ETH',
    network: 'ethereum',
    amount_due: DUE,
    address: '0x52908400098527886E0F7030069857D2E4169EE7',
    ...change,
  };
  return {
    account_id: 'acct_test',
    status: 'awaiting_deposit',
    amount: 4_950,
    currency: 'EUR',
    payment_uri: paymentUri({ ...paid, chain_id: 31_337 }),
    amount_received: '0',
    deposits: [],
    reference: 'order-1042',
    livemode: false,
    expires_at: new Date(Date.now() + 1_742_000).toISOString(),
    play_url: null,
    ...paid,
  };
}

/** A deposit of the whole amount, confirmed. */
export function deposit(change: Partial<ShownDeposit> = {}): ShownDeposit {
  return {
    transaction_id: `0x${'9f3c1b'.repeat(10)}abcd`,
    amount: DUE,
    confirmations: 3,
    required_confirmations: 3,
    status: 'confirmed',
    late: false,
    ...change,
  };
}
