import {
  assetRules,
  CRYPTO_METHODS,
  formatDecimalUnits,
  formatUnits,
  parseUnits,
} from '../../domain/crypto/assets';
import { CRYPTO_PAYMENT_STATUSES } from '../../domain/crypto/payment';
import { CRYPTO_SETTLEMENT_STATUSES } from '../../domain/crypto/settlement';
import { decimalMoney, formatMoney } from '../../domain/money';
import type { Call } from '../frame/route';
import { fieldColumns } from '../resources/export';
import { commonColumns, type ResourceList } from '../resources/kinds';

/** Formats units as a plain decimal, for a spreadsheet. */
function decimalAssetAmount(units: string, { asset, network }: { asset: string; network: string }) {
  return formatDecimalUnits(parseUnits(units), assetRules(asset, network)?.decimals ?? 0);
}

export const CRYPTO_PAYMENTS: ResourceList<'crypto_payment'> = {
  kind: 'crypto_payment',
  title: 'Crypto payments',
  path: '/crypto/payments',
  statuses: CRYPTO_PAYMENT_STATUSES,
  methodLabel: 'Coin',
  methods: CRYPTO_METHODS,
  hint: 'Payment id or your reference',
  columns: [
    commonColumns.id,
    ['Amount', ({ amount, currency }) => formatMoney(amount, currency)],
    ['Due', (row) => formatUnits(row.amount_due, row)],
    commonColumns.status,
    ['Reference', ({ reference }) => reference ?? '–'],
    commonColumns.created,
  ],
  csv: [
    ['id', ({ _id }) => _id],
    ...fieldColumns('created_at', 'status'),
    ['amount', ({ amount, currency }) => decimalMoney(amount, currency)],
    ...fieldColumns('currency', 'asset', 'network'),
    ['amount_due', (row) => decimalAssetAmount(row.amount_due, row)],
    ['amount_received', (row) => decimalAssetAmount(row.amount_received, row)],
    ...fieldColumns('rate', 'address', 'reference', 'received_at'),
  ],
};

export const CRYPTO_SETTLEMENTS: ResourceList<'crypto_settlement'> = {
  kind: 'crypto_settlement',
  title: 'Settlements',
  path: '/crypto/settlements',
  statuses: CRYPTO_SETTLEMENT_STATUSES,
  methodLabel: 'Coin',
  methods: CRYPTO_METHODS,
  hint: 'Settlement or transaction id',
  columns: [
    commonColumns.id,
    ['Amount', (row) => formatUnits(row.amount, row)],
    commonColumns.status,
    ['Wallet', ({ wallet_address }) => <code>{wallet_address}</code>],
    commonColumns.created,
  ],
  csv: [
    ['id', ({ _id }) => _id],
    ...fieldColumns('created_at', 'status'),
    ['amount', (row) => decimalAssetAmount(row.amount, row)],
    ['fee', (row) => decimalAssetAmount(row.fee, row)],
    ...fieldColumns('asset', 'network', 'wallet_address', 'transaction_id'),
    ['failure_code', ({ failure }) => failure?.code],
    ...fieldColumns('completed_at'),
  ],
};

const TABS = [
  { name: 'Crypto payments', path: '/crypto/payments' },
  { name: 'Settlements', path: '/crypto/settlements' },
  { name: 'Wallets', path: '/crypto/wallets' },
] as const;

export function CryptoTabs({ call }: { call: Call }) {
  return (
    <nav class="tabs" aria-label="Crypto">
      {TABS.map(({ name, path }) => (
        <a
          key={path}
          href={call.href(path)}
          aria-current={call.path.startsWith(path) ? 'page' : undefined}
        >
          {name}
        </a>
      ))}
    </nav>
  );
}
