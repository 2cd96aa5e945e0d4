import {
  ASSETS,
  assetRules,
  bookCurrency,
  CRYPTO_METHODS,
  formatDecimalUnits,
  formatUnits,
  NETWORKS,
  type Network,
  parseUnits,
} from '../../domain/crypto/assets';
import { isRequestedAsset } from '../../domain/crypto/deposit';
import { CRYPTO_PAYMENT_STATUSES } from '../../domain/crypto/payment';
import { CRYPTO_SETTLEMENT_STATUSES } from '../../domain/crypto/settlement';
import { ServiceError } from '../../domain/errors';
import { decimalMoney, formatMoney } from '../../domain/money/money';
import { CreateCryptoSettlement } from '../../domain/wire/crypto';
import { tryValidate } from '../../domain/wire/validate';
import { buildCryptoPageUrl } from '../../encryption/pay-token';
import { createCryptoSettlement } from '../../service/money/crypto';
import { type BalanceRow, readBalances } from '../../service/money/read';
import { readResource } from '../../service/money/resources/read';
import { listWallets, type ShownWallet, setWallet } from '../../service/money/wallets';
import { listDeposits } from '../../service/operators/resource';
import { createInShare } from '../../service/shares';
import { Field } from '../frame/fields';
import { actOnMoney, FORM_KEY, field, newFormKey } from '../frame/form';
import { Note, PageHead, Panel, PostForm, Status, Table, useCall, When } from '../frame/parts';
import { postRoute, type Route, viewRoute } from '../frame/route';
import { fieldColumns } from '../resources/csv';
import {
  answerResource,
  commonColumns,
  formatFailure,
  methodName,
  type ResourceList,
} from '../resources/kinds';
import { listRoutes } from '../resources/list';

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

