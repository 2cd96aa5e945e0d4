import { assetRules, CRYPTO_METHODS, formatUnits, unitsOf, wholeCoins } from '../../domain/crypto';
import { CRYPTO_PAYMENT_STATUSES } from '../../domain/crypto-payment';
import { CRYPTO_SETTLEMENT_STATUSES } from '../../domain/crypto-settlement';
import { decimalMoney, formatMoney } from '../../domain/money';
import type { CryptoPaymentDocument } from '../../store/crypto-payments';
import type { CryptoSettlementDocument } from '../../store/crypto-settlements';
import { type Kind, usual } from '../resources/kinds';

/** Amount as a plain decimal of whole coins, for a spreadsheet. */
function decimalCoins(units: string, { asset, network }: { asset: string; network: string }) {
  return wholeCoins(unitsOf(units), assetRules(asset, network)?.decimals ?? 0);
}

export const CRYPTO_PAYMENTS: Kind<CryptoPaymentDocument> = {
  title: 'Crypto payments',
  path: '/crypto/payments',
  statuses: CRYPTO_PAYMENT_STATUSES,
  methodLabel: 'Coin',
  methods: CRYPTO_METHODS,
  hint: 'Payment id or your reference',
  find: ({ crypto_payments }, ...owned) => crypto_payments.find(...owned),
  list: ({ crypto_payments }, filter) => crypto_payments.list(filter),
  export: ({ crypto_payments }, filter) => crypto_payments.export(filter),
  bySearch: (reference) => ({ reference }),
  columns: [
    usual.id,
    ['Amount', ({ amount, currency }) => formatMoney(amount, currency)],
    ['Due', (row) => formatUnits(row.amount_due, row)],
    usual.status,
    ['Reference', ({ reference }) => reference ?? '–'],
    usual.created,
  ],
  csv: [
    ['id', ({ _id }) => _id],
    ['created_at', ({ created_at }) => created_at],
    ['status', ({ status }) => status],
    ['amount', ({ amount, currency }) => decimalMoney(amount, currency)],
    ['currency', ({ currency }) => currency],
    ['asset', ({ asset }) => asset],
    ['network', ({ network }) => network],
    ['amount_due', (row) => decimalCoins(row.amount_due, row)],
    ['amount_received', (row) => decimalCoins(row.amount_received, row)],
    ['rate', ({ rate }) => rate],
    ['address', ({ address }) => address],
    ['reference', ({ reference }) => reference],
    ['received_at', ({ received_at }) => received_at],
  ],
};

export const CRYPTO_SETTLEMENTS: Kind<CryptoSettlementDocument> = {
  title: 'Settlements',
  path: '/crypto/settlements',
  statuses: CRYPTO_SETTLEMENT_STATUSES,
  methodLabel: 'Coin',
  methods: CRYPTO_METHODS,
  hint: 'Settlement or transaction id',
  find: ({ crypto_settlements }, ...owned) => crypto_settlements.find(...owned),
  list: ({ crypto_settlements }, filter) => crypto_settlements.list(filter),
  export: ({ crypto_settlements }, filter) => crypto_settlements.export(filter),
  bySearch: (transaction_id) => ({ transaction_id }),
  columns: [
    usual.id,
    ['Amount', (row) => formatUnits(row.amount, row)],
    usual.status,
    ['Wallet', ({ wallet_address }) => <code>{wallet_address}</code>],
    usual.created,
  ],
  csv: [
    ['id', ({ _id }) => _id],
    ['created_at', ({ created_at }) => created_at],
    ['status', ({ status }) => status],
    ['amount', (row) => decimalCoins(row.amount, row)],
    ['fee', (row) => decimalCoins(row.fee, row)],
    ['asset', ({ asset }) => asset],
    ['network', ({ network }) => network],
    ['wallet_address', ({ wallet_address }) => wallet_address],
    ['transaction_id', ({ transaction_id }) => transaction_id],
    ['failure_code', ({ failure }) => failure?.code],
    ['completed_at', ({ completed_at }) => completed_at],
  ],
};
