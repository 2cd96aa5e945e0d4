import {
  assetRules,
  CRYPTO_METHODS,
  formatDecimalUnits,
  formatUnits,
  parseUnits,
} from '../../domain/crypto/assets';
import { isRequestedAsset } from '../../domain/crypto/deposit';
import { CRYPTO_PAYMENT_STATUSES } from '../../domain/crypto/payment';
import { CRYPTO_SETTLEMENT_STATUSES } from '../../domain/crypto/settlement';
import { decimalMoney, formatMoney } from '../../domain/money';
import { buildCryptoPageUrl } from '../../encryption/pay-token';
import { type Documents, readResource } from '../../service/money/resources/read';
import { listDeposits, type ShownDeposit } from '../../service/operators/resource';
import { Panel, Status, Table, useCall, When } from '../frame/parts';
import { type Route, viewRoute } from '../frame/route';
import { fieldColumns } from '../resources/csv';
import { commonColumns, methodName, type ResourceList } from '../resources/kinds';
import { listRoutes } from '../resources/list';
import { answerResource, formatFailure } from '../resources/resource-page';

function decimalAssetAmount(units: string, { asset, network }: { asset: string; network: string }) {
  return formatDecimalUnits(parseUnits(units), assetRules(asset, network)?.decimals ?? 0);
}

const CRYPTO_PAYMENTS: ResourceList<'crypto_payment'> = {
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

const CRYPTO_SETTLEMENTS: ResourceList<'crypto_settlement'> = {
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

export function CryptoTabs() {
  const call = useCall();
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

export const CRYPTO_ROUTES: readonly Route[] = [
  viewRoute('/crypto', 'Crypto', async ({ href }) => ({ go: href(CRYPTO_PAYMENTS.path) })),
  ...listRoutes(CRYPTO_PAYMENTS, CryptoTabs),
  ...listRoutes(CRYPTO_SETTLEMENTS, CryptoTabs),
  viewRoute('/crypto/payments/:id', 'Crypto payment', async (call, deps) => {
    const { id = '' } = call.params;
    const result = await readResource(deps, 'crypto_payment', call.scope, id);
    if (result === null) return 'not_found';
    const { resource: payment, timeline } = result;
    const { _id, currency, asset, rate } = payment;
    const deposits = await listDeposits(deps.stores, payment);
    const payerPage = buildCryptoPageUrl(deps.publicUrl, deps.keys.pay_token, _id);
    return answerResource(call, {
      title: `Crypto payment of ${formatMoney(payment.amount, currency)}`,
      status: payment.status,
      attention: payment.attention,
      timeline,
      tabs: <CryptoTabs />,
      facts: [
        ['Id', <code key="id">{_id}</code>],
        ['Reference', payment.reference ?? '–'],
        ['Coin', methodName(payment.method)],
        ['Due', formatUnits(payment.amount_due, payment)],
        ['Received', formatUnits(payment.amount_received, payment)],
        ['Rate', `${rate} ${currency} for 1 ${asset}`],
        ['Address', <code key="address">{payment.address}</code>],
        [
          'Page of the payer',
          <a key="page" href={payerPage} rel="noopener">
            {payerPage}
          </a>,
        ],
        ['Metadata', <code key="metadata">{payment.metadata}</code>],
        ['Created', <When key="created" at={payment.created_at} />],
        ['Window ends', <When key="expires" at={payment.expires_at} />],
        ['Received at', <When key="received" at={payment.received_at} />],
      ],
      children: (
        <Panel title="Deposits">
          <Deposits payment={payment} deposits={deposits} />
        </Panel>
      ),
    });
  }),
  viewRoute('/crypto/settlements/:id', 'Settlement', async (call, deps) => {
    const { id = '' } = call.params;
    const result = await readResource(deps, 'crypto_settlement', call.scope, id);
    if (result === null) return 'not_found';
    const { resource: settlement, timeline } = result;
    return answerResource(call, {
      title: `Settlement of ${formatUnits(settlement.amount, settlement)}`,
      status: settlement.status,
      attention: settlement.attention,
      timeline,
      tabs: <CryptoTabs />,
      facts: [
        ['Id', <code key="id">{settlement._id}</code>],
        ['Coin', methodName(settlement.method)],
        ['Fee', formatUnits(settlement.fee, settlement)],
        ['Wallet', <code key="wallet">{settlement.wallet_address}</code>],
        ['Transaction', <code key="transaction">{settlement.transaction_id ?? '–'}</code>],
        ['Reason', formatFailure(settlement.failure)],
        ['Created', <When key="created" at={settlement.created_at} />],
        ['Completed', <When key="completed" at={settlement.completed_at} />],
      ],
    });
  }),
];

interface DepositsProps {
  payment: Documents['crypto_payment'];
  deposits: readonly ShownDeposit[];
}

function Deposits({ payment, deposits }: DepositsProps) {
  return (
    <Table
      label="Deposits"
      head={['Transaction', 'Amount', 'Status', 'Confirmations', 'Seen']}
      rows={deposits.filter(isRequestedAsset).map((deposit) => ({
        key: deposit.transaction_id,
        cells: [
          <code key="id">{deposit.transaction_id}</code>,
          formatUnits(deposit.amount, payment),
          <span key="status">
            <Status of={deposit.status} /> {describeFlags(deposit)}
          </span>,
          `${deposit.confirmations} of ${deposit.required_confirmations}`,
          <When key="seen" at={deposit.seen_at} />,
        ],
      }))}
      none="No deposit was seen yet."
    />
  );
}

function describeFlags({ late, undone, screening }: ShownDeposit): string {
  const flags = [late && 'late', undone && 'reorged', screening === 'failed' && 'failed screening'];
  return flags.filter((flag) => flag !== false).join(', ');
}
