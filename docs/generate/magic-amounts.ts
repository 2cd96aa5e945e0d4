import {
  CRYPTO_MAGIC_AMOUNTS,
  SETTLEMENT_MAGIC_AMOUNTS,
} from '../../connectors/sandbox/chain/magic-amounts';
import {
  MAGIC_AMOUNTS,
  PAYOUT_MAGIC_AMOUNTS,
  REFUND_MAGIC_AMOUNTS,
} from '../../connectors/sandbox/magic-amounts';
import { code, list } from './markdown';

type Amounts = Record<number, { description: string }>;

/** Amounts with which the sandbox bank misbehaves. */
export function magicAmountLists() {
  return {
    'payment-amounts': amountList(MAGIC_AMOUNTS),
    'refund-amounts': amountList(REFUND_MAGIC_AMOUNTS),
    'payout-amounts': amountList(PAYOUT_MAGIC_AMOUNTS),
    'crypto-payment-amounts': amountList(CRYPTO_MAGIC_AMOUNTS),
    'crypto-settlement-amounts': amountList(SETTLEMENT_MAGIC_AMOUNTS),
  };
}

function amountList(amounts: Amounts): string {
  const entries = Object.entries(amounts);
  return list(entries.map(([amount, { description }]) => `${code(amount)}: ${description}`));
}