function CryptoTabs() {
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
  viewRoute('/crypto', 'Crypto', async () => ({ go: CRYPTO_PAYMENTS.path })),
  ...listRoutes(CRYPTO_PAYMENTS, CryptoTabs),
  ...listRoutes(CRYPTO_SETTLEMENTS, CryptoTabs),
  viewRoute('/crypto/payments/:id', 'Crypto payment', async (call, deps) => {
    const result = await readResource(deps, 'crypto_payment', call.scope, call.id);
    if (result === null) return 'not_found';
    const { resource: payment } = result;
    const { _id, currency, asset, rate } = payment;
    const deposits = await listDeposits(deps.stores, payment);
    const payerPage = buildCryptoPageUrl(deps.publicUrl, deps.keys.pay_token, _id);
    return answerResource(call, result, {
      title: `Crypto payment of ${formatMoney(payment.amount, currency)}`,
      attention: payment.attention,
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
          <Table
            label="Deposits"
            rows={deposits.filter(isRequestedAsset)}
            columns={[
              ['Transaction', ({ transaction_id }) => <code>{transaction_id}</code>],
              ['Amount', ({ amount }) => formatUnits(amount, payment)],
              [
                'Status',
                ({ status, late, undone, screening }) => (
                  <span>
                    <Status of={status} />{' '}
                    {[
                      late && 'late',
                      undone && 'reorged',
                      screening === 'failed' && 'failed screening',
                    ]
                      .filter((flag) => flag !== false)
                      .join(', ')}
                  </span>
                ),
              ],
              ['Confirmations', (row) => `${row.confirmations} of ${row.required_confirmations}`],
              ['Seen', ({ seen_at }) => <When at={seen_at} />],
            ]}
            none="No deposit was seen yet."
          />
        </Panel>
      ),
    });
  }),
  viewRoute('/crypto/settlements/:id', 'Settlement', async (call, deps) => {
    const result = await readResource(deps, 'crypto_settlement', call.scope, call.id);
    if (result === null) return 'not_found';
    const { resource: settlement } = result;
    return answerResource(call, result, {
      title: `Settlement of ${formatUnits(settlement.amount, settlement)}`,
      attention: settlement.attention,
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

const WALLETS_PATH = '/crypto/wallets';
const SETTLE_PATH = '/crypto/settle';

export const WALLET_ROUTES: readonly Route[] = [
  viewRoute(WALLETS_PATH, 'Wallets', async (call, deps) => {
    const { account_id, livemode } = call.scope;
    const [wallets, { balances }] = await Promise.all([
      listWallets(deps, account_id, livemode),
      readBalances(deps, call.scope),
    ]);
    const page = (
      <>
        <CryptoTabs />
        <PageHead title="Wallets" />
        <AssetBalances balances={balances} />
        {NETWORKS.map((network) => (
          <WalletPanel
            key={network}
            network={network}
            wallet={wallets.find((one) => one.network === network)}
          />
        ))}
      </>
    );
    return { page };
  }),
  postRoute(WALLETS_PATH, 'wallets.change', {
    title: 'Register a wallet',
    confirmation: {
      question: (form) =>
        `Settlements of every asset on ${field(form, 'network')} go to ${field(form, 'address')}. ` +
        'Assets that are sent to a wrong address are lost.',
      button: 'Register wallet',
      proof: 'step_up',
    },
    handle: async (call, deps) => {
      const { scope, form } = call;
      const network = NETWORKS.find((one) => one === field(form, 'network'));
      if (network === undefined) return 'not_found';
      try {
        const address = field(form, 'address');
        const wallet = await setWallet(deps, { ...scope, network, address });
        const suffix =
          wallet.counting === wallet.address ? '' : ', and takes effect after 24 hours';
        return { go: WALLETS_PATH, good: `The wallet is registered${suffix}.` };
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        return { go: WALLETS_PATH, bad: `Nothing was changed: ${error.message}` };
      }
    },
  }),
  postRoute(SETTLE_PATH, 'crypto.settle', {
    title: 'Settle now',
    confirmation: {
      question: (form) =>
        `Pay the whole balance of ${field(form, 'asset')} out to the wallet on ` +
        `${field(form, 'network')}? What was sent can't be taken back.`,
      button: 'Settle now',
      proof: 'step_up',
    },
    /** Settles under the form key, so that a repeated form settles once. */
    handle: async (call, deps) => {
      const { form } = call;
      const [asset, network, key] = [
        field(form, 'asset'),
        field(form, 'network'),
        field(form, 'key'),
      ];
      if (assetRules(asset, network) === undefined || !FORM_KEY.test(key)) return 'not_found';
      const wallet = { asset, network };
      const request = {
        ...{ caller: call.scope, requestId: call.requestId, idempotencyKey: key },
        canonical: JSON.stringify(wallet),
        fields: tryValidate(CreateCryptoSettlement, wallet),
      };
      return await actOnMoney(deps, call, {
        act: 'settlement.created',
        target: null,
        facts: { ...wallet, idempotency_key: key },
        run: () => createInShare(deps, request, () => createCryptoSettlement(deps, request)),
        path: WALLETS_PATH,
        success: ({ id }) => ({
          go: `/crypto/settlements/${id}`,
          good: 'The settlement has started. Its status shows when it has completed.',
        }),
        unknown: {
          go: WALLETS_PATH,
          bad: 'It is not known yet whether it was settled. Look at the settlements before you try again.',
        },
      });
    },
  }),
];

function AssetBalances({ balances }: { balances: readonly BalanceRow[] }) {
  const call = useCall();
  const rows = ASSETS.flatMap((asset) => {
    const balance = balances.find(({ currency }) => currency === bookCurrency(asset));
    return balance === undefined ? [] : [{ asset, balance }];
  });
  return (
    <Panel title="Balances of coins">
      <Table
        label="Balances of coins"
        rows={rows}
        columns={[
          ['Coin', ({ asset }) => asset.display_name],
          ['Available', ({ asset, balance }) => formatUnits(BigInt(balance.available), asset)],
          ['Reserved', ({ asset, balance }) => formatUnits(BigInt(balance.reserved), asset)],
          [
            'Act',
            ({ asset: { asset, network }, balance }) =>
              call.may('crypto.settle') &&
              balance.available > 0 && (
                <PostForm
                  path={SETTLE_PATH}
                  button="Settle now"
                  tone="plain"
                  hidden={{ asset, network, key: newFormKey() }}
                />
              ),
          ],
        ]}
        none="No crypto payments have been received yet."
      />
      <p class="muted small">Each balance is paid out to its wallet automatically every day.</p>
    </Panel>
  );
}

interface WalletPanelProps {
  network: Network;
  wallet: ShownWallet | undefined;
}

function WalletPanel({ network, wallet }: WalletPanelProps) {
  const call = useCall();
  const { may, scope, now } = call;
  return (
    <Panel title={`Wallet on ${network}`}>
      {wallet === undefined ? (
        <p class="muted">None is registered: its assets stay in their balances.</p>
      ) : (
        <p>
          <code>{wallet.address}</code>
        </p>
      )}
      {wallet !== undefined && wallet.counts_from > now.toISOString() && (
        <Note tone="note">
          {'It takes effect on '}
          <When at={wallet.counts_from} />
          {'; nothing is settled until then.'}
        </Note>
      )}
      {may('wallets.change') && (
        <PostForm path={WALLETS_PATH} button="Register wallet" tone="plain" hidden={{ network }}>
          <Field
            id={`address-${network}`}
            label={`Address on ${network}`}
            name="address"
            maxLength={100}
            hint={
              scope.livemode
                ? 'Its checksum is verified. It takes effect after 24 hours, in which nothing is settled.'
                : 'Its checksum is verified.'
            }
            required
          />
        </PostForm>
      )}
    </Panel>
  );
}
